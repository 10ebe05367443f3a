"use strict";
// Rules about whole workbooks: in words, with the findings, gold next to output.

const SVG_TAGS = { r: "rect", p: "path", c: "circle", t: "text" };
const STATES_OF_RULES = { holds: ["holds", "v-AC"], fails: ["does not hold", "v-WA"], unknown: ["no difference on record", "v-none"], unjudged: ["not judged", "v-none"] };
const STATES_OF_ROWS = { differs: "differs", unasked: "differs, not required", agrees: "", listed: "" };

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

function drawing({ width, height, label, shapes }) {
  const children = shapes.map(([kind, css, ...rest]) => {
    const tag = SVG_TAGS[kind];
    if (kind === "r") return svg(tag, { class: css, x: rest[0], y: rest[1], width: rest[2], height: rest[3] });
    if (kind === "p") return svg(tag, { class: css, d: rest[0] });
    if (kind === "c") return svg(tag, { class: css, cx: rest[0], cy: rest[1], r: rest[2] });
    return svg(tag, { class: css, x: rest[0], y: rest[1] }, rest[2]);
  });
  return svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...children);
}

// -- the list of rules -----------------------------------------------------------------------------

function rulesPart(more, makeGrid) {
  const { rules } = more;
  if (!rules) return "";
  const failing = rules.rules.filter((each) => each.state === "fails").length;
  const count = rules.rules.length;
  const items = rules.rules.map((each) => ruleItem(each, makeGrid));
  const heading = h("h3", {}, "Rules ", h("span", { class: "quiet" }, failing ? `${failing.toLocaleString("en")} of ${count.toLocaleString("en")} ${failing === 1 ? "does" : "do"} not hold` : ""));
  return h("section", { class: "rules", "aria-label": "rules" }, heading, publishedPart(rules), h("ol", {}, ...items));
}

function publishedPart({ published, profile }) {
  if (!published) return "";
  const whose = published.name ? `${published.name}’s published evaluator` : "the published evaluator";
  const said = published.error === null ? [published.equal ? "accepts this output" : "does not accept this output"] : ["raises ", h("code", {}, ...visible(published.error))];
  const own = profile === "official" ? "The verdict is that of " : "On record next to the judge’s own verdict: ";
  return h("p", { class: "published" }, h("span", { class: "quiet" }, own), ...visible(whose), profile === "official" ? ", which " : " ", ...said, ".");
}

function ruleItem({ number, words, state, findings }, makeGrid) {
  const [text, css] = STATES_OF_RULES[state];
  const item = h("li", { value: String(number), class: `rule-${state}` }, h("p", { class: "rule-words" }, h("span", { class: `chip ${css}` }, text), " ", ...visible(words)));
  item.append(...findings.map((finding) => findingPart(finding, makeGrid)));
  return item;
}

function findingPart(finding, makeGrid) {
  const parts = [];
  const where = [finding.sheet ? `sheet ${finding.sheet}` : "", finding.detail].filter(Boolean).join(": ");
  if (where) parts.push(h("p", { class: "quiet" }, ...visible(where)));
  if (finding.expected !== null || finding.found !== null) {
    parts.push(rowsPart([{ name: "", expected: finding.expected ?? "nothing", found: finding.found ?? "nothing", state: "listed" }], ["expected", "found"]));
  }
  if (finding.note) parts.push(h("p", { class: "note" }, ...visible(finding.note)));
  if (finding.part) parts.push(PARTS[finding.part.kind](finding.part, makeGrid));
  return h("div", { class: "finding" }, ...parts);
}

const PARTS = {
  rows: ({ rows, heads }) => rowsPart(rows, heads),
  grid: ({ block }, makeGrid) => makeGrid(block),
  charts: (part) => pairsPart(part, "chart", chartPair),
  pivots: (part) => pairsPart(part, "pivot table", pivotPair),
  looks: looksPart,
  elsewhere: ({ rule }) => h("p", { class: "quiet" }, `Shown with rule ${rule}.`),
};

// -- properties side by side ------------------------------------------------------------------------

function marked(text, state) {
  const nodes = text === "" ? [h("span", { class: "quiet" }, "none")] : visible(text, { lines: true });
  return state === "differs" ? [h("mark", {}, ...nodes)] : nodes;
}

function rowsPart(rows, heads = ["gold", "output"]) {
  if (!rows.length) return h("p", { class: "quiet" }, "The files themselves show no difference.");
  const named = rows.some((each) => each.name);
  const body = rows.map(({ name, expected, found, state }) =>
    h(
      "tr",
      { class: `is-${state}` },
      named ? h("th", { scope: "row" }, ...visible(name)) : "",
      h("td", { "data-label": heads[0] }, ...marked(expected, state)),
      h("td", { "data-label": heads[1] }, ...marked(found, state), ...(STATES_OF_ROWS[state] ? [" ", h("span", { class: "said" }, STATES_OF_ROWS[state])] : [])),
    ),
  );
  const head = h("tr", {}, ...[...(named ? [""] : []), ...heads].map((text) => h("th", { scope: "col" }, text)));
  return h("table", { class: named ? "sidebyside named" : "sidebyside" }, h("thead", {}, head), h("tbody", {}, ...body));
}

