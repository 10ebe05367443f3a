"""The checker of OSWorld's and Spider2-V's metrics for files other than workbooks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.compare.cells.computing import Compute
from judge.compare.contract import (
    AnswerFaultError,
    Checker,
    Examination,
    GoldFaultError,
    Rules,
)
from judge.compare.files.metric import MetricInput, UnreadableAnswerError
from judge.compare.files.options import (
    FAIL,
    INFEASIBLE,
    METRICS,
    NAME,
    RULES_FROM_TASK,
    WORKBOOK,
    MetricCall,
    MetricOptions,
)
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules.checker import check_workbook, open_gold
from judge.compare.rules.options import RuleOptions
from judge.compare.sealed import FileCache, SealedFiles, sealed
from judge.core.finding import (
    DifferenceLocation,
    Finding,
    FoundDifference,
    LocationKind,
    finding_of,
)
from judge.core.submission import Answer, AnswerFile, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase

# -- several metrics of one task -------------------------------------------------------------------
# Combines several metrics of one task: the published score, and the judge's own verdict.


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of one metric.

    Attributes:
        score: the published score; None if the function raises an error.
        error: the error that the function raises; None if it gives a score.
        wrong: the differences in the judge's own reading.
        undecided: whether all these differences are values that could not be computed.
    """

    score: float | None = None
    error: PublishedError | None = None
    wrong: tuple[FoundDifference, ...] = ()
    undecided: bool = False


def judge_metric(
    call: MetricCall, number: int, metric_input: MetricInput, *, published_only: bool
) -> Judged:
    """Judges one metric.

    Args:
        call: the metric.
        number: number of the metric in the task, from 1.
        metric_input: the answer and the gold to compare.
        published_only: whether to leave out the judge's own reading.

    Raises:
        PublishedError: in the judge's own reading, the gold or the task is at fault.
        UnreadableAnswerError: the metric cannot read a file of this kind.
        RecalcError: the reader in the sandbox cannot be started.
    """
    metric = METRICS[call.func]
    score, error = None, None
    try:
        score = float(metric.published(metric_input))
    except PublishedError as raised:
        error = raised
    except UnreadableAnswerError:
        score = 0.0
        if published_only:
            raise
    if published_only:
        return Judged(score, error)
    differences = metric.standard(metric_input)
    wrong: tuple[FoundDifference, ...] = ()
    if differences is not None:
        position = DifferenceLocation(LocationKind.RULE, f"{number} ({call.func})")
        wrong = (
            FoundDifference(
                call.func, position, differences.expected, differences.actual, differences.detail
            ),
        )
    return Judged(score, error, wrong)


def published_score(
    judged: Sequence[Callable[[], Judged]], *, all_of: bool
) -> tuple[float | None, PublishedError | None]:
    """Returns the published score of a task; the first error ends the evaluation.

    If all metrics have to hold, the score is 0 as soon as one score is 0, and otherwise the mean.
    If any metric is enough, it is 1 as soon as one score is 1, and otherwise the largest.
    """
    scores = []
    for make in judged:
        outcome = make()
        if outcome.error is not None:
            return None, outcome.error
        score = outcome.score or 0.0
        if all_of and score == 0.0:
            return 0.0, None
        if not all_of and score == 1.0:
            return 1.0, None
        scores.append(score)
    if not scores:
        return None, PublishedError("ZeroDivisionError", "no metric", Side.RULES)
    return (sum(scores) / len(scores) if all_of else max(scores)), None


def finding_of_metrics(
    judged: Sequence[Judged], *, all_of: bool, published: tuple[float | None, PublishedError | None]
) -> Finding:
    """Returns the judge's own finding, including the published score."""
    wrong = [difference for judgement in judged for difference in judgement.wrong]
    right = not wrong if all_of else any(not judgement.wrong for judgement in judged)
    finding = finding_of([] if right else wrong, units=len(judged))
    open_ones = [judgement.undecided for judgement in judged if judgement.wrong]
    undecided = not right and (all(open_ones) if all_of else any(open_ones))
    return with_score(replace(finding, undecided=undecided), published)


def finding_of_score(published: tuple[float | None, PublishedError | None], units: int) -> Finding:
    """Returns the published score as a finding; only a score of 1 is right."""
    score, error = published
    differences = []
    if score != 1.0:
        target = "a score of 1"
        actual: object = str(error) if error is not None else score
        kind = "published_error" if error is not None else "published_score"
        differences.append(
            FoundDifference(kind, DifferenceLocation(LocationKind.RULE), target, actual)
        )
    return with_score(finding_of(differences, units=units), published)


def with_score(finding: Finding, published: tuple[float | None, PublishedError | None]) -> Finding:
    """Returns a finding with the published score added."""
    score, error = published
    record = {**finding.record, "official_equal": score == 1.0, "official_score": score}
    if error is not None:
        record["published_error"] = str(error)
    return replace(finding, record=record)  # type: ignore[arg-type]


# -- the checker -----------------------------------------------------------------------------------


