"""Questions with typed answers, in suites of the judge's own format."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.authoring.kinds import (
    NOTES,
    OwnKind,
    Record,
    given_options,
    named_values,
    refuse_others,
    task_of,
)
from judge.compare.values.rules import VARIABLES, AnswerType, Match
from judge.core.submission import AnswerForm
from judge.core.task import Task
from judge.errors import UsageError
from judge.files.documents import MalformedError, parse_json
from judge.suites.own_format import DEFINITION

CHECKER = "typed_answer"
_OPTIONS = (
    *("instruction", "task_kind", "group", "input", "answer", "type", "match", "tolerance"),
    *("variables", *NOTES),
)


@dataclass(frozen=True, slots=True)
class TypedFields:
    """The fields of a question with a typed answer; None for a field that is not filled yet.

    Attributes:
        instruction: the question, which names the requested variables.
        kind: the sort of question.
        groups: name of a division -> the group of the question.
        variables: name of a variable -> its fields ``answer``, ``type``, ``match``, ``tolerance``
            and ``operands``, if they are given; they are added to the existing ones.
        only_these: whether existing variables that are not among these are removed.
        original_question: the question as somebody asked it.
        source_url: where it was asked.
    """

    instruction: str | None = None
    kind: str | None = None
    groups: Mapping[str, str] | None = None
    variables: Mapping[str, Mapping[str, object]] | None = None
    only_these: bool = False
    original_question: str | None = None
    source_url: str | None = None


class TypedKind(OwnKind):
    """Questions in a ``suite.json``, with a folder of input files for each."""

    name = "typed"
    marks = ("answer", "type", "match", "tolerance", "variables")
    example = "--instruction QUESTION --input FILE --answer NAME=VALUE"

    def fields_of(self, options: Mapping[str, Any]) -> TypedFields:
        """The fields of the question; its variables come from options, or all from one file."""
        given = given_options(options)
        refuse_others(given, _OPTIONS, self.name)
        variables: dict[str, dict[str, object]] = {
            name: dict(_variable(name, variable))
            for name, variable in given.get("variables", {}).items()
        }
        pieces: tuple[tuple[str, Callable[[str], object]], ...] = (
            ("type", str),
            ("match", str),
            ("tolerance", _number),
            ("answer", str),
        )
        for field, read in pieces:
            for name, text in named_values(field, given.get(field, ())):
                fields = variables.setdefault(name, {})
                fields[field] = _answer(text, fields) if field == "answer" else read(text)
        return TypedFields(
            instruction=given.get("instruction"),
            kind=given.get("task_kind"),
            groups=dict(named_values("group", given.get("group", ()))) or None,
            variables=variables or None,
            only_these="variables" in given,
            original_question=given.get("original_question"),
            source_url=given.get("source_url"),
        )

    def files_of(self, options: Mapping[str, Any]) -> Sequence[Path]:
        """The input files, if the question has any."""
        files: Sequence[Path] = options.get("input") or ()
        return files

    def record(
        self, task_id: int | str, given: TypedFields, before: Mapping[str, Any] | None
    ) -> Record:
        """The record of a question with one case, whose gold states the values."""
        record: Record = {
            "id": task_id,
            "instruction": "",
            "kind": "question",
            "answer": AnswerForm.TEXT.value,
            "checker": {"name": CHECKER, "options": {VARIABLES: {}}},
            "cases": [{"inputs": [], "golds": [{"value": {}}]}],
            **(before or {}),
        }
        if given.instruction is not None:
            record["instruction"] = given.instruction
        if given.kind is not None:
            record["kind"] = given.kind
        if given.groups is not None:
            record["groups"] = {**record.get("groups", {}), **given.groups}
        if given.variables is not None:
            _put_variables(record, given)
        _check_filled(record)
        return record

    def place(self, record: Record, files: Sequence[Path], scratch: Path) -> Task:
        """Copies the input files under their own names."""
        names = [file.name for file in files]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"task {record['id']}: two input files are called {name}")
        for file in files:
            shutil.copyfile(file, scratch / file.name)
        record["cases"][0]["inputs"] = [f"{self.folder}/{record['id']}/{name}" for name in names]
        here = {**record, "cases": [{**record["cases"][0], "inputs": names}]}
        return task_of(here, scratch)


KIND = TypedKind()


def _variable(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or "answer" not in value:
        raise UsageError(f"--variables: {name!r} must be an object with an answer and a type")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--tolerance {text}: must be a number") from None


_WRITTEN_AS_TEXT = {AnswerType.TEXT.value, AnswerType.EXPRESSION.value}
_GUESSES = ((bool, AnswerType.BOOL), (int, AnswerType.INT), (float, AnswerType.FLOAT))


def _answer(text: str, variable: dict[str, object]) -> object:
    """Parses an author's value by its type; if no type was given, JSON syntax decides it."""
    is_list = variable.get("match") == Match.ONE_OF.value
    if variable.get("type") in _WRITTEN_AS_TEXT and not is_list:
        return text
    try:
        value = parse_json(text)
    except MalformedError:
        value = text
    if "type" not in variable:
        guess = next((kind for sort, kind in _GUESSES if isinstance(value, sort)), AnswerType.TEXT)
        variable["type"] = AnswerType.LIST.value if isinstance(value, list) else guess.value
        if variable["type"] == AnswerType.TEXT.value:
            return text
    return value


def _put_variables(record: Record, given: TypedFields) -> None:
    """Puts rules into the options of the checker, and answers into the gold.

    Raises:
        UsageError: the task does not have a typed answer, or has more than one case or gold.
    """
    checker = record["checker"] if isinstance(record["checker"], dict) else {}
    cases = record["cases"]
    if checker.get("name") != CHECKER or len(cases) != 1 or len(cases[0].get("golds", ())) != 1:
        raise UsageError(
            f"task {record['id']}: its variables cannot be changed here, since it is not a "
            f"question with one case and one gold",
            hint=f"Edit the {DEFINITION}.",
        )
    options = checker.get("options", {})
    gold = cases[0]["golds"][0]
    rules = {} if given.only_these else dict(options.get(VARIABLES, {}))
    values = {} if given.only_these else dict(gold.get("value", {}))
    for name, variable in (given.variables or {}).items():
        rule = {
            **rules.get(name, {}),
            **{key: value for key, value in variable.items() if key != "answer"},
        }
        rules[name] = rule
        if "answer" in variable:
            values[name] = variable["answer"]
    record["checker"] = {**checker, "options": {**options, VARIABLES: rules}}
    record["cases"] = [{**cases[0], "golds": [{**gold, "value": values}]}]


def _check_filled(record: Record) -> None:
    faults = []
    if not str(record["instruction"]).strip():
        faults.append("the instruction is empty")
    if record["checker"].get("name") == CHECKER and not record["checker"]["options"].get(VARIABLES):
        faults.append("it has no variable: give --answer NAME=VALUE, or --variables FILE")
    if faults:
        raise UsageError(f"task {record['id']}: {'; '.join(faults)}")
