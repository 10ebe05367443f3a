"""Signed results: what they state, what they withhold, and how anybody can check them offline.

For data that the feedback level withholds, the document has salted SHA-256 commitments, one for
each case and one for the scores: the server cannot change the data later, and nothing is revealed.
When the phase is published, the salts are given next to the envelope, so that anybody can check the
data against the commitments that were signed before.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from judge.core.score import score_verdicts, scores_by_task
from judge.core.statistics import mean_interval
from judge.core.verdict import Verdict
from judge.errors import UsageError
from judge.files.documents import read_json
from judge.report.build import DEFAULT_METHOD
from judge.report.paired import TaskMeans
from judge.serve.boards.signing import NotSignedError, canonical, opened
from judge.serve.store.tables import Level, VerdictRow

SCHEMA_VERSION = 1  # of signed documents
RESULT, BOARD = "submission", "board"
"""Values of the field ``type`` in a signed document."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of a submission on a split.

    Attributes:
        means: the score of each task, averaged over its samples: 0 for a task without an answer;
            a task whose cases are all set aside has no score.
        answered: number of tasks with an answer.
        samples: the largest number of samples of a task.
        set_aside: number of cases that are not scored, by verdict.
    """

    means: TaskMeans
    answered: int
    samples: int
    set_aside: Mapping[str, int]
    _intervals: dict[str, dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)

    def _interval(self, metric: str, means: Mapping[str, float]) -> dict[str, Any]:
        """Cached: boards are renewed every second, and an interval takes 10,000 resamples."""
        if metric not in self._intervals:
            self._intervals[metric] = interval_of(means)
        return dict(self._intervals[metric])

    def document(self, tasks: int, level: Level = Level.CELLS) -> dict[str, Any]:
        """The scores with their intervals, in the form that signed documents use.

        Args:
            tasks: the number of tasks of the split.
            level: the feedback level; if it shows no verdicts, soft scores and verdict counts are
                left out, since they would reveal verdicts.
        """
        document = {
            "soft": self._interval("soft", self.means.soft),
            "hard": self._interval("hard", self.means.hard),
            "answered": self.answered,
            "tasks": tasks,
            "samples": self.samples,
            "set_aside": dict(sorted(self.set_aside.items())),
            "method": asdict(DEFAULT_METHOD),
        }
        if not level.shows(Level.VERDICTS):
            del document["soft"], document["set_aside"]
        return document


def scored(rows: Iterable[Mapping[str, Any]], tasks: Sequence[str] | int) -> Scored:
    """Computes scores from verdicts as ``judge score`` does; tasks without an answer count as 0.

    Args:
        rows: rows with task, sample, case and verdict.
        tasks: the tasks of the split, or their number.
    """
    verdicts: dict[tuple[str, int], list[Verdict]] = {}
    earned: dict[tuple[str, int], list[float]] = {}
    for row in sorted(rows, key=lambda row: (row["task"], row["sample"], row["case"])):
        key, code = (row["task"], row["sample"]), Verdict(row["verdict"])
        verdicts.setdefault(key, []).append(code)
        share = 1.0 if code is Verdict.AC else row.get("earned") or 0.0
        earned.setdefault(key, []).append(share)
    by_task = scores_by_task(
        score_verdicts(*key, codes, earned[key]) for key, codes in verdicts.items()
    )
    means = TaskMeans.of(by_task)
    if isinstance(tasks, int):
        missing = [f"\0{position}" for position in range(tasks - len(by_task))]
    else:
        missing = [task for task in tasks if task not in by_task]
    zeros = dict.fromkeys(missing, 0.0)
    aside: dict[str, int] = {}
    for codes in verdicts.values():
        for code in codes:
            if not code.is_scored:
                aside[code.value] = aside.get(code.value, 0) + 1
    return Scored(
        means=TaskMeans({**means.soft, **zeros}, {**means.hard, **zeros}),
        answered=len(by_task),
        samples=max((len(scores.samples) for scores in by_task.values()), default=0),
        set_aside=aside,
    )


def interval_of(means: Mapping[str, float]) -> dict[str, Any]:
    """A mean score with its interval, from 0 to 1."""
    # In a fixed order, and without meaningless digits, so that equal results have equal bytes.
    estimate = asdict(mean_interval(sorted(means.values())))
    return {
        name: round(value, 12) if isinstance(value, float) else value
        for name, value in estimate.items()
    }


def shown_score(score: float, tasks: int) -> dict[str, Any]:
    """A rounded score, with the interval that follows from it and the number of tasks."""
    estimate = asdict(mean_interval([1.0] * round(score * tasks) + [0.0] * _rest(score, tasks)))
    return {**estimate, "value": round(score, 12)}


def _rest(score: float, tasks: int) -> int:
    return max(0, tasks - round(score * tasks))


@dataclass(frozen=True, slots=True)
class Committed:
    """Commitments to cases and scores.

    Attributes:
        commitments: the hashes for the signed document.
        openings: salts and values, which are published later.
    """

    commitments: dict[str, Any]
    openings: dict[str, Any]


def committed(
    rows: Sequence[VerdictRow], scores: Mapping[str, Any], secret: bytes, of: str
) -> Committed:
    """Commits to cases and scores.

    Args:
        rows: all cases.
        scores: the scores that follow from the cases.
        secret: the secret of the server, from which the salts are made.
        of: id of the judging.
    """
    values: list[object] = [scores, *_ordered(rows)]
    salts = [
        hmac.new(secret, f"{of}/{position}".encode(), hashlib.sha256).hexdigest()
        for position in range(len(values))
    ]
    hashes = [_commitment(salt, value) for salt, value in zip(salts, values, strict=True)]
    pairs = [{"salt": salt, "value": value} for salt, value in zip(salts, values, strict=True)]
    return Committed(
        {"scores": hashes[0], "cases": hashes[1:]}, {"scores": pairs[0], "cases": pairs[1:]}
    )


def _ordered(rows: Iterable[VerdictRow]) -> list[VerdictRow]:
    return sorted(rows, key=lambda row: (row["task"], row["sample"], row["case"]))


def _commitment(salt: str, value: object) -> str:
    return hashlib.sha256(bytes.fromhex(salt) + canonical(value)).hexdigest()


def opens(openings: Mapping[str, Any], commitments: Mapping[str, Any]) -> bool:
    """Whether the openings match all commitments, in the same order."""
    try:
        pairs = [openings["scores"], *openings["cases"]]
        hashes = [commitments["scores"], *commitments["cases"]]
        return len(pairs) == len(hashes) and all(
            set(pair) == {"salt", "value"} and _commitment(pair["salt"], pair["value"]) == digest
            for pair, digest in zip(pairs, hashes, strict=True)
        )
    except (KeyError, TypeError, ValueError):
        return False


_IN_CLEAR = ("task", "sample", "case", "verdict")


def result_of(
    head: Mapping[str, Any],
    rows: Sequence[VerdictRow],
    shown: Sequence[VerdictRow],
    tasks: Sequence[str],
    level: Level,
    secret: bytes,
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The body of a result, and the openings of any data that it withholds.

    The hashes of outputs, and the keys, are readable only at a level that shows cells: a program
    could leak data through its outputs, and a key could confirm a guess of the gold that it
    depends on.

    Args:
        head: server, submission, suite, phase and conditions.
        rows: all cases of the judging.
        shown: the same cases, limited by the answer budget of each gold.
        tasks: the tasks of the split.
        level: the feedback level of the split, which decides what is readable in the document. It
            must not be the level of the caller: a result is the same for everybody.
        secret: the secret of the server.
    """
    scores = scored(rows, tasks).document(len(tasks))
    body = {
        **head,
        "schema_version": SCHEMA_VERSION,
        "type": RESULT,
        "level": level,
        "split": {**head["split"], "tasks": len(tasks)},
    }
    if level.shows(Level.CELLS):
        return {**body, "scores": scores, "cases": _ordered(rows)}, None
    closed = committed(rows, scores, secret, str(head["judging"]))
    body["commitments"] = closed.commitments
    if level.shows(Level.VERDICTS):
        ordered: list[Mapping[str, Any]] = [*_ordered(shown)]
        cases = [{name: row[name] for name in _IN_CLEAR} for row in ordered]
        body["cases"] = cases
        body["scores"] = scored(cases, tasks).document(len(tasks))
    elif level is Level.TASKS:
        solved = scored(shown, tasks)
        body["scores"] = solved.document(len(tasks), level)
        body["solved"] = sorted(task for task, score in solved.means.hard.items() if score == 1.0)
    return body, closed.openings


