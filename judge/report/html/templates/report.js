"use strict";
// Routes, the list of tasks with its filter, and the page of one task.

const KINDS = JSON.parse(document.getElementById("kinds").textContent);
const VERDICTS = JSON.parse(document.getElementById("verdicts").textContent);
const PAGES_URL = document.body.dataset.pages || null;

const rows = [...document.querySelectorAll("#tasklist tr")];
const filters = document.getElementById("filters");
const found = document.getElementById("found");
const views = { "": "summary", tasks: "tasks", task: "task" };
let currentGrid = null;
let grids = [];
let currentTask = null;
let currentEpisode = null;

// -- numbers ------------------------------------------------------------------------------------

// A number of the report as shown, with its path in the JSON form so that it can be checked.
function number(at, value, { factor = 1, digits = 0, unit = "" } = {}) {
  if (value === null || value === undefined) return h("span", { class: "none", "data-at": at }, "–");
  const text = (value * factor).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return h("span", {}, h("data", { "data-at": at, "data-factor": String(factor), "data-digits": String(digits), value: String(value) }, text), unit ? ` ${unit}` : "");
}

const seconds = (at, value) => number(at, value, { digits: value !== null && value < 10 ? 3 : 1, unit: "s" });
const bytes = (at, value) =>
  value !== null && value >= 1048576
    ? number(at, value, { factor: 1 / 1048576, digits: 1, unit: "MiB" })
    : number(at, value, { factor: 1 / 1024, digits: 1, unit: "KiB" });

function chip(code) {
  if (code === null) return h("span", { class: "chip v-none", title: "not run" }, "–");
  return h("span", { class: `chip v-${code}`, title: VERDICTS[code] }, code);
}

// -- the list ------------------------------------------------------------------------------------

function wanted() {
  const data = new FormData(filters);
  return {
    words: String(data.get("q") || "").split(/\s+/).filter(Boolean),
    verdict: String(data.get("verdict") || ""),
    kind: String(data.get("kind") || ""),
    type: String(data.get("type") || ""),
    flag: String(data.get("flag") || ""),
  };
}

function fits(row, want) {
  const { verdicts, kinds, type, flags } = row.dataset;
  if (want.verdict === "failed" ? row.dataset.failed !== "1" : want.verdict && !verdicts.split(" ").includes(want.verdict)) return false;
  if (want.kind && !kinds.split(" ").includes(want.kind)) return false;
  if (want.type && type !== want.type) return false;
  if (want.flag && !flags.split(" ").includes(want.flag)) return false;
  if (!want.words.length) return true;
  row.text ??= row.textContent.toLowerCase();
  // A verdict's code matches only that verdict; other words may be anywhere in the row.
  return want.words.every((word) => (word in VERDICTS ? verdicts.split(" ").includes(word) : row.text.includes(word.toLowerCase())));
}

function applyFilter() {
  const want = wanted();
  let shown = 0;
  for (const row of rows) {
    row.hidden = !fits(row, want);
    shown += row.hidden ? 0 : 1;
  }
  found.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
  document.getElementById("nothing").hidden = shown > 0;
  for (const button of document.querySelectorAll("[data-preset]")) {
    const preset = new URLSearchParams(button.dataset.preset);
    const same = ["verdict", "kind", "type", "flag"].every((name) => (preset.get(name) || "") === want[name]);
    button.setAttribute("aria-pressed", String(same && !want.words.length));
  }
}

function filterQuery() {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(filters)) if (value) query.set(name, value);
  return query.toString();
}

function setFilter(query) {
  const values = new URLSearchParams(query);
  for (const field of filters.elements) {
    if (!field.name) continue;
    const value = values.get(field.name) || "";
    // A filter that matches nothing is still shown.
    if (field.options && ![...field.options].some((each) => each.value === value)) field.add(new Option(KINDS[value]?.words ?? value, value));
    field.value = value;
  }
  applyFilter();
}

function filterChanged() {
  applyFilter();
  const query = filterQuery();
  history.replaceState(null, "", query ? `#/tasks?${query}` : "#/tasks");
}

