"""Lists every recorded value and reply on which ``standard`` and the published script disagree.

    python benchmarks/typed_disagreements.py DATA [--out docs/typed-disagreements.md]

DATA is the folder with ``babelbench/``: the published suite, and ``published_verdicts.jsonl`` with
the results of the published matcher. Our own answers, of kinds that are not recorded, are listed as
well; for these, the profile ``official`` represents the published script. Exits with 1 if
``official`` does not reproduce a recorded verdict, or if a disagreement has no reason here.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.command_line import existing, run_command
from judge.compare.cells.computing import NoEngines
from judge.compare.contract import Rules
from judge.compare.profiles import get_profile
from judge.compare.registry import checker_of
from judge.core.finding import Finding
from judge.core.submission import Answer, Origin
from judge.core.task import Gold, Task
from judge.errors import StoreError
from judge.files.json_lines import read_json_lines
from judge.suites import Suite, load_suite

FOLDER = "babelbench"
VERDICTS = "published_verdicts.jsonl"

_REPLY_REASONS = {
    "bare json": "the object is not in a fence",
    "plain fence": "the fence has no tag",
    "JSON upper fence": "the tag of the fence is in upper case",
    "comment": "the object holds a comment",
    "python literal": "the object is written as Python writes it",
    "list of object": "the object is in a list",
}
_REFUSED = {
    ("int", "plus 0.4"): "a fraction is cut off",
    ("int", "plus 0.9"): "a fraction is cut off",
    ("int", "minus 1e-6"): "a fraction is cut off",
    ("int", "times 1.0009"): "a fraction is cut off",
    ("int", "times 1.002"): "a fraction is cut off",
    ("float", "negated text"): "the sign of a whole number in text is lost",
    ("float", "other number first"): "the text states several numbers",
    ("float", "range around"): "the text states several numbers",
    ("bool", "empty"): "text that says neither counts as false",
    ("bool", "word"): "text that says neither counts as false",
    ("bool", "yes"): "a word for true counts as false",
    ("bool", "not true"): '"true" is part of the text',
    ("bool", "untrue"): '"true" is part of the text',
    ("str", "list of it"): "a list that is written out contains the gold",
    ("str", "arithmetic of nothing"): "the expression is a program",
    ("str", "code"): "the expression is a program",
    ("int", "next whole number, 0.5 more"): "a fraction is cut off",
    ("str", "bare value"): "the expression does not use the given numbers",
    ("str", "value as number"): "the expression does not use the given numbers",
    ("str", "float 24.0"): "the expression does not use the given numbers",
    ("str", "other cards"): "the expression does not use the given numbers",
    ("str", "other expression"): "the expression does not use the given numbers",
}
_ACCEPTED = {
    ("bool", "yes"): "a word for true counts as false",
    ("float", "scientific"): "the exponent of a number in text is not read",
    ("float", "float text"): "the exponent of a number in text is not read",
    ("float", "thousands"): "commas between thousands are not read",
    ("int", "thousands"): "commas between thousands are not read",
    ("int", "scientific"): "text is a whole number only if it consists of digits",
    ("int", "float text"): "text is a whole number only if it consists of digits",
    ("int", "dollar"): "text is a whole number only if it consists of digits",
    ("int", "percent sign"): "text is a whole number only if it consists of digits",
    ("int", "as percent text"): "text is a whole number only if it consists of digits",
    ("int", "unit word"): "text is a whole number only if it consists of digits",
    ("int", "sentence"): "text is a whole number only if it consists of digits",
    (
        "int",
        "last digit below",
    ): "a fraction is cut off, though it is a float's rounding error",
    ("list", "as text"): "the list is given as text",
    ("list", "items with blanks"): "blanks around text in a list count",
    ("list", "elements as text"): "numbers of a list are given as text, which ends the script",
    ("list", "one is text"): "numbers of a list are given as text, which ends the script",
    ("str", "sentence lower"): "the gold is contained in another letter case",
    ("str", "times sign"): "typographic signs, and a result after an equals sign",
    ("str", "with equals"): "typographic signs, and a result after an equals sign",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """A recorded value or reply, as the profiles judge it.

    Attributes:
        row: the record.
        published: whether the published script accepted it.
        crashed: whether the script ended with an exception.
        official: the result of the profile ``official``.
        standard: the result of the profile ``standard``.
    """

    row: dict[str, Any]
    published: bool
    crashed: bool
    official: Finding
    standard: Finding

    @property
    def is_reproduced(self) -> bool:
        """Whether ``official`` gives the recorded verdict, and a note if the script crashed."""
        notes = self.official.record.get("notes", [])
        noted = any("published script ends with" in note for note in notes)
        return self.official.agrees is self.published and noted is self.crashed

    @property
    def reason(self) -> str | None:
        """Why ``standard`` decides differently; empty if it does not, None if unknown."""
        if self.standard.agrees is self.published:
            return ""
        kind = self.row["kind"]
        if self.row["level"] == "reply":
            return _REPLY_REASONS.get(kind) or _lost(self.row["gold"])
        sort = "list" if self.row["answer_type"].startswith("list") else self.row["answer_type"]
        return (_ACCEPTED if self.standard.agrees else _REFUSED).get((sort, kind))


def _lost(gold: dict[str, Any]) -> str | None:
    """Returns why the script cannot read a reply, however it is fenced."""
    if any("(" in name for name in gold):
        return "a key has parentheses"
    return "a value has a quote" if '\\"' in json.dumps(gold) else None


_TYPES = {"text": "str", "expression": "str"}
"""Names of types in the records, if they differ from the names of the rules."""


def of_our_own(data: Path) -> Iterator[Compared]:
    """Yields answers of kinds that are not recorded, with ``official`` as the published result."""
    suite = load_suite(data / FOLDER)
    for task in suite.tasks:
        for row in _own_rows(task):
            named, answer = _asked(suite, row)
            official, standard = (_found(named, answer, name) for name in ("official", "standard"))
            notes = official.record.get("notes", [])
            crashed = any("published script ends with" in note for note in notes)
            yield Compared(row, official.agrees, crashed, official, standard)


def _own_rows(task: Task) -> Iterator[dict[str, Any]]:
    (gold,) = task.cases[0].golds
    variables: Any = task.checker.options["variables"]
    values: Any = gold.value
    first = {
        name: value[0] if variables[name].get("match") == "one_of" else value
        for name, value in values.items()
    }
    fenced = f"```json\n{json.dumps(first, ensure_ascii=False)}\n```"
    reply = {"level": "reply", "id": task.id, "answer_type": None, "gold": first}
    yield {**reply, "kind": "the gold", "candidate": fenced}
    for name, value in first.items():
        sort = str(variables[name]["type"])
        row = {"level": "value", "id": task.id, "variable": name, "gold": value}
        for kind, candidate in _own_values(sort, value):
            answer_type = _TYPES.get(sort, sort)
            yield {**row, "answer_type": answer_type, "kind": kind, "candidate": candidate}


def _own_values(sort: str, gold: Any) -> Iterator[tuple[str, Any]]:
    """Returns kinds of answers to a variable of a type, with an answer of each kind."""
    if sort == "int":
        number = float(gold)
        yield "last digit above", math.nextafter(number, math.inf)
        yield "last digit below", math.nextafter(number, -math.inf)
        yield "as a float", number
        yield "next whole number", int(gold) + 1
        yield "next whole number, 0.5 more", int(gold) + 0.5
    if sort == "list":
        yield "as text", json.dumps(gold)
        if all(isinstance(item, str) for item in gold):
            yield "items with blanks", [f" {item} " for item in gold]


def compared(data: Path) -> Iterator[Compared]:
    """Judges every recorded value and reply with both profiles."""
    suite = load_suite(data / FOLDER)
    for _, row in read_json_lines(data / FOLDER / VERDICTS, StoreError):
        task, answer = _asked(suite, row)
        official, standard = (_found(task, answer, name) for name in ("official", "standard"))
        published = row["published"]
        crashed = isinstance(published, str) and published.startswith("crash")
        yield Compared(row, published is True, crashed, official, standard)


def _asked(suite: Suite, row: dict[str, Any]) -> tuple[Task, Answer]:
    """Returns task and answer of a record; for a record about a value, only of that variable."""
    task = suite.task(row["id"])
    if row["level"] == "reply":
        return task, Answer(Origin.SOLUTION, text=row["candidate"])
    name = row["variable"]
    variables: Any = task.checker.options["variables"]
    values: Any = task.cases[0].golds[0].value
    case = replace(task.cases[0], golds=(Gold(value={name: values[name]}),))
    checker = task.checker.with_options({"variables": {name: variables[name]}})
    only = replace(task, cases=(case,), checker=checker)
    return only, Answer(Origin.SOLUTION, values={name: row["candidate"]})


def _found(task: Task, answer: Answer, profile: str) -> Finding:
    (case,) = task.cases
    rules = Rules(get_profile(profile))
    checker = checker_of(task.checker)
    return checker.check(task, case, case.golds, answer, NoEngines(), rules)


def report(recorded: list[Compared], own: list[Compared]) -> str:
    """Makes the page: counts, then one row per reason, for recorded and for our own answers."""
    differing = [entry for entry in recorded if entry.reason != ""]
    accepts = sum(entry.standard.agrees for entry in differing)
    levels = Counter(entry.row["level"] for entry in recorded)
    reproduced = sum(entry.is_reproduced for entry in recorded)
    introduction = (
        f"Of {len(recorded):,} recorded verdicts ({levels['value']:,} on values, "
        f"{levels['reply']:,} on replies), `official` reproduces {reproduced:,}. "
        f"`standard` differs in {len(differing):,}: it accepts {accepts:,} that the "
        f"published script rejects, and rejects {len(differing) - accepts:,} that it accepts. "
        "Written by\n"
        "`python benchmarks/typed_disagreements.py DATA --out docs/typed-disagreements.md`."
    )
    lines = [
        "# Where `standard` and the published matcher of BabelBench disagree",
        "",
        introduction,
        "",
    ]
    for agrees, title in ((True, "`standard` accepts, the script does not"),
                          (False, "`standard` rejects, the script accepts")):  # fmt: skip
        lines += [f"## {title}", "", *_table(recorded, agrees), ""]
    said_of_own = (
        f"{len(own):,} answers of kinds that were not recorded: the gold of each question as a "
        "reply, the neighbours of each whole number, and each list as text and with blanks around "
        "its text. For these, the verdict of `official` is used as that of the script."
    )
    lines += [
        "## Answers made for this page",
        "",
        said_of_own,
        "",
    ]
    for agrees, title in ((True, "`standard` accepts"), (False, "`standard` rejects")):
        lines += [f"### {title}", "", *_table(own, agrees), ""]
    return "\n".join(lines)


def _table(entries: list[Compared], agrees: bool) -> list[str]:
    counts = Counter(
        (entry.row["answer_type"] or "reply", entry.reason or "NO REASON KNOWN")
        for entry in entries
        if entry.reason != "" and entry.standard.agrees is agrees
    )
    rows = [f"| {of} | {why} | {count} |" for (of, why), count in sorted(counts.items())]
    return ["| type | what the script does, or the answer is | verdicts |", "|---|---|---|", *rows]


def main() -> int:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=existing)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    recorded = list(compared(arguments.data))
    own = list(of_our_own(arguments.data))
    page = report(recorded, own)
    if arguments.out is None:
        sys.stdout.write(page)
    else:
        arguments.out.write_text(page, encoding="utf-8")
    changed = [entry for entry in recorded if not entry.is_reproduced]
    unknown = [entry for entry in [*recorded, *own] if entry.reason is None]
    for entry in [*changed, *unknown][:20]:
        sys.stderr.write(f"{entry.row}\n  {entry.official.cause}\n  {entry.standard.cause}\n")
    return 1 if changed or unknown else 0


if __name__ == "__main__":
    run_command(main)
