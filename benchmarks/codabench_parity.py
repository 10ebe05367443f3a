#!/usr/bin/env python3
"""Compares scores of the sample suites as Codabench bundles with those of `judge score`.

    .venv/bin/judge sandbox build --verifier
    .venv/bin/python -m benchmarks.codabench_parity RUN_CODABENCH.py

RUN_CODABENCH.py runs one task of a bundle with Docker as Codabench's worker does: with mounts,
dropped capabilities and no network. Submissions are the answers that come with a suite: typed
answers, finished workbooks, or the outputs of its programs. Exits with 1 if a score differs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from benchmarks.command_line import existing, parser_of, run_command

JUDGE = str(Path(sys.executable).parent / "judge")
SAMPLES = Path(__file__).resolve().parent.parent / "dataset"
SUITES = ("sample", "sample-typed", "sample-rules", "sample-checklist")


def judged(answers: Path, suite: str, out: Path, *more: str) -> dict[str, float]:
    """Computes the scores of `judge score`, in per cent."""
    command = [JUDGE, "score", str(answers), "--dataset", suite, "--out", str(out), "-q", *more]
    subprocess.run(command, check=True)
    overall = json.loads((out / "report.json").read_text())["overall"]
    return {name: 100 * overall[f"{name}_restriction"] for name in ("soft", "hard")}


def answers_to(suite: str, folder: Path) -> Path:
    """Writes a folder of answers to a suite, as a contestant submits them."""
    answers = folder / "answers"
    if suite == "sample-rules":
        shutil.copytree(SAMPLES / suite / "finished", answers)
        return answers
    answers.mkdir()
    if suite == "sample-typed":
        shutil.copyfile(SAMPLES / suite / "answers.jsonl", answers / "answers.jsonl")
        return answers
    run = folder / "programs"
    judged(SAMPLES / suite / "submissions.jsonl", suite, run)
    for line in (run / "cases.jsonl").read_text().splitlines():
        record = json.loads(line)
        digest = (record.get("run") or {}).get("output_sha256")
        # One answer to each task, not always the right one.
        if digest and record["sample"] == len(str(record["task"])) % 3:
            name = f"{record['case']}_{record['task']}_output.xlsx"
            shutil.copyfile(run / "workbooks" / digest[:2] / f"{digest}.xlsx", answers / name)
    return answers


def by_bundle(
    suite: str, answers: Path, folder: Path, imitation: Path, image: str | None
) -> dict[str, float]:
    """Runs the bundle's scoring program in its container; returns the scores that it writes."""
    bundle, archive = folder / "bundle.zip", folder / "submission.zip"
    export = [JUDGE, "dataset", "export", suite, str(bundle), "--format", "codabench"]
    export += [] if image is None else ["--verifier-image", image]
    subprocess.run(export, check=True, stdout=subprocess.DEVNULL)
    with zipfile.ZipFile(bundle) as packed:
        competition = packed.read("competition.yaml").decode()
    named = next(
        line.split(":", 1)[1].strip()
        for line in competition.splitlines()
        if line.startswith("docker_image")
    ).strip("'\"")
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(answers.iterdir()):
            packed.write(path, path.name)
    command = [sys.executable, imitation, bundle, archive, folder / "out", "--image", named]
    done = subprocess.run(
        [*map(str, command)], check=False, capture_output=True, text=True, cwd=folder
    )
    if done.returncode:
        raise SystemExit(f"{suite}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    scores: dict[str, float] = json.loads((folder / "out/scoring/scores.json").read_text())
    return scores


def main() -> None:
    """Runs the command."""
    parser = parser_of(__doc__)
    parser.add_argument("imitation", type=existing)
    parser.add_argument("suites", nargs="*", default=list(SUITES))
    parser.add_argument("--image", help="in place of that of `judge sandbox build --verifier`")
    options = parser.parse_args()
    same = True
    for suite in options.suites:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            answers = answers_to(suite, folder)
            source = answers / "answers.jsonl" if suite == "sample-typed" else answers
            more = [] if suite == "sample-typed" else ["--every-task"]
            wanted = judged(source, suite, folder / "run", *more)
            from_bundle = by_bundle(
                suite, answers, folder, options.imitation.resolve(), options.image
            )
            equal = all(abs(from_bundle[name] - wanted[name]) < 1e-9 for name in wanted)
            same = same and equal
            print(
                f"{suite}: {'equal' if equal else 'DIFFERENT'} {from_bundle} {wanted}", flush=True
            )
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    run_command(main)