// -- routes --------------------------------------------------------------------------------------

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  const view = views[name] || "summary";
  for (const id of Object.values(views)) document.getElementById(id).hidden = id !== view;
  for (const link of document.querySelectorAll("nav a")) {
    link.toggleAttribute("aria-current", link.dataset.view === (view === "task" ? "tasks" : view));
  }
  if (view === "tasks") setFilter(query);
  const asked = (name) => Number(new URLSearchParams(query).get(name)) || null;
  if (view === "task") openTask(rest.map(decodeURIComponent).join("/"), asked("case"), asked("turn"));
  else leaveTask();
  if (view !== "summary" || name === "") scrollTo(0, 0);
}

function leaveTask() {
  currentEpisode?.stop();
  currentTask = currentEpisode = null;
}

function hashOf(key, number, turn) {
  return `#/task/${encodeURIComponent(key)}${number ? `?case=${number}` : ""}${turn ? `&turn=${turn}` : ""}`;
}

// -- one task ------------------------------------------------------------------------------------

async function loadPage(key) {
  const place = rows.find((row) => row.dataset.key === key)?.dataset.page;
  if (place === undefined) throw new Error(`the report has no task ${key}`);
  if (PAGES_URL !== null) {
    const answer = await fetch(`${PAGES_URL}${place}`, { headers: { "X-Judge-Token": document.body.dataset.token } });
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    return answer.json();
  }
  return inflate(document.getElementById(`page-${place}`).textContent);
}

async function openTask(key, number, turn) {
  const target = document.getElementById("task");
  if (currentTask && currentTask.key === key) {
    showCase(number, turn);
    return;
  }
  leaveTask();
  currentTask = { key };
  target.replaceChildren(h("p", { class: "quiet" }, "…"));
  let page;
  try {
    page = await loadPage(key);
  } catch (error) {
    target.replaceChildren(h("p", {}, `This page cannot be shown: ${error.message}`));
    return;
  }
  if (currentTask.key !== key) return;
  currentTask = { key, page };
  target.replaceChildren(...taskPage(page));
  document.title = `Task ${page.entry.task_id} – ${document.body.dataset.name}`;
  showCase(number, turn);
}

function taskPage(page) {
  const { entry, at } = page;
  const sample = entry.sample ? h("span", { class: "quiet" }, " sample ", integer(`${at}/sample`, entry.sample)) : "";
  const parts = [
    h(
      "div",
      { class: "tasktop" },
      h("a", { href: `#/tasks${filterQuery() ? `?${filterQuery()}` : ""}`, title: "back to the list (u)" }, "‹ tasks"),
      h("span", { class: "spring" }),
      h("button", { type: "button", onclick: () => neighbour(-1), title: "previous failed task (k)" }, "‹ failed"),
      h("button", { type: "button", onclick: () => neighbour(1), title: "next failed task (j)" }, "failed ›"),
    ),
    h("h1", {}, "Task ", ...visible(entry.task_id), sample),
    h(
      "p",
      { class: "lead" },
      entry.instruction_type,
      " · soft ",
      percent(`${at}/soft_restriction`, entry.soft_restriction),
      " · hard ",
      percent(`${at}/hard_restriction`, entry.hard_restriction),
      entry.official_disagrees ? h("span", { class: "flag" }, "official and standard disagree") : "",
    ),
    h("p", { class: "instruction" }, ...(entry.instruction === null ? [h("span", { class: "quiet" }, "The suite is not available: the instruction cannot be shown.")] : visible(entry.instruction, { lines: true }))),
  ];
  if (entry.answer_position !== null) {
    parts.push(h("p", {}, h("span", { class: "quiet" }, "Answer position "), h("code", {}, ...visible(entry.answer_position))));
  }
  if (DOUBTS[entry.grade]) {
    parts.push(h("p", { class: "note" }, h("strong", {}, `The gold is ${entry.grade}: `), DOUBTS[entry.grade]));
  }
  const tabs = entry.cases.map((each) =>
    h("a", { class: "tab", role: "tab", href: hashOf(currentTask.key, each.case), "data-case": String(each.case) }, `Case ${each.case} `, chip(each.verdict)),
  );
  parts.push(h("div", { class: "tabs cases", role: "tablist", "aria-label": "test cases" }, ...tabs), h("div", { id: "case" }));
  parts.push(page.code !== null || (page.reply === null && !page.cases.some((each) => each.episode)) ? codePart(page) : "", replyPart(page), conversationPart(page));
  return parts;
}

