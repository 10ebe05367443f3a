"""Options of the cell range checker that a task or a command can set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from judge.compare.profiles import Profile, check_as_published, contradiction
from judge.core.option import Option, Section
from judge.errors import UsageError
from judge.files.documents import written
from judge.workbook.cell import STYLE_ATTRIBUTES

if TYPE_CHECKING:
    from judge.core.task import CheckerSpec

CELL_RANGE = "cell_range"
"""Name of the checker that compares the cells of an answer position."""

POSITION_OPTIONS = ("answer_position", "answer_sheet")
"""The options with the answer position, and with the sheet that the suite names in addition to it.
The question also states both."""


def range_spec(
    position: str, sheet: str | None = None, options: Mapping[str, object] | None = None
) -> CheckerSpec:
    """Returns the checker of a task whose answer is the cells of a position.

    Args:
        position: the answer position, as the suite writes it.
        sheet: the sheet that the suite names in addition, if any.
        options: further options of the checker.
    """
    from judge.core.task import CheckerSpec  # noqa: PLC0415  help reads the options without it

    placed: dict[str, object] = {"answer_position": position}
    if sheet is not None:
        placed["answer_sheet"] = sheet
    return CheckerSpec(
        name=CELL_RANGE, options={**placed, **(options or {})}, public=POSITION_OPTIONS
    )


def position_of(spec: CheckerSpec) -> tuple[str, str | None]:
    """Returns the answer position of a task, and the sheet that its suite names in addition.

    Raises:
        UsageError: the task has no position, because its answer is not a range of cells.
    """
    position, sheet = (spec.options.get(name) for name in POSITION_OPTIONS)
    if not isinstance(position, str):
        raise UsageError(
            f"a task with the checker {spec.name!r} has no answer position",
            hint="This works on tasks whose answer is a range of cells. In a suite.json, it"
            " is the option `answer_position` of the checker.",
        )
    return position, sheet if isinstance(sheet, str) else None


OFF, NOTE, FAIL = "off", "note", "fail"
SCOPE_CHOICES = (OFF, NOTE, FAIL)
"""Values of an option of scope: do not examine, report with the verdict, make part of it."""

SCOPE_OPTIONS = ("keep", "formula_asked")
FIGURE_OPTIONS = ("collateral", "dynamic")

CELLS, GROUPS = "cells", "groups"
ACCEPT_CHOICES = (CELLS, GROUPS)
"""When an output is accepted: if every cell agrees, or by the rule for two groups of cells."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The rules that a task changes; None keeps the profile's rule.

    Attributes:
        tolerance: numbers this close to each other agree.
        relative_tolerance: numbers this close, relative to the larger one, agree.
        ignore_case: whether upper and lower case are the same.
        ignore_whitespace: whether white space within and around strings does not matter.
        unordered_rows: whether the rows of a range may be in any order.
        ignore_extra: whether values are accepted where the gold is blank.
        ignore: ranges whose cells do not count, as ``A1:B2`` or ``'Sheet1'!A1:B2``.
        style: style attributes to compare in addition to the values.
        formulas: whether formulas are compared instead of values.
        accept: ``cells`` if every cell has to agree; ``groups`` if the rule of
            :mod:`judge.compare.cells.range_check` decides, which requires the input.
        untouched: whether cells outside the answer range must be the same as in the input.
        keep: how features count that the input had, the gold kept and the output lost: ``off``
            (they are not examined), ``note`` or ``fail``.
        formula_asked: the same for constants where the question asks for a formula and the gold
            has one.
        collateral: the same for cells outside the answer that the output changed and the gold did
            not.
        dynamic: the same for answers that do not follow changes of an input; ``fail`` applies only
            if the question asks for a formula.
    """

    tolerance: Annotated[
        float | None, Option("Numbers may differ by this.", Section.EQUAL, least=0)
    ] = None
    relative_tolerance: Annotated[
        float | None, Option("The same, as a share of the number.", Section.EQUAL, least=0)
    ] = None
    ignore_case: Annotated[
        bool | None, Option("Upper and lower case are the same.", Section.EQUAL, negatable=True)
    ] = None
    ignore_whitespace: Annotated[
        bool | None, Option("White space is the same.", Section.EQUAL, negatable=True)
    ] = None
    unordered_rows: Annotated[
        bool | None, Option("Rows may be in any order.", Section.EQUAL, negatable=True)
    ] = None
    ignore_extra: Annotated[
        bool | None,
        Option("Accept values where the gold is blank.", Section.EQUAL, negatable=True),
    ] = None
    ignore: Annotated[
        tuple[str, ...],
        Option("Cells that do not count; repeatable.", Section.EQUAL, metavar="RANGE"),
    ] = ()
    style: tuple[str, ...] = ()
    formulas: Annotated[
        bool | None, Option("Compare formulas instead of values.", Section.EQUAL, negatable=True)
    ] = None
    accept: Annotated[
        str,
        Option(
            "When an output is right: if every cell agrees, or by the cells to change and those to "
            "keep (SpreadsheetBench 2).",
            Section.EQUAL,
            choices=ACCEPT_CHOICES,
        ),
    ] = CELLS
    untouched: Annotated[
        bool,
        Option(
            "Cells outside the answer range must be as in the input workbook.",
            Section.EQUAL,
            negatable=True,
        ),
    ] = False
    keep: Annotated[
        str,
        Option(
            "List, or reject, what the input had, the gold kept and the output lost: rules, "
            "charts, tables, names, comments, sheets, formulas.",
            Section.EQUAL,
            choices=SCOPE_CHOICES,
        ),
    ] = OFF
    formula_asked: Annotated[
        str,
        Option(
            "List, or reject, constants where the question asks for a formula.",
            Section.EQUAL,
            choices=SCOPE_CHOICES,
        ),
    ] = OFF
    collateral: Annotated[
        str,
        Option(
            "Count, or reject, changes outside the answer that the output makes but the gold does "
            "not.",
            Section.EQUAL,
            choices=SCOPE_CHOICES,
        ),
    ] = OFF
    dynamic: Annotated[
        str,
        Option(
            "Change inputs, and report whether the answer follows as the gold's does; `fail` "
            "rejects where a formula is required.",
            Section.EQUAL,
            choices=SCOPE_CHOICES,
        ),
    ] = OFF

    @staticmethod
    def of(options: Mapping[str, object]) -> CheckOptions:
        """Reads the options of a checker as a suite or a command gives them.

        Raises:
            UsageError: an option is unknown or its value does not fit.
        """
        names = CheckOptions.__dataclass_fields__
        values: dict[str, object] = {}
        for name, value in options.items():
            if name in POSITION_OPTIONS:
                continue
            if name not in names:
                raise UsageError(
                    f"the checker has no option {name!r}",
                    hint=f"Options: {', '.join(sorted(names))}.",
                )
            values[name] = _checked(name, value)
        return CheckOptions(**values) if values else _DEFAULTS  # type: ignore[arg-type]

    @property
    def examines_scope(self) -> bool:
        """Whether ``keep`` or ``formula_asked`` is set."""
        return not self.keep == self.formula_asked == OFF

    @property
    def measures_figures(self) -> bool:
        """Whether ``collateral`` or ``dynamic`` is set."""
        return not self.collateral == self.dynamic == OFF

    def apply_to(self, profile: Profile) -> Profile:
        """Returns the profile with the rules that these options set."""
        changes = {
            "absolute_tolerance": self.tolerance,
            "relative_tolerance": self.relative_tolerance,
            "ignore_case": self.ignore_case,
            "ignore_whitespace": self.ignore_whitespace,
            "unordered_rows": self.unordered_rows,
            "ignore_extra": self.ignore_extra,
            "formulas": self.formulas,
        }
        given = {name: value for name, value in changes.items() if value is not None}
        return replace(profile, **given) if given else profile  # type: ignore[arg-type]


_DEFAULTS = CheckOptions()


FEATURE_RULES = 2
"""Version of the rules of lost features: 2 includes the protection of sheets."""

STYLE_RULES = 2
"""Version of the rules of styles: 2 leaves out cells that a merged range hides on both sides."""


def check_style_names(names: Sequence[str]) -> None:
    """Checks that style attributes exist.

    Raises:
        UsageError: an attribute does not exist; the hint lists those that do.
    """
    unknown = [name for name in names if name not in STYLE_ATTRIBUTES]
    if unknown:
        raise UsageError(
            f"there is no style attribute {unknown[0]!r}",
            hint=f"Attributes: {', '.join(STYLE_ATTRIBUTES)}.",
        )


_SCRIPT_OPTIONS = frozenset({"formulas", "accept"})
_SCRIPT_STYLE = frozenset({"font_color"})
"""Style attributes that the published functions of SpreadsheetBench 2 can compare."""


def check_contradictions(
    profile: Profile,
    options: Mapping[str, object],
    *,
    style: Sequence[str] = (),
    recalc: str = "auto",
) -> None:
    """Rejects options that contradict a published script, whose verdict they cannot change.

    Options that the suite itself sets are allowed: the script judges the suite as published.

    Args:
        profile: the profile.
        options: checker options that a command or a caller sets.
        style: style attributes to compare in addition to the values.
        recalc: when formulas are computed.

    Raises:
        UsageError: an option contradicts the profile.
    """
    if not profile.published:
        return
    check_as_published(profile)
    allowed = _SCRIPT_OPTIONS if profile.groups else frozenset()
    usual = CheckOptions()
    for name, value in options.items():
        if name == "profile" and value not in {None, profile.name}:
            raise contradiction(profile, f"option profile ({value})")
        if name == "style" or name in allowed or not hasattr(usual, name):
            continue
        if value is not None and value != getattr(usual, name) and value not in (False, 0, [], ""):
            raise contradiction(profile, f"option {name}")
    given = options.get("style")
    attributes = [*style, *([given] if isinstance(given, str) else given or ())]  # type: ignore[misc]
    kept = script_style(profile, attributes)
    if refused := [attribute for attribute in attributes if attribute not in kept]:
        raise contradiction(profile, f"style {', '.join(refused)}")
    if profile.reads_stored_values and recalc == "always":
        raise contradiction(profile, "option recalc (always)")


def script_style(profile: Profile, style: Sequence[str]) -> tuple[str, ...]:
    """Returns the style attributes to compare; a published profile has those of its script."""
    if not profile.published:
        return tuple(style)
    return tuple(name for name in style if profile.groups and name in _SCRIPT_STYLE)


def _checked(name: str, value: object) -> object:
    if name in {"ignore", "style"}:
        texts = [value] if isinstance(value, str) else value
        if isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts):
            return tuple(texts)
        raise UsageError(
            f"option {name}: expected a string or a list of strings, found {written(value)}"
        )
    if name in {"tolerance", "relative_tolerance"}:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise UsageError(f"option {name}: expected a number from 0 up, found {written(value)}")
        return float(value)
    if name in (*SCOPE_OPTIONS, *FIGURE_OPTIONS):
        if value in SCOPE_CHOICES:
            return value
        raise UsageError(
            f"option {name}: expected {', '.join(SCOPE_CHOICES)}, found {written(value)}",
            hint="`note` reports it with the verdict, `fail` makes it part of the verdict.",
        )
    if name == "accept":
        if value in ACCEPT_CHOICES:
            return value
        raise UsageError(
            f"option {name}: expected {' or '.join(ACCEPT_CHOICES)}, found {written(value)}"
        )
    if not isinstance(value, bool):
        raise UsageError(f"option {name}: expected true or false, found {written(value)}")
    return value
