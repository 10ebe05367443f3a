"""Tasks whose answer is a whole workbook, in suites of the judge's own format.

Rules are proposed or read from a file; any other checker is given by its name and options.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from judge.authoring.kinds import (
    NOTES,
    OwnKind,
    Record,
    given_options,
    named_values,
    refuse_others,
    task_of,
)
from judge.authoring.proposals import Proposal, Proposals, propose, rule_lists
from judge.authoring.proposed_changes import Rule
from judge.compare.rules.options import NAME as CHECKER
from judge.core.submission import AnswerForm
from judge.core.task import Task
from judge.errors import UsageError
from judge.suites.own_format import DEFINITION

_SUFFIXES = (".xlsx", ".xlsm")
_OPTIONS = (
    *("instruction", "task_kind", "group", "from", "input", "case", "rules", "checker", "kept"),
    *NOTES,
)
_STATED = ("rules", "cases", "profile", "evaluator")
_STATED_CHECKER = ("name", "options", "public", "cases")


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """The files of a case: its inputs, the workbook first, and its gold."""

    inputs: tuple[Path, ...]
    gold: Path


@dataclass(frozen=True, slots=True)
class Definition:
    """The checker of a task, with its options.

    Attributes:
        checker: name of the checker.
        options: its options.
        golds: number of a case -> options that apply only to its gold.
        public: options that may be shown with the question.
    """

    checker: str
    options: Mapping[str, object]
    golds: Mapping[int, Mapping[str, object]]
    public: Sequence[str] = ()

    @staticmethod
    def of_rules(lists: Sequence[Sequence[Rule]]) -> Definition:
        """The rule checker, with the first case's rules; other cases have their own rules."""
        others = {
            number: {"rules": list(rules)}
            for number, rules in enumerate(lists, start=1)
            if rules != lists[0]
        }
        return Definition(CHECKER, {"rules": list(lists[0])}, others)


@dataclass(frozen=True, slots=True)
class RulesFields:
    """The fields of a task; None stands for a field that is not filled yet.

    Attributes:
        instruction: the question.
        kind: the sort of task.
        groups: name of a division -> the group of the task.
        definition: the checker of the task, with its options.
        original_question: the question in the words of the person who asked it.
        source_url: the page on which it was asked.
    """

    instruction: str | None = None
    kind: str | None = None
    groups: Mapping[str, str] | None = None
    definition: Definition | None = None
    original_question: str | None = None
    source_url: str | None = None


class RulesKind(OwnKind):
    """Tasks in a ``suite.json``, with a folder of inputs and golds for each."""

    name = "rules"
    marks: ClassVar[tuple[str, ...]] = ("from", "case", "rules", "checker")
    example = "--instruction QUESTION --from GOLD --input INPUT"

    def proposals(self, options: Mapping[str, Any]) -> Proposals | None:
        """Proposes rules for differences between inputs and golds; None if a checker was given."""
        if options.get("rules") is not None or options.get("checker") is not None:
            return None
        return propose([(file.inputs[0], file.gold) for file in self.files_of(options)])

    def fields_of(self, options: Mapping[str, Any]) -> RulesFields:
        """The fields of the task; its checker comes from a file, or from the kept proposals."""
        given = given_options(options)
        refuse_others(given, _OPTIONS, self.name)
        if "rules" in given and "checker" in given:
            raise UsageError(
                "--rules and --checker both name the checker of the task",
                hint="Give one of them.",
            )
        definition: Definition | None = None
        if "rules" in given:
            definition = _stated_rules(given["rules"])
        elif "checker" in given:
            definition = _stated_checker(given["checker"])
        elif "kept" in given:
            kept: Sequence[Proposal] = given["kept"]
            definition = Definition.of_rules(rule_lists(kept, len(kept[0].rules)))
        return RulesFields(
            instruction=given.get("instruction"),
            kind=given.get("task_kind"),
            groups=dict(named_values("group", given.get("group", ()))) or None,
            definition=definition,
            original_question=given.get("original_question"),
            source_url=given.get("source_url"),
        )

    def files_of(self, options: Mapping[str, Any]) -> Sequence[CaseFiles]:
        """The files of each case; additional inputs belong to all cases."""
        inputs: Sequence[Path] = options.get("input") or ()
        gold: Path | None = options.get("from")
        pairs: Sequence[tuple[Path, Path]] = options.get("case") or ()
        if gold is not None and not inputs:
            raise UsageError(f"--from {gold}: its input is missing", hint="Give --input INPUT.")
        first = [] if gold is None else [(inputs[0], gold)]
        shared = tuple(inputs if gold is None else inputs[1:])
        cases = [CaseFiles((question, *shared), gold) for question, gold in (*first, *pairs)]
        if not cases:
            raise UsageError(
                "the task has no case",
                hint="Give --from GOLD --input INPUT, and --case INPUT GOLD for each further case.",
            )
        return cases

    def record(
        self, task_id: int | str, given: RulesFields, before: Mapping[str, Any] | None
    ) -> Record:
        """The record of a task without its cases, which :meth:`place` adds."""
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
        if given.definition is not None:
            _put(record, given.definition)
        if not str(record["instruction"]).strip():
            raise UsageError(f"task {task_id}: the instruction is empty")
        return record

    def place(self, record: Record, files: Sequence[CaseFiles], scratch: Path) -> Task:
        """Copies inputs and golds under names with the number of their case."""
        own = {case["number"]: case["golds"][0] for case in record["cases"]}
        base = f"{self.folder}/{record['id']}"
        unknown = sorted(own.keys() - set(range(1, len(files) + 1)))
        if unknown:
            raise UsageError(
                f"there is no case {', '.join(map(str, unknown))} to have its own options"
            )
        cases: list[Record] = []
        for number, case_files in enumerate(files, start=1):
            names = _copied(case_files, number, str(record["id"]), scratch)
            gold: Record = {"path": names[-1], **own.get(number, {})}
            cases.append({"number": number, "inputs": names[:-1], "golds": [gold]})
        record["cases"] = [_moved(case, base) for case in cases]
        return task_of({**record, "cases": cases}, scratch)