// What the readers' grade of a task's gold means for its verdicts.
const DOUBTS = {
  weak: "readers found that part of the answer is not compared, or that the unchanged input passes. An accepted answer means less here.",
  ambiguous: "readers found that the question has several reasonable readings. A wrong answer may follow another one.",
  faulty: "readers found that it contradicts the question, the input or itself. A verdict counts only if it was judged with the correction.",
};

const percent = (at, value) => number(at, value, { factor: 100, digits: 2, unit: "%" });
const integer = (at, value) => number(at, value);

function codePart({ code }) {
  if (code === null) return h("details", { open: true }, h("summary", {}, "Code"), h("p", { class: "quiet" }, "None."));
  const lines = h("pre", { class: "code" }, h("code", {}, ...code.map(([kind, text]) => (kind ? h("span", { class: `t-${kind}` }, ...visible(text, { lines: true })) : h("span", {}, ...visible(text, { lines: true }))))));
  return h("details", { open: true }, h("summary", {}, "Code"), lines);
}

function replyPart({ reply }) {
  if (reply === null) return "";
  return h("details", { open: true }, h("summary", {}, "Reply"), h("pre", { class: "console" }, ...visible(reply, { lines: true })));
}

// -- pictures and tables --------------------------------------------------------------------------

// If a screenshot was shrunk to fit, its type differs from the one on record.
const pictureType = (picture) => document.getElementById(`picture-${picture.sha256}`)?.dataset.type || picture.media_type;

// The page has the bytes of each picture once, even if several tasks show it.
function pictureText(sha256) {
  return currentTask.page.pictures?.[sha256] ?? document.getElementById(`picture-${sha256}`)?.textContent ?? null;
}

function picturePart({ name, problem, sha256, media_type: type, width, height, bytes: size }) {
  const facts = problem === undefined ? `${type.replace("image/", "").toUpperCase()}, ${width} × ${height}, ${Math.ceil(size / 1024)} KiB` : "";
  const caption = h("figcaption", {}, ...visible(name), " ", h("span", { class: "quiet" }, facts));
  const line = (text) => h("p", { class: "note" }, ...visible(text));
  if (problem !== undefined) return h("figure", { class: "picture" }, caption, line(problem));
  const text = pictureText(sha256);
  if (text === null) return h("figure", { class: "picture" }, caption, line("left out, since the pictures of this report would make it too large; judge view shows it"));
  const image = h("img", { src: `data:${type};base64,${text}`, alt: name, width: String(width), height: String(height) });
  image.addEventListener("error", () => image.replaceWith(line("the picture cannot be decoded")));
  return h("figure", { class: "picture" }, image, caption);
}

function sheetPart(sheet, only) {
  const rows = sheet.rows.map((row, index) => h("tr", {}, ...row.map((cell) => h(index ? "td" : "th", {}, ...visible(cell)))));
  const size = sheet.total_rows === null ? "" : `${sheet.total_rows.toLocaleString("en")} rows, ${(sheet.total_columns ?? 0).toLocaleString("en")} columns`;
  const said = [size, sheet.cut ? "only the first are shown" : ""].filter(Boolean).join("; ");
  return h("div", { class: "sheet" }, h("p", { class: "quiet" }, ...(only ? [] : [...visible(sheet.name), ": "]), said), h("div", { class: "scroller" }, h("table", { class: "rows" }, h("tbody", {}, ...rows))));
}

