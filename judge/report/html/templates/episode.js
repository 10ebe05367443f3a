"use strict";
// A desktop episode, shown turn by turn. Mouse actions are drawn over the screenshot, which itself
// stays unchanged.

const SVG = "http://www.w3.org/2000/svg";
const PLAY_MS = 1600;

function s(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

const secondsText = (value) => `${value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 })} s`;

function outcomeOf(turn) {
  if (turn.problem) return "empty";
  if (turn.actions.some((action) => action.refused)) return "refused";
  if (turn.actions.some((action) => action.error)) return "failed";
  const last = turn.actions.at(-1);
  if (last?.kind === "signal") return last.pieces[0][1].toLowerCase();
  return "done-so";
}

const OUTCOMES = { empty: "no action", refused: "refused", failed: "failed", done: "DONE", fail: "FAIL", wait: "WAIT", "done-so": "performed" };

// -- positions in the table of a tree -------------------------------------------------------------

const MAX_BOXES = 2000;
const pairOf = (text) => /^\((-?\d{1,5}), ?(-?\d{1,5})\)$/.exec(text ?? "")?.slice(1).map(Number);

// Reads the box of a line from the columns that the table's header names.
function placeReader(head) {
  const position = head.findIndex((name) => name.startsWith("position"));
  const size = head.findIndex((name) => name.startsWith("size"));
  return (line) => {
    const [x, y] = pairOf(line[position]) ?? [];
    const [width, height] = pairOf(line[size]) ?? [];
    return x === undefined || width === undefined || width < 0 || height < 0 ? null : { x, y, width, height };
  };
}

function boxesOf({ rows }) {
  const [head, ...lines] = rows.length ? rows : [[]];
  const read = placeReader(head);
  const boxes = lines.slice(0, MAX_BOXES).map((line) => ({ ...read(line), words: line[2] || line[1] || "" }));
  return boxes.filter((box) => box.width !== undefined);
}

function boxParts({ x, y, width, height, words }) {
  const shown = visible(words.slice(0, Math.max(1, Math.floor(width / 8)))).map((piece) => piece.textContent ?? piece);
  return [s("rect", { class: "box", x, y, width, height }), s("text", { class: "words", x: x + 3, y: y + height / 2 + 5 }, shown.join(""))];
}

class Episode {
  constructor(episode, onTurn) {
    this.episode = episode;
    this.onTurn = onTurn;
    this.place = 0;
    this.playing = null;
    this.drawn = true;
    this.words = "";
    this.element = this.#build();
  }

  // -- parts ---------------------------------------------------------------------------------------

  #build() {
    const { episode } = this;
    const facts = episode.facts.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, ...visible(text))));
    const heading = h("h3", {}, "Episode");
    const about = h("details", { class: "epfacts" }, h("summary", {}, "Settings of the desktop"), h("dl", { class: "factgrid" }, ...facts));
    if (!episode.turns.length) {
      const said = episode.problem ? h("p", { class: "note" }, ...visible(episode.problem)) : h("p", { class: "note epend" }, "No turn was taken. ", ...(episode.ended ? [h("b", {}, "End: "), ...visible(episode.ended)] : []));
      return h("section", { class: "episode", "aria-label": "episode" }, heading, said, facts.length ? about : "");
    }
    this.play = h("button", { type: "button", class: "epplay", onclick: () => this.toggle() }, "▶ Play");
    this.count = h("span", { class: "epcount", role: "status" });
    this.timeline = h("ol", { class: "timeline", "aria-label": "turns" }, ...episode.turns.map((turn, place) => this.#tick(turn, place)));
    this.image = h("img", { alt: "" });
    this.overlay = s("svg", { class: "epmarks", "aria-hidden": "true" });
    this.missing = h("p", { class: "note", hidden: true });
    this.shot = h("div", { class: "shot" }, this.image, this.overlay);
    this.image.addEventListener("load", () => this.#draw());
    this.image.addEventListener("error", () => this.#noPicture("the picture cannot be decoded"));
    this.shot.addEventListener("click", () => this.zoom());
    this.done = h("ol", { class: "epdone", "aria-label": "mouse and keyboard" });
    this.where = h("p", { class: "epwhere quiet" });
    this.panel = h("div", { class: "eppanel" });
    this.tree = h("details", { class: "eptree" });
    this.tree.addEventListener("toggle", () => this.#showTree());
    const bar = h(
      "div",
      { class: "epbar" },
      h("button", { type: "button", title: "previous turn (←)", onclick: () => this.step(-1) }, "‹"),
      this.play,
      h("button", { type: "button", title: "next turn (→)", onclick: () => this.step(1) }, "›"),
      this.count,
      h("span", { class: "spring" }),
      h("button", { type: "button", title: "show or hide mouse and keyboard actions (m)", "aria-pressed": "true", class: "epmark", onclick: () => this.marks() }, "marks"),
      h("button", { type: "button", title: "full size, or fit to the page (z)", "aria-pressed": "false", class: "epzoom", onclick: () => this.zoom() }, "1:1"),
    );
    const stage = h("div", { class: "stage" }, h("figure", {}, this.shot, this.missing, this.done, this.where), this.panel);
    const more = episode.more_turns ? h("p", { class: "note" }, `${episode.more_turns} further turns are not shown.`) : "";
    return h("section", { class: "episode", "aria-label": "episode" }, heading, bar, this.timeline, stage, this.tree, more, about);
  }

  #tick(turn, place) {
    const outcome = outcomeOf(turn);
    const label = `turn ${turn.number}, ${secondsText(turn.start_s)}: ${OUTCOMES[outcome] ?? outcome}`;
    const button = h("button", { type: "button", class: `tick o-${outcome}`, title: label, "aria-label": label, onclick: () => this.show(place) }, String(turn.number));
    return h("li", {}, button);
  }

  // -- steps ---------------------------------------------------------------------------------------

  step(by) {
    const place = this.place + by;
    if (place < 0 || place >= this.episode.turns.length) return false;
    this.show(place);
    return true;
  }

  show(place) {
    const { turns } = this.episode;
    if (!turns.length) return;
    this.place = Math.max(0, Math.min(place, turns.length - 1));
    const turn = turns[this.place];
    this.count.replaceChildren(h("b", {}, `Turn ${turn.number} of ${turns.length + this.episode.more_turns}`), ` · ${secondsText(turn.start_s)}${this.episode.seconds === null ? "" : ` of ${secondsText(this.episode.seconds)}`}`);
    [...this.timeline.querySelectorAll("button")].forEach((each, index) => {
      each.toggleAttribute("aria-current", index === this.place);
      if (index === this.place) this.#reveal(each);
    });
    this.#showPicture(turn);
    this.#showDone(turn);
    this.panel.replaceChildren(...this.#said(turn));
    const summary = h("summary", {}, "Accessibility tree");
    this.tree.hidden = turn.table === null;
    this.tree.replaceChildren(summary);
    this.#showTree();
    this.onTurn(turn.number);
  }

  #reveal(tick) {
    const strip = this.timeline;
    const middle = tick.offsetLeft - strip.offsetLeft + tick.offsetWidth / 2;
    strip.scrollLeft = middle - strip.clientWidth / 2;
  }

  toggle() {
    if (this.playing !== null) return this.stop();
    if (this.place === this.episode.turns.length - 1) this.show(0);
    this.playing = setInterval(() => {
      if (!this.element.isConnected || !this.step(1)) this.stop();
    }, PLAY_MS);
    this.play.textContent = "❚❚ Pause";
    return undefined;
  }

  stop() {
    clearInterval(this.playing);
    this.playing = null;
    if (this.play) this.play.textContent = "▶ Play";
  }

  marks() {
    this.drawn = !this.drawn;
    this.element.querySelector(".epmark")?.setAttribute("aria-pressed", String(this.drawn));
    this.#draw();
  }

  zoom() {
    const whole = this.shot.classList.toggle("full");
    this.element.querySelector(".epzoom")?.setAttribute("aria-pressed", String(whole));
    this.#draw();
    const mark = this.#turn()?.actions.flatMap((action) => action.marks)[0];
    if (whole && mark) this.shot.scrollTo(mark.x - this.shot.clientWidth / 2, mark.y - this.shot.clientHeight / 2);
  }

  #turn() {
    return this.episode.turns[this.place];
  }

  // -- the picture ---------------------------------------------------------------------------------

  #showPicture({ picture, number, table }) {
    this.outline = null;
    if (picture === null) return this.#showOutline(table);
    if (picture.problem !== undefined) return this.#noPicture(picture.problem);
    const text = pictureText(picture.sha256);
    if (text === null) return this.#noPicture("This screenshot is left out, since all of them would make the file too large; judge view shows it.");
    this.shot.hidden = this.image.hidden = false;
    this.missing.hidden = true;
    this.size = [picture.width, picture.height];
    this.image.setAttribute("width", String(picture.width));
    this.image.setAttribute("height", String(picture.height));
    this.image.alt = `screenshot before the actions of turn ${number}`;
    this.image.src = `data:${pictureType(picture)};base64,${text}`;
    this.#draw();
    return undefined;
  }

  // Without a screenshot, the listed elements are drawn at their positions.
  #showOutline(table) {
    const found = table === null ? [] : boxesOf(this.episode.tables[table]);
    if (!found.length) return this.#noPicture("No screenshot was shown in this turn.");
    const turn = this.#turn();
    this.size = [turn.width || Math.max(...found.map((each) => each.x + each.width)), turn.height || Math.max(...found.map((each) => each.y + each.height))];
    this.image.hidden = true;
    this.image.removeAttribute("src");
    this.shot.hidden = false;
    this.missing.hidden = false;
    this.missing.replaceChildren("No screenshot was shown in this turn. These are the elements of the tree, at the positions that it gives.");
    this.outline = found;
    this.#draw();
    return undefined;
  }

  #noPicture(why) {
    this.shot.hidden = true;
    this.missing.hidden = false;
    this.missing.replaceChildren(...visible(why));
    this.image.removeAttribute("src");
  }

  #draw() {
    this.overlay.replaceChildren();
    this.overlay.classList.toggle("outline", Boolean(this.outline));
    if (this.shot.hidden || !this.size) return;
    const [width, height] = this.size;
    this.overlay.setAttribute("viewBox", `0 0 ${width} ${height}`);
    // This size applies if every pixel is shown; otherwise the style sheet overrides it.
    this.overlay.setAttribute("width", String(width));
    this.overlay.setAttribute("height", String(height));
    // Marks have the same size on every screen.
    const unit = width / (this.image.clientWidth || this.overlay.clientWidth || width);
    for (const box of this.outline ?? []) this.overlay.append(...boxParts(box));
    this.pointer = s("rect", { class: "pointer", width: 0, height: 0 });
    this.overlay.append(this.pointer);
    if (!this.drawn) return;
    const labels = [];
    this.#turn().actions.flatMap((action) => action.marks).forEach((mark, index) => {
      this.overlay.append(...this.#mark(mark, unit));
      if (mark.kind === "type" || mark.kind === "keys" || mark.kind === "move") return;
      // Numbers of actions at the same position are written side by side, not on top of each other.
      const near = labels.find((label) => Math.abs(label.x - mark.x) < 12 * unit && Math.abs(label.y - mark.y) < 12 * unit);
      if (near) near.numbers.push(index + 1);
      else labels.push({ x: mark.x, y: mark.y, numbers: [index + 1] });
    });
    this.overlay.append(...labels.map((label) => this.#label(label, unit)));
  }

  #label({ x, y, numbers }, unit) {
    // The label is on the side where it fits.
    const side = x > this.size[0] - 60 * unit ? -1 : 1;
    const above = y > 30 * unit ? -12 * unit : 26 * unit;
    const text = numbers.length > 3 ? `${numbers[0]}–${numbers.at(-1)}` : numbers.join(", ");
    return s("text", { x: x + side * 14 * unit, y: y + above, "font-size": 13 * unit, "text-anchor": side > 0 ? "start" : "end" }, text);
  }

  #mark({ kind, x, y, to_x: toX, to_y: toY, times }, unit) {
    if (kind === "type" || kind === "keys") return [];
    if (kind === "move") return [s("path", { class: "epmove", d: `M${x - 7 * unit} ${y}h${14 * unit}M${x} ${y - 7 * unit}v${14 * unit}` })];
    const parts = [];
    if (kind === "drag") {
      const angle = Math.atan2(toY - y, toX - x);
      const wing = (turn) => `L${toX - 10 * unit * Math.cos(angle + turn)} ${toY - 10 * unit * Math.sin(angle + turn)}`;
      const tip = wing(0.5) + `M${toX} ${toY}` + wing(-0.5);
      parts.push(s("path", { class: "halo", d: `M${x} ${y}L${toX} ${toY}` }), s("path", { class: "line", d: `M${x} ${y}L${toX} ${toY}${tip}` }));
    }
    if (kind === "scroll") parts.push(s("path", { class: "line", d: `M${x} ${y - 16 * unit}V${y + 16 * unit}M${x - 5 * unit} ${y - 11 * unit}L${x} ${y - 16 * unit}L${x + 5 * unit} ${y - 11 * unit}M${x - 5 * unit} ${y + 11 * unit}L${x} ${y + 16 * unit}L${x + 5 * unit} ${y + 11 * unit}` }));
    else {
      for (let ring = 0; ring < Math.min(times, 3); ring += 1) {
        const r = (9 + 4 * ring) * unit;
        parts.push(s("circle", { class: "halo", cx: x, cy: y, r }), s("circle", { class: "ring", cx: x, cy: y, r }));
      }
    }
    return parts;
  }

  #showDone(turn) {
    const marks = turn.actions.flatMap((action) => action.marks);
    this.done.replaceChildren(
      ...marks.map(({ kind, x, y, to_x: toX, to_y: toY, times, text }) => {
        const often = times > 1 && kind !== "type" ? ` × ${times}` : "";
        const place = kind === "drag" ? `${x}, ${y} → ${toX}, ${toY}` : `${x}, ${y}`;
        if (kind === "type" || kind === "keys") return h("li", {}, `${kind === "type" ? "types" : "presses"} `, h("kbd", {}, ...visible(text)));
        if (kind === "scroll") return h("li", {}, "scroll ", ...visible(text), `${often} `, h("span", { class: "quiet" }, place));
        return h("li", {}, ...(text ? [...visible(text), " "] : []), `${kind}${often} `, h("span", { class: "quiet" }, place));
      }),
    );
    this.where.replaceChildren(...visible(turn.windows.join(" · ")));
  }

  // Marks the element of a line of the tree on the screenshot.
  #point(box) {
    for (const name of ["x", "y", "width", "height"]) this.pointer?.setAttribute(name, String(box?.[name] ?? 0));
  }

  // -- reply and actions ---------------------------------------------------------------------------

  #said(turn) {
    const parts = [];
    const add = (title, ...nodes) => parts.push(h("h4", {}, title), ...nodes);
    if (turn.reply) add("Reply", h("pre", { class: "console" }, ...visible(turn.reply, { lines: true })));
    if (turn.problem) add("No action", h("p", { class: "note" }, ...visible(turn.problem, { lines: true })));
    turn.actions.forEach((action, index) => {
      const title = turn.actions.length > 1 ? `Action ${index + 1}` : "Action";
      const code = action.pieces.map(([kind, text]) => h("span", kind ? { class: `t-${kind}` } : {}, ...visible(text, { lines: true })));
      add(title, ...(code.some((each) => each.textContent) ? [h("pre", { class: "code" }, h("code", {}, ...code))] : []), this.#outcome(action));
      if (action.error) parts.push(h("pre", { class: "console bad" }, ...visible(action.error, { lines: true })));
      if (action.printed) add("Printed", h("pre", { class: "console" }, ...visible(action.printed, { lines: true })));
    });
    if (turn.more_actions) parts.push(h("p", { class: "note" }, `${turn.more_actions} further actions are not shown.`));
    if (turn.told) add("Message to the model", h("pre", { class: "console" }, ...visible(turn.told, { lines: true })));
    parts.push(h("p", { class: "quiet" }, `This turn took ${secondsText(turn.seconds)}.`));
    if (this.place === this.episode.turns.length - 1) {
      parts.push(h("p", { class: "note epend" }, h("b", {}, "End: "), ...visible(this.episode.ended), this.episode.problem ? h("span", {}, ". ", ...visible(this.episode.problem)) : ""));
    }
    return parts;
  }

  #outcome(action) {
    // DONE and FAIL are declarations; nothing is performed.
    if (action.kind === "signal" && action.pieces[0][1] !== "WAIT") return "";
    const state = action.refused ? "refused" : action.error ? "failed" : "performed";
    const chip = h("span", { class: `chip ${state === "performed" ? "v-AC" : "v-WA"}` }, state);
    return h("p", { class: "epoutcome" }, chip, h("span", { class: "quiet" }, ` ${secondsText(action.seconds)}${action.settled ? "" : ", not settled"}`));
  }

  // -- the tree ------------------------------------------------------------------------------------

  #showTree() {
    const turn = this.#turn();
    if (!this.tree.open || turn.table === null) return;
    const { rows, more, problem } = this.episode.tables[turn.table];
    const summary = this.tree.querySelector("summary");
    if (problem !== undefined) {
      this.tree.replaceChildren(summary, h("p", { class: "note" }, ...visible(problem)));
      return;
    }
    const found = h("span", { class: "quiet" });
    const search = h("input", { type: "search", placeholder: "Search the tree", "aria-label": "Search the tree", autocomplete: "off", spellcheck: "false" });
    search.value = this.words;
    const body = h("tbody", {});
    const [head, ...lines] = rows.length ? rows : [[]];
    const places = placeReader(head);
    const texts = lines.map((line) => line.join("\t").toLowerCase());
    const fill = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      this.words = search.value;
      const shown = lines.filter((_, index) => words.every((word) => texts[index].includes(word)));
      body.replaceChildren(
        ...shown.slice(0, 500).map((line) => h("tr", { onmouseenter: () => this.#point(places(line)), onmouseleave: () => this.#point(null) }, ...line.map((cell) => h("td", {}, ...visible(cell))))),
      );
      const first = shown.length > 500 ? ", the first 500 are shown" : "";
      const left = more ? `; ${more.toLocaleString("en")} further lines are left out` : "";
      found.textContent = ` ${shown.length.toLocaleString("en")} of ${lines.length.toLocaleString("en")} elements${first}${left}${turn.cut ? "; the table was cut to its limit" : ""}`;
    };
    search.addEventListener("input", fill);
    const table = h("table", { class: "rows" }, h("thead", {}, h("tr", {}, ...head.map((cell) => h("th", { scope: "col" }, ...visible(cell))))), body);
    this.tree.replaceChildren(summary, h("p", { class: "epsearch" }, search, found), h("div", { class: "scroller" }, table));
    fill();
  }

  redraw() {
    if (this.overlay) this.#draw();
  }
}
