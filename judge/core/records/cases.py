"""A record of cases.jsonl, as types: what the judge says about a submission on a case."""

from __future__ import annotations

from typing import NotRequired, Required, TypedDict

from judge.files.forms import Amount, Count, Sha256, TaskId


class CaseRun(TypedDict, total=False):
    """Facts about the run of a program on a case; empty if no program ran.

    ``status`` is that of :class:`judge.sandbox.contract.RunStatus`, or ``finished`` for an output
    that was made elsewhere, ``typed`` for an ``answer`` that is text, or ``episode`` for what was
    left on a desktop; ``ended`` says how that episode ended, ``gui_only`` whether it claims to have
    used only mouse and keyboard, and ``origin`` whether the values in a file were trusted
    (:class:`judge.core.submission.Origin`). ``stdout`` and ``stderr`` are the first, or last,
    characters.
    """

    status: str | None
    output_status: str | None
    exit_code: int | None
    signal: int | None
    cpu_s: Amount | None
    wall_s: Amount | None
    peak_memory_bytes: Count | None
    stdout: str
    stderr: str
    stdout_bytes: Count
    stderr_bytes: Count
    output_bytes: Count
    output_sha256: Sha256 | None
    survivors: Count
    detail: str | None
    answer: str
    ended: str
    origin: str
    gui_only: bool


class PlaceRecord(TypedDict):
    """Where a difference is, if it is not in a cell: see :class:`judge.core.finding.PlaceKind`."""

    kind: str
    name: str


class SheetRecord(TypedDict):
    """A sheet of the ``gold`` or of the ``output``, by its ``file``."""

    file: str
    sheet: str


class DifferingCellRecord(TypedDict):
    """A cell that differs: both values, or a line that says how."""

    cell: str
    expected: NotRequired[object]
    actual: NotRequired[object]
    detail: NotRequired[str]


class AboutRecord(TypedDict):
    """The subject of a difference: see :class:`judge.core.finding.About`."""

    subject: str
    expected: SheetRecord | None
    found: SheetRecord | None
    asked: list[str]
    decimals: NotRequired[int]
    cells: NotRequired[list[DifferingCellRecord]]
    all_cells: NotRequired[Count]


class DifferenceRecord(TypedDict):
    """One difference between gold and output.

    ``kind`` is a word of the checker that found it; values are those of JSON, dates and times
    ``{"date": ISO text}``, errors ``{"error": "#N/A"}``. ``rule`` and ``words`` are number and
    sentence of the rule that does not hold, ``about`` is what pages show of it.
    """

    kind: str
    sheet: str
    cell: str
    expected: object
    actual: object
    place: NotRequired[PlaceRecord]
    erased: NotRequired[object]
    expected_formula: NotRequired[str]
    actual_formula: NotRequired[str]
    detail: NotRequired[str]
    rule: NotRequired[Count]
    words: NotRequired[str]
    about: NotRequired[AboutRecord]


class UnitCounts(TypedDict):
    """How many cells of a part of the answer were compared, and how many differ."""

    cells: Count
    differing_cells: Count


class SharesRecord(TypedDict):
    """Shares of the cells to change and of those to keep that agree; null without such cells."""

    modification: Amount | None
    regression: Amount | None


class LossRecord(TypedDict):
    """Something that the input had, the gold kept, and the output lost.

    ``kept`` is how much of it there should be, ``left`` how much there is: cells of rules and
    formulas, otherwise a count.
    """

    kind: str
    what: str
    sheet: str
    place: str
    kept: Count
    left: Count


KeptRecord = TypedDict(
    "KeptRecord",
    {
        "as": Required[str],
        "problem": NotRequired[str],
        "lost": NotRequired[Count],
        "counts": NotRequired[dict[str, Count]],
        "losses": NotRequired[list[LossRecord]],
    },
)
"""What the option ``keep`` found; ``as`` is ``note`` or ``fail``, ``counts`` is by kind."""

FormulaAskedRecord = TypedDict(
    "FormulaAskedRecord",
    {
        "as": Required[str],
        "problem": NotRequired[str],
        "asked": NotRequired[bool],
        "words": NotRequired[str],
        "gold_formulas": NotRequired[Count],
        "constants": NotRequired[Count],
    },
)
"""What the option ``formula_asked`` found: see :class:`judge.compare.cells.scope`."""


class CollateralCellRecord(TypedDict):
    """A cell that an output changed outside the answer, by its sheet and address in the input."""

    kind: str
    sheet: str
    cell: str


CollateralRecord = TypedDict(
    "CollateralRecord",
    {
        "as": Required[str],
        "problem": NotRequired[str],
        "damage": NotRequired[Count],
        "overwritten": NotRequired[Count],
        "erased": NotRequired[Count],
        "formula_to_constant": NotRequired[Count],
        "features": NotRequired[Count],
        "added": NotRequired[Count],
        "other_than_gold": NotRequired[Count],
        "as_gold": NotRequired[Count],
        "style": NotRequired[Count],
        "moved": NotRequired[Count],
        "exposed": NotRequired[Count],
        "errors_left": NotRequired[Count],
        "cells": NotRequired[list[CollateralCellRecord]],
    },
)
"""What the option ``collateral`` found: numbers of cells, and the first cells that changed.

``damage`` is ``overwritten`` and ``erased`` cells and lost ``features``; ``exposed`` cells hold
something outside the answer; ``errors_left`` cells of the whole output hold an error value, as far
as the file stores values, and did not in the input; see
:class:`judge.compare.cells.collateral.Collateral`.
"""


