"""The checker of typed answers: the values of named variables, in the JSON of a reply."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from judge.compare.cells.computing import Compute
from judge.compare.contract import (
    AnswerFaultError,
    Checker,
    ComparedValue,
    Examination,
    GoldFaultError,
    Needs,
    Rules,
)
from judge.compare.profiles import PROFILES, Profile
from judge.compare.published.babelbench import named_verdict
from judge.compare.values.agreement import AGREES, WRONG_VALUE, Agreement, compare_value
from judge.compare.values.rules import (
    UNKNOWN,
    VARIABLES,
    AnswerType,
    ExpressionError,
    Match,
    UnboundedError,
    VariableRule,
    evaluate,
    problem_of_gold,
    read_rules,
)
from judge.core.finding import (
    DifferenceLocation,
    Finding,
    FoundDifference,
    LocationKind,
    finding_of,
    nearest,
)
from judge.core.option import check_names
from judge.core.records.cases import CaseComparison
from judge.core.replies.answers import StatedAnswer, named_answer, published_answer, stated_answer
from judge.core.submission import Answer, Origin
from judge.core.task import EVERY_CHECKERS_OPTIONS, CheckerSpec, Gold, Task, TestCase
from judge.errors import UsageError
from judge.files.documents import dump_json

# -- values as records and messages show them ------------------------------------------------------

_MAX_CHARS = 500  # of a string in a record
_MAX_ITEMS = 50  # of a list or an object in a record
_MAX_DEPTH = 4  # levels of lists in a record
_MAX_DIGITS = 50  # of a whole number in a record


def shown_value(value: object, depth: int = 0) -> object:
    """Returns a value in the form for records: JSON of bounded size, whatever the reply holds.

    Long text and long lists are cut and end with ``…``; NaN and infinities become text.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # Writing all digits of a huge number takes long, and nobody reads them.
        is_short = value.bit_length() <= 3 * _MAX_DIGITS
        return value if is_short else f"a whole number of about {_digits(value):,} digits"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value if len(value) <= _MAX_CHARS else value[:_MAX_CHARS] + "…"
    if depth >= _MAX_DEPTH:
        return "…"
    if isinstance(value, list):
        kept = [shown_value(item, depth + 1) for item in value[:_MAX_ITEMS]]
        return kept if len(value) <= _MAX_ITEMS else [*kept, "…"]
    if isinstance(value, dict):
        items = list(value.items())[:_MAX_ITEMS]
        return {str(name)[:_MAX_CHARS]: shown_value(item, depth + 1) for name, item in items}
    return str(value)[:_MAX_CHARS]


def _digits(value: int) -> int:
    return int(value.bit_length() * math.log10(2)) + 1


# -- the checker -----------------------------------------------------------------------------------

FORM = "form"
"""Option: how a reply gives the values: ``json``, or ``named`` for ``@name[value]``."""

JSON, NAMED = "json", "named"

_RULES_VERSION = 1
"""Part of the reuse key; raised when a change of the code may change a verdict."""

_NO_ANSWER = "no_answer"
_MISSING = "missing_variable"