function pairsPart({ agreeing, more, pairs }, what, make) {
  const plural = (count) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
  const parts = pairs.map(make);
  if (!pairs.length) parts.push(h("p", { class: "quiet" }, agreeing ? `The ${plural(agreeing)} agree${agreeing === 1 ? "s" : ""} as the judge reads them.` : `Neither sheet has a ${what}.`));
  else if (agreeing) parts.push(h("p", { class: "quiet" }, `${plural(agreeing)} more ${agreeing === 1 ? "agrees" : "agree"}.`));
  if (more) parts.push(h("p", { class: "quiet" }, `${plural(more)} more that differ ${more === 1 ? "is" : "are"} not shown.`));
  return h("div", {}, ...parts);
}

function sides(gold, output, make) {
  const side = (title, found) => h("figure", { class: "side" }, h("figcaption", {}, title), ...(found === null ? [h("p", { class: "absent" }, "none")] : make(found, title)));
  return h("div", { class: "sidepair" }, side("gold", gold), side("output", output));
}

// Rows that agree are folded; rows that differ are visible.
function propertiesPart(rows) {
  const differing = rows.filter((each) => each.state === "differs" || each.state === "unasked");
  const rest = rows.filter((each) => each.state === "agrees" || each.state === "listed");
  const parts = differing.length ? [rowsPart(differing)] : [];
  const count = `${rest.length.toLocaleString("en")} ${rest.length === 1 ? "property" : "properties"}`;
  const said = rest[0]?.state === "listed" ? count : `${count} ${rest.length === 1 ? "agrees" : "agree"}`;
  if (rest.length) parts.push(h("details", { class: "agreeing" }, h("summary", {}, said), rowsPart(rest)));
  return parts;
}

// -- charts and pivot tables ------------------------------------------------------------------------

function chartPair({ gold, output, rows }) {
  const make = (side) => [side.drawing ? drawing(side.drawing) : "", ...side.notes.map((note) => h("p", { class: "quiet" }, ...visible(note)))];
  return h("section", { class: "pairing", "aria-label": "charts" }, sides(gold, output, make), ...propertiesPart(rows));
}

function pivotPair({ gold, output, rows }) {
  const field = ({ text, state }) => h("li", { class: `is-${state}` }, ...marked(text, state), ...(state === "differs" ? [" ", h("span", { class: "said" }, "differs")] : []));
  const area = ({ name, fields, more }) => h("div", { class: "area" }, h("h4", {}, name), fields.length ? h("ul", {}, ...fields.map(field)) : h("p", { class: "quiet" }, "–"), more ? h("p", { class: "quiet" }, `and ${more.toLocaleString("en")} more`) : "");
  const make = (areas) => [h("div", { class: "areas" }, ...areas.map(area))];
  return h("section", { class: "pairing", "aria-label": "pivot tables" }, sides(gold, output, make), ...propertiesPart(rows));
}

// -- formats of cells -------------------------------------------------------------------------------

const HEX = /^[0-9A-F]{6}$/;

function swatch(look) {
  if (look === null) return h("span", { class: "quiet" }, "–");
  const box = h("span", { class: "swatch", "aria-hidden": "true" }, ...visible(look.text));
  if (HEX.test(look.fill ?? "") && look.pattern !== "none") box.style.backgroundColor = `#${look.fill}`;
  if (HEX.test(look.ink)) box.style.color = `#${look.ink}`;
  if (look.blank) box.classList.add("sample");
  for (const name of ["bold", "italic", "underline"]) if (look[name]) box.classList.add(name);
  const pattern = look.pattern === "solid" || look.pattern === "none" ? "" : ` ${look.pattern}`;
  const words = [
    look.pattern === "none" ? "no fill" : `fill ${look.fill ? `#${look.fill}` : "automatic"}${pattern}`,
    `ink #${look.ink}`,
    ...["bold", "italic", "underline"].filter((name) => look[name]).map((name) => (name === "underline" ? "underlined" : name)),
    look.font,
    look.number_format === "General" ? "" : look.number_format,
  ];
  return h("span", { class: "look" }, box, h("span", { class: "lookwords" }, ...visible(words.filter(Boolean).join(", "))));
}

function looksPart({ cells, more }) {
  if (!cells.length) return h("p", { class: "quiet" }, "The judge finds no cell whose own format differs; conditional formats may differ.");
  const withGold = cells.some((each) => each.gold !== null);
  const rows = cells.map(({ cell, how, gold, output }) =>
    h("tr", {}, h("th", { scope: "row" }, ...visible(cell)), withGold ? h("td", { "data-label": "gold" }, swatch(gold)) : "", h("td", { "data-label": "output" }, swatch(output)), h("td", { class: "how" }, ...visible(how))),
  );
  const head = h("tr", {}, ...["cell", ...(withGold ? ["gold"] : []), "output", withGold ? "what differs" : "what is required"].map((text) => h("th", { scope: "col" }, text)));
  const table = h("table", { class: "looks" }, h("thead", {}, head), h("tbody", {}, ...rows));
  return h("div", {}, table, more ? h("p", { class: "quiet" }, `${more.toLocaleString("en")} more cells that differ are not shown.`) : "");
}
