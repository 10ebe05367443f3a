"""The checker of lists of items with points.

An answer is accepted if all deterministic items hold. Items for a model, a person or the suite's
own program are recorded as not judged; they never decide the verdict. Such an item is never
dropped: one share counts its points as not earned, and the other leaves them out of the total.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.compare.cells.computing import Compute
from judge.compare.checklists.items import (
    NAME,
    ChecklistOptions,
    Item,
    Judged,
    Outcome,
    Reading,
    State,
)
from judge.compare.checklists.kinds import check_items, judge_item, kind_of, waiting, words_of
from judge.compare.checklists.suites import suite_named
from judge.compare.checklists.workspace import REPLY, Workspace
from judge.compare.contract import (
    AnswerFaultError,
    Checker,
    Examination,
    GoldFaultError,
    Needs,
    Requirements,
    Rules,
)
from judge.compare.profiles import get_profile
from judge.console import clipped
from judge.core.finding import (
    DifferenceLocation,
    Finding,
    FoundDifference,
    LocationKind,
    finding_of,
)
from judge.core.records.cases import (
    CaseComparison,
    ChecklistRecord,
    ItemReading,
    ItemRecord,
    PointsRecord,
)
from judge.core.submission import Answer, AnswerFile, AnswerForm, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import UsageError, WorkbookError
from judge.files.documents import MalformedError
from judge.files.packed_folder import is_packed_folder

_LONGEST = 400
"""Longest recorded string, in characters; a longer string is cut and ends with an ellipsis."""
_MAX_LISTED = 20  # items of a list in a record
_MAX_NESTED = 3  # levels of lists in a record


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """An item with its outcomes.

    Attributes:
        item: the item.
        outcome: the outcome under the reading that counts.
        other: the outcome under the other reading; None if the item was not judged under it.
        gated_by: id of the failed item that makes this item earn nothing under
            ``official``; empty if no gate failed.
    """

    item: Item
    outcome: Outcome
    other: Outcome | None = None
    gated_by: str = ""

    @property
    def judged(self) -> Judged:
        """Who judges the item."""
        return kind_of(self.item).judged

    @property
    def is_judged(self) -> bool:
        """Whether the item has been judged."""
        return self.outcome.ended is not State.NOT_JUDGED

    @property
    def points(self) -> float:
        """The points that the item adds to the total; 0 for a penalty."""
        return 0.0 if self.item.penalty else self.item.points

    @property
    def earned(self) -> float:
        """The points that the item earns; below 0 for a penalty that applies."""
        return earned_by(self.item, self.outcome)


def earned_by(item: Item, outcome: Outcome) -> float:
    """Returns the points that an item earns with an outcome."""
    if outcome.ended is State.NOT_JUDGED:
        return 0.0
    share = min(max(outcome.share, 0.0), 1.0) if outcome.state in {None, State.HOLDS} else 0.0
    return item.points * (share - 1.0) + 0.0 if item.penalty else item.points * share


def with_gates(items: Sequence[JudgedItem], reading: Reading) -> list[JudgedItem]:
    """Applies the gates: under ``official``, items behind a failed gate earn nothing.

    Under ``standard``, these items keep their outcomes and are only marked.
    """
    shut: dict[str, str] = {}
    for entry in items:
        if entry.item.gates and entry.is_judged and entry.outcome.ended is not State.HOLDS:
            for kind in entry.item.gates:
                shut.setdefault(kind, entry.item.id)
    return [_gated(entry, shut.get(entry.item.kind, ""), reading) for entry in items]


def _gated(entry: JudgedItem, gate: str, reading: Reading) -> JudgedItem:
    if not gate or gate == entry.item.id:
        return entry
    if reading is Reading.STANDARD:
        return JudgedItem(entry.item, entry.outcome, entry.other, gate)
    nothing = Outcome(0.0, detail=f"item {gate} fails, so this one earns nothing")
    return JudgedItem(entry.item, nothing, entry.other, gate)


# -- sums ------------------------------------------------------------------------------------------


def points_of(items: Iterable[JudgedItem]) -> PointsRecord:
    """Adds up the points of items."""
    listed = list(items)
    judged = [entry for entry in listed if entry.is_judged]
    return {
        "points": math.fsum(entry.points for entry in listed),
        "judged_points": math.fsum(entry.points for entry in judged),
        "earned": math.fsum(entry.earned for entry in judged),
        "items": len(listed),
        "judged_items": len(judged),
        "holding": sum(entry.outcome.ended is State.HOLDS for entry in judged),
    }


def share_of(
    items: Sequence[JudgedItem], weights: Mapping[str, float], *, all_items: bool
) -> float | None:
    """Returns the earned share of the points, from 0 to 1; None if no item with points counts.

    Args:
        items: the items.
        weights: group -> weight; empty for the plain sum. With weights, the share is the weighted
            mean of the shares of the groups that have points.
        all_items: whether items that were not judged count as earning nothing; otherwise they are
            left out.
    """
    if not weights:
        return _plain_share(points_of(items), all_items=all_items)
    total = weight_sum = 0.0
    for group, weight in weights.items():
        share = _plain_share(
            points_of(entry for entry in items if entry.item.group == group), all_items=all_items
        )
        if share is not None:
            total += weight * share
            weight_sum += weight
    return total / weight_sum if weight_sum else None


def _plain_share(points: PointsRecord, *, all_items: bool) -> float | None:
    possible = points["points"] if all_items else points["judged_points"]
    return min(max(points["earned"] / possible, 0.0), 1.0) if possible else None


def checklist_record(
    items: Sequence[JudgedItem], options: ChecklistOptions, profile: str
) -> ChecklistRecord:
    """Returns the points of a list, as they are written to ``cases.jsonl``."""
    share = share_of(items, options.groups, all_items=True) or 0.0
    record: ChecklistRecord = {
        "evaluator": options.evaluator,
        "profile": profile,
        "by_judge": _by(items, lambda entry: entry.judged.value),
        "by_group": _by(items, lambda entry: entry.item.group),
        "by_kind": _by(items, lambda entry: entry.item.kind),
        "share_of_all": share,
        "share_of_judged": share_of(items, options.groups, all_items=False),
    }
    if options.pass_share is not None:
        record["pass_share"] = options.pass_share
        record["passed"] = share >= options.pass_share
    return record


def _by(
    items: Sequence[JudgedItem], name_of: Callable[[JudgedItem], str]
) -> dict[str, PointsRecord]:
    parts: dict[str, list[JudgedItem]] = {}
    for entry in items:
        parts.setdefault(name_of(entry), []).append(entry)
    return {name: points_of(entries) for name, entries in parts.items()}


# -- records ---------------------------------------------------------------------------------------


def item_record(entry: JudgedItem, reading: Reading) -> ItemRecord:
    """Returns an item as it is written to ``cases.jsonl``."""
    item, outcome = entry.item, entry.outcome
    record: ItemRecord = {
        "id": item.id,
        "kind": item.kind,
        "judged": entry.judged.value,
        "group": item.group,
        "points": item.points,
        "earned": entry.earned,
        "state": outcome.ended.value,
        "words": shortened(words_of(item)),
    }
    if outcome.expected is not None:
        record["expected"] = shown(outcome.expected)
    if outcome.found is not None:
        record["found"] = shown(outcome.found)
    if outcome.place:
        record["place"] = shortened(outcome.place)
    if outcome.detail:
        record["detail"] = shortened(outcome.detail)
    if item.penalty:
        record["penalty"] = True
    if entry.gated_by:
        record["gated_by"] = entry.gated_by
    other = entry.other
    if other is not None and (other.ended, other.share) != (outcome.ended, outcome.share):
        state: ItemReading = {"state": other.ended.value, "earned": earned_by(item, other)}
        if other.detail:
            state["detail"] = shortened(other.detail)
        if reading is Reading.STANDARD:
            record["official"] = state
        else:
            record["standard"] = state
        if fault := outcome.fault or other.fault:
            record["fault"] = fault
    return record


def shortened(text: str) -> str:
    """Returns a string cut to the length that a record allows."""
    return clipped(text, _LONGEST)


def shown(value: object, depth: int = 0) -> object:
    """Returns a value as JSON of limited size, for a record; values that do not fit become text."""
    if value is None or isinstance(value, bool | int):
        return value if not isinstance(value, int) or abs(value) < 2**53 else shortened(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return shortened(value)
    if depth >= _MAX_NESTED:
        return "…"
    if isinstance(value, Mapping):
        listed = list(value.items())[:_MAX_LISTED]
        return {shortened(str(name)): shown(part, depth + 1) for name, part in listed}
    if isinstance(value, list | tuple | set | frozenset):
        parts: list[object] = [shown(part, depth + 1) for part in list(value)[:_MAX_LISTED]]
        return [*parts, "…"] if len(value) > _MAX_LISTED else parts
    return shortened(str(value))


NO_DETERMINISTIC_ITEM = "no item is judged without a model, a person or the suite's own program"


class ChecklistChecker(Checker):
    """Accepts an answer if all deterministic items of a list hold."""

    name = NAME
    lists_items = True

    def check_options(self, options: Mapping[str, object]) -> None:
        """Checks the options; see :class:`judge.compare.checklists.items.ChecklistOptions`."""
        read = ChecklistOptions.of(options)
        check_items(read)
        if read.profile is not None:
            get_profile(read.profile)

    def describe(self, spec: CheckerSpec) -> str:
        """Returns the checker's name, with the evaluator that published the list."""
        evaluator = _options(spec).evaluator
        return f"{self.name}: {evaluator}" if evaluator else self.name

    def aspects(self, spec: CheckerSpec) -> tuple[str, ...]:
        """Returns the kinds of the items, without repetitions."""
        return tuple(dict.fromkeys(item.kind for item in _options(spec).items))

    def requirements(self, task: Task, gold: Gold | None) -> Requirements:  # noqa: ARG002
        """Returns the items as sentences, with their points."""
        options = _options(task.checker)
        return Requirements(tuple(map(_sentence, options.items)), options.evaluator)

    def needs(self, task: Task, case: TestCase, rules: Rules) -> Needs:  # noqa: ARG002
        """Requests the engines, the golds if any, and the inputs that published checks may need."""
        return Needs(golds=bool(case.golds), inputs=True, engines=True)

    def check(
        self,
        task: Task,
        case: TestCase,
        golds: Sequence[Gold],
        answer: Answer,
        compute: Compute,
        rules: Rules,
    ) -> Finding:
        """Judges each item, in both readings if it has two."""
        try:
            options = _options(task.checker)
            check_items(options)
        except UsageError as error:
            raise GoldFaultError(error.message) from error
        if not any(_is_deterministic(item) for item in options.items):
            raise GoldFaultError(NO_DETERMINISTIC_ITEM)
        profile = rules.profile if options.profile is None else get_profile(options.profile)
        reading = Reading.OFFICIAL if profile.published else Reading.STANDARD
        workspace = workspace_of(case, golds, answer, compute)
        _check_main(task, answer, workspace)
        return finding_of_items(judged_items(options, workspace, reading), options, reading, rules)

    def measure(self, task: Task, golds: Sequence[Gold], answer: Answer) -> CaseComparison | None:  # noqa: ARG002
        """Records all items as not judged; returns None if any item is deterministic."""
        options = _options(task.checker)
        if any(_is_deterministic(item) for item in options.items):
            return None
        items = [JudgedItem(item, waiting(kind_of(item).judged)) for item in options.items]
        return _record(items, options, Reading.STANDARD)

    def examine(self, task: Task, case: TestCase, compute: Compute | None) -> Examination:  # noqa: ARG002
        """Counts the deterministic items, and adds a note on the items that are not judged here."""
        options = _options(task.checker)
        for gold in case.golds:
            gold.read()
        others = [item for item in options.items if not _is_deterministic(item)]
        notes = []
        if others:
            points = sum(item.points for item in others)
            notes.append(f"{len(others)} items with {points:g} points are not judged here")
        return Examination(units=len(options.items) - len(others), notes=tuple(notes))

    def own_answers(self, task: Task, gold: Gold) -> Mapping[str, Answer]:
        """Returns a gold that is a finished answer: a workbook, or a packed folder."""
        if gold.path is None and gold.data is None:
            return {}
        data = gold.read()
        if task.answer is not AnswerForm.WORKBOOK and not is_packed_folder(data):
            return {}
        return {"": Answer(Origin.FINISHED, (AnswerFile(gold.name, data),))}

    def partial_answer(self, task: Task, gold: Gold) -> tuple[Answer, frozenset[str]] | None:
        """Returns the gold workbook with a placeholder reply, and the ids of the items it decides.

        Returns None if the answer to the task is a workbook, or if the gold decides no item.
        """
        decided = {
            item.id
            for item in _options(task.checker).items
            if item.kind == "published"
            and suite_named(item.text("suite")).of_workbook(item.fields["check"])
        }
        if task.answer is AnswerForm.WORKBOOK or not decided or gold.path is None:
            return None
        files = (AnswerFile(gold.name, gold.read()), AnswerFile(REPLY, b'{"gold": true}'))
        return Answer(Origin.FINISHED, files), frozenset(decided)


