"use strict";
// Shared by all pages: makes elements, and shows untrusted text.

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

// Control and direction characters are shown by name: if they were invisible, one value could pass for another.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function visible(text, { lines = false } = {}) {
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(UNSEEN)) {
    const character = match[0];
    if (lines && (character === "\n" || character === "\t")) continue;
    if (match.index > from) nodes.push(text.slice(from, match.index));
    nodes.push(unseen(character));
    from = match.index + 1;
  }
  if (from < text.length) nodes.push(text.slice(from));
  return nodes;
}

function unseen(character) {
  const code = character.charCodeAt(0);
  const name = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const shown = code < 0x20 ? String.fromCharCode(0x2400 + code) : name;
  return h("span", { class: "unseen", title: name }, shown);
}

async function inflate(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// Two strings as nodes, in which the characters that differ are marked.
function contrasted(first, second) {
  const [one, two] = [Array.from(first), Array.from(second)];
  let start = 0;
  while (start < one.length && start < two.length && one[start] === two[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < two.length - start && one[one.length - 1 - end] === two[two.length - 1 - end]) end += 1;
  return [one, two].map((characters) => {
    const [before, middle, after] = [characters.slice(0, start), characters.slice(start, characters.length - end), characters.slice(characters.length - end)];
    return [...visible(before.join("")), ...(middle.length ? [h("mark", {}, ...visible(middle.join("")))] : []), ...visible(after.join(""))];
  });
}

// Headings that sort the rows below them: ascending, descending, original order. The sort key of a
// cell is its data-sort, or its first number with a value, or its text.
function sortable(table, onSorted = () => {}) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const headings = [...table.tHead.rows].at(-1).cells;
  const keyOf = (row, at) => {
    const cell = row.cells[at];
    const text = cell?.dataset.sort ?? cell?.querySelector("data")?.value ?? cell?.textContent.trim() ?? "";
    return { text, number: text === "" ? NaN : Number(text) };
  };
  const order = (one, two) => {
    if (!Number.isNaN(one.number) && !Number.isNaN(two.number)) return one.number - two.number;
    return one.text.localeCompare(two.text, "en", { numeric: true });
  };
  const sort = (at, direction) => {
    let sorted = original;
    if (direction) {
      const keyed = original.map((row) => [keyOf(row, at), row]);
      // Rows without a sort key come last in both directions.
      keyed.sort(([one], [two]) => (one.text === "") - (two.text === "") || direction * order(one, two));
      sorted = keyed.map(([, row]) => row);
    }
    body.append(...sorted);
    [...headings].forEach((heading, place) => {
      heading.removeAttribute("aria-sort");
      if (place === at && direction) heading.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    });
    onSorted(sorted);
  };
  [...headings].forEach((heading, at) => {
    if (!heading.textContent.trim() || heading.querySelector(".axisrow, .unheard")) return;
    const button = h("button", { type: "button", class: "sort" }, ...heading.childNodes);
    button.addEventListener("click", () => {
      const now = heading.getAttribute("aria-sort");
      sort(at, now === "ascending" ? -1 : now === "descending" ? 0 : 1);
    });
    heading.replaceChildren(button);
  });
}

// Elements that are wider than the page can be scrolled with the keyboard.
const wide = new ResizeObserver((entries) => {
  for (const { target } of entries) target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
});
addEventListener("DOMContentLoaded", () => {
  for (const scroller of document.querySelectorAll(".scroller")) wide.observe(scroller);
});