KIND = RulesKind()


def _stated_rules(document: Any) -> Definition:
    """Reads a ``--rules`` file: a list of rules, or an object with options."""
    given = {"rules": document} if isinstance(document, list) else document
    if not isinstance(given, dict) or not isinstance(given.get("rules"), list):
        raise UsageError(
            "--rules: must be a list of rules, or an object with the field 'rules'",
            hint="docs/rules.md lists the types of rules.",
        )
    _only("--rules", given, _STATED)
    golds = {number: {"rules": rules} for number, rules in _cases("--rules", given, list).items()}
    return Definition(CHECKER, {name: given[name] for name in given if name != "cases"}, golds)


def _stated_checker(document: Any) -> Definition:
    """Reads a ``--checker`` file: the checker as in a ``suite.json``, and ``cases``."""
    if not isinstance(document, dict) or not isinstance(document.get("name"), str):
        raise UsageError(
            "--checker: must be an object with the fields 'name' and 'options'",
            hint="dataset/schema.md says what a checker is.",
        )
    _only("--checker", document, _STATED_CHECKER)
    golds = _cases("--checker", document, dict)
    return Definition(
        document["name"], document.get("options", {}), golds, document.get("public", ())
    )


def _only(option: str, given: Mapping[str, Any], allowed: Sequence[str]) -> None:
    unknown = [name for name in given if name not in allowed]
    if unknown:
        raise UsageError(
            f"{option}: {unknown[0]!r} is unknown; the known fields are {', '.join(allowed)}"
        )


def _cases(option: str, given: Mapping[str, Any], kind: type) -> dict[int, Any]:
    """Reads ``cases``: number of a case -> its own rules (a list) or options (an object)."""
    cases = given.get("cases", {})
    if not isinstance(cases, dict) or not all(
        str(number).isdecimal() and isinstance(value, kind) for number, value in cases.items()
    ):
        content = "rules" if kind is list else "options"
        raise UsageError(
            f"{option}: field 'cases' must be an object: number of a case -> its {content}"
        )
    return {int(number): value for number, value in cases.items()}


def _put(record: Record, definition: Definition) -> None:
    """Adds the checker to the record of a task, and the options of single cases to their golds.

    Raises:
        UsageError: the answer of the task is not a workbook.
    """
    if record["answer"] != AnswerForm.WORKBOOK:
        raise UsageError(
            f"task {record['id']}: its answer is not a workbook", hint=f"Edit the {DEFINITION}."
        )
    before = record["checker"] if isinstance(record["checker"], dict) else {}
    kept = before.get("options", {}) if before.get("name") == definition.checker == CHECKER else {}
    record["checker"] = {
        "name": definition.checker,
        "options": {**kept, **definition.options},
        **({"public": list(definition.public)} if definition.public else {}),
    }
    own = {number: {"options": dict(options)} for number, options in definition.golds.items()}
    if not record["cases"]:
        # The cases get their files in place().
        record["cases"] = [{"number": number, "golds": [gold]} for number, gold in own.items()]
        return
    record["cases"] = [
        {
            **case,
            "golds": [_gold(gold, own.get(case.get("number", n), {})) for gold in case["golds"]],
        }
        for n, case in enumerate(record["cases"], start=1)
    ]


def _gold(gold: str | Record, own: Record) -> Record:
    """A gold whose options are replaced by the options of its case."""
    written = {"path": gold} if isinstance(gold, str) else gold
    return {**{name: value for name, value in written.items() if name != "options"}, **own}


def _copied(files: CaseFiles, number: int, task_id: str, scratch: Path) -> list[str]:
    """Copies the files of a case; returns the names of inputs and gold."""
    names = []
    for index, path in enumerate((*files.inputs, files.gold)):
        suffix = path.suffix.lower()
        role = "answer" if index == len(files.inputs) else "input"
        if (role == "answer" or index == 0) and suffix not in _SUFFIXES:
            raise UsageError(
                f"{path}: must be an .xlsx or .xlsm workbook",
                hint="Save an .xls as .xlsx first, in a spreadsheet program.",
            )
        own = role == "answer" or index == 0
        name = f"{number}_{task_id}_{role}{suffix}" if own else path.name
        if not own and name in names:
            raise UsageError(f"task {task_id}: two input files are called {name}")
        shutil.copyfile(path, scratch / name)
        names.append(name)
    return names


def _moved(case: Record, base: str) -> Record:
    """A case with the future paths of its files."""
    return {
        **case,
        "inputs": [f"{base}/{name}" for name in case["inputs"]],
        "golds": [{**gold, "path": f"{base}/{gold['path']}"} for gold in case["golds"]],
    }