CHECKER = ChecklistChecker()


def workspace_of(
    case: TestCase, golds: Sequence[Gold], answer: Answer, compute: Compute
) -> Workspace:
    """Returns the files of an answer, with the inputs and golds of its case.

    Raises:
        AnswerFaultError: the answer is an archive that cannot be read.
        GoldFaultError: an input or a gold cannot be read.
    """
    before = {}
    for source in case.inputs:
        try:
            before[source.name] = source.path.read_bytes()
        except OSError as error:
            raise GoldFaultError(f"{source.name}: cannot be read: {error.strerror}") from error
    named = {gold.name: gold.read() for gold in golds}
    try:
        return Workspace(answer, before=before, golds=named, compute=compute)
    except MalformedError as error:
        raise AnswerFaultError(f"the answer's folder: {error}") from error


def judged_items(
    options: ChecklistOptions, workspace: Workspace, reading: Reading
) -> list[JudgedItem]:
    """Judges every item, in order, and applies the gates.

    Raises:
        RecalcError: an engine cannot be started.
    """
    other = Reading.STANDARD if reading is Reading.OFFICIAL else Reading.OFFICIAL
    items = []
    for item in options.items:
        outcome = judge_item(item, workspace, reading)
        two = kind_of(item).has_two_readings
        items.append(JudgedItem(item, outcome, judge_item(item, workspace, other) if two else None))
    return with_gates(items, reading)


