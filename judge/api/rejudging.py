"""Judges runs again from their stored outputs or programs, and changes verdicts by hand.

Everything that decides a verdict is taken from the suite and from the call. A results directory can
come from anybody, so the rules, options, corrections and trust in its run.json count only if the
call requests them by name; all others are listed (decision 0035). A rerun runs the stored programs,
and trusts no claim of the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Unpack, cast, get_args

from judge.api.options import JudgingChanges, JudgingOptions, with_changes
from judge.api.reporting import add_published_figures, marks_in
from judge.api.resources import JudgingResources
from judge.api.scoring import backend_of, rules_record, sandbox_record, trusts_own_outputs
from judge.compare.cells.options import script_style
from judge.compare.profiles import PROFILES, get_profile
from judge.core.limits import Limits
from judge.core.records.reports import ReportDocument
from judge.core.records.runs import JudgingRules, RecalcIdentity, RunDocument, SuiteIdentity
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import JudgeError, StoreError, SuiteError, UsageError
from judge.files.documents import utc_now
from judge.files.paths import GivenPath
from judge.grading.batch import Event, Settings, grade
from judge.grading.case_records import CaseKey, case_records, result_of_record
from judge.grading.overrides import (
    NO_OVERRIDES,
    ManualVerdict,
    Overrides,
    override_verdict,
    read_overrides,
)
from judge.grading.rejudge import (
    RejudgedCase,
    StoredOutput,
    apply_rejudged,
    count_changes,
    rejudge_cases,
)
from judge.grading.store import MAX_WORKBOOK_BYTES, REPORT_FILE, SUBMISSIONS_FILE, RunDirectory
from judge.recalc.names import Mode
from judge.report.identity import not_taken, trusted_values
from judge.report.load import LoadedRun, load_run
from judge.report.report_json import build_report
from judge.suites import Suite
from judge.suites.certified import certified_identity
from judge.suites.corrections import (
    CorrectedSuite,
    corrected_as_recorded,
    corrected_suite,
    describe_corrections,
)
from judge.suites.folders import read_answer
from judge.suites.layouts import FoundOutputs, outputs_in
from judge.suites.submissions import load_submissions
from judge.suspects.decisions import keep_suspicions


def rerun_cases(
    store: RunDirectory,
    loaded: LoadedRun,
    suite: Suite,
    settings: Settings,
    keep: RunDirectory | None,
    on_case: Callable[[RejudgedCase, int], None],
) -> list[RejudgedCase]:
    """Runs the programs of a run in a separate folder, and compares the verdicts.

    Args:
        store: the run.
        loaded: the same run, read; its submissions are run.
        suite: the suite that they answer.
        settings: sandbox, limits, rules, engines and workers of this machine.
        keep: where to store the outputs; None to write nothing.
        on_case: called with each recorded case, and with the total number of cases.

    Returns:
        One entry for each recorded case, in the order of the submissions.

    Raises:
        SandboxError: the sandbox was lost.
    """
    before = {key: result_of_record(record) for key, record in case_records(store).items()}
    keys = {submission.key for submission in loaded.submissions}
    pairs = [
        (suite.task(load_submission.task_id), load_submission)
        for load_submission in load_submissions(loaded.path / SUBMISSIONS_FILE, suite)
        if load_submission.key in keys
    ]
    with (
        tempfile.TemporaryDirectory(prefix="judge-rerun-") as folder,
        RunDirectory(Path(folder)) as scratch,
    ):
        outcome = grade(scratch, pairs, settings, on_event=_reported_to(before, on_case))
        if outcome.stopped is not None:
            raise outcome.stopped
        records = case_records(scratch)
        rejudged = [
            RejudgedCase(before[key], outcome.results[key], records[key])
            for task, submission in pairs
            for case in task.cases
            if (key := (task.id, submission.sample, case.number)) in before
        ]
        if keep is not None:
            _keep_outputs(rejudged, scratch, keep)
    return rejudged


def _keep_outputs(rejudged: list[RejudgedCase], scratch: RunDirectory, keep: RunDirectory) -> None:
    for case in rejudged:
        digest = case.after.run.get("output_sha256")
        if digest is not None and (data := scratch.get_workbook(digest)):
            keep.put_workbook(data)


def ran_by(settings: Settings) -> RunDocument:
    """Describes, for ``run.json``, the machine on which a rerun ran."""
    sandbox = settings.sandbox
    return {
        "limits": asdict(settings.limits),
        "reference": None,
        # Typed answers are judged again without a sandbox.
        "sandbox": None if sandbox is None else sandbox_record(sandbox.info),
    }


def _reported_to(
    before: Mapping[CaseKey, CaseResult], on_case: Callable[[RejudgedCase, int], None]
) -> Callable[[Event], None]:
    def tell(event: Event) -> None:
        result = event.result
        earlier = before.get((result.task_id, result.sample, result.case))
        if earlier is not None:
            on_case(RejudgedCase(earlier, result, None), event.total)

    return tell


@dataclass(frozen=True, slots=True)
class Rejudgement:
    """A run that was judged under other rules.

    Attributes:
        path: the results directory.
        rules: the profile, style and recalculation of the new judgement.
        cases: every recorded case, before and after.
        before: the report before the new judgement.
        after: the report under the other rules.
        applied: whether records and report were written.
        suite: where the golds came from.
        corrections: how many corrections of tasks, and options of the comparison, were applied.
        manual: how many verdicts a person changed.
        suite_is_named: whether the call named the suite; otherwise run.json did.
        not_taken: settings in run.json that would affect verdicts, but were not requested by name.
        missing: lines that say which verdicts are missing in the run.
        automatic: the report by these rules without the verdicts that a person changed; None if
            no verdict was changed.
    """

    path: Path
    rules: JudgingRules
    cases: Sequence[RejudgedCase]
    before: ReportDocument
    after: ReportDocument
    applied: bool
    suite: str = ""
    corrections: int = 0
    manual: int = 0
    suite_is_named: bool = True
    not_taken: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    automatic: ReportDocument | None = None

    @property
    def changed(self) -> list[RejudgedCase]:
        """The cases whose verdict has changed."""
        return [case for case in self.cases if case.changed]

    def to_json(self) -> dict[str, Any]:
        """The result as a JSON object."""
        return {
            "run": str(self.path),
            "applied": self.applied,
            "rules": dict(self.rules),
            "suite": self.suite,
            "suite_is_named": self.suite_is_named,
            "departures": list(self.after.get("departures", ())),
            "not_taken": list(self.not_taken),
            "missing": list(self.missing),
            "corrections": self.corrections,
            "manual": self.manual,
            "before": _scores(self.before),
            "after": _scores(self.after),
            "automatic": None if self.automatic is None else _scores(self.automatic),
            "changes": [
                {"before": before, "after": after, "cases": count}
                for (before, after), count in count_changes(self.cases).items()
            ],
            "cases": [
                {
                    "task": case.after.task_id,
                    "sample": case.after.sample,
                    "case": case.after.case,
                    "before": case.before.verdict.value,
                    "after": case.after.verdict.value,
                    "cause": case.after.cause,
                    "contradicted": case.contradicted,
                }
                for case in self.changed
            ],
            "unproven": [
                {
                    "task": case.after.task_id,
                    "sample": case.after.sample,
                    "case": case.after.case,
                    "why": case.unproven,
                }
                for case in self.cases
                if case.unproven
            ],
        }


def _scores(report: ReportDocument) -> dict[str, object]:
    overall, suspects = report["overall"], report.get("suspects")
    return {
        "soft_restriction": overall["soft_restriction"],
        "hard_restriction": overall["hard_restriction"],
        "verdicts": overall["verdicts"],
        **({} if suspects is None else {"without_suspects": suspects["without"]}),
    }


@dataclass(frozen=True, slots=True)
class _Request:
    """A request to judge some records again.

    Attributes:
        loaded: the run.
        corrected: its suite, with the corrections and the comparison options that count.
        options: how it is judged.
        trusts_values: whether values of formulas are trusted in outputs made elsewhere.
        best_of: whether the best sample of a task counts.
        rerun: whether programs are run.
        apply: whether records and report are written.
    """

    loaded: LoadedRun
    corrected: CorrectedSuite
    options: JudgingOptions
    trusts_values: bool
    best_of: bool
    rerun: bool
    apply: bool


def rejudge(
    run: Path | str,
    options: JudgingOptions | None = None,
    *,
    dataset: str | Path | None = None,
    as_recorded: bool = False,
    trust_values: bool = False,
    suspects: GivenPath | None = None,
    apply: bool = False,
    rerun: bool = False,
    on_case: Callable[[RejudgedCase, int], None] = lambda _case, _total: None,
    **changes: Unpack[JudgingChanges],
) -> Rejudgement:
    """Judges a run again, from its stored outputs or from its stored programs.

    Every output is compared again, regardless of its record. If it is missing, or is not the one
    that the record names, an accepted case becomes JE and a failed case stays failed.

    Args:
        run: the results directory.
        options: how to judge, with ``limits`` only for a rerun; with ``as_recorded``, all fields of
            the object count as given.
        dataset: the suite; None for the one that the run remembers.
        as_recorded: take what is not given here (profile, styles, recalculation, engine, options
            of the comparison, corrections, whether the best sample counts, trust in values) from
            run.json, which anyone may have written.
        trust_values: whether values of formulas are trusted in outputs that, by their records,
            were made elsewhere or only by mouse and keyboard.
        suspects: golds that may be at fault (``suspects.json``); scores without them are also
            reported. None for those that the run keeps, if any.
        apply: append the new records and replace report.json; otherwise nothing is written.
        rerun: run the programs of the run as well, here and within ``limits``; for folders of other
            people, whose outputs are as unproven as their verdicts.
        on_case: called with each case, and with the total number of cases.
        changes: fields of :class:`JudgingOptions` by name, in place of those in ``options``, such
            as ``profile="strict"``; None for "not given".

    Returns:
        Verdicts and reports before and after. Verdicts that a person changed count in both.

    Raises:
        StoreError: the directory has no run, or another judge is writing to it.
        SuiteError: the suite is not available.
        UsageError: an option has a value that is not valid, or contradicts a published profile;
            ``limits`` are given without ``rerun``, or a rerun finds no programs.
    """
    chosen = _chosen(options, changes, rerun=rerun)
    loaded = load_run(run, dataset, suspects, published=True)
    source = loaded.run if as_recorded else RunDocument()
    if options is None:
        chosen = _with_recorded(source, chosen, changes)
    request = _request(loaded, source, chosen, trusts=trust_values, rerun=rerun, apply=apply)
    rejudgement = _carried_out(request, on_case, keeps_suspects=suspects is not None)
    return replace(rejudgement, suite_is_named=dataset is not None)


def _chosen(
    options: JudgingOptions | None, changes: JudgingChanges, *, rerun: bool
) -> JudgingOptions:
    """The options of a call, before those in a run's description are added."""
    chosen = with_changes(options, changes)
    if chosen.limits != Limits() and not rerun:
        raise UsageError(
            "limits apply to programs, but no programs are run", hint="Add --rerun (rerun=True)."
        )
    return chosen


