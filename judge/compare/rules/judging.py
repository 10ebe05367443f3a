"""A workbook judged by a rule list: what is reported, and what goes on record."""

from __future__ import annotations

from dataclasses import dataclass, replace

from judge.compare.cells.computing import Compute
from judge.compare.published.spider2v.compare_table import judge_published
from judge.compare.rules.about import about_rule
from judge.compare.rules.book import Book
from judge.compare.rules.judged import NOT_CALCULATED
from judge.compare.rules.options import RuleOptions, place_of
from judge.compare.rules.raised import PublishedError, Side
from judge.compare.rules.standard import StandardJudge
from judge.compare.rules.words import rule_in_words
from judge.core.finding import Finding, FoundDifference, finding_of
from judge.core.submission import Origin


@dataclass(frozen=True, slots=True)
class Published:
    """The published verdict.

    Attributes:
        equal: whether all rules hold; None if the evaluator raises.
        failed: index of the first rule that does not hold, or that the evaluator raises over.
        error: what the evaluator raises.
    """

    equal: bool | None
    failed: int | None = None
    error: PublishedError | None = None

    @property
    def is_suite_fault(self) -> bool:
        """Whether the evaluator raises because of the gold or the rules, whatever the answer is."""
        return self.error is not None and self.error.side in {Side.GOLD, Side.RULES, None}


def published_verdict(answer: Book, gold: Book | None, options: RuleOptions) -> Published:
    """The published verdict, a raise recorded as what it is.

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
    """The finding of the published verdict: the first failing rule is its only difference."""
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
    found = finding_of(differences, units=len(options.rules))
    return with_published(found, published, "official")


def finding_of_standard(
    answer: Book,
    gold: Book | None,
    options: RuleOptions,
    compute: Compute,
    origin: Origin,
    profile: str,
) -> Finding:
    """The finding of the judge's own reading, with the published verdict on record.

    Raises:
        PublishedError: the gold or the rules are at fault.
        WorkbookError: a workbook is broken or over a limit.
        RecalcError: an engine cannot be started.
    """
    judge = StandardJudge(answer, gold, compute, origin)
    differences = judge.differences(options.rules)
    found = finding_of(differences, units=len(options.rules))
    kinds = {difference.kind for difference in differences}
    found = replace(found, undecided=kinds == {NOT_CALCULATED})
    return with_published(found, published_verdict(answer, gold, options), profile)


def with_published(found: Finding, published: Published, profile: str) -> Finding:
    """A finding with the published verdict on record."""
    record = {**found.record, "profile": profile, "official_equal": bool(published.equal)}
    if published.error is not None:
        record["published_error"] = str(published.error)
    return replace(found, record=record)  # type: ignore[arg-type]