def finding_of_items(
    items: Sequence[JudgedItem], options: ChecklistOptions, reading: Reading, rules: Rules
) -> Finding:
    """Returns the finding of a list: deterministic items decide, and all items are recorded."""
    failing = [
        (number, entry)
        for number, entry in enumerate(items, start=1)
        if entry.judged is Judged.DETERMINISTIC and entry.outcome.ended is not State.HOLDS
    ]
    units = sum(entry.judged is Judged.DETERMINISTIC for entry in items)
    differences = [_difference(entry, number) for number, entry in failing]
    finding = finding_of(differences, units=units, max_kept=rules.max_differences)
    record = {**finding.record, **_record(items, options, reading)}
    undecided = bool(failing) and all(entry.outcome.undecided for _, entry in failing)
    return replace(finding, record=record, undecided=undecided)  # type: ignore[arg-type]


def _record(
    items: Sequence[JudgedItem], options: ChecklistOptions, reading: Reading
) -> CaseComparison:
    deciding = [entry for entry in items if entry.judged is Judged.DETERMINISTIC]
    checklist = checklist_record(items, options, reading.value)
    record: CaseComparison = {
        "profile": reading.value,
        "items": [item_record(entry, reading) for entry in items],
        "checklist": checklist,
    }
    share = share_of(deciding, options.groups, all_items=True)
    if deciding:
        record["earned_share"] = share or 0.0
    if any(kind_of(entry.item).has_two_readings for entry in deciding):
        official = [
            entry.outcome if reading is Reading.OFFICIAL or entry.other is None else entry.other
            for entry in deciding
        ]
        record["official_equal"] = all(outcome.ended is State.HOLDS for outcome in official)
    return record