def _request(
    loaded: LoadedRun,
    source: RunDocument,
    options: JudgingOptions,
    *,
    trusts: bool,
    rerun: bool,
    apply: bool,
) -> _Request:
    """The request of a call, with the corrected suite and the options that ``source`` adds."""
    checker = {**(source.get("checker") or {}), **options.checker}
    corrected = _corrected(_suite_of(loaded), source, options.corrections)
    if rerun and not (loaded.path / SUBMISSIONS_FILE).is_file():
        raise UsageError(f"{loaded.path}: holds finished outputs, so there are no programs to run")
    return _Request(
        loaded,
        replace(corrected, suite=corrected.suite.with_checker_options(checker)),
        replace(options, checker=checker),
        trusts_values=trusts
        or trusted_values(source)
        or trusts_own_outputs(loaded.path, loaded.run),
        best_of=bool(source.get("best_of")),
        rerun=rerun,
        apply=apply,
    )


def _carried_out(
    request: _Request, on_case: Callable[[RejudgedCase, int], None], *, keeps_suspects: bool
) -> Rejudgement:
    """Judges again, and writes the results if the request says so."""
    loaded = request.loaded
    with RunDirectory(loaded.path) as store:
        if request.apply:
            store.lock()
        done, described = _judged_again(request, store, on_case)
        if request.apply:
            apply_rejudged(store, done.cases)
            described["rejudged"] = _history(loaded.run, done.rules, done.cases)
            store.write_run(described)
            if keeps_suspects and loaded.suspicions is not None:
                keep_suspicions(store, loaded.suspicions)
            store.write_document(REPORT_FILE, done.after)
    return done


