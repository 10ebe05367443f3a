// One suspect at a time. Decisions shown as kept are on the server's disk; unsaved input is only in this page.

const KINDS = JSON.parse(document.getElementById("kinds").textContent);
const $ = (id) => document.getElementById(id);
const form = $("decision");
const drafts = new Map();
let overview = null;
let shown = null; // the suspect on the page
let grids = [];
let busy = false;

function alarm(error) {
  $("alarm").hidden = !error;
  if (!error) return;
  $("alarm").replaceChildren(...visible([error.message, error.hint].filter(Boolean).join(" ")));
  $("alarm").scrollIntoView({ block: "nearest" });
}

const nameOf = (each) => `task ${each.task}${each.case === null ? "" : `, case ${each.case}`}`;

// -- the list ------------------------------------------------------------------------------------

function showOverview() {
  const { suspects, written, conflicts, corrections, log } = overview;
  const decided = suspects.filter((each) => each.mine !== null).length;
  $("progress").textContent = `${overview.by}: ${decided} of ${suspects.length} decided, ${written} ${written === 1 ? "correction" : "corrections"}`;
  $("jump").replaceChildren(
    ...suspects.map((each, place) => h("option", { value: String(place) }, `${place + 1}. ${each.mine ?? "·"} ${nameOf(each)} ${each.sign} (${each.certainty})`)),
  );
  if (shown) $("jump").value = String(shown.place);
  $("files").replaceChildren("Decisions are in ", ...visible(log), ", corrections in ", ...visible(corrections), ".");
  $("conflicts").hidden = !conflicts.length;
  $("conflicts").replaceChildren(...conflicts.map((line) => h("li", {}, "Not written: ", ...visible(line))));
}

// The next suspect that this reviewer has not decided; if all are decided, the next in the list.
function nextOpen(from) {
  const count = overview.suspects.length;
  for (let step = 1; step <= count; step += 1) {
    const place = (from + step) % count;
    if (overview.suspects[place].mine === null) return place;
  }
  return Math.min(from + 1, count - 1);
}

function walk(by) {
  const count = overview.suspects.length;
  if (count) open((shown.place + by + count) % count);
}

// -- one suspect ---------------------------------------------------------------------------------

async function open(place, { number = null, output = null } = {}) {
  keepDraft();
  const query = new URLSearchParams({ place: String(place) });
  if (number !== null) query.set("case", String(number));
  if (output !== null) query.set("output", String(output));
  try {
    const found = await ask("GET", `/api/suspect?${query}`);
    const other = shown === null || shown.place !== found.place;
    shown = found;
    if (other) alarm(null);
    showSuspect();
    if (other) scrollTo(0, 0);
  } catch (error) {
    alarm(error);
  }
}

function showSuspect() {
  const { task, suspect } = shown;
  $("jump").value = String(shown.place);
  $("question").replaceChildren(
    h("h1", {}, `Task ${task.id}${suspect.case === null ? "" : `, case ${suspect.case}`}`),
    h("p", { class: "lead" }, ...visible(`${suspect.sign} · ${suspect.certainty} · ${task.kind}`)),
    h("p", { class: "cause" }, ...visible(suspect.summary)),
    h("p", { class: "quiet" }, ...visible(suspect.why)),
    h("p", { class: "instruction" }, ...visible(task.instruction, { lines: true })),
    task.position ? h("p", {}, h("span", { class: "quiet" }, "Answer position "), h("code", {}, ...visible(task.position))) : "",
  );
  showEvidence();
  showCases();
  showGrids();
  showForm();
  document.title = `${shown.place + 1}. ${nameOf({ task: task.id, case: suspect.case })} – judge review`;
}

function written(value) {
  if (value === null || value === undefined) return h("span", { class: "quiet" }, "blank");
  if (typeof value === "object") return visible(String(Object.values(value)[0]));
  return visible(typeof value === "string" ? value : JSON.stringify(value));
}

