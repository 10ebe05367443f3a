"""Attacks a hidden split through its feedback, as a contestant who knows all rules.

    python benchmarks/feedback_attack.py SUITE [--solved 180] [--submissions 150] [--patience 5000]

The contestant solves some tasks honestly, and may leave them out of a submission to adjust its
score. It recovers (1) golds that are a single whole number from 0 to 100, by guessing for several
tasks at once and halving the group when the score changes, and (2) 32 bits of one hidden input,
which a program reads at run time and reveals through the verdict that it chooses. It only learns
what the server's code for showing scores reveals. Prints how much it recovered with how many
submissions.
"""

from __future__ import annotations

import argparse
import contextlib
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.command_line import run_command
from judge.serve.boards.feedback import (
    MIN_GAIN,
    STEP,
    Rung,
    count_guessable,
    gold_bits,
    ladder_bits,
    rounded,
    whole_numbers,
    within_budget,
)
from judge.suites import load_suite

INPUT_BITS = 32
LEVELS = (
    *("none", "score, ladder and budget", "score, ladder alone"),
    *("score, rounded", "tasks", "verdicts"),
)


class OutOfSubmissionsError(Exception):
    """The quota is used up."""


@dataclass
class Phase:
    """The server's side: what a team sees, and its quota.

    Attributes:
        level: one of :data:`LEVELS`.
        golds: task -> the number.
        tasks: the tasks of the split.
        quota: how many submissions are accepted.
    """

    level: str
    golds: dict[str, int]
    tasks: int
    quota: int
    used: int = 0
    _rung: Rung = field(default_factory=Rung)
    _answers: dict[str, list[int]] = field(default_factory=dict)

    def submit(self, solved: int, guesses: dict[str, int], bit: bool | None = None) -> _Shown:
        """Judges a submission: solved tasks, guesses, and a bit that a program reveals."""
        if self.used >= self.quota:
            raise OutOfSubmissionsError
        self.used += 1
        hits = {task for task, guess in guesses.items() if self._accepted(task, guess)}
        score = (solved + len(hits) + (bit is True)) / self.tasks
        if self.level == "none":
            return _Shown()
        if self.level in {"tasks", "verdicts"}:
            return _Shown(tasks=frozenset(hits), bit=bit)
        if self.level == "score, rounded":
            return _Shown(score=rounded(score))
        before = self._rung
        self._rung = before.after(score)
        return _Shown(score=self._rung.score, moved=self._rung is not before)

    def _accepted(self, task: str, guess: int) -> bool:
        seen = self._answers.setdefault(task, [])
        if guess not in seen:
            seen.append(guess)
        bounded = self.level == "score, ladder and budget"
        counts = within_budget(seen.index(guess) + 1) if bounded else True
        return counts and guess == self.golds[task]


@dataclass(frozen=True)
class _Shown:
    score: float | None = None
    moved: bool = False
    tasks: frozenset[str] = frozenset()
    bit: bool | None = None


