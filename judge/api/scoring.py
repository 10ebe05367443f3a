"""Scores one run into its results directory: finds the run, and writes its run.json.

The input is a run, a file of solutions, or a folder of finished outputs.
"""

from __future__ import annotations

import contextlib
import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from judge.api.options import JudgingOptions, ScoreOptions
from judge.api.progress import Progress
from judge.api.reporting import (
    RunReporter,
    ScoredRun,
    add_published_figures,
    marks_in,
    suspicions_in,
)
from judge.api.resources import JudgingResources
from judge.core.records.runs import (
    JudgingRules,
    RunDocument,
    SandboxIdentity,
    SuiteIdentity,
    recorded_usage,
)
from judge.errors import StoreError, SubmissionError, UsageError
from judge.files.documents import utc_now
from judge.files.paths import GivenPath, as_path
from judge.grading.batch import (
    BatchResult,
    Settings,
    grade,
    grade_outputs,
    tasks_of,
)
from judge.grading.overrides import read_overrides
from judge.grading.reference import REFERENCE_FILE, ReferenceTimes, known_times, measure_missing
from judge.grading.running import FinishedOutput, copy_files
from judge.grading.store import ATTEMPTS_FILE, REPORT_FILE, SUBMISSIONS_FILE, RunDirectory
from judge.inference.started import StartedRuns
from judge.report.identity import not_taken
from judge.report.report_json import build_report
from judge.sandbox.contract import SandboxInfo
from judge.sandbox.owner import Owner
from judge.suites import Suite, load_suite
from judge.suites.folders import is_folder, regular_files
from judge.suites.formats import is_output_name
from judge.suites.layouts import (
    NAMES,
    Layout,
    attempts_in,
    is_job,
    layout_of,
    outputs_in,
    programs_in,
)
from judge.suites.submissions import (
    SubmissionFacts,
    SubmissionIndex,
    SubmissionReader,
    index_submissions,
    load_submissions,
    submission_record,
)
from judge.suites.suite import certified_files, locate_suite, whole_source
from judge.version import __version__

if TYPE_CHECKING:
    from judge.suites.layouts import FoundOutputs


@dataclass(frozen=True, slots=True)
class RunToScore:
    """One run to score.

    Attributes:
        run: its results directory.
        solutions: the file of its submissions; None if it has finished outputs.
        outputs: the folder of its finished outputs; None if it has submissions.
        fresh: whether the solutions or outputs come from outside the results directory.
        layout: how the files of a folder are laid out; None for the layout in run.json.
        noted: whether to record in this user's state folder that they named the outputs. A server
            names them each time and does not need the record.
    """

    run: Path
    solutions: Path | None
    outputs: Path | None
    fresh: bool
    layout: Layout | None = None
    noted: bool = True


def find_runs(results: Path, options: ScoreOptions) -> list[Path]:
    """The path itself if it is a run, or else the runs in the folder."""
    if not results.is_dir() or RunDirectory.is_run(results) or options.outputs or options.programs:
        return [results]
    runs = sorted(path for path in results.iterdir() if path.is_dir() and RunDirectory.is_run(path))
    # A run of `judge infer` that ended before the first answer has nothing to score, and must not
    # stop `judge score results/`; if it is named directly, that is an error with this reason.
    runs = [path for path in runs if not _waits_for_answers(path)] or runs
    noun = "runs"
    if not runs and not is_job(results):
        noun = "jobs of Harbor"
        runs = sorted(path for path in results.iterdir() if is_folder(path) and is_job(path))
    if len(runs) > (noun != "runs") and options.out is not None:
        raise UsageError(
            f"{results} holds {len(runs)} {noun}; --out can take only one",
            hint="Leave --out out: each run is graded in its own folder.",
        )
    return runs or [results]


def _has_folder_answers(options: ScoreOptions) -> bool:
    """Whether answers to the command's suite may be folders with files of any name."""
    if options.dataset is None:
        return False
    return locate_suite(str(options.dataset)).format.has_folder_answers


_WORKBOOKS = "Give the folder with the workbooks; `judge compare` compares a single workbook."
_INSTEAD = {  # hints for files that are often given in place of solutions
    ".xlsx": _WORKBOOKS,
    ".xlsm": _WORKBOOKS,
    ".py": "`judge run TASK PROGRAM` grades a single program.",
}


