// Shows one worksheet of a workbook with jspreadsheet: displays windows that the server renders, and
// passes typed text to its owner. The server decides what a cell holds; nothing is computed here.

const ROW = /^([A-Z]+)(\d+)$/;

export function letters(column) {
  let text = "";
  for (; column > 0; column = Math.floor((column - 1) / 26)) {
    text = String.fromCharCode(65 + ((column - 1) % 26)) + text;
  }
  return text;
}

export function place(name) {
  const found = ROW.exec(name);
  let column = 0;
  for (const letter of found[1]) column = column * 26 + letter.charCodeAt(0) - 64;
  return [Number(found[2]), column];
}

// Columns are wide enough for most of their content, but never as wide as the whole view. Both
// windows get the same widths, so that their columns are aligned.
export function columnWidths(windows) {
  return (windows[0]?.rows[0] ?? []).map((_, x) => {
    const lengths = windows.flatMap(({ rows }) => rows.map((row) => row[x]?.length ?? 0))
      .filter((length) => length > 0).sort((a, b) => a - b);
    const usual = lengths[Math.floor((lengths.length - 1) * 0.95)] ?? 0;
    return Math.min(Math.max(56, Math.round(16 + usual * 7.2)), 240);
  });
}

export class Grid {
  // element: the parent of the grid. handlers: typed(cells), selected(name), page(row, column).
  constructor(element, handlers) {
    this.element = element;
    this.handlers = handlers;
    this.worksheet = null;
    this.window = null;
    this.chosen = null;
    this.editable = false;
    this.widths = [];
    this.postponed = null; // arguments of a show() that waits until the user has finished typing
  }

  name(x, y) {
    return letters(this.window.first_column + x) + (this.window.first_row + y);
  }

  raw(x, y) {
    return this.window.raw[this.name(x, y)] ?? this.window.rows[y]?.[x] ?? "";
  }

  rawAt(name) {
    const [row, column] = place(name);
    const x = column - this.window.first_column;
    const y = row - this.window.first_row;
    return this.window.rows[y]?.[x] === undefined ? "" : this.raw(x, y);
  }

  get editing() {
    return Boolean(this.worksheet?.edition);
  }

  // While somebody is typing into a cell, nothing is drawn: that would discard the typed text.
  show(window, editable, widths) {
    this.postponed = this.editing ? [window, editable, widths] : null;
    if (this.editing) return;
    const same = this.window && this.worksheet && this.editable === editable &&
      ["sheet", "first_row", "first_column"].every((key) => this.window[key] === window[key]) &&
      this.window.rows.length === window.rows.length &&
      this.window.rows[0].length === window.rows[0].length &&
      String(this.window.merges) === String(window.merges);
    this.editable = editable;
    if (same) this.update(window);
    else this.build(window, widths);
    this.decorate();
  }

  // Sets whether cells can be edited, without waiting for the next window.
  allow(editable) {
    if (this.window) this.show(this.window, editable, this.widths);
  }

  // Closes an open editor and discards its text, because its cell has moved.
  abandon() {
    if (this.editing) this.worksheet.closeEditor(this.worksheet.edition[0], false);
  }

  edited() {
    // Draws only after the typed text has been sent to the server.
    setTimeout(() => { if (this.postponed) this.show(...this.postponed); });
  }

  update(window) {
    this.window = window;
    const { records, options } = this.worksheet;
    window.rows.forEach((row, y) => row.forEach((text, x) => {
      if (options.data[y][x] === text) return;
      options.data[y][x] = text;
      records[y][x].element.textContent = text;
    }));
  }

