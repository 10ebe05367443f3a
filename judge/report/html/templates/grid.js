"use strict";
// The workbooks of a case: gold, output and input side by side. Rows are drawn when they are
// scrolled into view. Text from workbooks only ever becomes text nodes.

const ROW = 24;
const OVERSCAN = 8;
const PANES = [
  { name: "gold", title: "Gold" },
  { name: "output", title: "Output" },
  { name: "input", title: "Input" },
];

function columnLetters(number) {
  let letters = "";
  for (let rest = number; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    letters = String.fromCharCode(65 + ((rest - 1) % 26)) + letters;
  }
  return letters;
}

// The content of a cell, as {kind, text, formula, state, length}.
function readCell(raw) {
  if (raw === null || raw === undefined) return { kind: "blank", text: "" };
  if (typeof raw === "number") return { kind: "number", text: String(raw) };
  if (typeof raw === "boolean") return { kind: "logical", text: raw ? "TRUE" : "FALSE" };
  if (typeof raw === "string") return { kind: "text", text: raw };
  if ("f" in raw) {
    return { ...readCell(raw.v), formula: raw.f, state: raw.s };
  }
  const kinds = { n: "number", d: "date", e: "error", s: "text" };
  return { kind: kinds[raw.k] || "text", text: raw.x, length: raw.n };
}

const STATES = {
  k: "as stored in the file",
  c: "computed by the judge",
  a: "computed by the judge; agrees with the other workbook",
  i: "as stored in the file; the judge computed its own value, which was not kept",
  u: "no value",
};

class Grid {
  constructor(block, marks) {
    this.block = block;
    this.marks = marks;
    this.formulas = false;
    this.selected = null;
    this.panes = [];
    this.lines = this.#lines();
    this.columns = this.#columns();
    this.differences = this.#differences();
    this.widths = this.#widths();
    this.element = this.#build();
  }

  // -- data ---------------------------------------------------------------------------------------

