"""Proposes the rules of a task from its inputs and golds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.authoring.proposals.changes import Change, Rule, changes_of, pair_rule
from judge.authoring.proposals.pairs import Pair
from judge.authoring.proposals.unsaid import unsaid_of
from judge.authoring.proposals.words import words_of
from judge.errors import UsageError, WorkbookError
from judge.workbook.facts.sheets import SheetFacts, Validation
from judge.workbook.reader import open_workbook

_PROPERTIES = {
    "chart": "chart_props",
    "pivot_table": "pivot_props",
    "style": "props",
    "row_props": "props",
    "col_props": "props",
}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rule that a person keeps or drops.

    Attributes:
        words: what it asks.
        rules: the rule for each case; they differ only where a rule states what a gold shows.
    """

    words: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Proposals:
    """What is proposed.

    Attributes:
        listed: the rules.
        unsaid: what differs and no rule says, a line each.
    """

    listed: tuple[Proposal, ...]
    unsaid: tuple[str, ...] = ()


def propose(cases: Sequence[tuple[Path, Path]]) -> Proposals:
    """Proposes rules: for what differs in a case, and for nothing else.

    Args:
        cases: input and gold of each case.

    Raises:
        WorkbookError: a workbook cannot be read.
        UsageError: the golds do not have the same sheets.
    """
    pairs = [Pair(open_workbook(question), open_workbook(gold)) for question, gold in cases]
    sheets = _sheets(pairs)
    listed: list[Proposal] = []
    unsaid: list[str] = []
    if any(pair.names_differ() for pair in pairs):
        names = ", ".join(tab.name for tab in pairs[0].gold.facts.tabs)
        rule: Rule = {"type": "sheet_name"}
        listed.append(
            Proposal(f"the sheets are those of the gold, in order: {names}", (rule,) * len(pairs))
        )
    for names_of_cases in sheets:
        facts = [_facts(pair, name) for pair, name in zip(pairs, names_of_cases, strict=True)]
        listed.extend(_of_sheet(pairs, names_of_cases, facts))
        for pair, name, gold in zip(pairs, names_of_cases, facts, strict=True):
            base = pair.base(name)
            tab = base.tab(name)
            if tab is not None:
                unsaid.extend(unsaid_of(base.facts.sheet(tab), gold))
    if any(pair.question.facts.names != pair.gold.facts.names for pair in pairs):
        unsaid.append("defined names")
    return Proposals(tuple(listed), tuple(dict.fromkeys(unsaid)))


def _sheets(pairs: Sequence[Pair]) -> list[tuple[str, ...]]:
    """Each sheet of the golds by its name in every case.

    Golds that name their sheets differently are taken sheet by sheet.
    """
    names = [pair.gold.names for pair in pairs]
    if all(set(each) == set(names[0]) for each in names):
        return [(name,) * len(pairs) for name in names[0]]
    if any(len(each) != len(names[0]) for each in names):
        counts = ", ".join(str(len(each)) for each in names)
        raise UsageError(
            f"the golds of the cases have different numbers of sheets: {counts}",
            hint="The cases of a task have workbooks of the same shape.",
        )
    return list(zip(*names, strict=True))


def _facts(pair: Pair, name: str) -> SheetFacts:
    tab = pair.gold.tab(name)
    if tab is None:
        raise WorkbookError(f"there is no sheet {name!r}")
    return pair.gold.facts.sheet(tab)


def _of_sheet(
    pairs: Sequence[Pair], names: Sequence[str], facts: Sequence[SheetFacts]
) -> Iterator[Proposal]:
    """The rules about a sheet: a type that differs in one case is a rule of all."""
    first: dict[str, tuple[Change, SheetFacts]] = {}
    props: dict[str, dict[str, None]] = {}
    for pair, name, gold in zip(pairs, names, facts, strict=True):
        for change in changes_of(pair, name):
            first.setdefault(change.kind, (change, gold))
            props.setdefault(change.kind, {}).update(dict.fromkeys(change.props))
    for kind, (change, gold) in first.items():
        asked = tuple(props[kind])
        words = words_of(Change(kind, asked, change.cells), gold)
        pairs_of_facts = zip(names, facts, strict=True)
        rules = tuple(_rule(kind, name, each, asked) for name, each in pairs_of_facts)
        if any(rule != rules[0] for rule in rules):
            words += " (other cases state their own)"
        yield Proposal(words, rules)


def _rule(kind: str, sheet: str, gold: SheetFacts, props: Sequence[str]) -> Rule:
    if kind == "zoom":
        return {"type": kind, "sheet_idx": f"RN{sheet}", "method": "eq", "ref": gold.view.zoom}
    if kind == "data_validation":
        entries = [_entry(validation) for validation in gold.validations]
        return {"type": kind, "sheet_idx": f"RN{sheet}", "dv_props": entries}
    options = {_PROPERTIES[kind]: list(props)} if kind in _PROPERTIES else {}
    return pair_rule(kind, sheet, **options)


def _entry(validation: Validation) -> Mapping[str, object]:
    """A validation as a rule asks for it."""
    places = [each.replace("$", "") for each in validation.places]
    entry: dict[str, object] = {
        "ranges": {"method": "spreadsheet_range", "ref": [places, places]},
        "type": {"method": "eq", "ref": validation.kind},
    }
    if validation.kind not in {None, "list", "custom"}:
        # The format's default is left out by some programs, and written by others.
        usual = validation.operator == "between"
        entry["operator"] = (
            {"method": "ne", "ref": "notBetween"}
            if usual
            else {"method": "eq", "ref": validation.operator}
        )
    for name, formula in zip(("formula1", "formula2"), validation.formulas, strict=False):
        text = formula.strip()
        if validation.kind == "list" and text.startswith('"'):
            items = [each.strip() for each in text.strip('"').split(",")]
            entry[name] = {"method": "str_set_eq", "ref": items}
        else:
            entry[name] = {"method": "eq", "ref": text}
    return entry


def rule_lists(kept: Sequence[Proposal], cases: int) -> list[list[Rule]]:
    """The rule list of each case."""
    return [[each.rules[case] for each in kept] for case in range(cases)]


def text_of(proposals: Proposals, cases: int) -> str:
    """Proposals as a file for ``--rules``: YAML with the words of each rule above it."""
    lists = rule_lists(proposals.listed, cases)
    lines = ["# Proposed from what differs between input and gold: delete what should not count."]
    lines.extend(f"# No rule says: {each}" for each in proposals.unsaid)
    lines.append("rules:")
    for number, (each, rule) in enumerate(zip(proposals.listed, lists[0], strict=True), start=1):
        lines.extend([f"# {number}. {each.words}", f"- {_json(rule)}"])
    others = {n: rules for n, rules in enumerate(lists, start=1) if rules != lists[0]}
    if others:
        lines.append("# Cases whose rules state something else; each list is that of the case.")
        lines.append("cases:")
        for number, rules in others.items():
            lines.append(f'  "{number}":')
            lines.extend(f"  - {_json(rule)}" for rule in rules)
    return "\n".join(lines) + "\n"


def _json(rule: Rule) -> str:
    return json.dumps(rule, ensure_ascii=False)
