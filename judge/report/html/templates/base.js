"use strict";
// Shared by all pages: elements, and untrusted text made visible.

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

// Control and direction characters are shown by name: unseen they could dress up one value as another.
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
