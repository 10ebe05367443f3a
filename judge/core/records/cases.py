"""Types for a record of cases.jsonl: the judge's result for one submission on one case."""

from __future__ import annotations

from typing import NotRequired, Required, TypedDict

from judge.files.forms import Amount, Count, Sha256, TaskId


class CaseRun(TypedDict, total=False):
    """Facts about the run of a program on a case; empty if no program ran.

    ``status`` is a value of :class:`judge.sandbox.contract.RunStatus`, or ``finished`` for an
    output that was made elsewhere, ``typed`` for an ``answer`` that is text, or ``episode`` for the
    result of a desktop episode. ``ended`` says how that episode ended, ``gui_only`` whether it
    claims to have used only mouse and keyboard, and ``origin`` whether the values in a file were
    trusted (:class:`judge.core.submission.Origin`). ``stdout`` and ``stderr`` hold only the
    beginning or the end of a long output.
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
    """The location of a difference outside cells: see :class:`judge.core.finding.LocationKind`."""

    kind: str
    name: str


class SheetRecord(TypedDict):
    """A sheet; ``file`` says whether it belongs to the ``gold`` or to the ``output``."""

    file: str
    sheet: str


class DifferingCellRecord(TypedDict):
    """A cell that differs: both values, or a line that describes the difference."""

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

    ``kind`` is the checker's name for this kind of difference. Values are JSON; dates and times
    are ``{"date": ISO text}``, errors ``{"error": "#N/A"}``. ``rule`` and ``words`` are the number
    and wording of the rule that does not hold; ``about`` says how pages show it.
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
    """The share of right cells, of those to change and those to keep; null without such cells."""

    modification: Amount | None
    regression: Amount | None


class LossRecord(TypedDict):
    """A feature of the input that the gold kept and the output lost.

    ``kept`` is how much of it there should be, ``left`` how much there is. Rules and formulas are
    measured in cells, everything else is counted.
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
"""The result of the option ``keep``; ``as`` is ``note`` or ``fail``, ``counts`` is by kind."""

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
"""The result of the option ``formula_asked``: see :class:`judge.compare.cells.scope`."""


class CollateralCellRecord(TypedDict):
    """A cell outside the answer that an output changed, with sheet and address in the input."""

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
"""The result of the option ``collateral``: numbers of cells, and the first cells that changed.

``damage`` counts ``overwritten`` and ``erased`` cells and lost ``features``. ``exposed`` counts the
cells outside the answer that hold something in the input. ``errors_left`` counts cells anywhere in
the output whose stored value is an error and was not one in the input; see
:class:`judge.compare.cells.collateral.Collateral`.
"""


class ChangedCellRecord(TypedDict):
    """A cell of the input, with its new value."""

    cell: str
    value: object


class DynamicChangeRecord(TypedDict):
    """A change of input cells, and how the cells of the answer reacted.

    ``case`` is the case whose input the values were taken from; null if a single value was changed.
    ``edits`` counts all changed cells, ``cells`` lists the first of them. ``moved`` counts the
    answer's cells that changed in the gold, ``followed`` those in which the output agrees, and
    ``false_moves`` those that changed only in the output.
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
"""The result of the option ``dynamic``: see :class:`judge.compare.cells.dynamic.DynamicFinding`."""


class ChartFact(TypedDict):
    """A chart of a gold: how much of it the output has, and what is missing."""

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
    """The result of an item under the interpretation that did not decide the verdict."""

    state: str
    earned: float
    detail: NotRequired[str]


class ItemRecord(TypedDict):
    """An item of a checklist: how many points it is worth, how many were earned, and why.

    ``judged`` says who judges it (:class:`judge.compare.checklists.items.Judged`), ``state`` is the
    result (:class:`judge.compare.checklists.items.State`). ``official`` or ``standard`` is the
    result under the other interpretation, if it differs, and ``fault`` the number of the published
    fault that explains the difference. ``gated_by`` names an item whose failure makes this one earn
    nothing under ``official``.
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
    """Points of a group of items: ``possible`` sums all items, ``judged`` only the judged ones.

    ``items`` and ``judged_items`` count these items, ``holding`` those that are fulfilled.
    """

    points: float
    judged_points: float
    earned: float
    items: Count
    judged_items: Count
    holding: Count


class ChecklistRecord(TypedDict):
    """The points of a checklist.

    The keys of ``by_judge`` are values of :class:`judge.compare.checklists.items.Judged`; those of
    ``by_group`` and ``by_kind`` come from the checklist. In ``share_of_all``, items that were not
    judged earn nothing; ``share_of_judged`` leaves them out. Both apply the weights of groups.
    ``passed`` is set if the suite says what share an answer needs to pass.
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

    ``difference_counts`` counts all differences by kind, ``differences`` lists the first of them.
    ``computed_cells`` and ``computed_values`` have the keys ``gold`` and ``output``. ``gold`` names
    the gold that counted, if there are several. ``earned_share`` is the share of a checklist's
    points that was earned: a case that is not accepted adds it to the soft score.
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
    """A record of cases.jsonl: the judge's result for one submission on one case."""

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
