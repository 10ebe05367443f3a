"""Signs that need submissions: their verdicts, and the values on which they agree."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from judge.console import counted
from judge.suspects.books import NO_ANSWER, CellAddress, agree
from judge.suspects.contract import address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, ReadOutput, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.workbook.cell import CellValue, ErrorValue

Answer = Mapping[CellAddress, CellValue]

STRONG = 2 / 3
"""Share of its cases that a run must pass before its answer counts against a gold by itself."""

FAIR = 1 / 2
"""This share is enough if the run also passes two other cases of the task."""


class MixedVerdicts:
    """Finds cases that a run fails although it passes other cases of the same task.

    A program that is right on two cases follows the rule of their golds. If it fails the third
    case, the third gold probably follows a different rule, and the program is right.
    """

    name = "mixed-verdicts"
    title = "a run passes other cases of the task and fails this one"
    about = About.GOLD
    blind_spots = (
        "a program may be right by chance on easy cases, and fail the one that shows it is wrong",
        (
            "if the run fails more cases of the task than it passes, the case is only possible, "
            "unless the gold computes the differing cells with formulas"
        ),
        (
            "it is only possible if the question has the word that the gold writes and not the "
            "run's, and if the values are only rounded differently, or both say that there is no "
            "answer"
        ),
        "a case that another run passes is only possible: a program can produce its gold",
        (
            "if a run passes fewer than half of its cases, or has no verdicts on record, the case "
            "is only listed as possible; judge score records verdicts"
        ),
        "tasks with one case, and outputs that contain errors, are not reported",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case that a run fails although it passes other cases."""
        if len(material.cases) < 2:
            return
        by_run = answers_of(material)
        lost: dict[int, _Loss] = {}
        reached: set[int] = set()
        for run, (strength, by_case) in by_run.items():
            passed = {
                case.number
                for case in material.cases
                if case.number in by_case and not differences_from(case, by_case[case.number])
            }
            reached |= passed
            failed = by_case.keys() - passed if passed else set()
            for number in failed:
                loss = _Loss(strength or 0.0, len(passed), run, by_case[number], len(failed))
                if number not in lost or loss[:2] > lost[number][:2]:
                    lost[number] = loss
        for case in material.cases:
            if case.number in lost:
                is_reached = case.number in reached
                yield from self._case(material, case, lost[case.number], is_reached=is_reached)

    def _case(
        self, material: TaskMaterial, case: CaseMaterial, loss: _Loss, *, is_reached: bool
    ) -> Iterator[Suspect]:
        cells = differences_from(case, loss.answer)
        if any(isinstance(loss.answer.get(address), ErrorValue) for address in cells):
            return
        # A run that is mostly right, and right on another case of the task, knows the rule. A
        # weaker run may be right on a single case by chance, and if an answer is wrong almost
        # everywhere, the program is more probably at fault.
        few = len(cells) * 2 <= max(len(case.answer), 2)
        # A program that fails more cases of the task than it passes is wrong as often as golds.
        # But the gold's formulas were written for case 1, and may not suit the other cases.
        is_computed = all(
            address in case.answer and address in case.answer_formulas for address in cells
        )
        if loss.strength >= STRONG:
            certain = loss.sisters >= loss.failed or is_computed
        else:
            certain = loss.strength >= FAIR and loss.sisters > 1 and few
        certain = certain and not is_reached
        leaning = leaning_of(material.task.instruction, case, cells, loss.answer)
        certain = certain and leaning is not Leaning.GOLD
        first = cells[0]
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if certain else Certainty.POSSIBLE,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, "
            f"{loss.run} has {shown(loss.answer.get(first))}{and_more(len(cells))}",
            f"the run passes {counted(loss.sisters, 'other case')} of the task, and "
            + (
                f"{loss.strength:.0%} of its cases"
                if loss.strength
                else "its share of passed cases is not on record"
            ),
            [
                evidence(
                    EvidenceFile.SUBMISSION,
                    address,
                    expected=loss.answer.get(address),
                    found=case.answer.get(address),
                    note=f"{loss.run} has the expected value",
                )
                for address in cells
            ],
        )


class _Loss(NamedTuple):
    """A case that a run fails although it passes other cases of the task.

    Attributes:
        strength: share of the run's scored cases that it passes; 0 if that is not on record.
        sisters: how many other cases of the task it passes.
        run: the run.
        answer: its answer.
        failed: how many cases of the task it fails.
    """

    strength: float
    sisters: int
    run: str
    answer: Answer
    failed: int


def answers_of(material: TaskMaterial) -> dict[str, tuple[float | None, dict[int, Answer]]]:
    """Returns each run's strength, and its answers by case; a case's last output counts."""
    answers: dict[str, tuple[float | None, dict[int, Answer]]] = {}
    for number, outputs in material.outputs.items():
        for read in outputs:
            _, by_case = answers.setdefault(read.output.run, (read.output.strength, {}))
            by_case[number] = read.values
    return answers