def _judged_again(
    request: _Request, store: RunDirectory, on_case: Callable[[RejudgedCase, int], None]
) -> tuple[Rejudgement, RunDocument]:
    """The run under the rules of the request, and its new description."""
    loaded, suite = request.loaded, request.corrected.suite
    with contextlib.ExitStack() as stack:
        settings = _settings(request, stack)
        if request.rerun:
            keep = store if request.apply else None
            rejudged = rerun_cases(store, loaded, suite, settings, keep, on_case)
        else:
            output_of = stored_outputs(store, loaded.run, suite)
            rejudged = rejudge_cases(store, _cases(request), settings, output_of, on_case=on_case)
        rules = rules_record(request.options, settings)
        described = _described(request, rules, trusts_values=settings.trusts_values)
        if request.rerun:
            described.update(ran_by(settings))
    loaded.check_intact()
    results = [case.after for case in rejudged]
    before = _report(store, loaded, suite, loaded.run, [case.before for case in rejudged])
    automatic = None
    if loaded.overrides.applied:
        automatic = _report(store, loaded, suite, described, results, NO_OVERRIDES)
    rejudgement = Rejudgement(
        loaded.path,
        rules,
        rejudged,
        before,
        _report(store, loaded, suite, described, results),
        applied=request.apply,
        suite=f"{suite.name} ({suite.root})",
        corrections=_corrections(described),
        manual=len(loaded.overrides.applied),
        not_taken=not_taken(loaded.run, described),
        missing=_missing(loaded, suite),
        automatic=automatic,
    )
    return rejudgement, described