function inputPart(input) {
  if (input.picture) return picturePart(input.picture);
  const parts = [h("h4", {}, ...visible(input.name))];
  if (input.problem !== undefined) parts.push(h("p", { class: "note" }, ...visible(input.problem)));
  for (const sheet of input.sheets ?? []) parts.push(sheetPart(sheet, input.sheets.length === 1));
  if (input.more_sheets) parts.push(h("p", { class: "quiet" }, `${input.more_sheets} further sheets are not shown.`));
  if (input.text !== undefined) parts.push(h("pre", { class: "console" }, ...visible(input.text, { lines: true })));
  return h("div", { class: "input" }, ...parts);
}

function inputsPart(inputs) {
  if (!inputs.length) return "";
  return h("section", { class: "inputs", "aria-label": "input files" }, ...inputs.map(inputPart));
}

// -- named values ---------------------------------------------------------------------------------

function valuesPart(values) {
  if (!values.length) return "";
  const shown = (value) => (value === null ? [h("span", { class: "quiet" }, "none")] : visible(value, { lines: true }));
  const rows = values.map((each) => {
    const verdict = each.kind
      ? h("span", { class: `chip d-${each.kind}` }, h("b", {}, KINDS[each.kind]?.letter ?? "•"), ` ${KINDS[each.kind]?.words ?? each.kind.replaceAll("_", " ")}`)
      : h("span", { class: "chip v-AC" }, "agrees");
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, ...visible(each.name), h("span", { class: "rule-text" }, ...visible(each.rule))),
      h("td", { "data-label": "expected" }, h("code", {}, ...shown(each.expected))),
      h("td", { "data-label": "found" }, h("code", {}, ...shown(each.found))),
      h("td", {}, verdict, each.detail ? h("span", { class: "rule-text" }, ...visible(each.detail)) : ""),
    );
  });
  const head = h("tr", {}, ...["value", "expected", "found", ""].map((text) => h("th", { scope: "col" }, text)));
  return h("table", { class: "values" }, h("thead", {}, head), h("tbody", {}, ...rows));
}

// -- items of a checklist -------------------------------------------------------------------------

const STATES_OF_ITEMS = { holds: ["holds", "v-AC"], fails: ["fails", "v-WA"], error: ["error", "v-WA"], not_judged: ["not judged", ""] };

function itemsPart(items) {
  if (!items) return "";
  const head = () => h("thead", {}, h("tr", {}, ...["item", "points", "expected", "found", ""].map((text) => h("th", { scope: "col" }, text))));
  const groups = items.groups.map((group) => [
    h("h4", {}, ...(group.name ? visible(group.name) : ["Items"]), " ", h("span", { class: "quiet" }, group.points)),
    h("table", { class: "values" }, head(), h("tbody", {}, ...group.items.map(itemRow))),
  ]);
  const lines = items.lines.map((line) => h("p", {}, ...visible(line)));
  return h("section", { class: "checklist", "aria-label": "checklist" }, h("h3", {}, "Checklist"), ...lines, ...groups.flat());
}

function itemRow(item) {
  const [state, css] = STATES_OF_ITEMS[item.state];
  const text = item.marks.length && item.state === "not_judged" ? "marked" : state;
  const value = (found) => (found === undefined ? [h("span", { class: "quiet" }, "none")] : visible(found, { lines: true }));
  const notes = [item.place, item.detail, item.gated_by && `behind the gate ${item.gated_by}`].filter(Boolean).join(": ");
  const marks = item.marks.map((mark) => `${mark.by}: ${Math.round(mark.score * 100) / 100}${mark.why ? `, ${mark.why}` : ""}`);
  const other = ["official", "standard"].filter((name) => item[name]).map((name) => `${name}: ${item[name].state.replace("_", " ")}${item.fault ? ` (fault ${item.fault})` : ""}`);
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, ...visible(item.id), h("span", { class: "rule-text" }, ...visible(item.words))),
    h("td", { class: "num", "data-label": "points" }, item.penalty ? `${item.earned} (penalty ${item.points})` : `${item.earned} of ${item.points}`),
    h("td", { "data-label": "expected" }, ...value(item.expected)),
    h("td", { "data-label": "found" }, ...value(item.found)),
    h("td", {}, h("span", { class: `chip ${css}` }, text), ...[notes, ...other, ...marks].filter(Boolean).map((note) => h("span", { class: "rule-text" }, ...visible(note)))),
  );
}