class Contestant:
    """Answers one question with each submission: is any of these guesses right?"""

    def __init__(self, phase: Phase, solved: int) -> None:
        self.phase, self.solved = phase, solved
        self.found: dict[str, int] = {}
        self._best: float | None = None

    def any_hit(self, guesses: dict[str, int], bit: bool | None = None) -> frozenset[str] | bool:
        """Returns the tasks with right guesses if the level shows them, or else if any exist."""
        phase, tasks = self.phase, self.phase.tasks
        if phase.level in {"none", "tasks", "verdicts"}:
            shown = phase.submit(0, guesses, bit)
            return shown.tasks if bit is None else bool(shown.bit)
        if phase.level == "score, rounded":
            # Solve so many tasks that the score is one task below a step.
            base = next(
                count
                for count in range(self.solved)
                if rounded((count + 1) / tasks) > rounded(count / tasks)
            )
            return phase.submit(base, guesses, bit).score != rounded(base / tasks)
        if self._best is None:
            self._best = phase.submit(0, {}).score or 0.0
        base = next(
            count for count in range(tasks) if (count + 1) / tasks + 1e-9 >= self._best + MIN_GAIN
        )
        if base > self.solved:
            return False  # no solved task is left to raise the score
        shown = phase.submit(base, guesses, bit)
        self._best = shown.score
        return shown.moved

    def recover_numbers(self) -> None:
        """Guesses each number for all unknown tasks at once, and halves the group after a hit."""
        for number in range(101):
            open_tasks = [task for task in self.phase.golds if task not in self.found]
            if not open_tasks:
                return
            self._search(open_tasks, number)

    def _search(self, tasks: Sequence[str], number: int, *, hit: bool = False) -> None:
        answer: frozenset[str] | bool = True
        if not hit:
            answer = self.any_hit(dict.fromkeys(tasks, number))
        if isinstance(answer, frozenset):
            self.found.update(dict.fromkeys(answer, number))
        elif answer and len(tasks) == 1:
            self.found[tasks[0]] = number
        elif answer:
            half = len(tasks) // 2
            before = len(self.found)
            self._search(tasks[:half], number)
            # If the first half has no hit, the second must have one; otherwise it may have one.
            self._search(tasks[half:], number, hit=len(self.found) == before)

    def recover_input(self, bits: Iterable[bool]) -> list[bool]:
        """Recovers bits of a hidden input, which a program reveals by solving its task or not."""
        return [bool(self.any_hit({}, bit=bit)) for bit in bits]


def _attempt(phase: Phase, solved: int, act: Callable[[Contestant], None]) -> Contestant:
    contestant = Contestant(phase, solved)
    with contextlib.suppress(OutOfSubmissionsError):
        act(contestant)
    return contestant


def _numbers(level: str, golds: dict[str, int], tasks: int, solved: int, quota: int) -> str:
    phase = Phase(level, golds, tasks, quota)
    contestant = _attempt(phase, solved, Contestant.recover_numbers)
    right = sum(golds[task] == number for task, number in contestant.found.items())
    return f"{right:3} of {len(golds)} numbers with {phase.used:4} submissions"


def _input(level: str, tasks: int, solved: int, quota: int) -> str:
    if level == "verdicts":  # one of ten codes at each run
        used = len(str(2**INPUT_BITS))
        return f"{INPUT_BITS:3} of {INPUT_BITS} bits of an input with {used:3} submissions"
    draw = random.Random(0)
    secret = [draw.random() < 0.5 for _ in range(INPUT_BITS)]
    phase, read = Phase(level, {}, tasks, quota), list[bool]()
    _attempt(phase, solved, lambda attack: read.extend(attack.recover_input(secret)))
    right = 0 if level == "none" else sum(a == b for a, b in zip(read, secret, strict=False))
    return f"{right:3} of {INPUT_BITS} bits of an input with {phase.used:3} submissions"


def main() -> None:
    """Prints how much was recovered at each level."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suite")
    parser.add_argument("--solved", type=int, default=180, help="tasks solved honestly")
    parser.add_argument("--submissions", type=int, default=150, help="quota of the phase")
    parser.add_argument("--patience", type=int, default=5_000, help="without a quota")
    options = parser.parse_args()
    suite = load_suite(options.suite)
    tasks = len(suite.tasks)
    counts, golds = count_guessable(suite), whole_numbers(suite)
    print(
        f"{tasks} tasks: {counts.one_cell} answers of one cell, {counts.whole} of them whole "
        f"numbers from 0 to 100; {counts.few} of at most ten cells with at most two values"
    )
    print(f"the contestant solves {options.solved} tasks; a step shown is {100 * STEP} points")
    for level in LEVELS:
        for quota in (options.submissions, options.patience):
            numbers = _numbers(level, golds, tasks, options.solved, quota)
            result = _input(level, tasks, options.solved, quota)
            print(f"{level:26} quota {quota:5}: {numbers}; {result}")
    print(
        f"at most {ladder_bits(options.submissions, tasks):.0f} bits by the ladder in "
        f"{options.submissions} submissions, {gold_bits():.1f} bits about one gold by the budget"
    )


if __name__ == "__main__":
    run_command(main)