  build(window, widths) {
    const scroll = this.window?.sheet === window.sheet ? this.scroller() : null;
    const at = scroll ? [scroll.scrollLeft, scroll.scrollTop] : [0, 0];
    this.destroy();
    this.window = window;
    this.widths = widths;
    this.chosen = null; // [x, y, x, y] of the corners, kept while the pointer is elsewhere
    this.building = true; // merging selects cells, which is not a choice of the user
    const host = document.createElement("div");
    this.element.replaceChildren(host);
    [this.worksheet] = jspreadsheet(host, {
      parseFormulas: false,
      contextMenu: () => null,
      about: false,
      worksheets: [{
        data: window.rows.map((row) => [...row]),
        columns: window.rows[0].map((_, x) => ({
          title: letters(window.first_column + x), width: widths[x] ?? 72, align: "left",
        })),
        rows: window.rows.map((_, y) => ({ title: String(window.first_row + y) })),
        mergeCells: this.merges(window),
        editable: this.editable,
        allowInsertRow: false, allowDeleteRow: false, allowManualInsertRow: false,
        allowInsertColumn: false, allowDeleteColumn: false, allowManualInsertColumn: false,
        allowRenameColumn: false, columnSorting: false, columnDrag: false, rowDrag: false,
        selectionCopy: this.editable, tableOverflow: false, textOverflow: true,
      }],
      oneditionstart: (sheet, cell, x, y) => { sheet.options.data[y][x] = this.raw(x, y); },
      oneditionend: (sheet, cell, x, y, value, save) => {
        this.edited();
        // Nothing was changed: the grid shows the value again instead of the editable text.
        if (!save || value === this.raw(x, y)) {
          sheet.options.data[y][x] = this.window.rows[y][x];
          cell.textContent = this.window.rows[y][x];
        }
      },
      // The grid would drop pasted cells outside the rows that are shown.
      onbeforepaste: (sheet, lines, x, y) => {
        this.changed(lines.flatMap((line, down) => line.map(({ value }, right) =>
          ({ x: Number(x) + right, y: Number(y) + down, value }))));
        return false;
      },
      onafterchanges: (sheet, changes) => this.changed(changes),
      onselection: (sheet, ...corners) => {
        if (this.building) return;
        this.chosen = corners.slice(0, 4).map(Number);
        this.handlers.selected?.(this.name(this.chosen[0], this.chosen[1]));
      },
      oncopy: (sheet, [left, top, right, bottom]) => this.copied(left, top, right, bottom),
    });
    this.worksheet.resetSelection(true);
    this.building = false;
    this.titles();
    this.pager();
    this.scroller()?.scrollTo(...at);
  }

  titles() {
    this.worksheet.rows.forEach((row, y) => {
      const head = row.element.firstElementChild;
      if (head) head.textContent = String(this.window.first_row + y);
    });
  }

  merges(window) {
    return Object.fromEntries(window.merges.map((range) => {
      const [[top, left], [bottom, right]] = range.split(":").map(place);
      const name = letters(left - window.first_column + 1) + (top - window.first_row + 1);
      return [name, [right - left + 1, bottom - top + 1]];
    }));
  }

  decorate() {
    const { window, worksheet } = this;
    this.element.classList.toggle("pending", Boolean(window.pending));
    const [answer, marked, differs] = [window.answer, window.marked, window.differs ?? []]
      .map((names) => names.map((name) => name.split(":").map(place)));
    const inside = (ranges, row, column) => ranges.some(([first, last = first]) =>
      row >= first[0] && row <= last[0] && column >= first[1] && column <= last[1]);
    worksheet.records.forEach((cells, y) => cells.forEach(({ element }, x) => {
      const row = window.first_row + y;
      const column = window.first_column + x;
      const name = letters(column) + row;
      if (element.judgeLook !== (window.styles[name] ?? "")) {
        const property = (each) => (each === "color" ? "--own" : each); // a dark page lightens this colour
        for (const each of (element.judgeLook ?? "").split(";")) element.style.removeProperty(property(each.split(":")[0]));
        element.judgeLook = window.styles[name] ?? "";
        const looks = element.judgeLook.split(";").filter(Boolean).map((each) => each.split(":"));
        for (const [each, value] of looks) element.style.setProperty(property(each), value);
        element.classList.toggle("inked", looks.some(([each]) => each === "color"));
        element.classList.toggle("filled", looks.some(([each]) => each === "background-color"));
      }
      element.classList.toggle("answer", inside(answer, row, column));
      element.classList.toggle("marked", inside(marked, row, column));
      element.classList.toggle("differs", inside(differs, row, column));
      element.classList.toggle("formula", (window.raw[name] ?? "").startsWith("="));
      element.dataset.cell = name;
    }));
  }

