"""The rules of WindowsAgentArena-V2's ``compare_table`` as items, one for each rule."""

from __future__ import annotations

from judge.compare.checklists.items import Outcome, State
from judge.compare.checklists.suites import ItemDetails, PublishedSuite, as_check, as_intended
from judge.compare.checklists.workspace import MissingError, Workspace
from judge.compare.published.spider2v.compare_table import Evaluator, judge_published
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules.book import Book
from judge.compare.rules.options import faults_of
from judge.compare.rules.standard import StandardJudge
from judge.compare.rules.words import rule_in_words
from judge.errors import WorkbookError
from judge.workbook.reader import open_workbook


def _gold(workspace: Workspace) -> Book | None:
    return workspace.once("waa-v2", lambda: _open(workspace))


def _open(workspace: Workspace) -> Book | None:
    data = next(iter(workspace.golds.values()), None)
    return None if data is None else Book(open_workbook(data), Side.GOLD)


def _official(check: object, workspace: Workspace) -> Outcome:
    rule, gold = as_check(check), _gold(workspace)
    try:
        answer = workspace.book().book
    except (MissingError, WorkbookError) as error:
        return ItemDetails(detail=str(error)).outcome(right=False)
    try:
        failed = judge_published(answer, gold, [rule], Evaluator.SPIDER2V)
    except PublishedError as error:
        return Outcome(0.0, detail=f"the published code raises {error}", state=State.ERROR)
    return ItemDetails().outcome(right=failed is None)


def _standard(check: object, workspace: Workspace) -> Outcome:
    rule, gold = as_check(check), _gold(workspace)
    official = _official(check, workspace)
    answer = workspace.book().book
    judge = StandardJudge(answer, gold, workspace.compute, workspace.origin)
    differences = judge.differences([rule])
    detail = differences[0].detail if differences else ""
    return as_intended(official, ItemDetails(detail=detail), "W2", right=not differences)


def _in_words(check: object) -> str:
    return rule_in_words(as_check(check))


def _faults(check: object) -> tuple[str, ...]:
    return tuple(faults_of([as_check(check)]))


SUITE = PublishedSuite(_official, _standard, _in_words, _faults)
