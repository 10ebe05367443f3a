"""The judge as a library: score runs, run one program, and what both need to be opened.

The command line is a thin layer over this module.
"""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from judge import __version__
from judge.batch import (
    FinishedOutput,
    Outcome,
    Settings,
    current_results,
    grade,
    grade_outputs,
)
from judge.compare.profiles import get_profile
from judge.compare.style_check import check_style_names
from judge.dataset import Suite, load_suite
from judge.dataset.outputs import find_outputs
from judge.dataset.submissions import load_submissions, submission_of_program, submission_record
from judge.errors import (
    IncompleteRunError,
    JudgeError,
    SandboxError,
    StoreError,
    SubmissionError,
    SuiteError,
    UsageError,
)
from judge.grader import GradingRules
from judge.limits import Limits
from judge.progress import Progress, Silent
from judge.recalc.select import open_recalculator
from judge.report.summary import build_report
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox, SandboxInfo
from judge.store import REPORT_FILE, SUBMISSIONS_FILE, RunDirectory
from judge.submission import Submission
from judge.task import Task, TestCase
from judge.verdict import CaseResult, Verdict
from judge.verify import CaseCheck, verify_suite


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """How to score; every field has the default of the command line.

    Attributes:
        dataset: the suite (folder, archive or name); None takes the one that run.json remembers.
        out: results directory to write; None grades a run directory in place, and puts anything
            else under ``results/``.
        jobs: submissions at one time.
        ids: task ids to grade; empty for all.
        limit: grade only that many tasks, in suite order.
        sandbox: ``auto``, ``docker`` or ``bubblewrap``.
        profile: comparison profile.
        style: style attributes to compare beside the values.
        recalc: ``auto``, ``never`` or ``always``.
        engine: calculation engine, ``auto`` for the cascade.
        limits: bounds of each run.
    """

    dataset: str | None = None
    out: Path | None = None
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    ids: tuple[str, ...] = ()
    limit: int | None = None
    sandbox: str = "auto"
    profile: str = "standard"
    style: tuple[str, ...] = ()
    recalc: Literal["auto", "never", "always"] = "auto"
    engine: str = "auto"
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A run that was scored.

    Attributes:
        path: its results directory.
        report: the document of its report.json.
        results: every case result on record for the reported submissions.
        submissions: the submissions reported on, with their tasks; empty for finished outputs.
        reused: cases whose result was on record already.
        problem: why the run is incomplete, or None.
    """

    path: Path
    report: Mapping[str, object]
    results: Sequence[CaseResult]
    submissions: Sequence[tuple[Task, Submission]]
    reused: int
    problem: str | None


def score(
    results: Path | str,
    options: ScoreOptions | None = None,
    *,
    progress: Callable[[str], Progress] = lambda _: Silent(),
    failures: list[JudgeError] | None = None,
) -> list[ScoredRun]:
    """Scores a run directory, a folder of runs, a .jsonl of solutions, or finished outputs.

    Args:
        results: what to score.
        options: how.
        progress: gives the progress display for a run, told the run's name.
        failures: where given, one run that cannot be scored does not keep the others from being
            scored; its error is put in here instead of being raised.

    Returns:
        One entry per run that was scored.

    Raises:
        JudgeError: any of its classes; what was judged before the error is kept on disk.
        KeyboardInterrupt: the user interrupted; what was judged is kept on disk.
    """
    options = options or ScoreOptions()
    check_style_names(options.style)
    scored: list[ScoredRun] = []
    with contextlib.ExitStack() as stack:
        opened = Opened(options, stack)
        for path in _find_runs(Path(results), options):
            try:
                scored.append(opened.score_source(_source_of(path, options), progress))
            except JudgeError as error:
                if failures is None:
                    raise
                failures.append(error)
    return scored


# -- what there is to score -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """One run to make: where its submissions or outputs come from and where it goes."""

    run: Path
    solutions: Path | None
    outputs: Path | None
    fresh: bool


def _find_runs(results: Path, options: ScoreOptions) -> list[Path]:
    """The path itself, or the runs in a folder that is no run."""
    if not results.is_dir() or RunDirectory.is_run(results):
        return [results]
    runs = sorted(path for path in results.iterdir() if path.is_dir() and RunDirectory.is_run(path))
    if runs and options.out is not None:
        raise UsageError(
            f"{results} holds {len(runs)} runs; --out can take only one",
            hint="Leave --out away: each run is graded in its own folder.",
        )
    return runs or [results]


def _source_of(results: Path, options: ScoreOptions) -> _Source:
    if not results.exists():
        raise UsageError(
            f"{results}: no such file or folder",
            hint="Give a run directory, a folder of runs, a .jsonl of solutions, or a folder of "
            "output workbooks.",
        )
    if results.is_file():
        run = options.out or Path("results") / results.name.removesuffix(".jsonl")
        return _Source(run, solutions=results, outputs=None, fresh=True)
    if RunDirectory.is_run(results):
        if options.out is not None and options.out.resolve() != results.resolve():
            solutions = results / SUBMISSIONS_FILE
            return _Source(options.out, solutions=solutions, outputs=None, fresh=True)
        return _run_source(results)
    if next(results.rglob("*_output.xlsx"), None) is not None:
        run = options.out or Path("results") / results.resolve().name
        return _Source(run, solutions=None, outputs=results, fresh=True)
    raise UsageError(
        f"{results}: holds neither a run, nor runs, nor output workbooks",
        hint="A run has a submissions.jsonl; output workbooks are named {n}_{id}_output.xlsx.",
    )


def _run_source(path: Path) -> _Source:
    solutions = path / SUBMISSIONS_FILE
    if solutions.is_file():
        return _Source(path, solutions=solutions, outputs=None, fresh=False)
    run = RunDirectory(path).read_run() or {}
    outputs = run.get("outputs")
    if not isinstance(outputs, str):
        raise StoreError(f"{path}: has a run.json, but neither submissions nor outputs")
    return _Source(path, solutions=None, outputs=Path(outputs), fresh=False)


# -- what is opened once for all runs -----------------------------------------------------------


class Opened:
    """Sandbox, engines and suites, each opened once and only where it is needed."""

    def __init__(self, options: ScoreOptions, stack: contextlib.ExitStack) -> None:
        self._options = options
        self._stack = stack
        self._suites: dict[str, Suite] = {}
        self._settings: dict[tuple[str, bool], Settings] = {}

    def score_source(self, source: _Source, progress: Callable[[str], Progress]) -> ScoredRun:
        """Scores one run into its results directory."""
        with RunDirectory(source.run) as store:
            run = store.read_run() or {}
            suite = self._suite(source, run)
            _check_same_suite(store, run, suite)
            _check_same_source(store, run, source)
            store.lock()
            if source.outputs is not None:
                return self._score_outputs(store, run, source.outputs, suite, progress)
            return self._score_solutions(store, run, source, suite, progress)

    def _score_solutions(
        self,
        store: RunDirectory,
        run: Mapping[str, object],
        source: _Source,
        suite: Suite,
        progress: Callable[[str], Progress],
    ) -> ScoredRun:
        assert source.solutions is not None
        submissions = load_submissions(source.solutions, suite)
        if source.fresh:
            store.replace_records(
                SUBMISSIONS_FILE, [submission_record(each, suite) for each in submissions]
            )
        chosen = {task.id for task in suite.select(self._options.ids, self._options.limit).tasks}
        pairs = [(suite.task(each.task_id), each) for each in submissions]
        order = {task.id: position for position, task in enumerate(suite.tasks)}
        pairs.sort(key=lambda pair: (order[pair[1].task_id], pair[1].sample))
        selected = [pair for pair in pairs if pair[0].id in chosen]
        if not selected:
            raise SubmissionError(
                f"{source.solutions}: none of the chosen tasks has a solution",
                hint="Check --ids and --limit.",
            )
        settings = self.settings(needs_sandbox=True, remembered=_backend(run))
        models = sorted({each.model for each in submissions if each.model})
        described = self._describe(run, suite, settings) | {
            "model": ", ".join(models) or run.get("model"),
            "setting": next((each.setting for each in submissions if each.setting), None)
            or run.get("setting"),
            "solutions": str(source.solutions.resolve()) if source.fresh else run.get("solutions"),
        }
        store.write_run(described)
        with progress(source.run.name) as show:
            outcome = grade(store, selected, settings, on_event=show)
        # Of what was not asked for this time, only what these very rules said of this very code.
        results = current_results(store, pairs, settings)
        covered = {pair[1].key for pair in selected}
        covered |= {(each.task_id, each.sample) for each in results}
        reported = [pair for pair in pairs if pair[1].key in covered]
        return self._finish(
            store,
            described,
            [(task, each.sample) for task, each in reported],
            outcome,
            results,
            reported,
            without_submission=len(suite.tasks) - len({each.task_id for each in submissions}),
        )

    def _score_outputs(
        self,
        store: RunDirectory,
        run: Mapping[str, object],
        folder: Path,
        suite: Suite,
        progress: Callable[[str], Progress],
    ) -> ScoredRun:
        found = find_outputs(folder, suite)
        chosen = suite.select(self._options.ids, self._options.limit).tasks
        answered = {task_id for task_id, _ in found}
        outputs = [
            FinishedOutput(task, case, found.get((task.id, case.number)))
            for task in chosen
            if task.id in answered
            for case in task.cases
        ]
        if not outputs:
            raise SubmissionError(f"{folder}: none of the chosen tasks has an output workbook")
        settings = self.settings(needs_sandbox=False, remembered=_backend(run))
        described = self._describe(run, suite, settings) | {"outputs": str(folder.resolve())}
        store.write_run(described)
        with progress(folder.name) as show:
            outcome = grade_outputs(store, outputs, settings, on_event=show)
        results = list(outcome.results.values())
        judged = {each.task_id for each in results}
        reported = [(task, 0) for task in suite.tasks if task.id in judged]
        return self._finish(
            store,
            described,
            reported,
            outcome,
            results,
            [],
            without_submission=len(suite.tasks) - len(answered),
        )

    def _finish(
        self,
        store: RunDirectory,
        described: Mapping[str, object],
        graded: Sequence[tuple[Task, int]],
        outcome: Outcome,
        results: Sequence[CaseResult],
        submissions: Sequence[tuple[Task, Submission]],
        *,
        without_submission: int,
    ) -> ScoredRun:
        report = build_report(described, graded, results, without_submission=without_submission)
        store.write_document(REPORT_FILE, report)
        return ScoredRun(
            path=store.path,
            report=report,
            results=results,
            submissions=submissions,
            reused=outcome.reused,
            problem=_problem(outcome),
        )

    # -- opening ---------------------------------------------------------------------------------

    def _suite(self, source: _Source, run: Mapping[str, object]) -> Suite:
        remembered = run.get("suite")
        name = self._options.dataset
        if name is None and isinstance(remembered, dict):
            name = str(remembered.get("source"))
        if name is None:
            raise UsageError(
                f"{source.solutions or source.outputs}: which suite do these answer?",
                hint="Give --dataset SUITE (a folder, an archive, or a name; see "
                "`judge dataset list`).",
            )
        if name not in self._suites:
            self._suites[name] = load_suite(name)
        return self._suites[name]

    def settings(self, *, needs_sandbox: bool, remembered: str | None = None) -> Settings:
        """Opens sandbox and engines, the first time that they are asked for.

        Args:
            needs_sandbox: whether programs are to be run.
            remembered: the backend that the run was begun with. ``auto`` means that one then:
                another would run everything again, and mix results of both.
        """
        options = self._options
        kind = remembered or "auto" if options.sandbox == "auto" else options.sandbox
        key = (kind, needs_sandbox)
        if key not in self._settings:
            sandbox = self._open_sandbox(kind, needs_sandbox)
            recalculator = self._stack.enter_context(
                contextlib.closing(
                    open_recalculator(
                        sandbox,
                        mode=options.recalc,
                        engine=options.engine,
                        workers=max(1, options.jobs),
                    )
                )
            )
            self._settings[key] = Settings(
                sandbox=sandbox,
                recalculator=recalculator,
                rules=GradingRules(
                    profile=get_profile(options.profile),
                    style=options.style,
                    recalc_mode=options.recalc,
                    engines=recalculator.identity,
                ),
                limits=options.limits,
                jobs=max(1, options.jobs),
            )
        return self._settings[key]

    def _open_sandbox(self, kind: str, needed: bool) -> Sandbox | None:
        # Finished outputs run nothing, but the engines that compute their formulas read files
        # that nobody vouches for, and so need a sandbox as well, unless nothing is recalculated.
        if not needed and self._options.recalc == "never":
            return None
        try:
            sandbox = open_sandbox(kind, jobs=max(1, self._options.jobs))
        except SandboxError as error:
            if kind == self._options.sandbox:
                raise
            raise SandboxError(
                f"this run was begun with {kind}, which is not to be had now: {error.message}",
                hint=f"{error.hint or 'Bring it back'}; or choose with --sandbox, which runs every "
                "case again.",
            ) from error
        return self._stack.enter_context(contextlib.closing(sandbox))

    def _describe(
        self, run: Mapping[str, object], suite: Suite, settings: Settings
    ) -> dict[str, object]:
        options = self._options
        kept = {name: value for name, value in run.items() if name != "schema_version"}
        return kept | {
            "judge_version": __version__,
            "created": kept.get("created") or datetime.now(UTC).isoformat(timespec="seconds"),
            "suite": {
                "name": suite.name,
                "source": _suite_source(options.dataset, kept),
                "digest": suite.digest,
                "format": suite.format,
            },
            "profile": options.profile,
            "style": list(options.style),
            "recalc": {
                "mode": options.recalc,
                "engine": options.engine,
                "engines": list(settings.rules.engines),
            },
            "limits": asdict(options.limits),
            "sandbox": _sandbox_record(settings.sandbox.info) if settings.sandbox else None,
            "host": {"python": platform.python_version(), "system": platform.platform()},
        }


def _suite_source(dataset: str | None, kept: Mapping[str, object]) -> str:
    if dataset is None:
        remembered = kept.get("suite")
        assert isinstance(remembered, dict)
        return str(remembered["source"])
    return str(Path(dataset).resolve()) if Path(dataset).exists() else dataset


def _sandbox_record(info: SandboxInfo) -> dict[str, object]:
    return {
        "backend": info.backend,
        "image": info.image,
        "python": info.python,
        "packages": dict(info.packages),
        "runtime": info.runtime,
    }


def _check_same_suite(store: RunDirectory, run: Mapping[str, object], suite: Suite) -> None:
    remembered = run.get("suite")
    if not isinstance(remembered, dict) or "digest" not in remembered:
        return
    if remembered["digest"] != suite.digest:
        raise StoreError(
            f"{store.path}: belongs to suite {remembered.get('name')!r} "
            f"({remembered.get('source')}), whose content is not that of {suite.root}",
            hint="Give another --out, or the suite that the run was made with.",
        )


def _backend(run: Mapping[str, object]) -> str | None:
    sandbox = run.get("sandbox")
    return str(sandbox["backend"]) if isinstance(sandbox, dict) else None


def _check_same_source(store: RunDirectory, run: Mapping[str, object], source: _Source) -> None:
    """A results directory stays with the solutions, or the outputs, that it was begun with."""
    if not source.fresh or not run:
        return
    came_from = source.solutions or source.outputs
    assert came_from is not None
    before = run.get("outputs" if source.outputs else "solutions")
    if before != str(came_from.resolve()):
        other = before or run.get("solutions") or run.get("outputs") or "something else"
        raise StoreError(
            f"{store.path}: holds the results of {other}, not of {came_from}",
            hint="Give another --out.",
        )


def _problem(outcome: Outcome) -> str | None:
    if outcome.stopped is not None:
        return f"stopped: {outcome.stopped.message}"
    failed = sum(result.verdict is Verdict.JE for result in outcome.results.values())
    return f"{failed} cases hold judge errors (JE)" if failed else None


def check_complete(runs: Sequence[ScoredRun]) -> None:
    """Raises where a run is incomplete, or where cases could not be judged for the suite's fault.

    Raises:
        IncompleteRunError: a run holds judge errors or was stopped; the message names it.
        SuiteError: a run holds bad tests (BT); each is named with its file.
    """
    for run in runs:
        if run.problem is not None:
            raise IncompleteRunError(
                f"{run.path}: {run.problem}",
                hint="Run the same command again: it continues where this one ended.",
            )
    faults = [
        f"task {result.task_id}, case {result.case}: {result.cause}"
        for run in runs
        for result in run.results
        if result.verdict is Verdict.BT
    ]
    if faults:
        raise SuiteError(
            f"{len(faults)} cases could not be judged: the suite's own files are at fault",
            faults=tuple(dict.fromkeys(faults)),
            hint="Everything else is scored. `judge verify SUITE` checks a whole suite.",
        )


# -- expectations -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A case whose verdict is not the one that its submission was made to get."""

    task_id: str
    label: str
    case: int
    expected: str
    actual: str