class TypedAnswerChecker(Checker):
    """Compares the values of variables.

    The gold is an object: name of a variable -> its correct value.
    """

    name = "typed_answer"

    def check_options(self, options: Mapping[str, object]) -> None:
        """Checks ``variables``, and the ``form`` of replies."""
        check_names(self.name, options, (VARIABLES, FORM))
        if options.get(FORM, JSON) not in {JSON, NAMED}:
            raise UsageError(f"option {FORM}: must be {JSON!r} or {NAMED!r}")
        if VARIABLES in options:
            _rules(options)

    def describe(self, spec: CheckerSpec) -> str:
        """Returns the name, with the types of the variables."""
        types = sorted({rule.type.value for rule in _rules(spec.options).values()})
        return f"{self.name} ({', '.join(types)})"

    def key(self, task: Task) -> Mapping[str, object]:
        """Returns the rules of all variables; every key already includes golds that are values."""
        rules = _rules(task.checker.options)
        named = [[name, rule.as_json()] for name, rule in rules.items()]
        form = [NAMED] if _is_named_form(task) else []
        # A question that is left out is not compared by any of the rules.
        options = task.checker.options
        left_out = {name: options[name] for name in EVERY_CHECKERS_OPTIONS & options.keys()}
        return {"checker": [self.name, _RULES_VERSION, named, *form, *filter(None, [left_out])]}

    def needs(self, task: Task, case: TestCase, rules: Rules) -> Needs:  # noqa: ARG002
        """Needs no files."""
        return Needs(golds=False)

    def check(
        self,
        task: Task,
        case: TestCase,  # noqa: ARG002
        golds: Sequence[Gold],
        answer: Answer,
        compute: Compute,  # noqa: ARG002
        rules: Rules,
    ) -> Finding:
        """Compares each variable with its gold."""
        if answer.text is None and answer.values is None:
            raise AnswerFaultError("a typed answer is text, but this is a file")
        variables = _variables(task)
        values = [_values(variables, gold) for gold in golds]
        if not values:
            raise GoldFaultError("the case has no gold")
        published = _findings(task, values, golds, answer, PROFILES["official"], rules)
        if rules.profile.published:
            return published
        finding = _findings(task, values, golds, answer, rules.profile, rules)
        record: CaseComparison = {**finding.record, "official_equal": published.agrees}
        return Finding(finding.agrees, finding.cause, record)

    def examine(self, task: Task, case: TestCase, compute: Compute | None) -> Examination:  # noqa: ARG002
        """Counts the variables, and doubts a case whose question does not name one of them."""
        variables = _variables(task)
        for gold in case.golds:
            _values(variables, gold)
        if not case.golds:
            raise GoldFaultError("the case has no gold")
        unnamed = [name for name in variables if not _is_named(name, task.instruction)]
        return Examination(
            units=len(variables),
            doubts=tuple(
                f"the question does not name {name!r} as a key of its answer" for name in unnamed
            ),
        )

    def own_answers(self, task: Task, gold: Gold) -> Mapping[str, Answer]:
        """Returns the values, and a reply that states them, for each alternative gold."""
        variables = _variables(task)
        values = _values(variables, gold)
        most = max(
            len(value) if rule.match is Match.ONE_OF and isinstance(value, list) else 1
            for rule, value in ((rule, values[name]) for name, rule in variables.items())
        )
        answers: dict[str, Answer] = {}
        for number in range(most):
            chosen = {
                name: _alternative(rule, values[name], number) for name, rule in variables.items()
            }
            which = f" {number + 1}" if most > 1 else ""
            reply = _reply(chosen, named=_is_named_form(task))
            answers[f"values{which}"] = Answer(Origin.GOLD, values=chosen)
            answers[f"reply{which}"] = Answer(Origin.GOLD, text=reply)
        return answers

    def compared(
        self, task: Task, golds: Sequence[Gold], answer: Answer, rules: Rules
    ) -> tuple[ComparedValue, ...]:
        """Returns each variable, compared with the gold that is nearest to the answer."""
        variables = _variables(task)
        stated = _stated(task, answer, rules.profile)
        compared = [
            [
                ComparedValue(
                    name,
                    variables[name].described,
                    shown_value(expected[name]),
                    shown_value(value),
                    agreement.kind,
                    agreement.detail,
                )
                for name, value, agreement in _agreements(task, expected, stated, rules.profile)
            ]
            for expected in (_values(variables, gold) for gold in golds)
        ]
        return tuple(
            min(
                compared,
                key=lambda values_of_gold: sum(bool(one.kind) for one in values_of_gold),
                default=(),
            )
        )


CHECKER = TypedAnswerChecker()


def _rules(options: Mapping[str, object]) -> dict[str, VariableRule]:
    """Reads the rules of all variables.

    Raises:
        UsageError: the options do not have the required form.
    """
    try:
        return read_rules(options.get(VARIABLES))
    except ValueError as error:
        raise UsageError(f"option {VARIABLES}: {error}") from error


def _variables(task: Task) -> dict[str, VariableRule]:
    try:
        return _rules(task.checker.options)
    except UsageError as error:
        raise GoldFaultError(error.message) from error


