// The annotator's page. Changes shown as kept are on the server's disk; the page holds no other copy.
import { Grid, columnWidths, letters, place } from "./grid.js";

const TOKEN = document.querySelector('meta[name="judge-token"]').content;
const $ = (id) => document.getElementById(id);
const BOOKS = ["input", "gold"];
const PAUSE_MS = 300;

let state = null;
let sheet = null; // the sheet shown in both grids, if both workbooks have it
const at = { row: 1, column: 1 };
let active = "input"; // the grid with the selected cell
let selected = null;
let waiting = 0;
let failed = false; // the server did not take the last change
let queue = Promise.resolve();
let computing = null; // start time of the computation, or null
let timer = null;
let turns = 0; // number of the last show()
let drawn = 0; // number of the show() whose windows are drawn
let filled = ""; // text of the formula bar that nobody has changed since

async function ask(method, path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: { "X-Judge-Token": TOKEN, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw Object.assign(new Error("the server does not answer: is `judge annotate` still running?"), { gone: true });
  }
  const document = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(document.error), document, { status: answer.status });
  return document;
}

// -- one change after the other ---------------------------------------------------------------

function change(path, body) {
  waiting += 1;
  showSaved();
  queue = queue.then(async () => {
    try {
      state = await ask("POST", path, { ...body, revision: state.revision });
      failed = false;
      alarm(null);
      if (!body.cells && !body.fill) for (const grid of Object.values(grids)) grid.abandon();
    } catch (error) {
      failed = Boolean(error.gone);
      if (error.state) state = error.state;
      alarm(error);
    }
    waiting -= 1;
    await show();
    if (!waiting) compute();
  });
  return queue;
}

// Computes the gold after a short pause without changes, and again after a later change.
function compute() {
  clearTimeout(timer);
  timer = null;
  if (!state.edits.length || state.preview || computing) {
    showSaved(); // the timer may have been the last thing to wait for
    return;
  }
  timer = setTimeout(() => {
    timer = null;
    if (waiting) return; // compute() is called again after the pending change
    computing = Date.now();
    const asked = state.revision;
    const clock = setInterval(showSaved, 1000);
    showSaved();
    ask("POST", "/api/compute", {}).then(
      // A result for a state before the latest change is ignored.
      (answer) => { if (answer.revision === state.revision) state = answer; },
      alarm,
    ).then(async () => {
      clearInterval(clock);
      computing = null;
      await show();
      if (!waiting && state.revision !== asked) compute();
    });
  }, PAUSE_MS);
  showSaved();
}

// -- showing ----------------------------------------------------------------------------------

async function show() {
  showState();
  if (!sheet || !state.sheets.input.concat(state.sheets.gold).includes(sheet)) {
    sheet = state.answer[0]?.sheet ?? state.sheets.input[0];
  }
  const turn = (turns += 1);
  const windows = await Promise.all(BOOKS.map(load));
  if (turn < drawn) return; // a later show() has drawn newer windows
  drawn = turn;
  const widths = columnWidths(windows.filter((each) => each?.sheet === sheet));
  BOOKS.forEach((book, index) => {
    if (windows[index]) grids[book].show(windows[index], book === "input" || $("by-hand").checked, widths);
    const typing = document.activeElement === $("formula") && $("formula").value !== filled;
    if (book === active && selected && !typing) fillBar(selected);
  });
  const rules = windows.flatMap((each, index) => (each?.conditional ?? []).map((line) => `${BOOKS[index]}: ${line}`));
  const notes = [...state.notes, ...(rules.length ? ["conditional formats are kept, but not drawn here:", ...rules] : [])];
  list("notes", notes.map((text) => [text]), "none");
  showSaved();
}

async function load(book) {
  const names = state.sheets[book];
  tabs(book, names);
  const name = names.includes(sheet) ? sheet : names[0];
  try {
    const query = new URLSearchParams({ book, sheet: name, row: at.row, column: at.column });
    return await ask("GET", `/api/window?${query}`);
  } catch (error) {
    alarm(error);
    return null;
  }
}

function tabs(book, names) {
  const answers = new Set(state.answer.map((each) => each.sheet));
  $(`${book}-tabs`).replaceChildren(...names.map((name) => {
    const tab = document.createElement("button");
    tab.textContent = name;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-selected", String(name === sheet));
    tab.classList.toggle("answer", answers.has(name));
    tab.onclick = () => go(name, 1, 1);
    return tab;
  }));
}

function go(name, row, column) {
  [sheet, at.row, at.column, selected] = [name, row, column, null];
  return show();
}