def check_expectations(run: ScoredRun) -> tuple[int, list[Mismatch]]:
    """Holds verdicts against those that sample submissions must get.

    Returns:
        How many cases had an expected verdict, and those that got another one.
    """
    verdicts = {(each.task_id, each.sample, each.case): each.verdict for each in run.results}
    expected_cases = 0
    mismatches: list[Mismatch] = []
    for task, submission in run.submissions:
        for case, expected in _expected(task, submission):
            expected_cases += 1
            actual = verdicts.get((task.id, submission.sample, case.number))
            if actual is None or actual.value != expected:
                label = submission.label or f"sample {submission.sample}"
                found = "not run" if actual is None else actual.value
                mismatches.append(Mismatch(task.id, label, case.number, expected, found))
    return expected_cases, mismatches


def _expected(task: Task, submission: Submission) -> Iterator[tuple[TestCase, str]]:
    if not submission.expected:
        return iter(())
    codes = submission.expected
    if len(codes) == 1:
        codes = codes * len(task.cases)
    return zip(task.cases, codes, strict=False)


# -- other commands -----------------------------------------------------------------------------


def verify(
    options: ScoreOptions,
    *,
    on_case: Callable[[CaseCheck, int], None] = lambda _check, _total: None,
) -> list[CaseCheck]:
    """Holds a suite against itself; see :mod:`judge.verify`.

    Args:
        options: ``dataset`` names the suite; sandbox, recalculation and comparison as in scoring.
        on_case: told of each finished check and of how many there are in all.
    """
    if options.dataset is None:
        raise UsageError("which suite is to be verified?")
    check_style_names(options.style)
    suite = load_suite(options.dataset)
    with contextlib.ExitStack() as stack:
        settings = Opened(options, stack).settings(needs_sandbox=False)
        tasks = suite.select(options.ids, options.limit).tasks
        return verify_suite(
            tasks, settings.recalculator, settings.rules, jobs=settings.jobs, on_case=on_case
        )


def run_program(task_id: str, program: Path, options: ScoreOptions) -> list[CaseResult]:
    """Grades one program on one task, keeping nothing on disk.

    Args:
        task_id: the task, by its id in the suite.
        program: a Python file, with the paths of a solution in it.
        options: ``dataset`` names the suite (the sample suite where it is None).

    Returns:
        One result per test case, in case order.
    """
    suite = load_suite(options.dataset or "sample")
    task = suite.task(task_id)
    submission = submission_of_program(program, task)
    with (
        tempfile.TemporaryDirectory(prefix="judge-run-") as folder,
        contextlib.ExitStack() as stack,
    ):
        settings = Opened(options, stack).settings(needs_sandbox=True)
        with RunDirectory(Path(folder)) as store:
            outcome = grade(store, [(task, submission)], settings)
    if outcome.stopped is not None:
        raise outcome.stopped
    return [outcome.results[task.id, 0, case.number] for case in task.cases]
