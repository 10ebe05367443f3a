"""Tasks judged by rules over whole workbooks, in suites of the judge's own format."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.authoring.kinds import Record, given_options, refuse_others
from judge.authoring.own_kind import NOTES, OwnKind, named_values, task_of
from judge.authoring.proposals.changes import Rule
from judge.authoring.proposals.propose import Proposal, Proposals, propose, rule_lists
from judge.core.answer import AnswerForm
from judge.core.task import Task
from judge.errors import UsageError
from judge.rules.options import NAME as CHECKER
from judge.suites.sheetjudge import DEFINITION

_SUFFIXES = (".xlsx", ".xlsm")
_OPTIONS = (
    *("instruction", "task_kind", "group", "from", "input", "case", "rules", "kept"),
    *NOTES,
)
_STATED = ("rules", "cases", "profile", "evaluator")


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """The files of a case: its inputs, the workbook first, and its gold."""

    inputs: tuple[Path, ...]
    gold: Path


@dataclass(frozen=True, slots=True)
class RulesFields:
    """The fields of a task that is judged by rules; None stands for what is not filled yet.

    Attributes:
        instruction: what is asked.
        kind: what sort of task it is.
        groups: name of a division -> the group of the task.
        rules: the rule list of the first case, and of all that have no other.
        others: number of a case -> its own rule list.
        options: further options of the checker.
        original_question: the question as somebody asked it.
        source_url: where it was asked.
    """

    instruction: str | None = None
    kind: str | None = None
    groups: Mapping[str, str] | None = None
    rules: Sequence[Rule] | None = None
    others: Mapping[int, Sequence[Rule]] | None = None
    options: Mapping[str, object] | None = None
    original_question: str | None = None
    source_url: str | None = None


class RulesKind(OwnKind):
    """A ``suite.json``, and a folder of inputs and golds for each task."""

    name = "rules"
    marks = ("from", "case", "rules")
    example = "--instruction QUESTION --from GOLD --input INPUT"

    def proposals(self, options: Mapping[str, Any]) -> Proposals | None:
        """What differs between the inputs and the golds, unless the rules are stated."""
        if options.get("rules"):
            return None
        return propose([(each.inputs[0], each.gold) for each in self.files_of(options)])

    def fields_of(self, options: Mapping[str, Any]) -> RulesFields:
        """The fields; rules are stated in a file, or those that somebody kept."""
        given = given_options(options)
        refuse_others(given, _OPTIONS, self.name)
        rules: Sequence[Rule] | None = None
        others: dict[int, Sequence[Rule]] = {}
        extra: dict[str, object] = {}
        if "rules" in given:
            rules, others, extra = _stated(given["rules"])
        elif "kept" in given:
            kept: Sequence[Proposal] = given["kept"]
            lists = rule_lists(kept, len(kept[0].rules))
            rules = lists[0]
            others = {n: each for n, each in enumerate(lists, start=1) if each != rules}
        return RulesFields(
            instruction=given.get("instruction"),
            kind=given.get("task_kind"),
            groups=dict(named_values("group", given.get("group", ()))) or None,
            rules=rules,
            others=None if rules is None else others,
            options=extra or None,
            original_question=given.get("original_question"),
            source_url=given.get("source_url"),
        )

    def files_of(self, options: Mapping[str, Any]) -> Sequence[CaseFiles]:
        """The workbooks of each case; further inputs belong to all of them."""
        inputs: Sequence[Path] = options.get("input") or ()
        gold: Path | None = options.get("from")
        pairs: Sequence[tuple[Path, Path]] = options.get("case") or ()
        if gold is not None and not inputs:
            raise UsageError(f"--from {gold}: its input is missing", hint="Give --input INPUT.")
        first = [] if gold is None else [(inputs[0], gold)]
        shared = tuple(inputs if gold is None else inputs[1:])
        cases = [CaseFiles((question, *shared), each) for question, each in (*first, *pairs)]
        if not cases:
            raise UsageError(
                "the task has no case",
                hint="Give --from GOLD --input INPUT, and --case INPUT GOLD for each further case.",
            )
        return cases

    def record(
        self, task_id: int | str, given: RulesFields, before: Mapping[str, Any] | None
    ) -> Record:
        """The record of a task whose cases are filled in when their files are placed."""
        record: Record = {
            "id": task_id,
            "instruction": "",
            "kind": "workbook",
            "answer": AnswerForm.WORKBOOK.value,
            "checker": {"name": CHECKER, "options": {"rules": []}},
            "cases": [],
            **(before or {}),
        }
        if given.instruction is not None:
            record["instruction"] = given.instruction
        if given.kind is not None:
            record["kind"] = given.kind
        if given.groups is not None:
            record["groups"] = {**record.get("groups", {}), **given.groups}
        if given.rules is not None:
            _put_rules(record, given)
        if not str(record["instruction"]).strip():
            raise UsageError(f"task {task_id}: the instruction is empty")
        return record

    def place(self, record: Record, files: Sequence[CaseFiles], scratch: Path) -> Task:
        """Copies inputs and golds under names with the number of their case."""
        own = {case["number"]: case["golds"][0] for case in record["cases"]}
        base = f"{self.folder}/{record['id']}"
        unknown = sorted(own.keys() - set(range(1, len(files) + 1)))
        if unknown:
            raise UsageError(f"--rules: there is no case {', '.join(map(str, unknown))}")
        cases: list[Record] = []
        for number, each in enumerate(files, start=1):
            names = _copied(each, number, str(record["id"]), scratch)
            gold: Record = {"path": names[-1], **own.get(number, {})}
            cases.append({"number": number, "inputs": names[:-1], "golds": [gold]})
        record["cases"] = [_moved(case, base) for case in cases]
        return task_of({**record, "cases": cases}, scratch)


KIND = RulesKind()


def _stated(document: Any) -> tuple[list[Rule], dict[int, Sequence[Rule]], dict[str, object]]:
    """Rules, those of single cases, and other options, out of a file for ``--rules``."""
    given = {"rules": document} if isinstance(document, list) else document
    if not isinstance(given, dict) or not isinstance(given.get("rules"), list):
        raise UsageError(
            "--rules: must be a list of rules, or an object with the field 'rules'",
            hint="docs/rules.md lists the types of rules.",
        )
    unknown = [name for name in given if name not in _STATED]
    if unknown:
        raise UsageError(f"--rules: {unknown[0]!r} is unknown; there are {', '.join(_STATED)}")
    cases = given.get("cases", {})
    if not isinstance(cases, dict) or not all(
        str(number).isdecimal() and isinstance(rules, list) for number, rules in cases.items()
    ):
        raise UsageError("--rules: field 'cases' must be an object: number of a case -> its rules")
    extra = {name: given[name] for name in ("profile", "evaluator") if name in given}
    return given["rules"], {int(number): rules for number, rules in cases.items()}, extra


def _put_rules(record: Record, given: RulesFields) -> None:
    """Puts rules into the options of the checker, and those of single cases to their golds.

    Raises:
        UsageError: the task is not judged by rules.
    """
    checker = record["checker"] if isinstance(record["checker"], dict) else {}
    if checker.get("name") != CHECKER:
        raise UsageError(
            f"task {record['id']}: is not judged by rules", hint=f"Edit the {DEFINITION}."
        )
    kept = checker.get("options", {})
    others = given.others or {}
    options = {**kept, **(given.options or {}), "rules": list(given.rules or ())}
    record["checker"] = {**checker, "options": options}
    own = {number: {"options": {"rules": list(rules)}} for number, rules in others.items()}
    if not record["cases"]:
        # The files of the cases are filled in when they are placed.
        record["cases"] = [{"number": number, "golds": [each]} for number, each in own.items()]
        return
    record["cases"] = [
        {
            **case,
            "golds": [_gold(each, own.get(case.get("number", n), {})) for each in case["golds"]],
        }
        for n, case in enumerate(record["cases"], start=1)
    ]


def _gold(gold: str | Record, own: Record) -> Record:
    """A gold with the options of its case, and with none of its former ones."""
    written = {"path": gold} if isinstance(gold, str) else gold
    return {**{name: each for name, each in written.items() if name != "options"}, **own}


def _copied(files: CaseFiles, number: int, task_id: str, scratch: Path) -> list[str]:
    """Copies the files of a case; the names of inputs and gold."""
    names = []
    for place, path in enumerate((*files.inputs, files.gold)):
        suffix = path.suffix.lower()
        role = "answer" if place == len(files.inputs) else "input"
        if (role == "answer" or place == 0) and suffix not in _SUFFIXES:
            raise UsageError(
                f"{path}: must be an .xlsx or .xlsm workbook",
                hint="Save an .xls as .xlsx first, in a spreadsheet program.",
            )
        own = role == "answer" or place == 0
        name = f"{number}_{task_id}_{role}{suffix}" if own else path.name
        if not own and name in names:
            raise UsageError(f"task {task_id}: two input files are called {name}")
        shutil.copyfile(path, scratch / name)
        names.append(name)
    return names


def _moved(case: Record, base: str) -> Record:
    """A case with the paths that its files will have."""
    return {
        **case,
        "inputs": [f"{base}/{name}" for name in case["inputs"]],
        "golds": [{**gold, "path": f"{base}/{gold['path']}"} for gold in case["golds"]],
    }