function conversationPart({ conversation, at, entry }) {
  if (!conversation.length) return "";
  const facts = [];
  const add = (label, node) => facts.push(h("span", {}, h("span", { class: "quiet" }, `${label} `), node));
  if (entry.rounds !== null) add("rounds", integer(`${at}/rounds`, entry.rounds));
  if (entry.prompt_tokens !== null) add("tokens asked", integer(`${at}/prompt_tokens`, entry.prompt_tokens));
  if (entry.completion_tokens !== null) add("tokens answered", integer(`${at}/completion_tokens`, entry.completion_tokens));
  if (entry.cost_usd !== null) add("cost", number(`${at}/cost_usd`, entry.cost_usd, { digits: 4, unit: "US$" }));
  if (entry.inference_s !== null) add("time", seconds(`${at}/inference_s`, entry.inference_s));
  let round = 0;
  const turns = conversation.map((turn) => {
    if (turn.role === "assistant") round += 1;
    const label = turn.role === "assistant" ? `assistant, round ${round}` : turn.role;
    const text = h("pre", {}, ...visible(turn.content, { lines: true }));
    const element = h("li", { class: `turn r-${turn.role}` }, h("h4", {}, label), ...turn.pictures.map(picturePart), text);
    return { element, text, content: turn.content };
  });
  const list = h("ol", { class: "turns" }, ...turns.map(({ element }) => element));
  return h("details", {}, h("summary", {}, "Conversation"), h("p", { class: "factline" }, ...facts), searchPart(turns), list);
}

// Shows only the messages that contain the search text, and marks it.
function searchPart(turns) {
  const said = h("span", { class: "quiet", role: "status" });
  const field = h("input", { type: "search", placeholder: "Search the conversation", "aria-label": "Search the conversation", autocomplete: "off", spellcheck: "false" });
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    let hits = 0;
    let messages = 0;
    for (const { element, text, content } of turns) {
      const found = wanted ? occurrences(content, wanted) : [];
      element.hidden = wanted !== "" && !found.length;
      element.classList.toggle("r-hit", found.length > 0);
      hits += found.length;
      messages += found.length ? 1 : 0;
      text.replaceChildren(...highlighted(content, found, wanted.length));
    }
    said.textContent = wanted ? `${hits.toLocaleString("en")} in ${messages.toLocaleString("en")} of ${turns.length.toLocaleString("en")} messages` : "";
  });
  return h("div", { class: "search", role: "search" }, field, said);
}

const MAX_HITS = 2000;

function occurrences(content, wanted) {
  const lower = content.toLowerCase();
  // A character whose lower case is longer would shift the positions after it.
  const text = lower.length === content.length ? lower : content;
  const found = [];
  for (let at = text.indexOf(wanted); at >= 0 && found.length < MAX_HITS; at = text.indexOf(wanted, at + wanted.length)) found.push(at);
  return found;
}

function highlighted(content, found, length) {
  const nodes = [];
  let from = 0;
  for (const at of found) {
    nodes.push(...visible(content.slice(from, at), { lines: true }), h("mark", {}, ...visible(content.slice(at, at + length), { lines: true })));
    from = at + length;
  }
  return [...nodes, ...visible(content.slice(from), { lines: true })];
}

function showCase(wantedNumber, turn) {
  const { page } = currentTask || {};
  if (!page) return;
  const failing = page.entry.cases.find((each) => each.verdict !== "AC") || page.entry.cases[0];
  const chosen = page.entry.cases.findIndex((each) => each.case === (wantedNumber || failing?.case));
  for (const tab of document.querySelectorAll("#task [data-case]")) {
    tab.setAttribute("aria-selected", String(Number(tab.dataset.case) === page.entry.cases[chosen]?.case));
  }
  const target = document.getElementById("case");
  if (chosen < 0) {
    target.replaceChildren(h("p", { class: "quiet" }, "This case does not exist."));
    return;
  }
  currentEpisode?.stop();
  target.replaceChildren(...casePart(page, chosen));
  currentEpisode?.show((turn || 1) - 1);
  for (const grid of grids) {
    grid.show("output");
    grid.showAnswer();
  }
  // Shows the first difference from the start.
  if (currentGrid) currentGrid.step(1);
}