def _cases(request: _Request) -> list[tuple[Task, int, TestCase]]:
    suite = request.corrected.suite
    return [
        (suite.task(submission.task_id), submission.sample, case)
        for submission in request.loaded.submissions
        for case in suite.task(submission.task_id).cases
    ]


def _settings(request: _Request, stack: contextlib.ExitStack) -> Settings:
    """Sandbox, engines and workers for a request; the stack closes them."""
    # Programs run in the sandbox that is available here, engines in the one that the run used.
    resources = JudgingResources(request.options, stack)
    settings = resources.settings_for(
        (task for task, _, _ in _cases(request)),
        runs=request.rerun,
        remembered=None if request.rerun else backend_of(request.loaded.run),
    )
    # A preview writes nothing to the folder of the run, and a rerun has a separate folder.
    settings = resources.placed(settings, request.corrected.suite)
    return replace(settings, trusts_values=request.trusts_values)


def _corrected(suite: Suite, source: RunDocument, path: GivenPath | None) -> CorrectedSuite:
    """The suite with the corrections of a file; without a file, with those that run.json names."""
    if path is None:
        return corrected_as_recorded(suite, source)
    return corrected_suite(suite, path)


def _described(request: _Request, rules: JudgingRules, *, trusts_values: bool) -> RunDocument:
    """The description of a run with the new rules; the facts about how it was made are kept."""
    run, corrected = request.loaded.run, request.corrected
    suite = corrected.suite
    recorded: SuiteIdentity = run.get("suite") or {"name": suite.name}
    identity: SuiteIdentity = {
        **recorded,
        "digest": suite.digest,
        "format": suite.format,
        "corrections": describe_corrections(corrected.applied),
    }
    identity.pop("certified", None)
    if (certified := certified_identity(suite, corrected.records)) is not None:
        identity["certified"] = certified
    checker = dict(request.options.checker)
    described: RunDocument = {**run, **rules, "checker": checker, "suite": identity}
    described.pop("best_of", None)
    described.pop("values", None)
    if trusts_values:
        described["values"] = "stored"
    elif run.get("outputs") is not None:
        described["values"] = "computed"
    if request.best_of:
        described["best_of"] = True
    return described