class ChangedCellRecord(TypedDict):
    """A cell of the input, and the value that it was given."""

    cell: str
    value: object


class DynamicChangeRecord(TypedDict):
    """A change of inputs, and how many cells of the answer moved, followed, or moved alone.

    ``case`` is the case whose input has these values; null for a single value. ``edits`` counts
    all changed cells, ``cells`` has the first ones.
    """

    case: Count | None
    edits: Count
    cells: list[ChangedCellRecord]
    moved: Count
    followed: Count
    false_moves: Count


DynamicRecord = TypedDict(
    "DynamicRecord",
    {
        "as": Required[str],
        "class": Required[str],
        "asked": Required[str],
        "eligible": Required[Count],
        "changes": Required[list[DynamicChangeRecord]],
        "reason": NotRequired[str],
    },
)
"""What the option ``dynamic`` found: see :class:`judge.compare.cells.dynamic.DynamicFinding`."""


class ChartFact(TypedDict):
    """A chart of a gold: how much of it the output has, and what that lacks."""

    sheet: str
    title: str
    share: Amount
    lacking: list[str]


class ChartsRecord(TypedDict):
    """The charts of a gold and of an output: how many, and the share that both have."""

    gold: Count
    output: Count
    share: Amount
    charts: list[ChartFact]


class ItemReading(TypedDict):
    """How an item ended under the reading that did not decide the verdict."""

    state: str
    earned: float
    detail: NotRequired[str]


class ItemRecord(TypedDict):
    """An item of a checklist: how many points it has and earned, and why.

    ``judged`` says who judges it (:class:`judge.compare.checklists.items.Judged`), ``state`` how it
    ended (:class:`judge.compare.checklists.items.State`). ``official`` or ``standard`` is the other
    reading, where it differs, and ``fault`` the number of the published fault that explains it.
    ``gated_by`` names an item whose failure makes this one earn nothing under ``official``.
    """

    id: str
    kind: str
    judged: str
    group: str
    points: float
    earned: float
    state: str
    words: str
    expected: NotRequired[object]
    found: NotRequired[object]
    place: NotRequired[str]
    detail: NotRequired[str]
    penalty: NotRequired[bool]
    official: NotRequired[ItemReading]
    standard: NotRequired[ItemReading]
    fault: NotRequired[str]
    gated_by: NotRequired[str]


class PointsRecord(TypedDict):
    """Points of some items: ``possible`` of all, ``judged`` of those that are judged.

    ``items`` and ``judged_items`` count items, ``holding`` those that hold.
    """

    points: float
    judged_points: float
    earned: float
    items: Count
    judged_items: Count
    holding: Count


class ChecklistRecord(TypedDict):
    """The points of a checklist.

    ``by_judge`` has the keys of :class:`judge.compare.checklists.items.Judged`, ``by_group`` and
    ``by_kind`` those of the list. ``share_of_all`` counts what was not judged as nothing earned,
    ``share_of_judged`` leaves it out; both respect weights of groups. ``passed`` is there if the
    suite has a share from which an answer passes.
    """

    evaluator: str
    profile: str
    by_judge: dict[str, PointsRecord]
    by_group: dict[str, PointsRecord]
    by_kind: dict[str, PointsRecord]
    share_of_all: float
    share_of_judged: float | None
    pass_share: NotRequired[float]
    passed: NotRequired[bool]


SheetValues = dict[str, dict[str, object]]
"""Sheet -> address -> value."""


class CaseComparison(TypedDict, total=False):
    """The result of comparing an output with its gold; empty if they were not compared.

    ``difference_counts`` counts all differences by kind, ``differences`` lists the first ones.
    ``computed_cells`` and ``computed_values`` have the keys ``gold`` and ``output``. ``gold`` names
    the gold that counted, if there are several. ``earned_share`` is what a case that is not
    accepted counts in the soft score: the share of points of a checklist.
    """

    equal: bool
    profile: str
    official_equal: bool | None
    official_score: float | None
    published_error: str
    gold: str
    ranges: list[str]
    cells: Count
    differing_cells: Count
    touched_cells: Count | None
    groups: dict[str, UnitCounts]
    shares: SharesRecord
    cell_accuracy: float
    difference_counts: dict[str, Count]
    differences: list[DifferenceRecord]
    notes: list[str]
    engines: list[str]
    computed_cells: dict[str, Count]
    computed_values: dict[str, SheetValues]
    kept: KeptRecord
    formula_asked: FormulaAskedRecord
    collateral: CollateralRecord
    dynamic: DynamicRecord
    charts: ChartsRecord
    earned_share: float
    items: list[ItemRecord]
    checklist: ChecklistRecord


class CaseRecord(TypedDict, total=False):
    """A record of cases.jsonl: what the judge says about one submission on one case."""

    task: Required[TaskId]
    sample: Required[Count]
    case: Required[Count]
    verdict: Required[str]
    phase: str
    cause: str
    run_key: str
    comparison_key: str
    run: CaseRun
    comparison: CaseComparison
    timings_s: dict[str, Amount]