def run_to_score(results: Path, options: ScoreOptions) -> RunToScore:
    """Finds out whether a path is a run, solutions or finished outputs, and where its run goes."""
    out = as_path(options.out)
    if not (results.is_file() or results.is_dir()):
        what = "neither a file nor a folder" if results.exists() else "no such file or folder"
        raise UsageError(
            f"{results}: {what}",
            hint="Give a run directory, a folder of runs, a .jsonl of solutions, or a folder of "
            "output workbooks.",
        )
    if options.trajectories is not None and (results.is_file() or RunDirectory.is_run(results)):
        raise UsageError(
            f"--trajectories is for a folder of finished workbooks, which {results} is not",
            hint="A run keeps the trajectories of its first scoring.",
        )
    if results.is_file():
        if (instead := _INSTEAD.get(results.suffix.lower())) is not None:
            raise UsageError(f"{results} is not a file of solutions", hint=instead)
        run = out or Path("results") / results.name.removesuffix(".jsonl")
        return RunToScore(run, solutions=results, outputs=None, fresh=True)
    if RunDirectory.is_run(results):
        if options.outputs or options.programs:
            raise UsageError(
                f"{results} is a run, which itself remembers where its outputs are",
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
    named = (is_output_name(path.name) for path in regular_files(results))
    if layout.kind != NAMES or _has_folder_answers(options) or any(named):
        return RunToScore(run, solutions=None, outputs=results, fresh=True, layout=layout)
    raise UsageError(
        f"{results}: holds neither runs nor output workbooks",
        hint="A run has a submissions.jsonl; outputs are named {n}_{id}_output.xlsx, or --outputs "
        "gives their pattern.",
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
        return False  # scoring it reports why
    return "inference" in run and not (path / SUBMISSIONS_FILE).exists()


def note_outputs(run: GivenPath, folder: GivenPath) -> None:
    """Records for this user that a run judges the finished workbooks of a folder they named."""
    StartedRuns().note(as_path(run), {"outputs": str(as_path(folder).resolve())})


def trusts_own_outputs(path: GivenPath, run: RunDocument) -> bool:
    """Whether the outputs' values are trusted because this user made the run on this machine.

    They are if a command of this user named the folder of finished workbooks, or requested
    episodes with only mouse and keyboard. The contents of the results directory prove nothing.

    Args:
        path: the results directory.
        run: its run.json.
    """
    recorded = StartedRuns().options_of(as_path(path)) or {}
    if (outputs := run.get("outputs")) is not None:
        return recorded.get("outputs") == outputs
    return recorded.get("gui_only") is True


def check_same_suite(store: RunDirectory, run: RunDocument, suite: Suite) -> None:
    """Checks that a results directory is used with the suite that it was started with."""
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
    """Checks that a results directory is used with its original solutions or outputs."""
    if not source.fresh or not run:
        return
    came_from = source.solutions or source.outputs
    assert came_from is not None
    before = run.get("outputs" if source.outputs else "solutions")
    laid_out = Layout.of_record(run.get("layout"))
    if before == str(came_from.resolve()) and source.layout not in (None, laid_out):
        raise StoreError(
            f"{store.path}: was made with a different --outputs or --programs",
            hint="Give another --out, or the pattern that it was made with.",
        )
    if before != str(came_from.resolve()):
        earlier_source = before or run.get("solutions") or run.get("outputs") or "something else"
        raise StoreError(
            f"{store.path}: holds the results of {earlier_source}, not of {came_from}",
            hint="Give another --out.",
        )


_KEPT_SUITES = 4
"""How many of the suites used last a scorer keeps for its next runs."""


class RunScorer:
    """Scores runs, each into its results directory. Safe to use from several threads.

    Args:
        options: how to score.
        resources: sandbox and engines for the same options.
    """

    def __init__(self, options: ScoreOptions, resources: JudgingResources) -> None:
        self._options = options
        self._resources = resources
        self._suites: dict[str, Suite] = {}
        self._loading = threading.Lock()

    def score(self, source: RunToScore, progress: Callable[[str], Progress]) -> ScoredRun:
        """Scores one run into its results directory."""
        with RunDirectory(source.run) as store:
            run = store.read_run() or RunDocument()
            suite = self._suite(source, run)
            check_same_suite(store, run, suite)
            check_same_source(store, run, source)
            store.lock()
            if (suspects := as_path(self._options.suspects)) is not None:
                from judge.suspects.decisions import keep_suspects_of  # noqa: PLC0415  few runs do

                keep_suspects_of(suspects, store, suite)
            if source.outputs is not None:
                layout = source.layout.record() if source.layout else run.get("layout")
                laid_out: RunDocument = {**run, "layout": layout}
                scored = self._score_outputs(store, laid_out, source, suite, progress)
            else:
                scored = self._score_solutions(store, run, source, suite, progress)
            return replace(
                scored,
                not_taken=not_taken(run, store.read_run() or RunDocument()),
                suite_is_named=self._options.dataset is not None,
            )

    def _score_solutions(
        self,
        store: RunDirectory,
        run: RunDocument,
        source: RunToScore,
        suite: Suite,
        progress: Callable[[str], Progress],
    ) -> ScoredRun:
        pairs, left_out = self._submissions(store, source, suite)
        with contextlib.closing(pairs):
            chosen = {
                task.id for task in suite.select(self._options.ids, self._options.limit).tasks
            }
            tasks = tasks_of(pairs)
            selected = pairs.only(index for index, task in enumerate(tasks) if task.id in chosen)
            if not len(selected):
                raise SubmissionError(
                    f"{source.solutions}: none of the chosen tasks has a solution",
                    hint="Check --ids and --limit.",
                )
            answered = {task.id: task for task in tasks}.values()
            settings = self._resources.settings_for(answered, runs=True, remembered=backend_of(run))
            settings = self._resources.placed(settings, suite, store.path)
            settings = self._follow_reference(store, suite, settings)
            settings = replace(settings, trusts_values=self._trusts_values(store, run))
            described = self._describe_solutions(run, source, suite, settings, pairs.facts)
            store.write_run(described)
            with progress(source.run.name) as show:
                outcome = grade(store, selected, settings, on_event=show, keep=False)
            reporter = RunReporter(store, described, suite, settings, outcome)
            scored = reporter.report(pairs, chosen, problem=_problem(outcome))
            return replace(scored, left_out=left_out)

    def _trusts_values(self, store: RunDirectory, run: RunDocument) -> bool:
        return self._options.trust_values or trusts_own_outputs(store.path, run)

    def _submissions(
        self, store: RunDirectory, source: RunToScore, suite: Suite
    ) -> tuple[SubmissionIndex, tuple[str, ...]]:
        """The submissions of a run; submissions from another file are first copied into the run.

        If only some tasks are requested, submissions of tasks that the suite lacks are not copied.

        Returns:
            The submissions, and the ids of the tasks whose submissions were not copied.
        """
        assert source.solutions is not None
        if not source.fresh:
            return index_submissions(source.solutions, suite), ()
        reader = SubmissionReader(source.solutions, suite, leaves_out=bool(self._options.ids))
        submissions = (
            (submission for _, _, submission in reader)
            if source.layout is None
            else programs_in(source.solutions, suite, source.layout.record())
        )
        store.replace_records(
            SUBMISSIONS_FILE,
            (submission_record(copy_files(store, submission), suite) for submission in submissions),
        )
        return index_submissions(store.path / SUBMISSIONS_FILE, suite), tuple(reader.left_out)

    def _describe_solutions(
        self,
        run: RunDocument,
        source: RunToScore,
        suite: Suite,
        settings: Settings,
        facts: SubmissionFacts,
    ) -> RunDocument:
        solutions = str(source.solutions.resolve()) if source.solutions is not None else None
        return {
            **self._describe(run, suite, settings),
            "model": ", ".join(sorted(facts.models)) or run.get("model"),
            "setting": facts.setting or run.get("setting"),
            "solutions": solutions if source.fresh else run.get("solutions"),
            **({"layout": source.layout.record()} if source.layout is not None else {}),
        }

    def _follow_reference(self, store: RunDirectory, suite: Suite, settings: Settings) -> Settings:
        """The settings, with time limits for the tasks that have a reference solution."""
        path, sandbox = as_path(self._options.reference), settings.sandbox
        if path is None or sandbox is None:
            return settings
        chosen = suite.select(self._options.ids, self._options.limit).tasks
        ids = [task.id for task in chosen]
        references = load_submissions(path, suite, ids=ids)
        host, image = Owner.this_process().host, sandbox.info.image
        document = store.read_document(REFERENCE_FILE)
        before = None
        if document is not None:
            before = store.checked(REFERENCE_FILE, document, ReferenceTimes)
        recorded = known_times(before, host=host, image=image)
        pairs = [(suite.task(reference.task_id), reference) for reference in references]
        factor = self._options.time_factor
        patient = replace(
            settings.limits,
            cpu_s=factor * settings.limits.cpu_s,
            wall_s=factor * settings.limits.wall_s,
        )
        times = recorded | measure_missing(sandbox, pairs, recorded, patient)
        store.write_document(REFERENCE_FILE, ReferenceTimes(host, image, times).as_json())
        limits = {task_id: time.limits(settings.limits, factor) for task_id, time in times.items()}
        return replace(settings, task_limits=limits)

    def _score_outputs(
        self,
        store: RunDirectory,
        run: RunDocument,
        source: RunToScore,
        suite: Suite,
        progress: Callable[[str], Progress],
    ) -> ScoredRun:
        folder = source.outputs
        assert folder is not None
        finished = outputs_in(folder, suite, run.get("layout"))
        attempts = attempts_in(folder, suite, run.get("layout"))
        if (trajectories := self._options.trajectories) is not None:
            from judge.api.trajectories import take_trajectories  # noqa: PLC0415  few runs have any

            taken = take_trajectories(
                store, folder, suite, run.get("layout"), trajectories, finished
            )
            finished = finished.with_attempts(
                (str(one["id"]), int(str(one["sample"]))) for one in taken
            )
            attempts = attempts or taken
        chosen = suite.select(self._options.ids, self._options.limit).tasks
        answered = {task.id for task in chosen} if self._options.every_task else finished.attempted
        outputs = [
            FinishedOutput(task, case, finished.of_sample(task.id, sample, case.number), sample)
            for task in chosen
            if task.id in answered
            for sample in finished.samples_of(task.id) or [0]
            for case in task.cases
        ]
        if not outputs:
            raise SubmissionError(f"{folder}: none of the chosen tasks has an output workbook")
        settings = self._resources.settings_for(
            (output.task for output in outputs), runs=False, remembered=backend_of(run)
        )
        settings = self._resources.placed(settings, suite, store.path)
        if source.fresh and source.noted:
            note_outputs(store.path, folder)
        # A user who names a folder of workbooks says that they are finished; a run.json does not.
        trusts = source.fresh or self._trusts_values(store, run)
        settings = replace(settings, trusts_values=trusts)
        described = self._describe(run, suite, settings)
        described["values"] = "stored" if trusts else "computed"
        described["outputs"] = str(folder.resolve())
        if attempts:
            store.replace_records(ATTEMPTS_FILE, attempts)
            described["model"] = _named(attempts, "model") or described.get("model")
            described["setting"] = _named(attempts, "agent") or described.get("setting")
        if trajectories is not None:
            from judge.tools.episodes import SETTING  # noqa: PLC0415  few folders have any

            described["setting"] = f"{SETTING}{described['setting']}"
        store.write_run(described)
        with progress(folder.name) as show:
            outcome = grade_outputs(store, outputs, settings, on_event=show)
        without = len(suite.tasks) - len(answered)
        return self._report_outputs(store, described, suite, finished, attempts, outcome, without)

    def _report_outputs(
        self,
        store: RunDirectory,
        run: RunDocument,
        suite: Suite,
        outputs: FoundOutputs,
        attempts: Sequence[Mapping[str, object]],
        outcome: BatchResult,
        without: int,
    ) -> ScoredRun:
        """Writes the report on finished outputs; ``without`` counts the tasks without outputs."""
        results = list(outcome.results.values())
        judged = {(result.task_id, result.sample) for result in results}
        overrides = read_overrides(store)
        report = build_report(
            run,
            [
                (task, sample)
                for task in suite.tasks
                for sample in outputs.samples_of(task.id) or [0]
                if (task.id, sample) in judged
            ],
            results,
            without_submission=without,
            suite_tasks=suite.tasks,
            overrides=overrides,
            usages=[
                recorded_usage(attempt)
                for attempt in attempts
                if (str(attempt["id"]), attempt["sample"]) in judged
            ],
            suspicions=suspicions_in(store),
            marks=marks_in(store),
        )
        changed = overrides.apply(results)
        add_published_figures(report, suite, run.get("outputs"), changed)
        store.write_document(REPORT_FILE, report)
        return ScoredRun(
            path=store.path,
            report=report,
            results=changed,
            submissions=[],
            reused=outcome.reused,
            problem=_problem(outcome),
        )

    def _suite(self, source: RunToScore, run: RunDocument) -> Suite:
        remembered = run.get("suite")
        name = None if self._options.dataset is None else str(self._options.dataset)
        if name is None and remembered is not None:
            name = remembered.get("source")
        if name is None:
            raise UsageError(
                f"{source.solutions or source.outputs}: which suite do these answer?",
                hint="Give --dataset SUITE (a folder, an archive, or a name; see "
                "`judge dataset list`).",
            )
        return self.suite(name)

    def suite(self, name: str) -> Suite:
        """A suite with the corrections and comparison options that were requested.

        Raises:
            SuiteError: it is missing or broken.
        """
        with self._loading:
            suite = self._suites.pop(name, None) or self._resources.adapt(
                load_suite(name), self._options
            )
            self._suites[name] = suite  # the suite used last is at the end
            while len(self._suites) > _KEPT_SUITES:
                del self._suites[next(iter(self._suites))]
        return suite

    def _describe(self, run: RunDocument, suite: Suite, settings: Settings) -> RunDocument:
        options = self._options
        before = run.copy()
        before.pop("best_of", None)
        before.pop("values", None)
        chosen: RunDocument = {"best_of": True} if options.best_of else {}
        if settings.trusts_values:
            chosen["values"] = "stored"
        corrections = self._resources.corrections_of(suite)
        identity: SuiteIdentity = {
            "name": suite.name,
            "source": _suite_source(options.dataset, run),
            "digest": suite.digest,
            "format": suite.format,
            "corrections": corrections,
        }
        if certified_files(suite.format):
            from judge.suites.certified import certified_identity  # noqa: PLC0415  few suites are

            if (certified := certified_identity(suite, corrections)) is not None:
                identity["certified"] = certified
        return {
            **before,
            **chosen,
            "judge_version": __version__,
            "created": run.get("created") or utc_now(),
            "suite": identity,
            **rules_record(options, settings),
            "checker": dict(options.checker),
            "limits": asdict(options.limits),
            "reference": _reference_record(options),
            "sandbox": sandbox_record(settings.sandbox.info) if settings.sandbox else None,
            "host": {"python": platform.python_version(), "system": platform.platform()},
        }


def _named(attempts: Sequence[Mapping[str, object]], field: str) -> str:
    """The distinct names in the attempts."""
    return ", ".join(sorted({str(attempt[field]) for attempt in attempts if attempt[field]}))


def _reference_record(options: ScoreOptions) -> dict[str, object] | None:
    reference = as_path(options.reference)
    if reference is None:
        return None
    return {"solutions": str(reference.resolve()), "time_factor": options.time_factor}


def _suite_source(dataset: str | Path | None, run: RunDocument) -> str | None:
    if dataset is None:
        remembered = run.get("suite")
        return None if remembered is None else remembered.get("source")
    return whole_source(dataset)


def rules_record(options: JudgingOptions, settings: Settings) -> JudgingRules:
    """The rules of a run, in the form of run.json."""
    return {
        "profile": options.profile,
        "style": list(options.style),
        "recalc": {
            "mode": options.recalculation,
            "engine": options.engine,
            "lenient_names": options.lenient_names,
            "engines": list(settings.rules.engines),
        },
    }


def sandbox_record(info: SandboxInfo) -> SandboxIdentity:
    """A sandbox, in the form of run.json."""
    return {
        "backend": info.backend,
        "image": info.image,
        "python": info.python,
        "packages": dict(info.packages),
        "runtime": info.runtime,
    }


def backend_of(run: RunDocument) -> str | None:
    """The sandbox that a run was started with."""
    sandbox = run.get("sandbox")
    return None if sandbox is None else sandbox["backend"]


def _problem(outcome: BatchResult) -> str | None:
    if outcome.stopped is not None:
        return f"stopped: {outcome.stopped.message}"
    failed = outcome.failed
    return f"{failed} cases have judge errors (JE)" if failed else None
