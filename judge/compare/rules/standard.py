"""The judge's own reading of rule lists: what the published evaluators get wrong is right here.

Formulas are computed; sheets are found by their relationship; a sheet that is missing never equals
one without objects; objects are compared one to one and as wholes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from judge.compare.cells.computing import Compute
from judge.compare.rules import cell_rules, object_rules
from judge.compare.rules.about import about_rule
from judge.compare.rules.book import Book
from judge.compare.rules.judged import Judged, MissingSheetError, Said
from judge.compare.rules.naming import Rule
from judge.compare.rules.options import place_of
from judge.compare.rules.raised import PublishedError, Side
from judge.compare.rules.words import rule_in_words
from judge.core.finding import FoundDifference
from judge.core.submission import Origin

MISSING_SHEET = "missing_sheet"

_CHECKS: Mapping[str, Callable[[Judged, Rule], Said | None]] = {
    "sheet_name": object_rules.sheet_name,
    "sheet_data": cell_rules.sheet_data,
    "sheet_print": cell_rules.sheet_print,
    "sheet_fuzzy": cell_rules.sheet_fuzzy,
    "sparkline": object_rules.sparkline,
    "chart": object_rules.chart,
    "style": object_rules.style,
    "freeze": object_rules.freeze,
    "zoom": object_rules.zoom,
    "data_validation": object_rules.data_validation,
    "row_props": object_rules.row_props,
    "col_props": object_rules.col_props,
    "filter": object_rules.filter_rule,
    "pivot_table": object_rules.pivot_table,
    "check_cell": cell_rules.check_cell,
}


class StandardJudge:
    """Checks rules on two workbooks.

    Args:
        answer: the workbook to judge.
        gold: the gold; None if the task has none.
        compute: computes formulas.
        origin: where the answer comes from.
    """

    def __init__(self, answer: Book, gold: Book | None, compute: Compute, origin: Origin) -> None:
        self._judged = Judged(answer, gold, compute, origin)

    def differences(self, rules: Sequence[Rule]) -> list[FoundDifference]:
        """What does not hold: at most one entry for each rule.

        Raises:
            PublishedError: the gold or the rules are at fault.
            WorkbookError: a workbook is broken or over a limit.
            RecalcError: an engine cannot be started.
        """
        found = []
        for index, rule in enumerate(rules):
            kind = str(rule.get("type"))
            check = _CHECKS.get(kind)
            if check is None:
                raise PublishedError(
                    "NotImplementedError", f"Unimplemented sheet check: {kind}", Side.RULES
                )
            try:
                said = check(self._judged, rule)
            except MissingSheetError as missing:
                said = Said(missing.name, None, sheet=missing.name, kind=MISSING_SHEET)
            if said is not None:
                found.append(self._difference(index, rule, said))
        return found

    def _difference(self, index: int, rule: Rule, said: Said) -> FoundDifference:
        return FoundDifference(
            said.kind or str(rule.get("type")),
            place_of(index, rule, said.sheet),
            said.expected,
            said.actual,
            said.detail,
            index + 1,
            rule_in_words(rule),
            about_rule(rule, self._judged.answer, self._judged.gold, said.cells, said.all_cells),
        )
