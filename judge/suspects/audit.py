"""Audits a suite: searches every task for every sign, and compares suspects with runs' answers.

A program sees only the input. If its output has the value that a sign expects, the sign is
confirmed. If it has the gold's value, that value follows from the input after all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from judge.compare.cells.render import value_to_json
from judge.core.task import Task, TestCase
from judge.errors import JudgeError
from judge.grading.case import known_fault
from judge.suites.suite import Suite
from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import Sign
from judge.suspects.material import (
    CaseMaterial,
    ReadOutput,
    TaskMaterial,
    Tools,
    digest_of_file,
    open_case,
)
from judge.suspects.model import (
    About,
    Audit,
    CaseFiles,
    Certainty,
    Evidence,
    EvidenceFile,
    Problem,
    RunVerdict,
    SeenCell,
    SeenContent,
    SignRun,
    Suspect,
)
from judge.suspects.signs.verdicts import FAILED_TASK, MIXED_VERDICTS
from judge.workbook.address import cell_key, parse_cell

MAX_SUMMARY = 300
"""How many characters of a summary are kept."""


@dataclass(frozen=True, slots=True)
class TaskFindings:
    """The findings of an audit about one task.

    Attributes:
        task: the task.
        suspects: its suspects.
        files: the hashes of the files of its cases.
        problems: the parts that could not be examined.
        not_examined: why no sign applies; empty if any sign does.
    """

    task: Task
    suspects: tuple[Suspect, ...] = ()
    files: tuple[CaseFiles, ...] = ()
    problems: tuple[Problem, ...] = ()
    not_examined: str = ""


def audit_suite(
    suite: Suite,
    tasks: Sequence[Task],
    tools: Tools,
    signs: Sequence[Sign],
    *,
    jobs: int = 1,
    submissions: Sequence[str] = (),
    notes: Sequence[str] = (),
    on_task: Callable[[TaskFindings, int], None] = lambda _findings, _total: None,
) -> Audit:
    """Searches tasks of a suite for signs.

    Args:
        suite: the suite.
        tasks: the tasks of the suite that are audited.
        tools: computes formulas and edits workbooks.
        signs: the signs.
        jobs: how many tasks are examined at a time.
        submissions: the runs whose outputs ``tools`` has, as the user named them.
        notes: notes for people about these runs.
        on_task: called with the findings of each task, in order, and the number of all tasks.
    """
    per_task: list[TaskFindings] = []
    asking: dict[str, list[Task]] = {}
    for task in suite.tasks:
        asking.setdefault(_question(task), []).append(task)

    def examine(task: Task) -> TaskFindings:
        same = tuple(other for other in asking.get(_question(task), ()) if other.id != task.id)
        return examine_task(task, tools, signs, same_question=same)

    with ThreadPoolExecutor(jobs) as pool:
        for findings in pool.map(examine, tasks):
            per_task.append(findings)
            on_task(findings, len(tasks))
    examined = sum(not finding.not_examined for finding in per_task)
    suspects = ranked(suspect for findings in per_task for suspect in findings.suspects)
    return Audit(
        suite=suite.name,
        format=suite.format,
        digest=suite.digest,
        tasks=examined,
        cases=sum(len(finding.task.cases) for finding in per_task if not finding.not_examined),
        suspects=suspects,
        files=tuple(_suspected(per_task)),
        signs=tuple(
            SignRun(sign.name, sign.title, sign.blind_spots, examined, sign.about) for sign in signs
        ),
        submissions=tuple(submissions),
        not_examined={
            finding.task.id: finding.not_examined for finding in per_task if finding.not_examined
        },
        problems=tuple(problem for findings in per_task for problem in findings.problems),
        notes=tuple(notes),
    )


def _question(task: Task) -> str:
    return " ".join(task.instruction.split()).casefold()


def ranked(suspects: Iterable[Suspect]) -> tuple[Suspect, ...]:
    """Sorts suspects into the order in which people should read them.

    The surest suspects come first; of equally sure ones, those of cases with several signs.
    """
    listed = list(suspects)
    votes: dict[tuple[str, int | None], int] = {}
    for suspect in listed:
        votes[suspect.task, suspect.case] = votes.get((suspect.task, suspect.case), 0) + 1
    order = {id(suspect): number for number, suspect in enumerate(listed)}
    return tuple(
        sorted(
            listed,
            key=lambda suspect: (
                suspect.certainty.rank,
                -votes[suspect.task, suspect.case],
                order[id(suspect)],
            ),
        )
    )


def _suspected(by_task: Iterable[TaskFindings]) -> Iterable[CaseFiles]:
    for findings in by_task:
        cases = {suspect.case for suspect in findings.suspects}
        for files in findings.files:
            if files.case in cases or None in cases:
                yield files


def examine_task(
    task: Task, tools: Tools, signs: Sequence[Sign], *, same_question: tuple[Task, ...] = ()
) -> TaskFindings:
    """Searches one task for signs; the findings include faults of its files.

    Args:
        task: the task.
        tools: computes formulas and edits workbooks.
        signs: the signs.
        same_question: other tasks of the suite with the same question.
    """
    if (left_out := known_fault(task)) is not None:
        return TaskFindings(task, not_examined=left_out)
    opened, problems = _opened(task, tools)
    if not opened and problems:
        return TaskFindings(task, problems=tuple(problems))
    suspects: dict[tuple[str, int | None, str], Suspect] = {}
    whole = TaskMaterial(task, tuple(opened), tools, same_question)
    for sign in signs:
        try:
            for suspect in sign.examine(whole):
                suspects.setdefault(suspect.key, with_outputs(whole, _bounded(suspect)))
        except JudgeError as error:
            problems.append(Problem(task.id, None, error.message, sign.name))
        except Exception as error:  # noqa: BLE001  one sign may fail on an untrusted file
            message = f"the sign failed: {type(error).__name__}: {error}"
            problems.append(Problem(task.id, None, message, sign.name))
    files = [
        CaseFiles(task.id, case.number, case.input.workbook.digest, case.gold.workbook.digest)
        for case in opened
    ]
    if not opened:
        files = [_files_of(task, case) for case in task.cases]
    supported = tuple(supported_by_others(suspects.values()))
    return TaskFindings(task, supported, tuple(files), tuple(problems))


def supported_by_others(suspects: Iterable[Suspect]) -> Iterator[Suspect]:
    """Raises a failed task to likely if a sign that needs no run finds one of its golds likely."""
    listed = list(suspects)
    support = next(
        (
            suspect
            for suspect in listed
            if suspect.about is About.GOLD
            and suspect.certainty is not Certainty.POSSIBLE
            and suspect.sign not in {FAILED_TASK.name, MIXED_VERDICTS.name}
        ),
        None,
    )
    for suspect in listed:
        if (
            support is not None
            and suspect.sign == FAILED_TASK.name
            and suspect.certainty is Certainty.POSSIBLE
        ):
            why = f"{suspect.why}; another sign of the task is {support.sign}"
            yield replace(suspect, certainty=Certainty.LIKELY, why=why)
        else:
            yield suspect


def _opened(task: Task, tools: Tools) -> tuple[list[CaseMaterial], list[Problem]]:
    """Opens the cases whose answers are cells; also returns faults of files."""
    opened: list[CaseMaterial] = []
    problems: list[Problem] = []
    for case in task.cases:
        try:
            material = open_case(task, case, tools)
        except JudgeError as error:
            problems.append(Problem(task.id, case.number, error.message))
        except OSError as error:
            problems.append(Problem(task.id, case.number, str(error)))
        else:
            if material is not None:
                opened.append(material)
    return opened, problems


def _files_of(task: Task, case: TestCase) -> CaseFiles:
    """Hashes the first input and the first gold of a case, if they are files."""
    paths = (
        case.inputs[0].path if case.inputs else None,
        case.golds[0].path if case.golds else None,
    )
    digests = (None if path is None else digest_of_file(path) for path in paths)
    return CaseFiles(task.id, case.number, *digests)


def _bounded(suspect: Suspect) -> Suspect:
    if len(suspect.summary) <= MAX_SUMMARY:
        return suspect
    return replace(suspect, summary=f"{suspect.summary[:MAX_SUMMARY]}…")


# -- answers of runs -------------------------------------------------------------------------------

MAX_SEEN = 12
"""How many cells are shown side by side for each suspect."""


def with_outputs(material: TaskMaterial, suspect: Suspect) -> Suspect:
    """Adds the cells side by side, and adjusts the certainty to the answers of runs.

    If the answer cannot be computed, the suspect is returned unchanged.
    """
    case = None if suspect.case is None else material.case(suspect.case)
    if case is None:
        return suspect
    outputs = material.outputs[case.number]
    try:
        weighed = _weighed(case, suspect, outputs) if suspect.about is About.GOLD else suspect
        seen = tuple(_seen(case, suspect, outputs))
    except JudgeError:
        return suspect
    runs = tuple(RunVerdict(read.output.run, read.output.verdict) for read in outputs)
    return replace(weighed, seen=seen, runs=runs)


def _weighed(case: CaseMaterial, suspect: Suspect, outputs: Sequence[ReadOutput]) -> Suspect:
    """Makes a suspect more certain if a run has the expected value, less if it has the gold's."""
    cells = [
        (address, item)
        for item in suspect.evidence
        if item.file is EvidenceFile.GOLD and item.case is None
        if (address := _address(item)) is not None
        and case.in_answer(address)
        and address not in case.changing
    ]
    if not cells or not outputs:
        return suspect
    confirming = [read for read in outputs if all(_is_expected(read, *cell) for cell in cells)]
    reached = [
        read
        for read in outputs
        if all(agree(read.values.get(cell), case.answer.get(cell)) for cell, _ in cells)
    ]
    order = list(Certainty)
    if confirming and not reached:
        certainty = order[max(suspect.certainty.rank - 1, 0)]
        why = f"{suspect.why}; {confirming[0].output.run} has the expected value"
    elif reached and not confirming:
        certainty = order[min(suspect.certainty.rank + 1, len(order) - 1)]
        why = f"{suspect.why}; but {reached[0].output.run} has the gold's value"
    else:
        return suspect
    return replace(suspect, certainty=certainty, why=why)