function showEvidence() {
  const rows = shown.evidence.map((each) => {
    const where = `${each.sheet ? `${each.sheet}!` : ""}${each.cell}${each.case !== null && each.case !== shown.case ? ` (case ${each.case})` : ""}`;
    const cells = [].concat(written(each.expected));
    const found = [].concat(written(each.found));
    return h(
      "tr",
      {},
      h("td", { class: "quiet" }, each.file),
      h("td", {}, ...visible(where), each.note ? h("div", { class: "quiet" }, ...visible(each.note)) : ""),
      h("td", { class: "value" }, ...found),
      h("td", { class: "value" }, ...cells),
    );
  });
  const more = shown.suspect.evidence_count - shown.evidence.length;
  $("evidence").replaceChildren(
    h("h2", {}, "Evidence"),
    rows.length
      ? h("table", { class: "evidencelist" }, h("thead", {}, h("tr", {}, ...["in", "where", "is", "expected"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, ...rows))
      : h("p", { class: "quiet" }, "The sign names no cells."),
    more > 0 ? h("p", { class: "quiet" }, `and ${more} more`) : "",
  );
}

// The server requires its token in a header, so a plain link cannot load a workbook.
async function openFile(file) {
  const query = new URLSearchParams({ place: String(shown.place), case: String(shown.case), output: String(shown.output), file });
  try {
    const { name, data } = await ask("GET", `/api/workbook?${query}`);
    const url = URL.createObjectURL(new Blob([Uint8Array.from(atob(data), (character) => character.charCodeAt(0))]));
    h("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  } catch (error) {
    alarm(error);
  }
}

function showCases() {
  const tabs = shown.cases.map((number) =>
    h("button", { type: "button", class: "tab", role: "tab", "aria-selected": String(number === shown.case), "data-case": String(number), onclick: () => open(shown.place, { number }) }, `Case ${number}`),
  );
  const outputs = shown.outputs.map((name, place) => h("option", { value: String(place) }, ...visible(name)));
  const choose = h("select", { id: "output", "aria-label": "output", onchange: (event) => open(shown.place, { number: shown.case, output: Number(event.target.value) }) }, ...outputs);
  if (outputs.length) choose.value = String(shown.output);
  const files = shown.files.map((file) => h("button", { type: "button", class: "open", "data-file": file, onclick: () => openFile(file) }, `Open ${file}`));
  $("cases").replaceChildren(...tabs, outputs.length ? choose : "", ...files);
}

function showGrids() {
  const notes = shown.grid.notes;
  grids = shown.grid.blocks.map((block) => new Grid(block, shown.marks));
  for (const grid of grids) grid.evidence = evidenceOf(grid.block);
  $("grids").className = shown.outputs.length ? "" : "grids2";
  $("grids").replaceChildren(notes.length ? h("ul", { class: "note" }, ...notes.map((note) => h("li", {}, ...visible(note)))) : "", ...grids.map((grid) => grid.element));
  for (const grid of grids) {
    grid.show("gold");
    if (!revealEvidence(grid)) grid.showAnswer();
    grid.draw();
  }
}

function evidenceOf(block) {
  const found = { gold: new Set(), input: new Set(), output: new Set() };
  for (const each of shown.evidence) {
    if (each.pane && each.sheet === block.sheet) for (const [row, column] of each.places) found[each.pane].add(`${row}:${column}`);
  }
  return found;
}

function revealEvidence(grid) {
  const every = new Set([...grid.evidence.gold, ...grid.evidence.input, ...grid.evidence.output]);
  const position = grid.lines.findIndex((line) => line.row && grid.columns.some((each) => each.column && every.has(`${line.row}:${each.column}`)));
  if (position < 0) return false;
  const column = grid.columns.find((each) => each.column && every.has(`${grid.lines[position].row}:${each.column}`));
  grid.reveal(position, column.index);
  return true;
}

// -- the decision --------------------------------------------------------------------------------

function newDraft() {
  const mine = shown.mine ?? { finding: "", reason: "", evidence: "", typed: { cells: {}, position: "", style: "", left_out: [], task_left_out: false } };
  return { finding: mine.finding, reason: mine.reason, evidence: mine.evidence, ...structuredClone(mine.typed) };
}

const draft = () => {
  if (!drafts.has(shown.place)) drafts.set(shown.place, newDraft());
  return drafts.get(shown.place);
};

function keepDraft() {
  if (!shown) return;
  const kept = draft();
  const fields = form.elements;
  kept.reason = fields.reason.value;
  kept.evidence = fields.evidence.value;
  kept.cells[shown.case] = fields.cells.value;
  kept.position = fields.position.value;
  kept.style = fields.style.value;
  kept.left_out = kept.left_out.filter((number) => number !== shown.case);
  if (fields.case_left_out.checked) kept.left_out.push(shown.case);
  kept.task_left_out = fields.task_left_out.checked;
}

function showForm() {
  const kept = draft();
  const fields = form.elements;
  fields.reason.value = kept.reason;
  fields.evidence.value = kept.evidence;
  fields.cells.value = kept.cells[shown.case] ?? "";
  fields.position.value = kept.position;
  fields.position.placeholder = shown.task.position;
  fields.style.value = kept.style;
  fields.case_left_out.checked = kept.left_out.includes(shown.case);
  fields.task_left_out.checked = kept.task_left_out;
  $("cells-label").textContent = `Right cells of the gold of case ${shown.case}, one on each line`;
  $("case-label").textContent = `case ${shown.case}`;
  for (const button of form.querySelectorAll("[data-finding]")) button.setAttribute("aria-checked", String(button.dataset.finding === kept.finding));
  $("right").hidden = kept.finding !== "fault";
  $("withdraw").hidden = shown.mine === null;
  $("kept").textContent = shown.mine ? `kept: ${shown.mine.finding}, ${shown.mine.at.slice(0, 16).replace("T", " ")}` : "";
  const others = shown.others.map((each) => h("li", {}, ...visible(`${each.by}: ${each.finding}. ${each.reason} ${each.evidence}`)));
  $("others").replaceChildren(others.length ? h("ul", { class: "note" }, ...others) : "");
}

function choose(finding) {
  keepDraft();
  draft().finding = finding;
  showForm();
  (finding === "fault" ? form.elements.cells : form.elements.reason).focus();
}

async function save() {
  if (busy) return;
  keepDraft();
  const { place } = shown;
  busy = true;
  try {
    overview = await ask("POST", "/api/decide", { place, ...draft() });
    drafts.delete(place);
    shown = null;
    alarm(null);
    showOverview();
    document.activeElement?.blur();
    await open(nextOpen(place));
  } catch (error) {
    alarm(error);
  }
  busy = false;
}

async function withdraw() {
  const { place } = shown;
  try {
    overview = await ask("POST", "/api/withdraw", { place });
    drafts.delete(place);
    shown = null;
    showOverview();
    await open(place);
  } catch (error) {
    alarm(error);
  }
}

// Begins a line of right cells with the chosen cell of a grid.
function takeCell() {
  const grid = grids.find((each) => each.selected);
  if (!grid) return;
  const line = grid.lines[grid.selected.position];
  const column = grid.columns.find((each) => each.index === grid.selected.column);
  choose("fault");
  const field = form.elements.cells;
  const sheet = grid.block.sheet.replaceAll("'", "''");
  field.value += `${field.value && !field.value.endsWith("\n") ? "\n" : ""}'${sheet}'!${column.letters}${line.row}=`;
}

// Writes the values that the evidence expects in the gold as lines for the reviewer to check and save.
function takeExpected() {
  const lines = shown.evidence
    .filter((each) => each.pane === "gold" && each.places.length === 1)
    .map((each) => `'${each.sheet.replaceAll("'", "''")}'!${each.cell.replaceAll("$", "")}=${typed(each.expected)}`);
  if (!lines.length) return;
  choose("fault");
  form.elements.cells.value = lines.join("\n");
}

// A value as a person would type it; text that looks like another type gets an apostrophe.
function typed(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "object") return String(Object.values(value)[0]).replace(/T00:00:00$/, "");
  if (typeof value === "boolean") return String(value).toUpperCase();
  if (typeof value === "number") return String(value);
  return /^[\s'=#+\-.\d]|^(true|false)$/i.test(value) ? `'${value}` : value;
}

// -- keyboard ------------------------------------------------------------------------------------

const KEYS = {
  j: () => walk(1),
  k: () => walk(-1),
  f: () => choose("fault"),
  g: () => choose("fine"),
  u: () => choose("unclear"),
  c: takeCell,
  e: takeExpected,
  o: () => shown.outputs.length && open(shown.place, { number: shown.case, output: (shown.output + 1) % shown.outputs.length }),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    save();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !shown) return;
  if (event.target.closest("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const tab = /^[1-9]$/.test(event.key) && document.querySelector(`#cases [data-case="${event.key}"]`);
  const action = KEYS[event.key] ?? (tab ? () => tab.click() : null);
  if (!action) return;
  event.preventDefault();
  action();
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  save();
});
for (const button of form.querySelectorAll("[data-finding]")) button.addEventListener("click", () => choose(button.dataset.finding));
$("withdraw").addEventListener("click", withdraw);
$("previous").addEventListener("click", () => walk(-1));
$("next").addEventListener("click", () => walk(1));
$("jump").addEventListener("change", (event) => {
  event.target.blur();
  open(Number(event.target.value));
});
addEventListener("resize", () => grids.forEach((grid) => grid.draw()));

(async () => {
  try {
    overview = await ask("GET", "/api/overview");
    showOverview();
    if (overview.suspects.length) await open(overview.suspects[0].mine === null ? 0 : nextOpen(0));
    else $("question").replaceChildren(h("p", {}, "There are no suspects."));
  } catch (error) {
    alarm(error);
  }
})();