  #lines() {
    const lines = [];
    let index = 0;
    let last = null;
    for (const [first, count] of this.block.rows) {
      if (last !== null) lines.push({ gap: first - last - 1 });
      for (let row = first; row < first + count; row += 1) lines.push({ row, index: index++ });
      last = first + count - 1;
    }
    return lines;
  }

  #columns() {
    const columns = [];
    let index = 0;
    let last = null;
    for (const [, first, count] of this.block.columns) {
      if (last !== null) columns.push({ gap: first - last - 1 });
      for (let column = first; column < first + count; column += 1) {
        columns.push({ column, index: index++, letters: columnLetters(column) });
      }
      last = first + count - 1;
    }
    return columns;
  }

  // One row as Map(index of the column -> {mark, gold, output, input}).
  cells(line) {
    if (line.cells) return line.cells;
    const found = new Map();
    for (const [column, flags, gold, ...rest] of this.block.cells[line.index]) {
      const output = [gold, rest[0], null][flags & 3];
      const follows = (flags & 3) === 1 ? rest[1] : rest[0];
      const input = [gold, follows, null, output][(flags >> 2) & 3];
      found.set(column, {
        mark: this.marks[flags >> 4],
        gold: readCell(gold),
        output: readCell(output),
        input: readCell(input),
      });
    }
    line.cells = found;
    return found;
  }

  #differences() {
    const found = [];
    const isFormula = (raw) => raw !== null && typeof raw === "object" && "f" in raw;
    this.classes = new Set();
    this.hasFormulas = false;
    this.lines.forEach((line, position) => {
      if (line.gap) return;
      for (const [column, flags, ...values] of this.block.cells[line.index]) {
        this.hasFormulas ||= values.some(isFormula);
        if (flags >> 4 <= 1) continue;
        found.push({ position, column });
        this.classes.add(this.marks[flags >> 4]);
      }
    });
    return found;
  }

  // The legend: meaning of the letters and corners that this grid has.
  #legend() {
    const letters = [...this.classes].map((kind) => h("span", {}, h("span", { class: `chip d-${kind}` }, h("b", {}, KINDS[kind].letter)), ` ${KINDS[kind].words}`));
    if (this.hasFormulas) letters.push(h("span", {}, h("i", { class: "corner-mark" }), "formula"));
    if (this.block.answer.length) letters.push(h("span", {}, "grey: outside the answer"));
    return h("p", { class: "legend", "aria-label": "legend" }, ...letters);
  }

  #widths() {
    const widest = this.columns.map((each) => (each.letters ? each.letters.length : 1));
    const step = Math.max(1, Math.floor(this.lines.length / 300));
    const sampled = new Set(this.differences.slice(0, 300).map((each) => each.position));
    for (let position = 0; position < this.lines.length; position += step) sampled.add(position);
    const place = new Map();
    this.columns.forEach((each, position) => {
      if (!each.gap) place.set(each.index, position);
    });
    for (const position of sampled) {
      const line = this.lines[position];
      if (line.gap) continue;
      for (const [column, cell] of this.cells(line)) {
        const at = place.get(column);
        for (const { name } of PANES) {
          const { text, formula } = cell[name];
          widest[at] = Math.max(widest[at], Math.min(text.length, 24), formula ? 12 : 0);
        }
      }
    }
    return widest.map((chars, at) => (this.columns[at].gap ? 28 : Math.max(46, chars * 7.6 + 34)));
  }

  // -- drawing ------------------------------------------------------------------------------------

  #build() {
    const { block } = this;
    const panes = PANES.map((pane) => this.#pane(pane));
    const tabs = PANES.map(({ name, title }) =>
      h("button", { type: "button", class: "tab", "data-pane": name, onclick: () => this.show(name) }, title),
    );
    this.tabs = tabs;
    this.info = h("div", { class: "cellinfo", role: "status", "aria-live": "polite" });
    this.counter = h("span", { class: "quiet" }, this.#count());
    const bar = h(
      "div",
      { class: "gridbar" },
      h("strong", {}, ...visible(block.sheet)),
      h("span", { class: "quiet" }, block.answer.length ? `answer in ${block.answer.slice(0, 6).join(", ")}${block.answer.length > 6 ? " …" : ""}` : "outside the answer"),
      this.counter,
      h("span", { class: "spring" }),
      h("button", { type: "button", onclick: () => this.step(-1), title: "previous difference (p)" }, "‹ difference"),
      h("button", { type: "button", onclick: () => this.step(1), title: "next difference (n)" }, "difference ›"),
      h("button", { type: "button", "aria-pressed": "false", class: "toggle", onclick: () => this.toggleFormulas(), title: "formulas or values (f)" }, "formulas"),
    );
    this.toggle = bar.lastChild;
    const hidden = block.whole_rows - this.lines.filter((line) => !line.gap).length;
    const element = h(
      "section",
      { class: "grid" },
      bar,
      h("div", { class: "tabs", role: "group", "aria-label": "workbook" }, ...tabs),
      h("div", { class: "panes" }, ...panes),
      this.#legend(),
      this.info,
    );
    if (hidden > 0) {
      bar.insertBefore(h("span", { class: "quiet" }, `${hidden.toLocaleString("en")} rows left out`), this.counter.nextSibling);
    }
    element.dataset.shown = "output";
    this.#describe();
    return element;
  }

  #count() {
    const rows = this.lines.filter((line) => !line.gap).length;
    const cells = this.differences.length;
    return `${rows.toLocaleString("en")} rows, ${cells.toLocaleString("en")} differing ${cells === 1 ? "cell" : "cells"}`;
  }

  #pane({ name, title }) {
    const sheet = { gold: this.block.sheet, output: this.block.output_sheet, input: this.block.input_sheet }[name];
    const heading = h("h4", {}, title);
    if (sheet === null) heading.append(h("span", { class: "quiet" }, " has no such sheet"));
    else if (sheet !== this.block.sheet) heading.append(h("span", { class: "quiet" }, " sheet ", ...visible(sheet)));
    const template = `52px ${this.widths.map((width) => `${width}px`).join(" ")}`;
    const total = 52 + this.widths.reduce((sum, width) => sum + width, 0);
    const head = h("div", { class: "colheads", role: "row" }, h("span", { class: "corner" }));
    for (const each of this.columns) {
      head.append(h("span", { role: "columnheader", class: each.gap ? "gap" : "" }, each.gap ? "⋯" : each.letters));
    }
    head.style.gridTemplateColumns = template;
    head.style.width = `${total}px`;
    const body = h("div", { class: "body", role: "rowgroup" });
    body.style.height = `${this.lines.length * ROW}px`;
    body.style.width = `${total}px`;
    const scroll = h(
      "div",
      { class: "scroll", tabindex: "0", role: "grid", "aria-label": `${title}, sheet ${this.block.sheet}`, "aria-rowcount": String(this.block.whole_rows), "aria-colcount": String(this.block.whole_columns) },
      head,
      body,
    );
    const pane = { name, scroll, body, template, drawn: new Map() };
    scroll.addEventListener("scroll", () => this.#scrolled(pane), { passive: true });
    scroll.addEventListener("keydown", (event) => this.#key(event));
    body.addEventListener("click", (event) => {
      const cell = event.target.closest("[data-c]");
      if (cell) this.select(Number(cell.parentElement.dataset.l), Number(cell.dataset.c));
    });
    this.panes.push(pane);
    return h("section", { class: "pane", "data-pane": name }, heading, scroll);
  }

  #scrolled(pane) {
    for (const other of this.panes) {
      if (other === pane || !other.scroll.offsetParent) continue;
      if (other.scroll.scrollTop !== pane.scroll.scrollTop) other.scroll.scrollTop = pane.scroll.scrollTop;
      if (other.scroll.scrollLeft !== pane.scroll.scrollLeft) other.scroll.scrollLeft = pane.scroll.scrollLeft;
    }
    this.top = pane.scroll.scrollTop;
    this.left = pane.scroll.scrollLeft;
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      this.panes.forEach((pane) => this.#draw(pane));
    });
  }

  redraw() {
    for (const pane of this.panes) {
      pane.drawn.clear();
      pane.body.replaceChildren();
    }
    this.draw();
  }

  #draw(pane) {
    if (!pane.scroll.offsetParent) return;
    const from = Math.max(0, Math.floor(pane.scroll.scrollTop / ROW) - OVERSCAN);
    const to = Math.min(this.lines.length, Math.ceil((pane.scroll.scrollTop + pane.scroll.clientHeight) / ROW) + OVERSCAN);
    for (const [position, element] of pane.drawn) {
      if (position < from || position >= to) {
        element.remove();
        pane.drawn.delete(position);
      }
    }
    for (let position = from; position < to; position += 1) {
      if (pane.drawn.has(position)) continue;
      const element = this.#row(pane, position);
      pane.drawn.set(position, element);
      pane.body.append(element);
    }
  }

  #row(pane, position) {
    const line = this.lines[position];
    const element = h("div", { class: "row", role: "row", "data-l": String(position) });
    element.style.top = `${position * ROW}px`;
    if (line.gap) {
      element.classList.add("leftout");
      element.append(h("span", {}, `⋯ ${line.gap.toLocaleString("en")} rows left out`));
      return element;
    }
    element.style.gridTemplateColumns = pane.template;
    element.setAttribute("aria-rowindex", String(line.row));
    element.append(h("span", { class: "rowhead", role: "rowheader" }, String(line.row)));
    const cells = this.cells(line);
    for (const column of this.columns) element.append(this.#cell(pane.name, position, line, column, cells));
    return element;
  }

  #cell(name, position, line, column, cells) {
    if (column.gap) return h("span", { class: "cell gap" });
    const cell = cells.get(column.index);
    const inside = this.#inside(line.row, column.column);
    const classes = ["cell", inside ? "in" : "out"];
    const element = h("span", { role: "gridcell", "data-c": String(column.index) });
    if (this.evidence?.[name]?.has(`${line.row}:${column.column}`)) classes.push("evidence");
    if (this.selected && this.selected.position === position && this.selected.column === column.index) classes.push("chosen");
    if (cell) {
      const differs = cell.mark && cell.mark !== "agrees";
      if (differs && name !== "input") {
        classes.push("differs", `d-${cell.mark}`);
        element.append(h("b", { class: "letter", title: KINDS[cell.mark].words }, KINDS[cell.mark].letter));
      }
      const value = cell[name];
      classes.push(`k-${value.kind}`);
      if (value.formula) classes.push("fx");
      element.append(...this.#shown(value, cell, name, classes));
    }
    element.className = classes.join(" ");
    return element;
  }

  #shown(value, cell, name, classes) {
    if (value.formula && (this.formulas || value.state === "u")) {
      classes.push("formula");
      return visible(value.formula.slice(0, 300));
    }
    if (value.state === "a") {
      // The value was not kept, but it agrees with the other workbook's.
      const other = cell[name === "gold" ? "output" : "gold"];
      classes.push("agreed", `k-${other.kind}`);
      return visible(other.text.slice(0, 300));
    }
    return visible(value.text.slice(0, 300));
  }

  #inside(row, column) {
    if (!this.windows) {
      this.windows = this.block.answer.map((text) => {
        const [first, last = first] = text.split(":").map((part) => /^([A-Z]+)([0-9]+)$/.exec(part));
        const number = (letters) => [...letters].reduce((sum, each) => sum * 26 + each.charCodeAt(0) - 64, 0);
        return [Number(first[2]), number(first[1]), Number(last[2]), number(last[1])];
      });
    }
    return this.windows.some(([top, left, bottom, right]) => row >= top && row <= bottom && column >= left && column <= right);
  }

  // -- moving -------------------------------------------------------------------------------------

  show(name) {
    this.element.dataset.shown = name;
    this.tabs.forEach((tab) => tab.setAttribute("aria-pressed", String(tab.dataset.pane === name)));
    for (const pane of this.panes) {
      if (!pane.scroll.offsetParent) continue;
      pane.scroll.scrollTop = this.top || 0;
      pane.scroll.scrollLeft = this.left || 0;
    }
    this.draw();
  }

  toggleFormulas() {
    this.formulas = !this.formulas;
    this.toggle.setAttribute("aria-pressed", String(this.formulas));
    this.redraw();
  }

  step(by) {
    if (!this.differences.length) return false;
    const at = this.selected
      ? this.differences.findIndex((each) => each.position === this.selected.position && each.column === this.selected.column)
      : -1;
    let next = at + by;
    if (at < 0 && by < 0) next = this.differences.length - 1;
    next = (next + this.differences.length) % this.differences.length;
    const { position, column } = this.differences[next];
    this.select(position, column);
    return true;
  }

  select(position, column) {
    this.selected = { position, column };
    this.reveal(position, column);
    this.redraw();
    this.#describe();
  }

  // Scrolls to the first cell of the answer, with as many columns to its left as fit.
  showAnswer() {
    const position = this.lines.findIndex((line) => line.row && this.columns.some((each) => each.column && this.#inside(line.row, each.column)));
    if (position < 0) return;
    const column = this.columns.find((each) => each.column && this.#inside(this.lines[position].row, each.column));
    this.reveal(position, column.index);
  }

  reveal(position, column) {
    const at = this.columns.findIndex((each) => each.index === column);
    const left = this.widths.slice(0, at).reduce((sum, width) => sum + width, 0);
    for (const { scroll } of this.panes) {
      if (!scroll.offsetParent) continue;
      const top = position * ROW;
      const height = scroll.clientHeight - ROW - 8;
      if (top < scroll.scrollTop || top + ROW > scroll.scrollTop + height) scroll.scrollTop = Math.max(0, top - height / 2);
      const width = scroll.clientWidth - 52;
      if (left < scroll.scrollLeft || left + this.widths[at] > scroll.scrollLeft + width) scroll.scrollLeft = Math.max(0, left + this.widths[at] + 70 - width);
    }
  }

  #key(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey || !this.selected) return;
    event.preventDefault();
    let { position, column } = this.selected;
    do position += move[0];
    while (this.lines[position] && this.lines[position].gap);
    column += move[1];
    if (this.lines[position] && this.columns.some((each) => each.index === column)) this.select(position, column);
  }

  #describe() {
    if (!this.selected) {
      this.info.replaceChildren(h("p", { class: "quiet" }, "Choose a cell to see its values and formulas."));
      return;
    }
    const line = this.lines[this.selected.position];
    const column = this.columns.find((each) => each.index === this.selected.column);
    const blank = readCell(null);
    const cell = this.cells(line).get(column.index) || { mark: this.#inside(line.row, column.column) ? "agrees" : "", gold: blank, output: blank, input: blank };
    const says = cell.mark ? KINDS[cell.mark].words : "outside the answer";
    const differs = cell.mark && cell.mark !== "agrees" && cell.gold.text !== "" && cell.output.text !== "";
    const [gold, output] = differs ? contrasted(cell.gold.text, cell.output.text) : [];
    const rows = PANES.map(({ name, title }) => this.#line(title, cell[name], { gold, output }[name]));
    this.info.replaceChildren(
      h(
        "p",
        { class: "where" },
        h("strong", {}, `${column.letters}${line.row}`),
        " ",
        cell.mark && cell.mark !== "agrees" ? h("span", { class: `chip d-${cell.mark}` }, h("b", {}, KINDS[cell.mark].letter), ` ${says}`) : h("span", { class: "quiet" }, says),
      ),
      h("table", { class: "facts" }, h("tbody", {}, ...rows)),
    );
  }

  #line(title, value, nodes = visible(value.text)) {
    const shown = h("td", { class: `value k-${value.kind}` });
    if (value.kind === "blank" && !value.formula) shown.append(h("span", { class: "quiet" }, "blank"));
    else if (value.text !== "" || value.kind === "text") shown.append(...nodes);
    if (value.length) shown.append(h("span", { class: "quiet" }, ` … (${value.length.toLocaleString("en")} characters)`));
    const kind = value.kind === "blank" ? "" : value.kind;
    const formula = h("td", { class: "value" });
    if (value.formula) {
      formula.append(h("code", {}, ...visible(value.formula)), h("span", { class: "quiet" }, ` ${STATES[value.state]}`));
    }
    return h("tr", {}, h("th", { scope: "row" }, title), h("td", { class: "quiet" }, kind), shown, formula);
  }
}