def follows(scores: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether computing scores from the cases again gives the same scores."""
    try:
        again = scored(rows, int(scores["tasks"])).document(int(scores["tasks"]))
        return _close(again, scores)
    except (KeyError, TypeError, ValueError):
        return False


def _close(one: object, two: object) -> bool:
    """Whether two values are equal except for the last digits, which can depend on the machine."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(_close(one[name], two[name]) for name in one)
    if isinstance(one, float) and isinstance(two, float | int):
        return math.isclose(one, two, abs_tol=1e-9)
    return one == two


KEYS_NAME = "judge-keys.json"
MAX_BYTES = 256 << 20  # of an envelope that is checked
_LATER = "is withheld until the phase is published; download the result again then"
MEANINGS = {
    1: "a key of the server signed it",
    2: "the scores follow from the verdicts",
    3: "suite and outputs are those that were judged",
    4: "judging the outputs again gives the same verdicts",
}


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of the check of a signed result.

    Attributes:
        level: the highest level up to which every check passes, from 0 to 4.
        broken: the level whose check fails; None if no check failed.
        why: why it fails, or why the check ended at this level.
        document: what was signed; empty if it cannot be read.
        key_id: the id of the key that signed it.
    """

    level: int
    broken: int | None
    why: str
    document: Mapping[str, Any]
    key_id: str = ""


def verify_result(
    file: Path,
    *,
    keys: Path | None = None,
    dataset: str | None = None,
    corrections: Path | None = None,
    outputs: Path | None = None,
) -> Verification:
    """Checks a signed result, or a signed version of a board.

    Args:
        file: the envelope.
        keys: ``judge-keys.json`` of the server; None for the one next to the file.
        dataset: the suite; without it, the check ends after level 2.
        corrections: the corrections that the server used, if the suite is the published one.
        outputs: the folder of the outputs, which have names such as ``{task}/{case}.xlsx`` or any
            names that ``judge score`` accepts; without it, the check ends after the suite.

    Raises:
        UsageError: a file is missing, or the keys cannot be read.
        JudgeError: the suite cannot be loaded, or the outputs cannot be judged.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    listed = _keys(keys or file.parent / KEYS_NAME)
    try:
        document, openings, key_id = opened(data, listed)
    except NotSignedError as error:
        return Verification(0, 1, str(error), {})

    def stop(level: int, why: str, *, broken: bool = False) -> Verification:
        return Verification(level, level + 1 if broken else None, why, document, key_id)

    if document.get("type") == BOARD:
        return stop(1, "this is a version of a board: check the results that it names instead")
    verdicts = _verdicts_of(document, openings)
    if isinstance(verdicts, str):
        return stop(1, verdicts, broken=True)
    rows, scores = verdicts
    withheld = "commitments" in document and openings is None
    if withheld and rows is None:
        return stop(1, f"the data behind the scores {_LATER}")
    if not isinstance(rows, list) or not follows(scores or {}, rows):
        return stop(1, "the scores do not follow from the verdicts", broken=True)
    if withheld:
        return stop(2, f"the list of outputs {_LATER}")
    if dataset is None:
        return stop(2, "no suite was given (--dataset)")
    return _with_suite(stop, document, rows, dataset, corrections, outputs)


def _verdicts_of(
    document: Mapping[str, Any], openings: Mapping[str, Any] | None
) -> tuple[Any, Any] | str:
    """The verdicts and scores of a result, with openings applied, or why they are wrong."""
    if openings is None:
        return document.get("cases"), document.get("scores")
    if "commitments" not in document:
        return "there are openings, but no commitments"
    if not opens(openings, document["commitments"]):
        return "the openings do not match the commitments"
    return [pair["value"] for pair in openings["cases"]], openings["scores"]["value"]


def _with_suite(
    stop: Any,
    document: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    dataset: str,
    corrections: Path | None,
    outputs: Path | None,
) -> Verification:
    """Checks levels 3 and 4."""
    from judge.suites import load_suite  # noqa: PLC0415  levels 1 and 2 need no suite
    from judge.suites.corrections import corrected_suite  # noqa: PLC0415

    suite = load_suite(dataset)
    if corrections is not None:
        suite = corrected_suite(suite, corrections).suite
    signed = document["conditions"]["document"]["suite"]["digest"]
    answer: Verification
    if suite.digest != signed:
        answer = stop(
            2, f"the suite's digest is {suite.digest[:16]}…, not {signed[:16]}…", broken=True
        )
        return answer
    if outputs is None:
        answer = stop(2, "the suite is the one that was judged; no outputs were given (--outputs)")
        return answer
    there = _hashes(outputs)
    missing = [row for row in rows if row["output_sha256"] and row["output_sha256"] not in there]
    if missing:
        row = missing[0]
        why = f"the output of task {row['task']}, case {row['case']} is not in {outputs}"
        answer = stop(2, f"{why} ({len(missing)} in all)", broken=True)
        return answer
    differing = _judged_again(document, rows, dataset, corrections, there)
    if differing:
        why = f"{len(differing)} verdicts differ, the first for {differing[0]}"
        answer = stop(3, why, broken=True)
    else:
        answer = stop(4, MEANINGS[4])
    return answer


def _judged_again(
    document: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    dataset: str,
    corrections: Path | None,
    there: Mapping[str, Path],
) -> list[str]:
    """The cases whose output gets a different verdict when it is compared again.

    Outputs of programs are compared as finished workbooks, whose values are trusted.
    """
    from judge.api.commands import score  # noqa: PLC0415
    from judge.api.options import ScoreOptions  # noqa: PLC0415  levels 1 to 3 judge nothing
    from judge.core.limits import Limits  # noqa: PLC0415

    chosen = dict(document["conditions"]["document"]["options"])
    if "limits" in chosen:
        chosen["limits"] = Limits(**chosen["limits"])
    if "style" in chosen:
        chosen["style"] = tuple(chosen["style"])
    differing = []
    samples = sorted({int(row["sample"]) for row in rows})
    with tempfile.TemporaryDirectory(prefix="judge-verify-") as scratch:
        for sample in samples:
            mine = [row for row in rows if row["sample"] == sample and row["output_sha256"]]
            if not mine:
                continue
            folder = Path(scratch) / f"outputs-{sample}"
            for row in mine:
                target = folder / row["task"] / f"{row['case']}.xlsx"
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(there[row["output_sha256"]], target)
            options = ScoreOptions(
                **chosen,
                dataset=dataset,
                corrections=corrections,
                out=Path(scratch) / f"run-{sample}",
                outputs="{task}/{case}.xlsx",
            )
            (run,) = score(folder, options)
            again = {(one.task_id, one.case): one.verdict.value for one in run.results}
            differing += [
                f"task {row['task']}, case {row['case']}"
                for row in mine
                if again.get((row["task"], row["case"])) != row["verdict"]
            ]
    return differing


def _hashes(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder")
    hashes = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                hashes[hashlib.file_digest(file, "sha256").hexdigest()] = path
    return hashes


def _keys(path: Path) -> list[Mapping[str, Any]]:
    hint = "Download /.well-known/judge-keys.json from the server, and pass it with --key."
    document = read_json(path, UsageError)
    if document is None:
        raise UsageError(f"{path}: this key file does not exist", hint=hint)
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise UsageError(f"{path}: these are not the keys of a server", hint=hint)
    return keys