function showState() {
  const { task, preview } = state;
  document.title = `task ${task.id} – judge annotate`;
  $("suite").textContent = state.suite;
  $("task").textContent = task.id;
  $("level").textContent = task.type;
  $("position").textContent = [task.answer_sheet && !task.position.includes("!") ? `${task.answer_sheet}: ` : "", task.position].join("");
  $("instruction").textContent = task.instruction;
  $("who").textContent = state.author;
  const base = $("base");
  base.replaceChildren(...state.cases.map((number) => new Option(number, number, false, number === state.base)));
  base.disabled = state.edits.length > 0;
  base.title = base.disabled ? "undo the changes to start from another case" : "";
  $("undo").disabled = !state.edits.length;
  $("edit-count").textContent = state.edits.length ? `${state.edits.length}, for case ${state.number}` : "";
  list("edits", state.edits.map((text) => [text]), "none yet: type into a cell of the input");
  showPreview(preview);
}

function showPreview(preview) {
  const stale = state.edits.length > 0 && !preview;
  $("gold-grid").classList.toggle("stale", stale || (preview && !preview.has_gold));
  const agreeing = (preview?.sources ?? []).filter((each) => each.agrees).map((each) => each.name);
  $("gold-how").textContent = stale ? ""
    : !preview ? `of case ${state.base}`
      : !preview.has_gold ? `unknown: this is the gold of case ${state.base}`
        : agreeing.length ? `by ${agreeing.join(", ")}` : "by hand";
  $("moved-count").textContent = preview ? `${preview.moved_count} cells moved` : "";
  list("moved", (preview?.moved ?? []).map((each) => [each]), preview ? "nothing moved" : "", (item, [each]) => {
    const link = document.createElement("a");
    link.textContent = each.cell;
    link.onclick = () => reveal(each.sheet, each.cell);
    const before = document.createElement("span");
    before.className = "before";
    before.textContent = each.before || "blank";
    item.append(link, " ", before, ` → ${each.after || "blank"}`);
  });
  const rules = [
    ...(preview?.errors ?? []).map((text) => [text, "error"]),
    // The cells of a source with another answer are listed one by one below.
    ...(preview?.warnings ?? []).filter((text) => !preview.sources.some((each) =>
      each.agrees === false && text.startsWith(`${each.name} says something else`)))
      .map((text) => [text, "warning"]),
    ...(preview?.sources ?? []).flatMap((each) => each.agrees === false
      ? each.differences.map((line) => [`${each.name}: ${line}`, "warning"]) : []),
  ];
  if (preview && !preview.errors.length) rules.push(["the rules of the manual hold", "fine"]);
  list("rules", rules, stale ? "not checked yet" : "checked after the first change");
}

function list(id, items, empty, fill) {
  const made = items.map((entry) => {
    const item = document.createElement("li");
    if (fill) fill(item, entry);
    else [item.textContent, item.className] = [entry[0], entry[1] ?? ""];
    return item;
  });
  if (!made.length && empty) {
    const item = document.createElement("li");
    [item.textContent, item.className] = [empty, "empty"];
    made.push(item);
  }
  $(id).replaceChildren(...made);
}

// Says "kept" only after the server has written the change to its disk.
function showSaved() {
  const says = (text, kind) => { $("saved").textContent = text; $("saved").className = kind; };
  if (failed) says("not kept: the server is gone", "bad");
  else if (waiting) says("keeping …", "busy");
  else if (computing || timer) {
    const seconds = computing ? Math.floor((Date.now() - computing) / 1000) : 0;
    says(`draft kept; computing the gold …${seconds > 2 ? ` ${seconds} s` : ""}`, "busy");
  }
  else if (state.saved) says(`saved as case ${state.saved.number}`, "good");
  else if (state.edits.length) says(`draft of case ${state.number} kept, not saved as a case yet`, "");
  else says("nothing changed", "");
  const { preview } = state;
  const busy = Boolean(waiting || computing || timer);
  if (state.edits.length && !preview) $("gold-how").textContent = busy ? "computing …" : "not computed";
  $("again").hidden = busy || Boolean(preview || !state.edits.length);
  $("save").disabled = Boolean(busy || failed || !preview || !preview.has_gold || preview.errors.length);
}

function alarm(error) {
  $("alert").hidden = !error;
  $("alert").textContent = error ? [error.message, error.hint].filter(Boolean).join("\n") : "";
}

async function reveal(name, cell) {
  showPane(active);
  if (sheet !== name || !grids[active].reveal(cell)) {
    const [row, column] = place(cell);
    await go(name, Math.max(1, row - 20), grids[active].shows(column) ? at.column : Math.max(1, column - 3));
  }
  for (const book of [BOOKS.find((each) => each !== active), active]) grids[book].reveal(cell);
}

// -- what the annotator does ----------------------------------------------------------------------

function fillBar(name) {
  selected = name;
  $("cell-name").value = name ?? "";
  $("formula").value = filled = name ? grids[active].rawAt(name) : "";
  $("formula").readOnly = !grids[active].editable;
  $("format").textContent = grids[active].window.formats[name] ?? "";
}