def _values(variables: Mapping[str, VariableRule], gold: Gold) -> Mapping[str, object]:
    """Returns the correct values of the variables.

    Raises:
        GoldFaultError: a variable has no value, or a value that does not fit its type.
    """
    if not isinstance(gold.value, Mapping):
        raise GoldFaultError("the gold of a typed answer is an object: name of a variable -> value")
    for name, rule in variables.items():
        if name not in gold.value:
            raise GoldFaultError(f"the gold has no value of {name!r}")
        value = gold.value[name]
        problem = problem_of_gold(rule, value)
        if problem is None and rule.type is AnswerType.EXPRESSION:
            problem = _problem_of_expression(str(value))
        if problem is not None:
            raise GoldFaultError(f"the gold of {name!r} {problem}")
    return gold.value


def _problem_of_expression(gold: str) -> str | None:
    try:
        return "has no value" if evaluate(gold).value is UNKNOWN else None
    except (ExpressionError, UnboundedError) as error:
        return str(error)


def _alternative(rule: VariableRule, value: object, number: int) -> object:
    if rule.match is Match.ONE_OF and isinstance(value, list):
        return value[min(number, len(value) - 1)]
    return value


def _is_named(name: str, instruction: str) -> bool:
    """Whether a question names a variable, as a JSON key or as ``@name[value]``."""
    key = re.escape(name)
    return re.search(rf"[\"']{key}[\"']\s*:|@{key}\s*\[", instruction) is not None


def _is_named_form(task: Task) -> bool:
    return task.checker.options.get(FORM) == NAMED


def _reply(values: Mapping[str, object], *, named: bool) -> str:
    """Returns a reply that states these values."""
    if named:
        return "\n".join(f"@{name}[{value}]" for name, value in values.items())
    return f"```json\n{dump_json(values, indent=2)}\n```"


def _findings(
    task: Task,
    values: Sequence[Mapping[str, object]],
    golds: Sequence[Gold],
    answer: Answer,
    profile: Profile,
    rules: Rules,
) -> Finding:
    """Returns the finding under one profile, for the gold that is nearest to the answer."""
    stated = _stated(task, answer, profile)
    findings = [
        (gold.name, _compare(task, expected, stated, profile, rules))
        for gold, expected in zip(golds, values, strict=True)
    ]
    finding = nearest(findings)
    record: CaseComparison = {**finding.record, "profile": profile.name}
    return Finding(finding.agrees, finding.cause, record)


def _stated(task: Task, answer: Answer, profile: Profile) -> StatedAnswer:
    if answer.values is not None:
        return StatedAnswer(dict(answer.values))
    text = answer.text or ""
    if _is_named_form(task):
        return named_answer(text)
    return published_answer(text) if profile.published else stated_answer(text, _variables(task))


_NUMBERS = frozenset({AnswerType.INT, AnswerType.FLOAT})


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _compare_one(
    task: Task, rule: VariableRule, gold: object, value: object, profile: Profile
) -> Agreement:
    if _is_named_form(task) and profile.published:
        return AGREES if named_verdict(gold, value).agrees else Agreement(WRONG_VALUE)
    if _is_named_form(task) and isinstance(value, str) and rule.type in _NUMBERS:
        # In this form every number is text, for every profile.
        value = _number_or_text(value)
    return compare_value(rule, gold, value, profile)


def _compare(
    task: Task,
    expected: Mapping[str, object],
    stated: StatedAnswer,
    profile: Profile,
    rules: Rules,
) -> Finding:
    differences, notes = [], []
    for name, value, agreement in _agreements(task, expected, stated, profile):
        if agreement.agrees:
            continue
        if profile.published and agreement.detail:
            notes.append(f"{name}: {agreement.detail}")
        differences.append(
            FoundDifference(
                agreement.kind,
                DifferenceLocation(LocationKind.KEY, name),
                shown_value(expected[name]),
                shown_value(value),
                agreement.detail,
            )
        )
    return finding_of(
        differences, units=len(_variables(task)), notes=notes, max_kept=rules.max_differences
    )


def _agreements(
    task: Task,
    expected: Mapping[str, object],
    stated: StatedAnswer,
    profile: Profile,
) -> Iterator[tuple[str, object, Agreement]]:
    """Yields each variable's name, its value in the answer, and whether it agrees with the gold."""
    for name, rule in _variables(task).items():
        if stated.values is None:
            yield name, None, Agreement(_NO_ANSWER, stated.problem)
        elif name not in stated.values:
            yield name, None, Agreement(_MISSING)
        else:
            value = stated.values[name]
            yield name, value, _compare_one(task, rule, expected[name], value, profile)
