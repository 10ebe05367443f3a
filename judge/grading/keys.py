"""Reuse keys: hashes of everything on which a run and its verdict depend."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from judge.compare.cells.options import STYLE_RULES
from judge.compare.registry import checker_of
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import CaseInput, Gold, Task, TestCase
from judge.errors import GoldFaultError
from judge.grading.case import GradingRules

GRADER_VERSION = "1"
"""A part of every reuse key; raised whenever the same files could get a different verdict."""


@dataclass(frozen=True, slots=True)
class CaseKeys:
    """The two reuse keys of a case, as hexadecimal SHA-256.

    Attributes:
        run: key of the run.
        comparison: key of the run and the comparison.
        former: keys that earlier versions of the judge wrote for the same case, if they differ.
    """

    run: str
    comparison: str
    former: CaseKeys | None = None


def run_key(submission: Submission, inputs_sha256: str, limits: Limits, image: str) -> str:
    """Hashes everything that could change the outcome of a run.

    Args:
        submission: the program, or the typed answer.
        inputs_sha256: digest of the case's input files.
        limits: limits on the run.
        image: the image of the sandbox that the program runs in.
    """
    parts: dict[str, object] = {
        "version": GRADER_VERSION,
        "code": submission.code,
        "input": inputs_sha256,
        "paths": [submission.input_path, submission.output_path],
        "limits": _plain(limits),
        "image": image,
    }
    if submission.answer is not None:
        parts["answer"] = submission.answer
    return _hash(parts)


@functools.lru_cache(maxsize=1024)
def _plain(limits: Limits) -> Mapping[str, object]:
    return asdict(limits)


def comparison_key(
    run: str,
    task: Task,
    case: TestCase,
    rules: GradingRules,
    digests: FileDigests,
    *,
    distrusts: bool = False,
) -> str:
    """Hashes everything that could change the verdict on the outcome of a run.

    Args:
        run: the key of the run, or the digest of a finished answer.
        task: the task, with its checker.
        case: the case, with its golds.
        rules: profile and options.
        digests: digests of files, each read once.
        distrusts: whether the values in an output are computed although, according to its record, a
            program that calculates formulas wrote them.
    """
    checker = checker_of(task.checker)
    more = [
        [digests.of_inputs(file.question), _golds_key(file, digests)]
        for file in checker.also_reads(task, case)
    ]
    return _hash(
        {
            **({"values": "computed"} if distrusts else {}),
            **({"cases": more} if more else {}),
            "version": GRADER_VERSION,
            "run": run,
            "gold": _golds_key(case, digests),
            **checker.key(task),
            "profile": rules.profile.identity,
            "style": [*rules.style, *([STYLE_RULES] if rules.style else [])],
            "recalc": [rules.recalc_mode, list(rules.engines)],
        }
    )


def _golds_key(case: TestCase, digests: FileDigests) -> object:
    """Returns the digest of a gold file if it is the only gold, otherwise a hash of all golds."""
    files = [digests.of_gold(gold) for gold in case.golds]
    if len(case.golds) == 1 and files[0] is not None and not case.golds[0].options:
        return files[0]
    return [
        [digest, gold.value, dict(gold.options)]
        for digest, gold in zip(files, case.golds, strict=True)
    ]


class FileDigests:
    """SHA-256 digests of files; each file is read only once."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}

    def of(self, path: Path) -> str:
        """Returns the digest of a file, as hexadecimal digits."""
        digest = self._known.get(path)
        if digest is None:
            digest = self._known[path] = hashlib.sha256(path.read_bytes()).hexdigest()
        return digest

    def of_gold(self, gold: Gold) -> str | None:
        """Returns a gold file's digest, or why it cannot be read; None if the gold is a value."""
        if gold.path is None:
            return None
        digest = self._known.get(gold.path)
        if digest is None:
            try:
                digest = hashlib.sha256(gold.read()).hexdigest()
            except GoldFaultError as fault:
                return fault.message
            self._known[gold.path] = digest
        return digest

    def of_inputs(self, case: CaseInput) -> str:
        """Returns the digest of a case's input files, or the file's digest if there is only one."""
        digests = [self.of(file.path) for file in case.files]
        if len(digests) == 1:
            return digests[0]
        named = [[file.name, digest] for file, digest in zip(case.files, digests, strict=True)]
        return _hash({"files": named})


_IN_ORDER = json.JSONEncoder(sort_keys=True)


def _hash(parts: Mapping[str, object]) -> str:
    return hashlib.sha256(_IN_ORDER.encode(parts).encode()).hexdigest()
