// A desktop in the browser: shows its picture on a canvas, and sends mouse and keyboard events back.
// The session is on the server, so a reload of this page loses nothing.

const $ = (id) => document.getElementById(id);
const screen = $("screen");
const keys = $("keys");
const drawing = screen.getContext("2d");
const FLUSH_MS = 25;
const WHEEL = 100; // distance of the wheel that counts as one click
const REALLY_MS = 4000;
const MAX_TEXT = 5000; // characters at a time
const JUDGING_MS = 300; // between two requests for the verdict

let state = null;
let seenAt = 0; // when the state was received, for the clock
let events = [];
let timer = null;
let sending = Promise.resolve();
let wheel = 0;
let finishing = null; // this page's request to end the session

function alarm(error) {
  $("alarm").hidden = !error;
  if (error) $("alarm").replaceChildren(...visible([error.message, error.hint].filter(Boolean).join(" ")));
}

// -- from the server -------------------------------------------------------------------------------

function showState(found) {
  state = found;
  seenAt = performance.now();
  $("steps").textContent = `${state.steps} ${state.steps === 1 ? "step" : "steps"}`;
  showClock();
  const working = state.phase === "working";
  for (const button of document.querySelectorAll("header button")) button.disabled = !working;
  $("waiting").hidden = screen.width > 1 || !working;
  if (state.failure) alarm(new Error(state.failure));
  if (state.phase === "judging") $("waiting").textContent = "saved; it is being judged";
  if (state.phase === "judging") $("waiting").hidden = false;
  if (state.result) showResult(state.result);
}