def _difference(entry: JudgedItem, number: int) -> FoundDifference:
    item, outcome = entry.item, entry.outcome
    return FoundDifference(
        "error" if outcome.ended is State.ERROR else item.kind,
        DifferenceLocation(LocationKind.RULE, item.id),
        shown(outcome.expected),
        shown(outcome.found),
        "; ".join(filter(None, (shortened(outcome.place), shortened(outcome.detail)))),
        number=number,
        words=shortened(words_of(item)),
    )


def _options(spec: CheckerSpec) -> ChecklistOptions:
    return ChecklistOptions.of(spec.own_options)


def _is_deterministic(item: Item) -> bool:
    return kind_of(item).judged is Judged.DETERMINISTIC


def _sentence(item: Item) -> str:
    points = f"{item.points:g} point{'' if item.points == 1 else 's'}"
    if item.penalty:
        points = f"{points} off if not"
    return f"{shortened(words_of(item)).removesuffix('.')} ({points})"


def _check_main(task: Task, answer: Answer, workspace: Workspace) -> None:
    """Checks that an answer of one workbook can be read; in a folder, each item reads its file.

    Raises:
        AnswerFaultError: the workbook cannot be read.
    """
    if task.answer is AnswerForm.WORKBOOK and len(answer.files) == 1 == len(workspace.files):
        try:
            workspace.book()
        except WorkbookError as error:
            raise AnswerFaultError(error.message) from error