def _is_expected(read: ReadOutput, address: CellAddress, item: Evidence) -> bool:
    value = read.values.get(address)
    if isinstance(item.expected, int | float) and isinstance(value, int | float):
        return agree(item.expected, value)
    return item.expected is not None and value_to_json(value) == item.expected


def _address(item: Evidence) -> CellAddress | None:
    position = parse_cell(item.cell)
    return None if position is None else CellAddress(item.sheet, cell_key(*position))


def _seen(
    case: CaseMaterial, suspect: Suspect, outputs: Sequence[ReadOutput]
) -> Iterator[SeenCell]:
    """Yields the first cells of the evidence in this case's files, side by side."""
    addresses = dict.fromkeys(
        address
        for item in suspect.evidence
        if item.case is None and (address := _address(item)) is not None
    )
    for address in list(addresses)[:MAX_SEEN]:
        inside = case.in_answer(address)
        yield SeenCell(
            sheet=address.sheet,
            cell=address.name,
            in_answer=inside,
            input=SeenContent(
                value_to_json(case.input.value(address)), case.input.formula(address) or ""
            ),
            gold=SeenContent(
                value_to_json(case.answer.get(address) if inside else case.gold.value(address)),
                case.gold.formula(address) or "",
            ),
            outputs={
                read.output.run: SeenContent(
                    value_to_json(read.values.get(address)), read.formulas.get(address, "")
                )
                for read in outputs
                if inside
            },
        )