function showClock() {
  const running = state.phase === "working" ? (performance.now() - seenAt) / 1000 : 0;
  const seconds = Math.floor(state.seconds + running);
  $("clock").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function showResult({ verdict, description, cause, lines }) {
  $("result").hidden = false;
  $("result").dataset.verdict = verdict;
  $("result").replaceChildren(
    h("h1", {}, `${verdict}: ${description}`),
    cause ? h("p", {}, ...visible(cause, { lines: true })) : "",
    lines.length ? h("pre", {}, ...visible(lines.join("\n"), { lines: true })) : "",
  );
}

async function draw(png) {
  const bytes = Uint8Array.from(atob(png), (character) => character.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  if (screen.width !== picture.width || screen.height !== picture.height) [screen.width, screen.height] = [picture.width, picture.height];
  drawing.drawImage(picture, 0, 0);
  picture.close();
}

const isOver = (found) => ["over", "broken"].includes(found?.phase);

// Runs until the session ends. Once the end is shown, no request is pending, so the server may stop.
async function watch() {
  let known = "";
  while (!isOver(state)) {
    try {
      const frame = await ask("GET", `/api/frame?${new URLSearchParams({ known })}`);
      if (frame.png) await draw(frame.png);
      if (frame.digest) known = frame.digest;
      screen.dataset.frame = known;
      if (isOver(frame.state)) await finishing?.catch(() => {});
      if (isOver(state)) return; // the request to finish was answered, and shows the result
      alarm(null);
      showState(frame.state);
      if (state.phase === "judging") await pause(JUDGING_MS);
    } catch (error) {
      if (isOver(state)) return;
      alarm(error);
      if (!error.gone) return;
      await pause(2000);
    }
  }
}

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

// -- to the server ---------------------------------------------------------------------------------

function put(event) {
  if (state?.phase !== "working") return;
  const last = events.at(-1);
  if (event.kind === "move" && last?.kind === "move") events.pop(); // only the latest position counts
  events.push(event);
  timer ??= setTimeout(flush, FLUSH_MS);
}

function flush() {
  timer = null;
  const batch = events;
  events = [];
  if (batch.length) sending = sending.then(() => ask("POST", "/api/input", { events: batch })).catch(alarm);
  return sending;
}

const held = (event) => ["ctrl", "shift", "alt"].filter((name) => event[`${name}Key`]);

// The position of an event on the desktop; in full screen, there can be bars around the picture.
function place(event) {
  const box = screen.getBoundingClientRect();
  const scale = Math.min(box.width / screen.width, box.height / screen.height);
  const left = box.left + (box.width - screen.width * scale) / 2;
  const top = box.top + (box.height - screen.height * scale) / 2;
  return { x: Math.round((event.clientX - left) / scale), y: Math.round((event.clientY - top) / scale) };
}

const BUTTONS = ["left", "middle", "right"];

function mouse(kind, event, detail) {
  put({ kind, ...place(event), detail, held: held(event) });
}

screen.addEventListener("pointermove", (event) => mouse("move", event, ""));
screen.addEventListener("pointerdown", (event) => {
  if (!BUTTONS[event.button]) return;
  event.preventDefault();
  keys.focus();
  screen.setPointerCapture(event.pointerId);
  mouse("press", event, BUTTONS[event.button]);
});
screen.addEventListener("pointerup", (event) => {
  if (BUTTONS[event.button]) mouse("release", event, BUTTONS[event.button]);
});
screen.addEventListener("contextmenu", (event) => event.preventDefault());
screen.addEventListener("wheel", (event) => {
  event.preventDefault();
  wheel -= event.deltaMode === 0 ? event.deltaY : event.deltaY * WHEEL / 3;
  const clicks = Math.trunc(wheel / WHEEL);
  wheel -= clicks * WHEEL;
  if (clicks) mouse("scroll", event, String(clicks));
}, { passive: false });

// Characters are taken from input events, so that dead keys, input methods and pasted text work too.
keys.addEventListener("keydown", (event) => {
  if (event.isComposing || event.key === "Dead" || event.key === "Process") return;
  const written = [...event.key].length === 1;
  if (written && (event.getModifierState("AltGraph") || !(event.ctrlKey || event.altKey || event.metaKey))) return;
  event.preventDefault();
  if (["Control", "Shift", "Alt", "Meta", "AltGraph"].includes(event.key)) put({ kind: "held", held: held(event) });
  else put({ kind: "key", detail: event.key, held: held(event) });
});
keys.addEventListener("keyup", (event) => put({ kind: "held", held: held(event) }));
keys.addEventListener("blur", () => put({ kind: "held", held: [] }));

function takeText() {
  const text = keys.value;
  keys.value = "";
  for (let from = 0; from < text.length; from += MAX_TEXT) put({ kind: "text", detail: text.slice(from, from + MAX_TEXT) });
}

keys.addEventListener("input", (event) => { if (!event.isComposing) takeText(); });
keys.addEventListener("compositionend", takeText);

// -- the end of the session ------------------------------------------------------------------------

async function finish(ending) {
  for (const button of document.querySelectorAll("header button")) button.disabled = true;
  try {
    await flush();
    finishing = ask("POST", "/api/finish", { ending });
    state = await finishing;
    await watching;
    alarm(null);
    showState(state);
  } catch (error) {
    alarm(error);
  }
}

$("done").addEventListener("click", () => finish("done"));

for (const button of document.querySelectorAll("[data-ending]")) {
  const label = button.textContent;
  button.addEventListener("click", () => {
    if (button.dataset.asked) {
      finish(button.dataset.ending);
      return;
    }
    button.dataset.asked = "1"; // a single accidental click must not end half an hour of work
    button.textContent = `${label}: sure?`;
    setTimeout(() => {
      delete button.dataset.asked;
      button.textContent = label;
    }, REALLY_MS);
  });
}

$("whole").addEventListener("click", async () => {
  await $("stage").requestFullscreen();
  await navigator.keyboard?.lock?.(); // now ctrl+w, ctrl+t and the like reach the desktop
  keys.focus();
});

setInterval(() => { if (state) showClock(); }, 500);
keys.focus();
const watching = watch();
