"""Finds rows with a word that the question quotes, which one gold leaves out."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_key

MIN_ROWS = 4
"""How many rows a gold must fill in."""

MAX_OMITTED = 2
MAX_ROWS = 5_000

_QUOTED = re.compile(
    r"\"([^\"\n]{2,30})\"|\u201c([^\u201d\n]{2,30})\u201d|(?<!\w)'([^'\n]{2,30})'(?!\w)"
)


@dataclass(frozen=True)
class _Rule:
    """A rule: golds fill in one column of the answer if another column has a quoted word."""

    word: str
    sheet: str
    answer: int
    text: int


class OmittedRow:
    """See :mod:`judge.suspects.signs.omitted_row`."""

    name = "omitted-row"
    title = "the gold leaves out a row with the word that the question quotes"
    about = About.GOLD
    blind_spots = (
        "a rule counts only if another case's gold fills in exactly the rows with the word",
        "words in a different letter case than in the question, and conditions with two words",
        "a question with a second condition, which the row does not meet",
    )

    def examine(self, material: TaskMaterial) -> Iterator[Suspect]:
        """Yields one suspect for each case whose gold leaves out one or two rows of such a rule."""
        words = {
            word.strip().casefold()
            for words in _QUOTED.findall(material.task.instruction)
            for word in words
            if any(map(str.isalpha, word))
        }
        if not words:
            return
        by_case = {case.number: _rows_by_rule(case, words) for case in material.cases}
        kept = {
            rule
            for rules in by_case.values()
            for rule, (filled, named) in rules.items()
            if filled == named
        }
        for case in material.cases:
            for rule, (filled, named) in by_case[case.number].items():
                omitted = sorted(named - filled)
                if rule in kept and filled < named and len(omitted) <= MAX_OMITTED:
                    yield self._suspect(material, case, rule, omitted)
                    break

    def _suspect(
        self, material: TaskMaterial, case: CaseMaterial, rule: _Rule, rows: list[int]
    ) -> Suspect:
        cells = [CellAddress(rule.sheet, cell_key(row, rule.answer)) for row in rows]
        texts = [CellAddress(rule.sheet, cell_key(row, rule.text)) for row in rows]
        return suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY,
            f"the gold does not change {address_in(case.gold, cells[0])}{and_more(len(cells))}, "
            f"next to {shown(case.input.value(texts[0]))}",
            f"the question quotes {rule.word!r}, and the gold of another case fills in exactly "
            "the rows that hold it",
            [
                *(evidence(EvidenceFile.GOLD, cell, found=case.gold.value(cell)) for cell in cells),
                *(
                    evidence(EvidenceFile.INPUT, cell, found=case.input.value(cell))
                    for cell in texts
                ),
            ],
        )


def _rows_by_rule(
    case: CaseMaterial, words: set[str]
) -> Mapping[_Rule, tuple[frozenset[int], frozenset[int]]]:
    """Returns for each rule the rows that the gold fills in or changes, and those with the word."""
    rules: dict[_Rule, tuple[frozenset[int], frozenset[int]]] = {}
    for area in case.ranges:
        if area.sheet not in case.input or area.max_row - area.min_row >= MAX_ROWS:
            continue
        rows = range(area.min_row, area.max_row + 1)
        texts: dict[int, dict[int, str]] = defaultdict(dict)
        filled: dict[int, set[int]] = defaultdict(set)
        for key, value in case.input.values(area.sheet).items():
            if isinstance(value, str) and key >> COLUMN_BITS in rows:
                texts[key & COLUMN_MASK][key >> COLUMN_BITS] = value.casefold()
        for address, value in case.answer.items():
            if address.sheet == area.sheet and not agree(value, case.input.value(address)):
                filled[address.column].add(address.row)
        for answer, changed in filled.items():
            for column, held in texts.items():
                for word in words:
                    named = frozenset(row for row, text in held.items() if word in text)
                    if column != answer and len(changed) >= MIN_ROWS and len(named) < len(rows):
                        rule = _Rule(word, area.sheet, answer, column)
                        rules[rule] = (frozenset(changed), named)
    return rules


SIGN = OmittedRow()