function makeGrid(book) {
  return new Grid($(`${book}-grid`), {
    typed: (cells) => change("/api/change", { book, sheet: grids[book].window.sheet, cells }),
    selected: (name) => { active = book; fillBar(name); },
    page: (row, column) => go(sheet, row, column),
  });
}

const grids = Object.fromEntries(BOOKS.map((book) => [book, makeGrid(book)]));

function onSelection(act) {
  const area = grids[active].selection();
  if (area) act(area, grids[active].window.sheet);
  else alarm(new Error("select a cell first"));
}

// On a small screen only one of the three panes is shown.
function showPane(pane) {
  document.body.dataset.shown = pane;
  for (const tab of document.querySelectorAll("#panes .tab")) {
    tab.setAttribute("aria-selected", String(tab.dataset.pane === pane));
  }
}
for (const tab of document.querySelectorAll("#panes .tab")) tab.onclick = () => showPane(tab.dataset.pane);

$("formula").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !selected || $("formula").readOnly) return;
  const text = $("formula").value;
  if (text === grids[active].rawAt(selected)) return;
  filled = text;
  change("/api/change", { book: active, sheet: grids[active].window.sheet, cells: [{ cell: selected, text }] });
});
$("cell-name").addEventListener("keydown", (event) => {
  const cell = $("cell-name").value.trim().toUpperCase();
  if (event.key === "Enter" && /^[A-Z]{1,3}[1-9]\d{0,6}$/.test(cell)) reveal(sheet, cell);
});
$("undo").onclick = () => change("/api/undo", {});
$("insert-row").onclick = () => onSelection(([top, , bottom], name) =>
  change("/api/change", { book: active, sheet: name, insert_rows: top, count: bottom - top + 1 }));
$("delete-row").onclick = () => onSelection(([top, , bottom], name) =>
  change("/api/change", { book: active, sheet: name, delete_rows: top, count: bottom - top + 1 }));
$("apply-fill").onclick = () => onSelection(([top, left, bottom, right], name) => {
  const corner = (row, column) => grids[active].name(column - grids[active].window.first_column, row - grids[active].window.first_row);
  change("/api/change", { book: active, sheet: name, fill: $("fill").value, range: `${corner(top, left)}:${corner(bottom, right)}` });
});
$("base").onchange = () => change("/api/base", { case: Number($("base").value) });
$("by-hand").onchange = () => grids.gold.allow($("by-hand").checked);
$("again").onclick = () => { alarm(null); compute(); };
$("save").onclick = () => {
  $("saving-title").textContent = `Save as case ${state.number}`;
  list("doubts", state.preview.warnings.map((text) => [text]), "");
  $("saving").returnValue = "";
  $("saving").showModal();
  $("note").focus();
};
$("saving").addEventListener("close", () => {
  if ($("saving").returnValue === "save") {
    change("/api/save", { note: $("note").value.trim() });
    $("note").value = "";
  }
});
// The grid drops its selection if something else is clicked, but these buttons need the selection.
for (const each of document.querySelectorAll("#bar button, #bar .button")) {
  each.addEventListener("mousedown", (event) => event.stopPropagation());
}
// Both grids show the same rows.
for (const [book, other] of [BOOKS, [...BOOKS].reverse()]) {
  $(`${book}-grid`).addEventListener("scroll", (event) => {
    const here = event.target;
    const there = grids[other].scroller();
    if (!there || here !== grids[book].scroller()) return;
    if (there.scrollTop !== here.scrollTop) there.scrollTop = here.scrollTop;
    if (there.scrollLeft !== here.scrollLeft) there.scrollLeft = here.scrollLeft;
  }, true);
}
// The grid's own undo does not know about the draft.
document.addEventListener("keydown", (event) => {
  const typing = ["INPUT", "TEXTAREA"].includes(event.target.tagName) && !event.target.classList.contains("jss_textarea");
  if ((event.ctrlKey || event.metaKey) && ["z", "y"].includes(event.key.toLowerCase()) && !typing) {
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.key.toLowerCase() === "z" && state.edits.length) change("/api/undo", {});
  }
}, true);
window.addEventListener("beforeunload", (event) => { if (waiting || failed) event.preventDefault(); });

ask("GET", "/api/state").then(async (answer) => {
  state = answer;
  if (state.resumed && state.edits.length) {
    alarm(new Error(`your draft of case ${state.number} was resumed; number of changes: ${state.edits.length}`));
  }
  if (state.answer.length) at.row = Math.max(1, state.answer[0].row > 150 ? state.answer[0].row - 5 : 1);
  await show();
  if (state.answer.length) {
    const { row, column } = state.answer[0];
    for (const grid of Object.values(grids)) grid.scrollTo(letters(column) + row);
  }
  compute();
}, alarm);