def differences_from(case: CaseMaterial, answer: Answer) -> list[CellAddress]:
    """Finds the cells in which an answer differs from the gold, in reading order."""
    return [
        address
        for address in sorted({*case.answer, *answer})
        if not agree(case.answer.get(address), answer.get(address))
    ]


class Leaning(enum.Enum):
    """What the differing values suggest about a gold and an answer."""

    GOLD = enum.auto()
    """The question has the gold's strings, or the difference is one that questions usually leave
    open.
    """
    ANSWER = enum.auto()
    """The question has the answer's strings."""
    UNDECIDED = enum.auto()


ROUNDING = 0.005
"""Numbers with decimals that differ by less than this share may only be rounded differently."""


def leaning_of(
    question: str, case: CaseMaterial, cells: Sequence[CellAddress], answer: Answer
) -> Leaning:
    """Decides whether the differing values of a gold and an answer favour one of them.

    The side whose strings occur in the question is favoured. First the letter case has to match; if
    that decides nothing, letter case is ignored. Otherwise, the gold is favoured if all differences
    are due to rounding, or to different ways of writing that there is no answer.
    """
    pairs = [(case.answer.get(cell), answer.get(cell)) for cell in cells]
    texts = {(_text(gold), _text(own)) for gold, own in pairs}
    votes = {
        vote
        for gold, own in texts
        if gold and own and any(map(_has_letters, (gold, own)))
        if (vote := _vote(question, gold, own)) is not None
    }
    if len(votes) == 1:
        return votes.pop()
    if all(_says_nothing(gold, own) or _is_rounded(gold, own) for gold, own in pairs):
        return Leaning.GOLD
    return Leaning.UNDECIDED


def _says_nothing(*values: CellValue) -> bool:
    return all(
        not isinstance(value, bool)
        and str(value.code if isinstance(value, ErrorValue) else value or "").strip().casefold()
        in NO_ANSWER
        for value in values
    )


def _is_rounded(first: CellValue, second: CellValue) -> bool:
    if not (isinstance(first, int | float) and isinstance(second, int | float)):
        return False
    if float(first).is_integer() and float(second).is_integer():
        return False
    return abs(first - second) <= ROUNDING * max(abs(first), abs(second))


def _vote(question: str, gold: str, own: str) -> Leaning | None:
    for flags in (re.NOFLAG, re.IGNORECASE):
        has_gold, has_own = (
            re.search(rf"(?<!\w){re.escape(text)}(?!\w)", question, flags) is not None
            for text in (gold, own)
        )
        if has_gold != has_own:
            return Leaning.GOLD if has_gold else Leaning.ANSWER
    return None


def _text(value: CellValue) -> str:
    return "" if value is None or isinstance(value, ErrorValue) else str(value).strip()


def _has_letters(text: str) -> bool:
    """Returns whether a string has letters: numbers and dates occur in questions by chance."""
    return any(character.isalpha() for character in text)


MIXED_VERDICTS = MixedVerdicts()


MIN_CASES = 2
"""How many cases of a task a run must answer and fail; a single one proves nothing."""

MAX_SHARE = 1 / 3
"""A run seems to know the rule if at most this share of the cells differs in each failed case."""