def _missing(loaded: LoadedRun, suite: Suite) -> tuple[str, ...]:
    """Warnings about records that the scores do not include."""
    lines = []
    judged = {submission.key for submission in loaded.submissions}
    if left := len(loaded.submitted - judged):
        lines.append(f"{left} solutions of {SUBMISSIONS_FILE} are not in {REPORT_FILE}")
    if without := sum(
        len(submission.cases) - len(submission.automatic) for submission in loaded.submissions
    ):
        lines.append(f"{without} cases have no recorded verdict")
    tasks = {submission.task_id for submission in loaded.submissions}
    if absent := len(suite.tasks) - len(tasks):
        lines.append(f"{absent} of {len(suite.tasks)} tasks of the suite have no result here")
    return tuple(lines)


def change_verdict(
    run: Path | str,
    task_id: str,
    case: int,
    verdict: Verdict | str | None,
    *,
    by: str,
    why: str,
    sample: int = 0,
) -> ManualVerdict | None:
    """Changes one verdict by hand, and updates the run's report.

    The automatic verdict stays recorded; the change is kept when the same output is scored again.

    Args:
        run: the results directory.
        task_id: the task.
        case: number of the case.
        verdict: the verdict from now on; None takes an earlier change back.
        by: name of the person who changes it.
        why: the reason.
        sample: which of several solutions of the task.

    Returns:
        The change; None if an earlier one was taken back.

    Raises:
        UsageError: the verdict does not exist, the case is not recorded, or no reason is given.
        SuiteError: the suite, which the report needs, is not available.
    """
    chosen = None if verdict is None else _verdict(verdict)
    loaded = load_run(run)
    suite = _suite_of(loaded)
    loaded.submission(task_id, sample)
    with RunDirectory(loaded.path) as store:
        store.lock()
        change = override_verdict(store, (task_id, sample, case), chosen, by=by, why=why)
        results = [
            result for submission in loaded.submissions for result in submission.automatic.values()
        ]
        store.write_document(REPORT_FILE, _report(store, loaded, suite, loaded.run, results))
    return change


def renew_report(run: GivenPath) -> None:
    """Writes report.json again from the records of a run, with all marks; judges nothing.

    Raises:
        SuiteError: the suite, which the report needs, is not available.
    """
    loaded = load_run(run)
    suite = _suite_of(loaded)
    with RunDirectory(loaded.path) as store:
        store.lock()
        results = [
            result for submission in loaded.submissions for result in submission.automatic.values()
        ]
        store.write_document(REPORT_FILE, _report(store, loaded, suite, loaded.run, results))


def _verdict(verdict: Verdict | str) -> Verdict:
    try:
        return Verdict(verdict)
    except ValueError as error:
        verdicts = ", ".join(verdict.value for verdict in Verdict)
        raise UsageError(
            f"there is no verdict {verdict!r}", hint=f"There are {verdicts}."
        ) from error


