"""The checker of rule lists for whole workbooks: Spider2-V, OSWorld and users' own suites.

The published verdict is recorded next to the judge's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judge.compare.cells.computing import Compute
from judge.compare.contract import (
    AnswerFaultError,
    Checker,
    Examination,
    GoldFaultError,
    Requirements,
    Rules,
)
from judge.compare.profiles import get_profile
from judge.compare.published.spider2v.compare_table import judge_published
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules.book import NOT_CALCULATED, Book, prints_beside, prints_of
from judge.compare.rules.options import NAME, RuleOptions, place_of
from judge.compare.rules.standard import StandardJudge, about_rule
from judge.compare.rules.words import rule_in_words
from judge.compare.sealed import sealed
from judge.core.finding import Finding, FoundDifference, finding_of, nearest
from judge.core.submission import Answer, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import WorkbookError
from judge.workbook.reader import open_workbook


@dataclass(frozen=True, slots=True)
class Published:
    """The verdict of the published evaluator.

    Attributes:
        equal: whether all rules hold; None if the evaluator raises an error.
        failed: index of the first rule that does not hold, or that makes the evaluator raise.
        error: the error that the evaluator raises.
    """

    equal: bool | None
    failed: int | None = None
    error: PublishedError | None = None

    @property
    def is_suite_fault(self) -> bool:
        """Whether the gold or the rules cause the error, whatever the answer is."""
        return self.error is not None and self.error.side in {Side.GOLD, Side.RULES, None}


def published_verdict(answer: Book, gold: Book | None, options: RuleOptions) -> Published:
    """Returns the published verdict; an error that the evaluator raises is part of the verdict.

    Raises:
        WorkbookError: a workbook is broken or over a limit.
    """
    try:
        failed = judge_published(answer, gold, options.rules, options.evaluator)
    except PublishedError as error:
        return Published(None, error.index, error)
    return Published(failed is None, None if failed is None else failed.index)


def finding_of_published(
    published: Published, options: RuleOptions, answer: Book, gold: Book | None
) -> Finding:
    """Returns the published verdict as a finding; its only difference is the first failing rule."""
    differences = []
    if not published.equal and published.failed is not None:
        rule = options.rules[published.failed]
        error = (
            "" if published.error is None else f"the published evaluator raises {published.error}"
        )
        differences.append(
            FoundDifference(
                "published_error" if error else str(rule.get("type")),
                place_of(published.failed, rule),
                detail=error,
                number=published.failed + 1,
                words=rule_in_words(rule),
                about=about_rule(rule, answer, gold),
            )
        )
    finding = finding_of(differences, units=len(options.rules))
    return with_published(finding, published, "official")


def finding_of_standard(
    answer: Book,
    gold: Book | None,
    options: RuleOptions,
    compute: Compute,
    origin: Origin,
    profile: str,
) -> Finding:
    """Returns the finding of the judge's own reading, including the published verdict.

    Raises:
        PublishedError: the gold or the rules are at fault.
        WorkbookError: a workbook is broken or over a limit.
        RecalcError: an engine cannot be started.
    """
    judge = StandardJudge(answer, gold, compute, origin)
    differences = judge.differences(options.rules)
    finding = finding_of(differences, units=len(options.rules))
    kinds = {difference.kind for difference in differences}
    finding = replace(finding, undecided=kinds == {NOT_CALCULATED})
    return with_published(finding, published_verdict(answer, gold, options), profile)


def with_published(finding: Finding, published: Published, profile: str) -> Finding:
    """Returns a finding with the published verdict added."""
    record = {**finding.record, "profile": profile, "official_equal": bool(published.equal)}
    if published.error is not None:
        record["published_error"] = str(published.error)
    return replace(finding, record=record)  # type: ignore[arg-type]


class RulesChecker(Checker):
    """Checks all rules of a list; an answer is accepted if all of them hold."""

    name = NAME

    def check_options(self, options: Mapping[str, object]) -> None:
        """Checks the options; see :class:`judge.compare.rules.options.RuleOptions`."""
        RuleOptions.of(options)

    def describe(self, spec: CheckerSpec) -> str:
        """Returns the name, with the types of the rules."""
        kinds = self.aspects(spec)
        return f"{self.name}: {', '.join(kinds)}" if kinds else self.name

    def aspects(self, spec: CheckerSpec) -> tuple[str, ...]:
        """Returns the types of the rules."""
        return tuple(dict.fromkeys(str(rule.get("type")) for rule in _options(spec).rules))

    def check(
        self,
        task: Task,
        case: TestCase,  # noqa: ARG002
        golds: Sequence[Gold],
        answer: Answer,
        compute: Compute,
        rules: Rules,
    ) -> Finding:
        """Checks the rules with each gold; a task may have no gold."""
        findings = []
        for gold in golds or (None,):
            spec = task.checker if gold is None else task.checker.with_options(gold.options)
            options = _options(spec)
            book = None if gold is None else open_gold(gold, compute)
            finding = check_workbook(options, book, gold, answer, compute, rules)
            findings.append(("" if gold is None else gold.name, finding))
            if finding.agrees:
                break
        return nearest(findings)

    def examine(
        self,
        task: Task,
        case: TestCase,
        compute: Compute | None,
    ) -> Examination:
        """Opens the first gold and counts the rules."""
        gold = case.golds[0] if case.golds else None
        spec = task.checker if gold is None else task.checker.with_options(gold.options)
        options = _options(spec)
        if gold is not None:
            open_gold(gold, compute)
        doubts = () if options.rules else ("the rule list is empty",)
        return Examination(units=len(options.rules), doubts=doubts)

    def requirements(self, task: Task, gold: Gold | None) -> Requirements:
        """Returns the rules as sentences, with the name of the evaluator."""
        spec = task.checker if gold is None else task.checker.with_options(gold.options)
        options = _options(spec)
        words = tuple(map(rule_in_words, options.rules))
        return Requirements(words, options.evaluator.suite, ends_early=True)


CHECKER = RulesChecker()


def _options(spec: CheckerSpec) -> RuleOptions:
    return RuleOptions.of(spec.own_options)


def open_gold(gold: Gold, compute: Compute | None) -> Book:
    """Opens the gold, with the text files next to it and the printer of its sheets.

    Raises:
        GoldFaultError: the gold cannot be read.
    """
    reader = None if compute is None else sealed(compute)
    printer = None if reader is None else reader.print_sheet
    try:
        return Book(open_workbook(gold.read()), Side.GOLD, _prints(gold.path), printer)
    except WorkbookError as error:
        raise GoldFaultError(f"{gold.name}: {error.message}") from error


def _prints(path: Path | None) -> Mapping[str, Sequence[str]]:
    return {} if path is None else prints_beside(path)


def check_workbook(
    options: RuleOptions,
    gold: Book | None,
    gold_file: Gold | None,
    answer: Answer,
    compute: Compute,
    rules: Rules,
) -> Finding:
    """Checks the rules on an answer that may be hostile.

    Raises:
        GoldFaultError: the suite is at fault.
        AnswerFaultError: the answer cannot be read.
        RecalcError: an engine cannot be started.
    """
    try:
        prints = prints_of(answer.files)
        if gold is not None and answer.data == gold.workbook.data:
            # A file that is compared with itself is read once, and so are its text files.
            output = Book(gold.workbook, Side.ANSWER, {**gold.prints, **prints})
        else:
            output = Book(open_workbook(answer.data), Side.ANSWER, prints)
        reader = sealed(compute)
        output.printer = None if reader is None else reader.print_sheet
        with output.workbook.package.budget.working():
            return judge_rules(options, output, gold, answer.origin, compute, rules)
    except WorkbookError as error:
        if gold is not None and error.culprit is gold.workbook.package:
            name = "gold" if gold_file is None else gold_file.name
            raise GoldFaultError(f"{name}: {error.message}") from error
        raise AnswerFaultError(error.message) from error


def judge_rules(
    options: RuleOptions,
    output: Book,
    gold: Book | None,
    origin: Origin,
    compute: Compute,
    rules: Rules,
) -> Finding:
    """Checks the rules on two open workbooks.

    Raises:
        GoldFaultError: the suite is at fault.
        WorkbookError: a workbook is broken or over a limit.
    """
    profile = rules.profile if options.profile is None else get_profile(options.profile)
    if profile.published:
        published = published_verdict(output, gold, options)
        if published.is_suite_fault:
            raise GoldFaultError(f"the published evaluator raises {published.error}")
        return finding_of_published(published, options, output, gold)
    try:
        return finding_of_standard(output, gold, options, compute, origin, profile.name)
    except PublishedError as error:
        raise GoldFaultError(f"the rules cannot be judged: {error}") from error
