"""Checks a signed result offline: signature, scores, suite and outputs, verdicts, in this order."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.files.documents import read_json
from judge.serve.boards.results import BOARD, follows, opens
from judge.serve.boards.signing import NotSignedError, opened

KEYS_NAME = "judge-keys.json"
MOST_BYTES = 256 << 20
MEANINGS = {
    1: "a key of the server signed it",
    2: "the scores follow from the verdicts",
    3: "suite and outputs are those that were judged",
    4: "judging the outputs again gives the same verdicts",
}


@dataclass(frozen=True, slots=True)
class Verification:
    """What holds of a signed result.

    Attributes:
        level: the highest level up to which everything holds, from 0 to 4.
        broken: the level that does not hold; None if none was found broken.
        why: why it does not hold, or why the check ended where it did.
        document: what was signed; empty if it cannot be read.
        key_id: of the key that signed it.
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
        corrections: those that the server judged with, if the suite is the published one.
        outputs: the folder of the outputs, named ``{task}/{case}.xlsx`` or as ``judge score`` finds
            them; without it, the check ends with the suite.

    Raises:
        UsageError: a file is missing, or the keys cannot be read.
        JudgeError: the suite cannot be loaded, or the outputs cannot be judged.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES)
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
        return stop(1, "a version of a board names the results that it depends on; check these")
    rows, scores = document.get("cases"), document.get("scores")
    if "commitments" in document:
        if openings is None:
            why = "verdicts are committed to and not published; ask for the result again later"
            return stop(1, why)
        if not opens(openings, document["commitments"]):
            return stop(1, "the openings are not those of the commitments", broken=True)
        rows = [pair["value"] for pair in openings["cases"]]
        scores = openings["scores"]["value"]
    elif openings is not None:
        return stop(1, "there are openings, and nothing that they open", broken=True)
    if not isinstance(rows, list) or not follows(scores or {}, rows):
        return stop(1, "the scores are not those of the verdicts", broken=True)
    if dataset is None:
        return stop(2, "no suite was given (--dataset)")
    return _with_suite(stop, document, rows, dataset, corrections, outputs)


def _with_suite(
    stop: Any,
    document: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    dataset: str,
    corrections: Path | None,
    outputs: Path | None,
) -> Verification:
    """Levels 3 and 4."""
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
        why = f"{len(differing)} verdicts differ, the first of them that of {differing[0]}"
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
    """Cases with an output whose verdict is another one when it is compared again.

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
                place = folder / row["task"] / f"{row['case']}.xlsx"
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(there[row["output_sha256"]], place)
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
    hint = "Save /.well-known/judge-keys.json of the server, and name it with --key."
    document = read_json(path, UsageError)
    if document is None:
        raise UsageError(f"{path}: there are no keys", hint=hint)
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise UsageError(f"{path}: these are not the keys of a server", hint=hint)
    return keys