def _report(
    store: RunDirectory,
    loaded: LoadedRun,
    suite: Suite,
    run: RunDocument,
    results: Sequence[CaseResult],
    overrides: Overrides | None = None,
) -> ReportDocument:
    report = build_report(
        run,
        [(suite.task(submission.task_id), submission.sample) for submission in loaded.submissions],
        results,
        without_submission=loaded.tasks_without_submission,
        suite_tasks=suite.tasks,
        overrides=read_overrides(store) if overrides is None else overrides,
        usages=[submission.usage for submission in loaded.submissions],
        suspicions=loaded.suspicions,
        marks=marks_in(store),
    )
    add_published_figures(report, suite, run.get("outputs"), results)
    return report


def _suite_of(loaded: LoadedRun) -> Suite:
    if loaded.suite is None:
        raise SuiteError(
            f"{loaded.path}: the suite's golds are needed; {'; '.join(loaded.notes)}",
            hint="Put the suite back where the run expects it, or name it with --dataset.",
        )
    return loaded.suite


def _with_recorded(
    run: RunDocument, options: JudgingOptions, changes: JudgingChanges
) -> JudgingOptions:
    """The options, with those that are not given filled in from a run's description."""
    remembered = run.get("recalc") or RecalcIdentity()
    before = PROFILES.get(run.get("profile") or "")
    chosen = get_profile(changes.get("profile") or run.get("profile") or options.profile)
    # A mode that a profile fixed, now or before, was not requested.
    fixed = chosen.reads_stored_values or (before is not None and before.reads_stored_values)
    mode = changes.get("recalc") or (None if fixed else remembered.get("mode")) or options.recalc
    if mode not in get_args(Mode):
        raise UsageError(f"there is no recalculation mode {mode!r}")
    style = changes.get("style")
    return replace(
        options,
        profile=chosen.name,
        style=script_style(chosen, run.get("style") or ()) if style is None else tuple(style),
        recalc=cast("Mode", mode),
        engine=changes.get("engine") or remembered.get("engine") or options.engine,
        lenient_names=bool(remembered.get("lenient_names")) or options.lenient_names,
    )


def stored_outputs(store: RunDirectory, run: RunDocument, suite: Suite | None) -> StoredOutput:
    """Finds outputs by content, in the run itself or in the folder of finished outputs.

    Returns:
        A function that returns the output of (task id, sample, case) with a SHA-256, or the reason
        why there is none.
    """
    folder = run.get("outputs")
    outputs: FoundOutputs | None = None
    if folder is not None and suite is not None:
        with contextlib.suppress(JudgeError):  # the folder is missing: each case reports it
            outputs = outputs_in(Path(folder), suite, run.get("layout"))

    def output_of(key: tuple[str, int, int], digest: str) -> bytes | str:
        stored = store.get_workbook(digest)
        if stored is not None:
            return stored
        if store.has_workbook(digest):
            return "its stored output is not the one that the record names"
        path = None if outputs is None else outputs.of_sample(*key)
        if path is None:
            return "its output workbook is no longer stored"
        try:
            data = read_answer(path, StoreError, max_bytes=MAX_WORKBOOK_BYTES) or b""
        except StoreError as error:
            return error.message
        if hashlib.sha256(data).hexdigest() != digest:
            return f"{path.name} is not the workbook that the record names"
        return data

    return output_of


def _corrections(run: RunDocument) -> int:
    """How many tasks of the suite were corrected, according to the run's own description."""
    suite = run.get("suite")
    named = None if suite is None else suite.get("corrections")
    return len(named or ()) + len(run.get("checker") or ())


def _history(
    run: RunDocument, rules: JudgingRules, cases: Sequence[RejudgedCase]
) -> list[dict[str, object]]:
    """For run.json, the list of all rejudgements of the run."""
    entry: dict[str, object] = {
        "at": utc_now(),
        "from": {name: run.get(name) for name in ("profile", "style", "recalc")},
        "to": rules,
        "changed_cases": sum(case.changed for case in cases),
    }
    return [*(run.get("rejudged") or ()), entry]