class MetricsChecker(Checker):
    """Checks one or several metrics, of which all have to hold or, in some tasks, any one.

    The golds of a case are not alternatives: each metric names the gold that it uses.
    """

    name = NAME

    def check_options(self, options: Mapping[str, object]) -> None:
        """Checks the options; see :class:`judge.compare.files.options.MetricOptions`."""
        MetricOptions.of(options)

    def describe(self, spec: CheckerSpec) -> str:
        """Returns the name, with the metrics."""
        options = _options(spec)
        joined = " and " if options.all_of else " or "
        return f"{self.name}: {joined.join(metric.func for metric in options.metrics)}"

    def check(
        self,
        task: Task,
        case: TestCase,  # noqa: ARG002
        golds: Sequence[Gold],
        answer: Answer,
        compute: Compute,
        rules: Rules,
    ) -> Finding:
        """Judges each metric with the gold that it names."""
        options = _options(task.checker)
        only = rules.profile.published
        reader = sealed(compute)
        files = None if reader is None else FileCache(reader)
        calls = [
            functools.cache(
                functools.partial(_judged, options, number, golds, answer, compute, files, rules)
            )
            for number in range(len(options.metrics))
        ]
        try:
            published = published_score(calls, all_of=options.all_of)
            error = published[1]
            if only and error is not None and error.side is not Side.ANSWER:
                raise GoldFaultError(f"the published evaluator raises {error}")
            if only:
                return finding_of_score(published, len(calls))
            judged = [make() for make in calls]
        except PublishedError as error:
            raise GoldFaultError(f"the metrics cannot be judged: {error}") from error
        except UnreadableAnswerError as error:
            raise AnswerFaultError(str(error)) from error
        return finding_of_metrics(judged, all_of=options.all_of, published=published)

    def examine(
        self,
        task: Task,
        case: TestCase,
        compute: Compute | None,  # noqa: ARG002
    ) -> Examination:
        """Checks that the gold of each metric exists, and counts the metrics."""
        options = _options(task.checker)
        for call in options.metrics:
            if call.gold:
                _gold(call, case.golds)
        return Examination(units=len(options.metrics))

    def own_answers(self, task: Task, gold: Gold) -> Mapping[str, Answer]:
        """Returns the golds as an answer, under the file names that the metrics expect."""
        options = _options(task.checker)
        if any(call.func == INFEASIBLE for call in options.metrics):
            return {"": Answer(Origin.FINISHED, text=FAIL)}
        files = {}
        for call in options.metrics:
            if call.gold and call.result not in files:
                files[call.result] = _gold(call, task.cases[0].golds).read()
        if gold.name not in {call.gold for call in options.metrics}:
            return {}
        named = tuple(AnswerFile(name or gold.name, data) for name, data in files.items())
        return {"": Answer(Origin.FINISHED, named)}


CHECKER = MetricsChecker()


def _options(spec: CheckerSpec) -> MetricOptions:
    return MetricOptions.of(spec.own_options)


def _gold(call: MetricCall, golds: Sequence[Gold]) -> Gold:
    gold_file = next((gold for gold in golds if gold.name == call.gold), None)
    if gold_file is None:
        raise GoldFaultError(f"{call.func}: the case has no gold {call.gold!r}")
    return gold_file


def _file(call: MetricCall, options: MetricOptions, answer: Answer) -> AnswerFile | None:
    """Returns the file that a metric checks: the file with its name, or the answer's only file."""
    named = next((file for file in answer.files if file.name == call.result), None)
    alone = len({metric.result for metric in options.metrics}) == 1
    return answer.files[0] if named is None and alone and answer.files else named


def _judged(
    options: MetricOptions,
    number: int,
    golds: Sequence[Gold],
    answer: Answer,
    compute: Compute,
    files: SealedFiles | None,
    rules: Rules,
) -> Judged:
    call = options.metrics[number]
    if call.func not in RULES_FROM_TASK | {WORKBOOK, INFEASIBLE} and not call.gold:
        needs_gold = call.func != "check_file_existence"
        if needs_gold:
            raise GoldFaultError(f"{call.func}: the task names no gold")
    gold = _gold(call, golds) if call.gold else None
    file = _file(call, options, answer)
    if call.func == WORKBOOK:
        return _workbook(options, number, gold, file, answer, compute, rules)
    metric_input = MetricInput(
        answer=None if file is None else file.data,
        text=answer.text,
        gold=None if gold is None else gold.read(),
        rules=call.expected,
        options=call.options,
        evaluator=options.evaluator,
        files=files,
    )
    return judge_metric(call, number + 1, metric_input, published_only=rules.profile.published)


def _workbook(
    options: MetricOptions,
    number: int,
    gold: Gold | None,
    file: AnswerFile | None,
    answer: Answer,
    compute: Compute,
    rules: Rules,
) -> Judged:
    """Judges a metric that is a list of rules."""
    position = DifferenceLocation(LocationKind.RULE, f"{number + 1} ({WORKBOOK})")
    if file is None:
        return Judged(0.0, None, (FoundDifference(WORKBOOK, position, "a workbook", None),))
    given = options.metrics[number].options.get("rules", [])
    rule_options = RuleOptions.of({"rules": given, "evaluator": options.evaluator})
    rest = tuple(candidate for candidate in answer.files if candidate is not file)
    book = None if gold is None else open_gold(gold, compute)
    own = Answer(answer.origin, (file, *rest))
    finding = check_workbook(rule_options, book, gold, own, compute, rules)
    error = finding.record.get("published_error")
    if error is not None:
        kind, _, message = str(error).partition(": ")
        return Judged(None, PublishedError(kind, message, Side.ANSWER), _wrong(finding, position))
    score = float(bool(finding.record.get("official_equal")))
    return Judged(score, None, _wrong(finding, position), undecided=finding.undecided)


def _wrong(finding: Finding, position: DifferenceLocation) -> tuple[FoundDifference, ...]:
    if finding.agrees:
        return ()
    return (FoundDifference(WORKBOOK, position, "all rules hold", finding.cause),)
