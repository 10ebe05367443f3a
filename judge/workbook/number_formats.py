"""Number formats of the cells of a workbook: which code each cell format has, which are dates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from judge.workbook.dates import is_date_format, is_elapsed_format

_Predicate = Callable[[str], bool]

GENERAL = "General"

_MONEY = '"$"#,##0'
_MONEY_2 = '"$"#,##0.00'
BUILTIN_FORMATS: dict[int, str] = {
    0: GENERAL,
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    5: f"{_MONEY}_);({_MONEY})",
    6: f"{_MONEY}_);[Red]({_MONEY})",
    7: f"{_MONEY_2}_);({_MONEY_2})",
    8: f"{_MONEY_2}_);[Red]({_MONEY_2})",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    14: "mm-dd-yy",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "m/d/yy h:mm",
    37: "#,##0_);(#,##0)",
    38: "#,##0_);[Red](#,##0)",
    39: "#,##0.00_);(#,##0.00)",
    40: "#,##0.00_);[Red](#,##0.00)",
    41: r'_(* #,##0_);_(* \(#,##0\);_(* "-"_);_(@_)',
    42: r'_("$"* #,##0_);_("$"* \(#,##0\);_("$"* "-"_);_(@_)',
    43: r'_(* #,##0.00_);_(* \(#,##0.00\);_(* "-"??_);_(@_)',
    44: r'_("$"* #,##0.00_)_("$"* \(#,##0.00\)_("$"* "-"??_)_(@_)',
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mmss.0",
    48: "##0.0E+0",
    49: "@",
}
"""Codes of the number formats that files name only by id, as openpyxl writes them."""


@dataclass(frozen=True)
class NumberFormats:
    """Number formats by cell format.

    Attributes:
        ids: id of the number format of each cell format (``cellXfs``), by index.
        custom: code of each number format that the workbook defines, by id.
    """

    ids: tuple[int, ...] = ()
    custom: dict[int, str] = field(default_factory=dict)

    def code(self, style: int) -> str:
        """The code of a cell format; ``General`` if nothing defines one."""
        if not 0 <= style < len(self.ids):
            return GENERAL
        number = self.ids[style]
        return self.custom.get(number) or BUILTIN_FORMATS.get(number, GENERAL)

    @cached_property
    def dates(self) -> frozenset[int]:
        """Cell formats whose numbers are dates or times."""
        return self._where(is_date_format)

    @cached_property
    def elapsed(self) -> frozenset[int]:
        """Cell formats whose numbers are elapsed times."""
        return self._where(is_elapsed_format)

    def _where(self, holds: _Predicate) -> frozenset[int]:
        codes = BUILTIN_FORMATS | self.custom
        numbers = {number for number in set(self.ids) if holds(codes.get(number, GENERAL))}
        return frozenset(style for style, number in enumerate(self.ids) if number in numbers)