  changed(changes) {
    if (this.building) return;
    const cells = [];
    for (const { x, y, value } of changes) {
      const text = String(value ?? "");
      if (text !== this.raw(Number(x), Number(y))) cells.push({ cell: this.name(Number(x), Number(y)), text });
    }
    if (cells.length) this.handlers.typed?.(cells);
  }

  // Copies the content of the cells, not the displayed text.
  copied(left, top, right, bottom) {
    const lines = [];
    for (let y = top; y <= bottom; y += 1) {
      const line = [];
      for (let x = left; x <= right; x += 1) line.push(this.raw(x, y));
      lines.push(line.map((text) => (/[\t\n"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join("\t"));
    }
    return lines.join("\r\n");
  }

  pager() {
    const { first_row, last_row, first_column, last_column, rows } = this.window;
    const bottom = first_row + rows.length - 1;
    const right = first_column + rows[0].length - 1;
    if (first_row === 1 && bottom === last_row && first_column === 1 && right === last_column) return;
    const bar = document.createElement("div");
    bar.className = "pager";
    const button = (text, title, row, column, enabled) => {
      const made = document.createElement("button");
      made.textContent = text;
      made.title = title;
      made.disabled = !enabled;
      made.onclick = () => this.handlers.page?.(row, column);
      bar.append(made);
    };
    const step = this.window.max_rows;
    const side = this.window.max_columns;
    button("▲", "previous rows", Math.max(1, first_row - step), first_column, first_row > 1);
    button("▼", "next rows", first_row + step, first_column, bottom < last_row);
    button("◀", "previous columns", first_row, Math.max(1, first_column - side), first_column > 1);
    button("▶", "next columns", first_row, first_column + side, right < last_column);
    bar.append(` rows ${first_row}–${bottom} of ${last_row}`);
    this.element.append(bar);
  }

  // Selected cells as [first row, first column, last row, last column] of the sheet; null for none.
  selection() {
    if (!this.chosen) return null;
    const [x1, y1, x2, y2] = this.chosen;
    const { first_row: row, first_column: column } = this.window;
    return [row + Math.min(y1, y2), column + Math.min(x1, x2), row + Math.max(y1, y2), column + Math.max(x1, x2)];
  }

  // Whether a column of the sheet is in the window.
  shows(column) {
    const { first_column: first, rows } = this.window;
    return column >= first && column < first + rows[0].length;
  }

  // Scrolls so that a cell is visible, with some space around it.
  scrollTo(name) {
    const cell = this.element.querySelector(`td[data-cell="${name}"]`);
    const view = this.scroller();
    if (!cell || !view) return;
    const seen = view.getBoundingClientRect();
    const box = cell.getBoundingClientRect();
    if (box.right > seen.right || box.left < seen.left + 60) view.scrollLeft += box.left - seen.left - seen.width / 2;
    if (box.bottom > seen.bottom || box.top < seen.top + 30) view.scrollTop += box.top - seen.top - seen.height / 2;
  }

  reveal(name) {
    const found = this.element.querySelector(`td[data-cell="${name}"]`);
    this.scrollTo(name);
    const [row, column] = place(name);
    const x = column - this.window.first_column;
    const y = row - this.window.first_row;
    if (found) this.worksheet.updateSelectionFromCoords(x, y, x, y);
    return Boolean(found);
  }

  scroller() {
    return this.element.querySelector(".jss_content");
  }

  destroy() {
    if (!this.worksheet) return;
    jspreadsheet.destroy(this.worksheet.parent.element ?? this.element.firstElementChild, false);
    this.worksheet = null;
    this.element.replaceChildren();
  }
}
