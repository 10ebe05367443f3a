"""What there is to score: runs, files of solutions, folders of finished outputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from judge.api.options import ScoreOptions
from judge.core.records.runs import RunDocument
from judge.errors import StoreError, UsageError
from judge.files.paths import GivenPath, as_path
from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from judge.inference.started import StartedRuns
from judge.suites import Suite
from judge.suites.folders import is_folder, regular_files
from judge.suites.formats import is_output_name
from judge.suites.layouts import NAMES, Layout, is_job, layout_of


@dataclass(frozen=True, slots=True)
class RunToScore:
    """One run to score.

    Attributes:
        run: its results directory.
        solutions: the file of its submissions; None where it has finished outputs.
        outputs: the folder of its finished outputs; None where it has submissions.
        fresh: whether they come from outside the results directory.
        layout: how the files of a folder are laid out; None as run.json has it.
    """

    run: Path
    solutions: Path | None
    outputs: Path | None
    fresh: bool
    layout: Layout | None = None


def find_runs(results: Path, options: ScoreOptions) -> list[Path]:
    """The path itself, or the runs in a folder that is not a run."""
    if not results.is_dir() or RunDirectory.is_run(results) or options.outputs or options.programs:
        return [results]
    runs = sorted(path for path in results.iterdir() if path.is_dir() and RunDirectory.is_run(path))
    # A run of `judge infer` that ended before the first answer has nothing to score, and must not
    # keep `judge score results/` from being done; named by itself, it is an error that says so.
    runs = [path for path in runs if not _waits_for_answers(path)] or runs
    what = "runs"
    if not runs and not is_job(results):
        what = "jobs of Harbor"
        runs = sorted(path for path in results.iterdir() if is_folder(path) and is_job(path))
    if len(runs) > (what != "runs") and options.out is not None:
        raise UsageError(
            f"{results} holds {len(runs)} {what}; --out can take only one",
            hint="Leave --out out: each run is graded in its own folder.",
        )
    return runs or [results]


def run_to_score(results: Path, options: ScoreOptions) -> RunToScore:
    """What a path is (a run, a file of solutions or finished outputs), and where its run goes."""
    out = as_path(options.out)
    if not results.exists():
        raise UsageError(
            f"{results}: no such file or folder",
            hint="Give a run directory, a folder of runs, a .jsonl of solutions, or a folder of "
            "output workbooks.",
        )
    if results.is_file():
        run = out or Path("results") / results.name.removesuffix(".jsonl")
        return RunToScore(run, solutions=results, outputs=None, fresh=True)
    if RunDirectory.is_run(results):
        if options.outputs or options.programs:
            raise UsageError(
                f"{results} is a run, which remembers where its outputs are",
                hint="Leave --outputs and --programs out, or name the folder with the outputs.",
            )
        if out is not None and out.resolve() != results.resolve():
            solutions = results / SUBMISSIONS_FILE
            return RunToScore(out, solutions=solutions, outputs=None, fresh=True)
        return _run_source(results)
    run = out or Path("results") / results.resolve().name
    layout = layout_of(results, options.outputs, options.programs)
    if layout.programs:
        return RunToScore(run, solutions=results, outputs=None, fresh=True, layout=layout)
    if layout.kind != NAMES or any(is_output_name(path.name) for path in regular_files(results)):
        return RunToScore(run, solutions=None, outputs=results, fresh=True, layout=layout)
    raise UsageError(
        f"{results}: holds neither runs nor output workbooks",
        hint="A run has a submissions.jsonl; outputs are named {n}_{id}_output.xlsx, or --outputs "
        "says where they are.",
    )


def _run_source(path: Path) -> RunToScore:
    solutions = path / SUBMISSIONS_FILE
    if solutions.is_file():
        return RunToScore(path, solutions=solutions, outputs=None, fresh=False)
    if _waits_for_answers(path):
        raise StoreError(
            f"{path}: holds no submissions yet: the chat model has not answered",
            hint=f"judge infer --out {path}",
        )
    run = RunDirectory(path).read_run() or RunDocument()
    outputs = run.get("outputs")
    if outputs is None:
        raise StoreError(f"{path}: has a run.json, but neither submissions nor outputs")
    return RunToScore(path, solutions=None, outputs=Path(outputs), fresh=False)


def _waits_for_answers(path: Path) -> bool:
    """Whether inference started the run, and no submission has arrived yet."""
    try:
        run = RunDirectory(path).read_run() or RunDocument()
    except StoreError:
        return False  # whoever scores it will hear why
    return "inference" in run and not (path / SUBMISSIONS_FILE).exists()


def note_outputs(run: GivenPath, folder: GivenPath) -> None:
    """Remembers for this user that a run judges the finished workbooks of a folder named here."""
    StartedRuns().note(as_path(run), {"outputs": str(as_path(folder).resolve())})


def own_values(path: GivenPath, run: RunDocument) -> bool:
    """Whether this user said on this machine that the outputs of a run hold values to trust.

    That is so if a command of this user named the folder of finished workbooks, or asked for
    episodes by mouse and keyboard alone. What the results directory says is not evidence.

    Args:
        path: the results directory.
        run: its run.json.
    """
    said = StartedRuns().options_of(as_path(path)) or {}
    if (outputs := run.get("outputs")) is not None:
        return said.get("outputs") == outputs
    return said.get("gui_only") is True


def check_same_suite(store: RunDirectory, run: RunDocument, suite: Suite) -> None:
    """A results directory stays with the suite that it was begun with."""
    remembered = run.get("suite")
    if remembered is None or "digest" not in remembered:
        return
    if remembered["digest"] != suite.digest:
        raise StoreError(
            f"{store.path}: belongs to suite {remembered.get('name')!r} "
            f"({remembered.get('source')}), whose content is not that of {suite.root}",
            hint="Give another --out, or the suite that the run was made with.",
        )


def check_same_source(store: RunDirectory, run: RunDocument, source: RunToScore) -> None:
    """A results directory stays with the solutions, or the outputs, that it was begun with."""
    if not source.fresh or not run:
        return
    came_from = source.solutions or source.outputs
    assert came_from is not None
    before = run.get("outputs" if source.outputs else "solutions")
    laid_out = Layout.of_record(run.get("layout"))
    if before == str(came_from.resolve()) and source.layout not in (None, laid_out):
        raise StoreError(
            f"{store.path}: was made with another --outputs or --programs",
            hint="Give another --out, or the pattern that it was made with.",
        )
    if before != str(came_from.resolve()):
        other = before or run.get("solutions") or run.get("outputs") or "something else"
        raise StoreError(
            f"{store.path}: holds the results of {other}, not of {came_from}",
            hint="Give another --out.",
        )
