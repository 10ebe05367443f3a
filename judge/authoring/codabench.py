"""Writes a suite as a Codabench bundle: a competition whose scoring program is this judge.

Written for the importer and the worker of codalab/codabench@c7dbc756 (unpackers/v2.py,
compute_worker.py). The scoring program runs in the image of ``judge sandbox build --verifier``, in
the same container as the golds. Contestants' programs could not be isolated from the golds there,
so submissions are finished workbooks or typed answers.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.core.task import Task
from judge.errors import SuiteError, UsageError
from judge.files.documents import dump_json
from judge.files.writing import naming_what_is_written, writing_whole
from judge.files.yaml_documents import dump_yaml
from judge.suites import Suite
from judge.suites.folders import regular_files
from judge.version import __version__

COLUMNS = (("soft", "Soft score, %"), ("hard", "Hard score, %"))
_STARTS = "2020-01-01 00:00:00"  # open immediately; organisers set the dates on their site
_DAY = (2020, 1, 1, 0, 0, 0)
_LIMIT_S = 3600

SCORING = '''\
"""Scores a submission of Codabench with `judge score`, and writes what the site shows.

    python3 scoring.py REFERENCE SUBMISSION OUTPUT SANDBOX
"""

import json
import pathlib
import subprocess
import sys
import tempfile

reference, submission, output = map(pathlib.Path, sys.argv[1:4])
about = json.loads((reference / "about.json").read_text())
lines = sorted(submission.glob("*.jsonl"))
if about["answers"] == "files":
    answers, more = submission, ["--every-task"]
elif len(lines) == 1:
    answers, more = lines[0], []
else:
    sys.exit("hand in one file with typed answers, NAME.jsonl, at the top of the archive")
with tempfile.TemporaryDirectory() as scratch:
    run = pathlib.Path(scratch, "run")
    command = ["judge", "score", answers, "--dataset", reference / "suite" / about["suite"]]
    command += ["--out", run, "--sandbox", sys.argv[4], "--jobs", "1", "--quiet", *more]
    code = subprocess.run(command, check=False).returncode
    if code:
        sys.exit(code)
    overall = json.loads((run / "report.json").read_text())["overall"]
# Tasks without an answer count as not solved.
missing = about["tasks"] - overall.get("all_tasks", overall["tasks"])
share = overall["tasks"] / (overall["tasks"] + missing) if overall["tasks"] + missing else 0.0
values = {name: overall[name + "_restriction"] or 0.0 for name in ("soft", "hard")}
scores = {name: 100 * share * value for name, value in values.items()}
output.mkdir(parents=True, exist_ok=True)
(output / "scores.json").write_text(json.dumps(scores))
rows = "".join(f"<tr><th>{name}</th><td>{value:.2f} %</td></tr>" for name, value in scores.items())
answered = about["tasks"] - missing
(output / "detailed_results.html").write_text(
    "<!doctype html><meta charset=utf-8><title>Scores</title>"
    f"<table>{rows}</table><p>{answered} of {about['tasks']} tasks answered.</p>"
)
'''


@dataclass(frozen=True, slots=True)
class Bundle:
    """Numbers of tasks and test cases that were written."""

    tasks: int
    cases: int


def export_codabench(
    suite: Suite, image: str, target: Path, *, licence: str | None = None
) -> Bundle:
    """Writes a bundle.

    Args:
        suite: the suite; either all of its tasks ask for files, or all for typed answers.
        image: the verifier's image, under a name that the queue's workers can pull.
        target: a new file that ends in ``.zip``.
        licence: the licence of the data, for the terms.

    Raises:
        UsageError: the target exists or has another suffix, or the tasks ask for both kinds.
        SuiteError: a file of the suite cannot be read.
        StoreError: the target cannot be written.
    """
    if target.suffix != ".zip":
        raise UsageError(f"{target}: a bundle of Codabench is a .zip", hint="Name it NAME.zip.")
    if target.exists():
        raise UsageError(f"{target} already exists", hint="Name another one, or move it away.")
    tasks = [task for task in suite.tasks if task.excluded is None]
    kinds = {task.answer.is_file for task in tasks}
    if len(kinds) != 1:
        raise UsageError(
            f"{suite.root}: its tasks ask for files and for typed answers",
            hint="A Codabench submission has only one of the two: export them as two suites.",
        )
    (files,) = kinds
    texts = {
        "competition.yaml": dump_yaml(_competition(suite, image, len(tasks))),
        "pages/terms.md": _terms(licence),
        **_texts(suite, tasks, files=files),
    }
    with (
        naming_what_is_written(target),
        writing_whole(target, mode=0o644) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, text in sorted(texts.items()):
            _add(archive, name, text.encode())
        _add(archive, "logo.png", _logo())
        for path in sorted(regular_files(suite.root)):
            relative = path.relative_to(suite.root).as_posix()
            _add(archive, f"reference_data/suite/{suite.root.name}/{relative}", _read(path))
        for path in sorted(
            {question.path for task in tasks for case in task.cases for question in case.inputs}
        ):
            relative = path.resolve().relative_to(suite.root.resolve()).as_posix()
            _add(archive, f"public_data/{relative}", _read(path))
    return Bundle(len(tasks), sum(len(task.cases) for task in tasks))


def _texts(suite: Suite, tasks: list[Task], *, files: bool) -> dict[str, str]:
    """The generated files of a bundle, by name."""
    about = {
        "suite": suite.root.name,
        "digest": suite.digest,
        "tasks": len(tasks),
        "answers": "files" if files else "typed",
        "judge": __version__,
    }
    return {
        "pages/overview.md": _overview(suite, tasks, files=files),
        "scoring_program/scoring.py": SCORING,
        "scoring_program/metadata.yaml": "command: python3 /app/program/scoring.py /app/input/ref "
        "/app/input/res /app/output sealed-container\n",
        "reference_data/about.json": dump_json(about) + "\n",
        "public_data/tasks.jsonl": "".join(f"{dump_json(_task(task))}\n" for task in tasks),
    }


def _competition(suite: Suite, image: str, tasks: int) -> dict[str, Any]:
    return {
        "version": 2,
        "title": suite.name,
        "description": f"{tasks} tasks of spreadsheet work, judged by sheetjudge {__version__}.",
        "image": "logo.png",
        "terms": "pages/terms.md",
        "docker_image": image,
        "registration_auto_approve": False,
        "make_programs_available": False,
        "make_input_data_available": False,
        "enable_detailed_results": True,
        "show_detailed_results_in_leaderboard": False,
        "pages": [{"title": "Overview", "file": "pages/overview.md"}],
        "tasks": [
            {
                "index": 0,
                "name": suite.name,
                "description": f"{tasks} tasks",
                "reference_data": "reference_data/",
                "scoring_program": "scoring_program/",
            }
        ],
        "phases": [
            {
                "index": 0,
                "name": "Open",
                "description": "Finished answers are handed in and judged.",
                "start": _STARTS,
                "max_submissions_per_day": 5,
                "max_submissions": 100,
                "execution_time_limit": _LIMIT_S,
                "hide_score_output": True,
                "public_data": "public_data/",
                "tasks": [0],
            }
        ],
        "leaderboards": [
            {
                "title": "Results",
                "key": "main",
                "submission_rule": "Force_Best",
                "columns": [
                    {"title": title, "key": key, "index": index, "sorting": "desc", "precision": 2}
                    for index, (key, title) in enumerate(reversed(COLUMNS))
                ],
            }
        ],
    }


def _overview(suite: Suite, tasks: list[Task], *, files: bool) -> str:
    what = (
        "a zip with the finished files, named as the suite names its outputs"
        if files
        else "a zip with one file NAME.jsonl, a line for each answer"
    )
    return (
        f"# {suite.name}\n\n{len(tasks)} tasks, whose questions and inputs are the public data.\n\n"
        f"Hand in {what}. Tasks without an answer count as not solved. Programs are not run: they "
        "could not be isolated from the golds, which are on the workers of the "
        "queue.\n\nThe hard score is the share of tasks whose cases are all accepted, the soft "
        "score the mean share of accepted cases. Rankings of this site have no intervals and no "
        "ties; `judge compare-runs` has.\n"
    )


def _terms(licence: str | None) -> str:
    terms = f"The data are under {licence}." if licence else "The data belong to their authors."
    return f"# Terms\n\n{terms} Do not train on the tasks, and do not publish their golds.\n"


def _task(task: Task) -> dict[str, Any]:
    question = task.question
    return {
        "id": task.id,
        "instruction": question.instruction,
        "kind": question.kind,
        "details": dict(question.details),
        "inputs": [[one.path.name for one in case.inputs] for case in task.cases],
    }


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """A zip entry without a timestamp, so that the same content gives the same bytes."""
    archive.writestr(zipfile.ZipInfo(name, _DAY), data, zipfile.ZIP_DEFLATED)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SuiteError(f"{path}: cannot be read: {error.strerror}") from error


def _logo() -> bytes:
    """A PNG logo, which a bundle must have: a grid of 96 by 96 pixels."""
    rows = b"".join(
        b"\0" + bytes(90 if x % 24 == 0 or y % 24 == 0 else 235 for x in range(96))
        for y in range(96)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    head = struct.pack(">IIBBBBB", 96, 96, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    )


EVALUATION_FRAMEWORK = "sheetjudge"
"""The judge's name in files for Hugging Face, which must be the same in both files."""


def eval_yaml(suite: Suite) -> str:
    """The ``eval.yaml`` that makes the suite an evaluation task of a Hugging Face dataset.

    Source: huggingface/hub-docs@242f4a1e, docs/hub/eval-results.md.
    """
    return dump_yaml(
        {
            "name": suite.name,
            "description": f"{len(suite.tasks)} tasks of spreadsheet work with "
            f"{suite.case_count} cases; digest {suite.digest}.",
            "evaluation_framework": EVALUATION_FRAMEWORK,
            "tasks": [{"id": "hard_score"}, {"id": "soft_score"}],
        }
    )
