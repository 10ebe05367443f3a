"""Known faults of published suites: written down with reason and source, applied on request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judge.core.records.runs import RunDocument
from judge.core.task import LEFT_OUT_CASES_OPTION, LEFT_OUT_OPTION, Task, TestCase
from judge.errors import SuiteError
from judge.files.paths import GivenPath, as_path
from judge.files.yaml_documents import read_yaml
from judge.suites.correction_records import (
    Correction,
    CorrectionFaultError,
    correction_of,
    describe_corrections,
)
from judge.suites.gold_corrections import GoldCorrection, UnfitCellsError, corrected_case
from judge.suites.locate import data_folder
from judge.suites.suite import Suite


def known_faults_folder() -> Path:
    """The folder of the corrections that ship with the judge.

    Raises:
        SuiteError: the installation is incomplete.
    """
    return data_folder() / "corrections"


def load_corrections(path: Path) -> tuple[Correction, ...]:
    """Reads a file of corrections, or all ``*.yaml`` of a folder.

    Raises:
        SuiteError: a file cannot be read, or a field is not valid; all faults are named.
    """
    paths = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    found: list[Correction] = []
    faults: list[str] = []
    for each in paths:
        document = read_yaml(each, SuiteError)
        entries = document.get("corrections") if isinstance(document, dict) else None
        if not isinstance(entries, list) or not isinstance(document.get("format"), str):
            raise SuiteError(
                f"{each}: fields 'format' (text) and 'corrections' (a list) are needed"
            )
        for number, entry in enumerate(entries, 1):
            try:
                found.append(correction_of(document["format"], entry))
            except CorrectionFaultError as fault:
                faults.append(f"{each}, correction {number}: {fault}")
    seen: set[tuple[str, str, int | None, str]] = set()
    for correction in found:
        if correction.key in seen:
            of_case = "" if correction.case is None else f", case {correction.case}"
            faults.append(
                f"task {correction.task}{of_case}: field {correction.field!r} is corrected twice"
            )
        seen.add(correction.key)
    if faults:
        raise SuiteError(
            f"{path}: {len(faults)} faults in the corrections",
            faults=tuple(faults),
            hint="dataset/schema.md describes what a correction looks like",
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class CorrectedSuite:
    """A suite with the corrections that fit it.

    Attributes:
        suite: the suite; its digest is that of its files.
        applied: the corrections that were applied, in suite order.
        unfit: corrections of tasks that the suite has, but with a value other than the one that
            was found wrong.
    """

    suite: Suite
    applied: tuple[Correction, ...]
    unfit: tuple[Correction, ...]

    @property
    def records(self) -> list[dict[str, object]]:
        """The corrections that were applied, as run.json describes them."""
        return describe_corrections(self.applied)


def apply_corrections(suite: Suite, corrections: Iterable[Correction]) -> CorrectedSuite:
    """Corrects the tasks of a suite.

    Corrections of other formats and of tasks that the suite does not have are passed over. Golds
    that hold the right values already are left as they are.

    Raises:
        SuiteError: a correction was made for a file with another content; each is named.
    """
    by_task: dict[str, list[Correction]] = {}
    for each in corrections:
        if each.format == suite.format:
            by_task.setdefault(each.task, []).append(each)
    applied: list[Correction] = []
    unfit: list[Correction] = []
    faults: list[str] = []
    tasks: list[Task] = []
    for task in suite.tasks:
        for correction in by_task.get(task.id, ()):
            try:
                corrected = _corrected(task, correction)
            except UnfitCellsError as fault:
                faults.append(f"task {task.id}, case {correction.case}: {fault}")
                continue
            (unfit if corrected is None else applied).append(correction)
            task = corrected or task  # noqa: PLW2901 - several corrections of one task add up
        tasks.append(task)
    if faults:
        raise SuiteError(
            f"{suite.root}: {len(faults)} corrections are not for the files of this suite",
            faults=tuple(faults),
            hint="Put back the file that was reviewed, or take the correction out and review the "
            "file again (`judge verify SUITE --review`).",
        )
    return CorrectedSuite(suite.with_tasks(tasks), tuple(applied), tuple(unfit))


def _corrected(task: Task, correction: Correction) -> Task | None:
    """The task with one correction; None where it does not have the fault.

    Raises:
        UnfitCellsError: it was made for another file.
    """
    if correction.case is not None:
        return _corrected_in_case(task, correction)
    now = correction.now
    option = {"exclude": LEFT_OUT_OPTION, "style": "style"}.get(correction.field)
    if option is not None:
        if task.checker.options.get(option):
            return None
        value = now if isinstance(now, str) else list(now)
        return replace(task, checker=task.checker.with_options({option: value}))
    if task.checker.options.get(correction.field) != correction.was:
        return None
    return replace(task, checker=task.checker.with_options({correction.field: now}))


def _corrected_in_case(task: Task, correction: Correction) -> Task | None:
    known = {each.number: each for each in task.cases}
    case = known.get(correction.case or 0)
    if case is None:
        return None
    bound = GoldCorrection(correction.gold_sha256 or "", correction.input_sha256, correction.cells)
    corrected = corrected_case(case, bound)
    if corrected is None:
        return None
    if correction.field == "exclude":
        reasons = task.checker.options.get(LEFT_OUT_CASES_OPTION)
        reasons = dict(reasons) if isinstance(reasons, Mapping) else {}
        if str(case.number) in reasons:
            return None
        reasons[str(case.number)] = correction.reason
        return replace(task, checker=task.checker.with_options({LEFT_OUT_CASES_OPTION: reasons}))
    return replace(task, cases=_replaced(task.cases, corrected))


def _replaced(cases: Sequence[TestCase], new: TestCase) -> tuple[TestCase, ...]:
    return tuple(new if case.number == new.number else case for case in cases)


def corrected_suite(suite: Suite, path: GivenPath | None) -> CorrectedSuite:
    """A suite with the corrections of a file or folder; unchanged if None is given.

    Raises:
        SuiteError: the corrections cannot be read, or are for other files.
    """
    if path is None:
        return CorrectedSuite(suite, (), ())
    return apply_corrections(suite, load_corrections(as_path(path)))


def corrected_as_recorded(suite: Suite, run: RunDocument) -> CorrectedSuite:
    """A suite with the corrections that a run.json names.

    Raises:
        SuiteError: one of them cannot be read, or is for another file.
    """
    remembered = run.get("suite")
    named = None if remembered is None else remembered.get("corrections")
    try:
        corrections = [correction_of(suite.format, each) for each in named or ()]
    except CorrectionFaultError as fault:
        raise SuiteError(f"run.json names a correction that cannot be read: {fault}") from fault
    return apply_corrections(suite, corrections)


def as_recorded(suite: Suite, run: RunDocument) -> Suite:
    """A suite with the corrections and the options of the comparison that a run.json names."""
    corrected = corrected_as_recorded(suite, run).suite
    return corrected.with_checker_options(run.get("checker") or {})
