"use strict";
// An episode with tools, turn by turn: text, calls with their results, and the cells that changed.

const FOLDED_LINES = 40;

const preOf = (kind, text) => h("pre", { class: kind }, ...visible(text, { lines: true }));

// Of a long string, the first lines are shown; the rest is one click away.
function foldedPart(text, kind) {
  const lines = text.split("\n");
  if (lines.length <= FOLDED_LINES) return preOf(kind, text);
  const more = lines.length - FOLDED_LINES;
  const first = preOf(kind, lines.slice(0, FOLDED_LINES).join("\n"));
  const rest = h("details", { class: "fold" }, h("summary", {}, `${more.toLocaleString("en")} more lines`), preOf(kind, lines.slice(FOLDED_LINES).join("\n")));
  return h("div", {}, first, rest);
}

function callPart(call) {
  const state = call.ok ? "ran" : `failed: ${call.error || "tool"}`;
  const chip = h("span", { class: `chip ${call.ok ? "v-AC" : "v-WA"}` }, ...visible(state));
  const seconds = call.seconds === null ? "" : h("span", { class: "quiet" }, ` ${secondsText(call.seconds)}`);
  const repaired = call.repairs.length ? h("span", { class: "quiet" }, " repaired: ", ...visible(call.repairs.join(", "))) : "";
  const code = call.pieces.map(([kind, text]) => h("span", kind ? { class: `t-${kind}` } : {}, ...visible(text, { lines: true })));
  return h(
    "div",
    { class: `toolcall${call.ok ? "" : " bad"}` },
    h("p", { class: "toolname" }, h("b", {}, ...visible(call.tool)), " ", chip, seconds, repaired),
    code.some((each) => each.textContent) ? h("pre", { class: "code" }, h("code", {}, ...code)) : "",
    call.fault ? h("p", { class: "note" }, ...visible(call.fault)) : "",
    call.text ? foldedPart(call.text, call.ok ? "console" : "console bad") : h("p", { class: "quiet" }, "no text"),
    call.left_out ? h("p", { class: "quiet" }, `${call.left_out.toLocaleString("en")} further characters were left out for the model.`) : "",
    ...call.pictures.map(picturePart),
  );
}

function changedPart({ cells, more, words }) {
  const rows = cells.map((cell) => h("tr", {}, ...cell.map((text, place) => h(place ? "td" : "th", place ? {} : { scope: "row" }, ...visible(text)))));
  const head = h("tr", {}, ...["cell", "before", "after"].map((name) => h("th", { scope: "col" }, name)));
  const table = rows.length ? h("div", { class: "scroller" }, h("table", { class: "rows" }, h("thead", {}, head), h("tbody", {}, ...rows))) : "";
  const said = [more ? `${more.toLocaleString("en")} further cells changed` : "", words].filter(Boolean).join("; ");
  return h("div", { class: "changed" }, h("h5", {}, "Changed in this turn"), table, said ? h("p", { class: "quiet" }, ...visible(said)) : "");
}

class ToolEpisode {
  constructor(episode, onTurn) {
    this.onTurn = onTurn;
    this.place = 0;
    this.turns = episode.turns.map((turn, place) => this.#turn(turn, place));
    const facts = episode.facts.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, ...visible(text))));
    const end = h("p", { class: "note epend" }, h("b", {}, "End: "), ...visible(episode.ended), episode.problem ? h("span", {}, ". ", ...visible(episode.problem)) : "");
    this.element = h(
      "section",
      { class: "episode tools", "aria-label": "episode" },
      h("h3", {}, "Episode"),
      facts.length ? h("details", { class: "epfacts" }, h("summary", {}, "Model, tools and limits"), h("dl", { class: "factgrid" }, ...facts)) : "",
      ...this.turns,
      episode.more_turns ? h("p", { class: "note" }, `${episode.more_turns} further turns are not shown.`) : "",
      end,
    );
  }

  #turn(turn, place) {
    const failed = turn.calls.filter((call) => !call.ok).length;
    const names = turn.calls.map((call) => call.tool).join(", ") || "no call";
    const fault = failed ? h("span", { class: "chip v-WA" }, `${failed} failed`) : "";
    const summary = h("summary", {}, h("b", {}, `Turn ${turn.number}`), " ", ...visible(names), " ", fault, turn.changed ? h("span", { class: "chip v-changed" }, "workbook changed") : "");
    const parts = [summary];
    if (turn.reasoning) parts.push(h("details", { class: "fold" }, h("summary", {}, "Reasoning"), preOf("console", turn.reasoning)));
    if (turn.reply) parts.push(h("p", { class: "said" }, ...visible(turn.reply, { lines: true })));
    if (turn.cut) parts.push(h("p", { class: "note" }, "The reply was cut off."));
    parts.push(...turn.calls.map(callPart));
    if (turn.more_calls) parts.push(h("p", { class: "note" }, `${turn.more_calls} further calls are not shown.`));
    if (turn.told) parts.push(h("h5", {}, "Message to the model"), preOf("console", turn.told));
    if (turn.changed) parts.push(changedPart(turn.changed));
    if (turn.facts) parts.push(h("p", { class: "quiet" }, ...visible(turn.facts)));
    const element = h("details", { class: "toolturn", open: failed > 0 || turn.changed !== null }, ...parts);
    element.addEventListener("toggle", () => element.open && this.started && this.#at(place));
    return element;
  }

  #at(place) {
    this.place = place;
    this.onTurn(place + 1);
  }

  show(place) {
    this.started = true;
    if (!this.turns.length) return;
    this.place = Math.max(0, Math.min(place, this.turns.length - 1));
    const turn = this.turns[this.place];
    if (place > 0) turn.open = true;
    if (place > 0) turn.scrollIntoView({ block: "nearest" });
  }

  step(by) {
    const place = this.place + by;
    if (place < 0 || place >= this.turns.length) return false;
    this.turns[place].open = true;
    this.turns[place].scrollIntoView({ block: "nearest" });
    this.#at(place);
    return true;
  }

  // Only desktop episodes have these.
  stop() {}
  marks() {}
  zoom() {}
  redraw() {}
}