// "expected 'a b', found 'a  b'": marks the characters that differ between the two strings.
const CONTRAST = /^(.*?\bexpected )((['"])(?:\\.|(?!\3).)*\3)(, found )((['"])(?:\\.|(?!\6).)*\6)(.*)$/s;

function causeNodes(cause) {
  const match = CONTRAST.exec(cause);
  if (!match) return visible(cause);
  const [, before, expected, , between, found, , after] = match;
  const [one, two] = contrasted(expected.slice(1, -1), found.slice(1, -1));
  return [...visible(before), expected[0], ...one, expected[0], between, found[0], ...two, found[0], ...visible(after)];
}

function casePart(page, index) {
  const entry = page.entry.cases[index];
  const at = `${page.at}/cases/${index}`;
  const more = page.cases[index];
  const parts = [
    h("p", { class: "cause" }, chip(entry.verdict), " ", entry.verdict === null ? "not run" : VERDICTS[entry.verdict], entry.cause ? h("span", {}, ": ", ...causeNodes(entry.cause)) : ""),
  ];
  if (entry.manual) {
    const { automatic, verdict, by, at: when, why } = entry.manual;
    parts.push(h("p", { class: "note" }, `Verdict ${automatic} changed to ${verdict} by `, ...visible(by), " on ", ...visible(when), ": ", ...visible(why)));
  }
  if (entry.official_disagrees && !more.rules) {
    parts.push(h("p", { class: "note" }, entry.official_equal ? "The published script accepts this output." : "The published script does not accept this output."));
  }
  parts.push(...(entry.suspects ?? []).map(suspectPart));
  parts.push(episodePart(more.episode, entry.case));
  const ofRules = [];
  const makeGrid = (block) => {
    const grid = new Grid(block, page.marks);
    ofRules.push(grid);
    return grid.element;
  };
  parts.push(itemsPart(more.items), rulesPart(more, makeGrid), valuesPart(more.values), inputsPart(more.inputs));
  const ofAnswer = more.grid.blocks.map((block) => new Grid(block, page.marks));
  grids = [...ofRules, ...ofAnswer];
  currentGrid = grids.find((grid) => grid.differences.length) || grids[0] || null;
  parts.push(...ofAnswer.map((grid) => grid.element));
  parts.push(differencesPart(entry, at, more));
  const notes = [...entry.notes, ...more.grid.notes];
  if (notes.length) parts.push(h("ul", { class: "note" }, ...notes.map((note) => h("li", {}, ...visible(note)))));
  parts.push(disputePart(page.entry, entry.case), factsPart(entry, at, page.unit));
  parts.push(consolePart("stdout", more.stdout), consolePart("stderr", more.stderr));
  return parts;
}

// On a server, users who have signed in can dispute each verdict.
function disputePart(task, number) {
  const url = document.body.dataset.disputes;
  if (!url) return "";
  const query = new URLSearchParams({ task: task.task_id, sample: task.sample, case: number });
  return h("p", {}, h("a", { class: "tab dispute", href: `${url}&${query}` }, "Dispute this verdict"));
}

function episodePart(episode, number) {
  currentEpisode = null;
  if (!episode) return "";
  const { key } = currentTask;
  // The address names the turn, so that it can be linked to; turns are not entries of the history.
  const Kind = episode.kind === "tools" ? ToolEpisode : Episode;
  currentEpisode = new Kind(episode, (turn) => history.replaceState(null, "", hashOf(key, number, turn)));
  return currentEpisode.element;
}

function suspectPart({ sign, certainty, status, whole_task: wholeTask, summary, why, decisions, seen, runs }) {
  const settled = status === "fine" || status === "corrected";
  return h(
    "div",
    { class: `note suspect${settled ? " settled" : ""}` },
    h("p", {}, h("b", {}, wholeTask ? "Suspect task" : "Suspect gold"), ` (${sign}, ${certainty}, ${status}): `, ...visible(summary)),
    h("p", { class: "quiet" }, ...visible(why)),
    seenPart(seen ?? [], runs ?? []),
    decisions.length ? h("ul", {}, ...decisions.map((line) => h("li", {}, ...visible(line)))) : "",
  );
}

// The cells of a suspect, in all files of its case; a formula is shown below its value.
function seenPart(seen, runs) {
  if (!seen.length) return "";
  const names = [...new Set([...runs.map(({ run }) => run), ...seen.flatMap(({ outputs }) => Object.keys(outputs))])];
  const verdicts = Object.fromEntries(runs.map(({ run, verdict }) => [run, verdict]));
  const short = (run) => run.split("/").filter(Boolean).pop() ?? run;
  const held = (content, label) => {
    if (!content) return h("td", { "data-label": label }, h("span", { class: "quiet" }, "not compared"));
    const value = content.value === null ? h("span", { class: "quiet" }, "blank") : h("code", {}, ...visible(shownValue(content.value), { lines: true }));
    return h("td", { "data-label": label }, value, content.formula ? h("code", { class: "rule-text" }, ...visible(content.formula)) : "");
  };
  const rows = seen.map((each) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, ...visible(`${each.sheet}!${each.cell}`), h("span", { class: "rule-text" }, each.in_answer ? "answer" : "outside of the answer")),
      held(each.input, "input"),
      held(each.gold, "gold"),
      ...names.map((run) => held(each.outputs[run], short(run))),
    ),
  );
  const head = h(
    "tr",
    {},
    ...["cell", "input", "gold"].map((text) => h("th", { scope: "col" }, text)),
    ...names.map((run) => h("th", { scope: "col", title: run }, ...visible(short(run)), verdicts[run] ? ` (${verdicts[run]})` : "")),
  );
  const table = h("table", { class: "values" }, h("thead", {}, head), h("tbody", {}, ...rows));
  return h("details", { class: "seen" }, h("summary", {}, `Side by side: ${seen.length} ${seen.length === 1 ? "cell" : "cells"}`), table);
}

// A value as JSON: dates, times and errors are objects with one field.
function shownValue(value) {
  return typeof value === "object" ? String(Object.values(value)[0]) : String(value);
}

function differencesPart(entry, at, more) {
  const counts = Object.entries(entry.difference_counts);
  if (!counts.length) return "";
  const chips = counts.map(([kind, count]) =>
    h("span", { class: "count" }, h("span", { class: `chip d-${kind}` }, h("b", {}, KINDS[kind].letter), ` ${KINDS[kind].words}`), " ", integer(`${at}/difference_counts/${kind}`, count)),
  );
  const outside = more.outside.map((line) => h("li", {}, ...visible(line)));
  return h("div", {}, h("p", { class: "counts" }, ...chips), outside.length ? h("ul", { class: "outside" }, ...outside) : "");
}

function factsPart(entry, at, unit) {
  const facts = [
    [`${unit} compared`, integer(`${at}/answer_cells`, entry.answer_cells)],
    [`${unit} that differ`, integer(`${at}/differing_cells`, entry.differing_cells)],
    ["formula cells computed", integer(`${at}/computed_cells`, entry.computed_cells)],
    ["engines", entry.engines.length ? h("span", {}, ...visible(entry.engines.join(", "))) : "none"],
    ["wall time", seconds(`${at}/wall_s`, entry.wall_s)],
    ["processor time", seconds(`${at}/cpu_s`, entry.cpu_s)],
    ["peak memory", bytes(`${at}/peak_memory_bytes`, entry.peak_memory_bytes)],
    ["recalculation", seconds(`${at}/recalculation_s`, entry.recalculation_s)],
    ["comparison", seconds(`${at}/comparison_s`, entry.comparison_s)],
    ["input", bytes(`${at}/input_bytes`, entry.input_bytes)],
    ["input rows", integer(`${at}/input_rows`, entry.input_rows)],
    ["input columns", integer(`${at}/input_columns`, entry.input_columns)],
    ["output", bytes(`${at}/output_bytes`, entry.output_bytes)],
  ];
  // If nothing was run or computed, these facts do not exist.
  const known = entry.wall_s === null && unit === "values" ? facts.slice(0, 2) : facts;
  return h("details", { open: true }, h("summary", {}, "Facts"), h("dl", { class: "factgrid" }, ...known.map(([name, node]) => h("div", {}, h("dt", {}, name), h("dd", {}, node)))));
}

function consolePart(name, text) {
  if (!text) return "";
  return h("details", {}, h("summary", {}, name), h("pre", { class: "console" }, ...visible(text, { lines: true })));
}

// -- keyboard ------------------------------------------------------------------------------------

function neighbour(by) {
  const failed = rows.filter((row) => !row.hidden && row.dataset.failed === "1");
  if (!failed.length) return;
  const order = rows.findIndex((row) => row.dataset.key === currentTask?.key);
  const after = failed.findIndex((row) => rows.indexOf(row) > order);
  const before = failed.findLastIndex((row) => rows.indexOf(row) < order);
  const next = by > 0 ? failed[after < 0 ? 0 : after] : failed[before < 0 ? failed.length - 1 : before];
  location.hash = hashOf(next.dataset.key);
}

const keysDialog = document.getElementById("keys");

const KEYS = {
  "?": () => (keysDialog.open ? keysDialog.close() : keysDialog.showModal()),
  j: () => neighbour(1),
  k: () => neighbour(-1),
  n: () => currentGrid?.step(1),
  p: () => currentGrid?.step(-1),
  ArrowRight: () => currentEpisode?.step(1),
  ArrowLeft: () => currentEpisode?.step(-1),
  Home: () => currentEpisode?.show(0),
  End: () => currentEpisode?.show(Infinity),
  m: () => currentEpisode?.marks(),
  z: () => currentEpisode?.zoom(),
  f: () => grids.forEach((grid) => grid.toggleFormulas()),
  u: () => (location.hash = `#/tasks${filterQuery() ? `?${filterQuery()}` : ""}`),
  "/": () => {
    if (document.getElementById("tasks").hidden) {
      // Immediately, not with the next event: the next key has to reach the field.
      history.pushState(null, "", `#/tasks${filterQuery() ? `?${filterQuery()}` : ""}`);
      route();
    }
    filters.elements.q.focus();
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (keysDialog.open && event.key !== "?") return;
  const action = KEYS[event.key];
  if (!action) {
    const tab = /^[1-9]$/.test(event.key) && document.querySelector(`#task [data-case="${event.key}"]`);
    if (tab) tab.click();
    return;
  }
  // Without an episode, or inside an element that scrolls, arrow keys keep their usual meaning.
  const moves = event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End";
  if (moves && (!currentEpisode || event.target.closest(".scroll, .scroller, .shot, pre"))) return;
  event.preventDefault();
  action();
});

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the part after # is a route
  document.querySelector("main:not([hidden])").focus();
});
document.getElementById("showkeys").addEventListener("click", KEYS["?"]);
// Failed tasks follow one another in the order of the list.
sortable(document.querySelector("#tasks table"), (sorted) => rows.splice(0, rows.length, ...sorted));
filters.addEventListener("input", filterChanged);
filters.addEventListener("submit", (event) => {
  event.preventDefault();
  const first = rows.find((row) => !row.hidden);
  if (first) location.hash = hashOf(first.dataset.key);
});
for (const button of document.querySelectorAll("[data-preset]")) {
  button.addEventListener("click", () => {
    setFilter(button.dataset.preset);
    filterChanged();
  });
}
document.getElementById("tasklist").addEventListener("click", (event) => {
  const row = event.target.closest("tr");
  if (row && !event.target.closest("a") && !String(getSelection())) location.hash = hashOf(row.dataset.key);
});
addEventListener("hashchange", route);
addEventListener("resize", () => {
  grids.forEach((grid) => grid.draw());
  currentEpisode?.redraw();
});
applyFilter();
route();