class FailedTask:
    """Finds tasks that a strong run fails in every case.

    A wrong program usually passes some cases. A program that fails all of them either misread the
    question, or the golds require something that the question does not say. The question is misread
    about as often as the gold is at fault, so the sign alone makes a suspect only possible. The
    suspect is likely if the program has most of the gold's cells right, which a misreading would
    have changed, or if the question has the strings of the program and not those of the gold.
    """

    name = "failed-task"
    title = "a strong run fails every case of the task"
    about = About.GOLD
    blind_spots = (
        "a hard question, or one that everybody misreads in the same way, looks the same",
        "in a suite whose golds have been checked, the program is at fault more often",
        (
            "if a run passes less than two thirds of its cases, or has no verdicts on record, the "
            "case is only listed as possible; judge score records verdicts"
        ),
        (
            "it is also only possible if more than a third of the answer differs and neither the "
            "question's words nor another sign support the run"
        ),
        "tasks with one case, and outputs that contain errors, are not reported",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case of a task if its strongest run fails all the cases."""
        by_run = answers_of(material)
        lost: list[tuple[float, str, dict[int, Answer]]] = []
        for run, (strength, answers) in by_run.items():
            failed = {
                case.number: answers[case.number]
                for case in material.cases
                if case.number in answers and differences_from(case, answers[case.number])
            }
            if len(failed) < len(answers):
                return  # a program can produce the golds
            if len(failed) >= MIN_CASES:
                lost.append((strength or 0.0, run, failed))
        if lost:
            strength, run, failed = max(lost, key=lambda loss: loss[0])
            is_near = all(
                len(differences_from(case, failed[case.number])) <= MAX_SHARE * len(case.answer)
                for case in material.cases
                if case.number in failed
            )
            for case in material.cases:
                if case.number in failed:
                    answer = failed[case.number]
                    yield from self._case(material, case, run, strength, answer, is_near=is_near)

    def _case(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        run: str,
        strength: float,
        answer: Answer,
        *,
        is_near: bool,
    ) -> Iterator[Suspect]:
        cells = differences_from(case, answer)
        if any(isinstance(answer.get(address), ErrorValue) for address in cells):
            return
        if not any(
            not agree(case.answer.get(address), case.input.value(address)) for address in cells
        ):
            return  # the gold equals the input: the case tests nothing
        first = cells[0]
        leaning = leaning_of(material.task.instruction, case, cells, answer)
        is_likely = strength >= STRONG and (
            leaning is Leaning.ANSWER or (is_near and leaning is not Leaning.GOLD)
        )
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if is_likely else Certainty.POSSIBLE,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, "
            f"{run} has {shown(answer.get(first))}{and_more(len(cells))}",
            "the run fails every case of the task, and "
            + (
                f"passes {strength:.0%} of all its cases"
                if strength
                else "its share of passed cases is not on record"
            ),
            [
                evidence(
                    EvidenceFile.SUBMISSION,
                    address,
                    expected=answer.get(address),
                    found=case.answer.get(address),
                    note=f"{run} has the expected value",
                )
                for address in cells
            ],
        )


FAILED_TASK = FailedTask()


class Outvoted:
    """Finds golds that are outvoted: independent submissions agree on different cell values."""

    name = "outvoted"
    title = "independent submissions agree with each other, and not with the gold"
    about = About.GOLD
    blind_spots = (
        (
            "submissions of one model are not independent: they share its misreadings of the "
            "question"
        ),
        (
            "two submissions can agree on a wrong answer, above all on a blank one; blank cells "
            "do not count against a gold that is not blank"
        ),
        "nothing is reported if fewer than two submissions wrote a readable output",
        (
            "outputs of the same program, or equal files, count as one vote; a program that was "
            "copied and changed counts as another voter"
        ),
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case that is outvoted."""
        for case in material.cases:
            voters = _one_of_each_program(material.outputs[case.number])
            if len(voters) > 1:
                yield from self._case(material, case, voters)

    def _case(
        self, material: TaskMaterial, case: CaseMaterial, voters: Sequence[ReadOutput]
    ) -> Iterator[Suspect]:
        answers = [voter.values for voter in voters]
        addresses = sorted({*case.answer, *(address for answer in answers for address in answer)})
        against: dict[CellAddress, tuple[CellValue, int]] = {}
        for address in addresses:
            value, votes = _majority([answer.get(address) for answer in answers])
            if votes < 2 or value is None:
                continue
            if votes * 2 > len(answers) and not agree(case.answer.get(address), value):
                against[address] = (value, votes)
        if not against:
            return
        all_of_them = [address for address, (_, votes) in against.items() if votes == len(answers)]
        # If a submission has the gold's whole answer, the gold is at least a reasonable reading.
        accepted = sum(
            all(agree(case.answer.get(address), answer.get(address)) for address in addresses)
            for answer in answers
        )
        if accepted:
            certainty = Certainty.POSSIBLE
        elif all_of_them and len(answers) > 2:
            certainty = Certainty.SURE
        elif all_of_them:
            certainty = Certainty.LIKELY
        else:
            certainty = Certainty.POSSIBLE
        first = (all_of_them or list(against))[0]
        value, votes = against[first]
        yield suspect(
            material,
            case.number,
            self,
            certainty,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, "
            f"{votes} of {len(answers)} submissions have {shown(value)}{and_more(len(against))}",
            f"{counted(len(against), 'cell')} of the answer outvoted; {accepted} of "
            f"{len(answers)} submissions give the gold's whole answer",
            [
                evidence(
                    EvidenceFile.SUBMISSION,
                    address,
                    expected=value,
                    found=case.answer.get(address),
                    note=f"{votes} of {len(answers)} submissions have the expected value",
                )
                for address, (value, votes) in against.items()
            ],
        )


def _one_of_each_program(outputs: Sequence[ReadOutput]) -> list[ReadOutput]:
    """Selects outputs of one case, only one for each program."""
    voters: dict[str, ReadOutput] = {}
    for number, read in enumerate(outputs):
        voters.setdefault(read.output.program or str(number), read)
    return list(voters.values())


def _majority(values: Sequence[CellValue]) -> tuple[CellValue, int]:
    """Returns the value that most submissions have, and how many have it."""
    groups: list[tuple[CellValue, int]] = []
    for value in values:
        for index, (other, votes) in enumerate(groups):
            if agree(other, value):
                groups[index] = (other, votes + 1)
                break
        else:
            groups.append((value, 1))
    return max(groups, key=lambda group: group[1])


OUTVOTED = Outvoted()
