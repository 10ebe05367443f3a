"""Signs that somebody submits in order to learn golds, for the authors of a suite.

There are two signs. The first: an account's programs for one task differ only in their literals, as
if they tested one gold again and again. The second: accounts have wrong answers in common, perhaps
because people share what they have learned, or because they are the same person. Neither sign
proves anything; both show authors where to look.
"""

from __future__ import annotations

import io
import itertools
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from judge.core.verdict import Verdict
from judge.errors import JudgeError
from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from judge.serve.boards.feedback import ACCEPTED
from judge.serve.store import tables as t
from judge.serve.store.folder import DataFolder

MIN_VARIANTS = 3
"""Programs that differ only in literals are listed if there are at least this many."""

MIN_SHARED = 3
"""Two accounts are listed if they have at least this many wrong answers in common."""

_MAX_SUBMISSIONS = 2_000  # the newest are examined
_MAX_CHARACTERS = 200_000  # of a program that are read
_LITERALS = (tokenize.NUMBER, tokenize.STRING)
_BLANK = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


@dataclass(frozen=True, slots=True)
class Variants:
    """Answers of an account to one task that differ only in literals.

    Attributes:
        account: name of the account.
        task: id of the task.
        variants: how many different answers there are.
        submissions: in how many submissions they are.
    """

    account: str
    task: str
    variants: int
    submissions: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Wrong answers that two accounts have in common.

    Attributes:
        accounts: names of the accounts.
        shared: number of cases in which they gave the same wrong answer.
        both: number of cases in which both gave a wrong answer.
    """

    accounts: tuple[str, str]
    shared: int
    both: int


def skeleton(text: str) -> str:
    """A program, or a typed answer, without its literals, comments and blanks."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text[:_MAX_CHARACTERS]).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return "".join("0" if one.isdigit() else one for one in text if not one.isspace())
    return " ".join(
        "literal" if token.type in _LITERALS else token.string
        for token in tokens
        if token.type not in _BLANK
    )


def variants(answers: Iterable[tuple[str, str, str, str]]) -> list[Variants]:
    """Finds answers that differ only in literals, most variants first.

    Args:
        answers: tuples of account, task, submission and text.
    """
    texts: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    of: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for account, task, submission, text in answers:
        key = account, task, skeleton(text)
        texts[key].add(text)
        of[key].add(submission)
    repeated = [
        Variants(account, task, len(texts[key]), len(of[key]))
        for key in texts
        for account, task, _ in [key]
        if len(texts[key]) >= MIN_VARIANTS
    ]
    return sorted(repeated, key=lambda one: (-one.variants, one.account, one.task))


def agreements(wrong: Mapping[str, Mapping[tuple[str, int], frozenset[str]]]) -> list[Agreement]:
    """Finds pairs of accounts with wrong answers in common, most common answers first.

    Args:
        wrong: account -> (task, case) -> hashes of its wrong answers.
    """
    shared_pairs = []
    for one, two in itertools.combinations(sorted(wrong), 2):
        both = wrong[one].keys() & wrong[two].keys()
        shared = sum(bool(wrong[one][case] & wrong[two][case]) for case in both)
        if shared >= MIN_SHARED:
            shared_pairs.append(Agreement((one, two), shared, len(both)))
    return sorted(shared_pairs, key=lambda pair: (-pair.shared, pair.accounts))


def probing_of(
    connection: sa.Connection, folder: DataFolder, suite: str
) -> tuple[list[Variants], list[Agreement]]:
    """Looks for both signs in the newest 2,000 submissions to a suite.

    Args:
        connection: a connection.
        folder: the data folder.
        suite: id of the suite.
    """
    phases = sa.select(t.phase.c.id).where(t.phase.c.suite == suite)
    submissions = connection.execute(
        sa.select(t.submission.c.id, t.submission.c.current_judging, t.account.c.name)
        .join(t.account, t.account.c.id == t.submission.c.account)
        .where(t.submission.c.phase.in_(phases))
        .order_by(t.submission.c.seq.desc())
        .limit(_MAX_SUBMISSIONS)
    ).all()
    answers = [
        (row.name, task, row.id, text)
        for row in submissions
        for task, text in _answers(folder, row.current_judging)
    ]
    return variants(answers), agreements(_wrong(connection, phases))


def _answers(folder: DataFolder, judging: str) -> list[tuple[str, str]]:
    """Yields the task and text of each answer of a judging; nothing if its files are missing."""
    try:
        with RunDirectory(folder.results(judging)) as store:
            records: list[Any] = list(store.read_records(SUBMISSIONS_FILE))
    except JudgeError:
        return []
    answers = []
    for record in records:
        text = record.get("solution") or record.get("answer") or record.get("response")
        if text:
            answers.append((str(record.get("id")), str(text)))
    return answers


def _wrong(
    connection: sa.Connection, phases: sa.Select[Any]
) -> dict[str, dict[tuple[str, int], frozenset[str]]]:
    """Account -> (task, case) -> hashes of its wrong answers, from the table of answer budgets."""
    wrong: defaultdict[str, defaultdict[tuple[str, int], set[str]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for row in connection.execute(
        sa.select(
            t.account.c.name, t.answer_seen.c.task, t.answer_seen.c.case, t.answer_seen.c.answer
        )
        .join(t.account, t.account.c.id == t.answer_seen.c.account)
        .where(t.answer_seen.c.phase.in_(phases), t.answer_seen.c.answer != ACCEPTED)
    ):
        wrong[row.name][row.task, row.case].add(row.answer)
    return {
        account: {case: frozenset(answers) for case, answers in cases.items()}
        for account, cases in wrong.items()
    }


def probing_lines(signs: tuple[list[Variants], list[Agreement]]) -> list[str]:
    """Yields the lines that ``judge serve admin probing`` prints."""
    lines = [
        f"{one.account}, task {one.task}: {one.variants} answers that differ only in literals, in "
        f"{one.submissions} submissions"
        for one in signs[0]
    ]
    lines += [
        f"{' and '.join(pair.accounts)}: the same wrong answer in {pair.shared} of the {pair.both} "
        f"cases that both answered wrongly ({Verdict.WA.value})"
        for pair in signs[1]
    ]
    return lines or ["nothing looks like probing"]
