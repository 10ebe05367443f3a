"""Items decided by other checkers: ``rules``, ``metrics`` and ``answer``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from judge.compare.checklists.items import (
    AMOUNT,
    OBJECTS,
    TEXT,
    FieldForm,
    Item,
    ItemKind,
    Outcome,
    Reading,
    broken,
    fails,
    holds,
    needed,
    one_of,
)
from judge.compare.checklists.workspace import MissingError, Workspace
from judge.compare.contract import AnswerFaultError, Rules
from judge.compare.files.checker import CHECKER as METRICS_CHECKER
from judge.compare.files.options import MetricOptions
from judge.compare.profiles import PROFILES, Profile
from judge.compare.rules.checker import check_workbook, open_gold
from judge.compare.rules.options import RuleOptions
from judge.compare.rules.words import rule_in_words
from judge.compare.values.agreement import compare_value
from judge.compare.values.rules import Match, VariableRule, problem_of_gold, read_rules
from judge.core.finding import Finding, in_words
from judge.core.submission import Answer, AnswerFile
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import GoldFaultError, UsageError


def _profile(reading: Reading) -> Profile:
    return PROFILES["official" if reading is Reading.OFFICIAL else "standard"]


def _outcome_of(finding: Finding) -> Outcome:
    if finding.agrees:
        return holds()
    outcome = fails(detail=finding.cause)
    differences = finding.record.get("differences") or []
    if differences:
        first = differences[0]
        outcome = fails(first["expected"], first["actual"], first["sheet"], finding.cause)
    return replace(outcome, undecided=finding.undecided)


# -- rules and metrics -----------------------------------------------------------------------------


def _rules(item: Item, workspace: Workspace, reading: Reading) -> Outcome:
    options = RuleOptions.of(_rule_options(item))
    name = workspace.path_of(item.file)
    answer = Answer(workspace.origin, (AnswerFile(name, workspace.read(item.file)),))
    rules = Rules(_profile(reading))
    try:
        gold = _gold(workspace, item.text("gold"))
        book = None if gold is None else open_gold(gold, workspace.compute)
        finding = check_workbook(options, book, gold, answer, workspace.compute, rules)
    except AnswerFaultError as error:
        return fails(detail=error.message)
    except GoldFaultError as error:
        return broken(error.message)
    return _outcome_of(finding)


def _rule_options(item: Item) -> dict[str, object]:
    options: dict[str, object] = {"rules": item.fields["rules"]}
    if "evaluator" in item.fields:
        options["evaluator"] = item.fields["evaluator"]
    return options


def _gold(workspace: Workspace, name: str) -> Gold | None:
    if not name:
        # If a case has only one gold, the item need not name it.
        name = next(iter(workspace.golds), "") if len(workspace.golds) == 1 else ""
        return Gold(Path(name), data=workspace.golds[name]) if name else None
    if name not in workspace.golds:
        raise GoldFaultError(f"there is no gold {name!r}")
    return Gold(Path(name), data=workspace.golds[name])


def _rules_words(item: Item) -> str:
    return "; ".join(map(rule_in_words, RuleOptions.of(_rule_options(item)).rules))


def _rules_faults(item: Item) -> Iterator[str]:
    try:
        RuleOptions.of(_rule_options(item))
    except UsageError as error:
        yield f"item {item.id} (rules): {error.message}"


def _metrics(item: Item, workspace: Workspace, reading: Reading) -> Outcome:
    spec = CheckerSpec("metrics", dict(item.fields))
    golds = tuple(Gold(Path(name), data=data) for name, data in workspace.golds.items())
    case = TestCase(1, (), golds)
    task = Task(item.id, "", "", (case,), spec)
    files = tuple(AnswerFile(name, data) for name, data in workspace.files.items())
    answer = Answer(workspace.origin, files, workspace.reply_text)
    try:
        rules = Rules(_profile(reading))
        finding = METRICS_CHECKER.check(task, case, golds, answer, workspace.compute, rules)
    except AnswerFaultError as error:
        return fails(detail=error.message)
    except GoldFaultError as error:
        return broken(error.message)
    return _outcome_of(finding)


def _metrics_words(item: Item) -> str:
    options = MetricOptions.of(dict(item.fields))
    joined = " and " if options.all_of else " or "
    return joined.join(f"{call.func} of {call.result or 'the file'}" for call in options.metrics)


def _metrics_faults(item: Item) -> Iterator[str]:
    try:
        MetricOptions.of(dict(item.fields))
    except UsageError as error:
        yield f"item {item.id} (metrics): {error.message}"


# -- typed replies ---------------------------------------------------------------------------------

_RULE_FIELDS = ("type", "match", "tolerance", "relative_tolerance")


def _answer(item: Item, workspace: Workspace, _: Reading) -> Outcome:
    document, path = workspace.reply, item.text("key")
    expected = item.fields["expected"]
    if workspace.reply_text is None:
        return fails(expected, None, detail="there is no reply")
    value: object = document if document is not None else workspace.reply_text
    for step in filter(None, path.split(".")):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            raise MissingError(f"the reply has no {path!r}")
    agreement = compare_value(_rule(item), expected, value, PROFILES["standard"])
    if agreement.agrees:
        return holds(expected, value, path)
    return fails(expected, value, path, agreement.detail or agreement.kind.replace("_", " "))


def _rule(item: Item) -> VariableRule:
    given = {name: item.fields[name] for name in _RULE_FIELDS if name in item.fields}
    return read_rules({"value": given})["value"]


def _answer_words(item: Item) -> str:
    rule, key = _rule(item), item.text("key")
    subject = f"the reply's {key}" if key else "the reply"
    expected = item.fields["expected"]
    one = rule.match is Match.ONE_OF and isinstance(expected, list)
    return f"{subject} is {'one of ' if one else ''}{in_words(expected)}"


def _answer_faults(item: Item) -> Iterator[str]:
    try:
        problem = problem_of_gold(_rule(item), item.fields["expected"])
    except ValueError as error:
        problem = str(error)
    if problem:
        yield f"item {item.id} (answer): {problem}"


KINDS = {
    "rules": ItemKind(
        _rules,
        _rules_words,
        {"rules": needed(OBJECTS), "evaluator": TEXT, "gold": TEXT},
        has_two_readings=True,
        faults=_rules_faults,
    ),
    "metrics": ItemKind(
        _metrics,
        _metrics_words,
        {"metrics": needed(OBJECTS), "conj": one_of("and", "or"), "evaluator": TEXT},
        has_two_readings=True,
        faults=_metrics_faults,
    ),
    "answer": ItemKind(
        _answer,
        _answer_words,
        {
            "key": TEXT,
            "type": needed(TEXT),
            "match": TEXT,
            "tolerance": AMOUNT,
            "relative_tolerance": AMOUNT,
            "expected": needed(FieldForm(lambda value: value is not None, "a value")),
        },
        faults=_answer_faults,
    ),
}
