"""Signs about what a question says and its gold does not do."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from judge.console import counted
from judge.formulas.lexer import texts_of
from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, evidence, gold_evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_key

MIN_LETTERS = 2

# Longer quoted strings are sentences, not contents of a cell.
_QUOTED = re.compile(
    r"\"([^\"\n]{1,60})\"|\u201c([^\u201d\n]{1,60})\u201d|\u2018([^\u2019\n]{1,60})\u2019"
    r"|(?<![\w'])'([^'\n]{1,60})'(?![\w'])"
)


class Wording:
    """Finds strings in an answer that the question writes in a different letter case."""

    name = "wording"
    title = "the answer has a word that the question writes in a different letter case"
    about = About.GOLD
    blind_spots = (
        "only words that the question has in quotation marks are compared",
        (
            "words that the input or the question also writes as the gold does are left out, and "
            "so are words that differ only in spaces"
        ),
        "the question may quote a word of the input, and not one that the answer must contain",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose answer writes the question's words differently."""
        question = material.task.instruction
        quoted = _quoted(question)
        if quoted:
            for case in material.cases:
                yield from self._case(material, case, quoted, question)

    def _case(
        self, material: TaskMaterial, case: CaseMaterial, quoted: Mapping[str, str], question: str
    ) -> Iterator[Suspect]:
        by_text: dict[str, list[CellAddress]] = {}
        for address, value in case.answer.items():
            if not isinstance(value, str):
                continue
            if quoted.get(value.strip().casefold(), value.strip()) != value.strip():
                by_text.setdefault(value, []).append(address)
        input_strings = _strings(case) if by_text else frozenset()
        by_text = {
            text: addresses
            for text, addresses in by_text.items()
            if text not in input_strings and not _has_word(question, text.strip())
        }
        if not by_text:
            return
        text, addresses = next(iter(by_text.items()))
        cells = [(text, address) for text, several in by_text.items() for address in several]
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY,
            f"the gold's {address_in(case.gold, addresses[0])} is {shown(text)}, "
            f"the question asks for {shown(quoted[text.strip().casefold()])}",
            f"letter case counts: {counted(len(cells), 'cell')} would reject what the question has "
            "in quotation marks",
            gold_evidence(
                case,
                [address for _, address in cells],
                expected={address: quoted[text.strip().casefold()] for text, address in cells},
                note="expected in the letter case of the question",
            ),
        )


def _quoted(question: str) -> dict[str, str]:
    """Returns the quotations in a question, case-folded, without words it writes in two ways."""
    quoted: dict[str, set[str]] = {}
    for match in _QUOTED.finditer(question):
        text = next(group for group in match.groups() if group is not None).strip().rstrip(".,;")
        if sum(character.isalpha() for character in text) >= MIN_LETTERS:
            quoted.setdefault(text.casefold(), set()).add(text)
    return {folded: next(iter(forms)) for folded, forms in quoted.items() if len(forms) == 1}


def _strings(case: CaseMaterial) -> frozenset[str]:
    """Returns every string of the input."""
    return frozenset(
        value
        for sheet in case.input.sheet_names
        for value in case.input.values(sheet).values()
        if isinstance(value, str)
    )


def _has_word(question: str, text: str) -> bool:
    """Returns whether a question has a word in exactly this letter case, quoted or not."""
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", question) is not None


WORDING = Wording()


# "which should give me a result of 25", "the correct answer is 1,200.5", "resulting in 60".
_STATED = re.compile(
    r"\b(?:(?:should|would|must)\s+(?:\w+\s+){0,2}?"
    r"(?:be|equal|give|return|show|display|result\s+in)(?:\s+\w+){0,4}?"
    r"|(?:result|answer|total|value)\s+(?:is|of|should\s+be)|resulting\s+in)"
    r"\s+(?P<number>-?\d[\d,]*(?:\.\d+)?)(?![\w%/:])",
    re.IGNORECASE,
)


class StatedResult:
    """Finds results that the question states and the input shows, and that the gold changes."""

    name = "stated-result"
    title = "the question states a result that the input shows, and the gold has another value"
    about = About.GOLD
    blind_spots = (
        "only numbers that follow words such as 'should give' or 'resulting in' count",
        "a result that the input does not show in a cell of the answer cannot be located",
        "a stated number can be equal by chance to a wrong value that the question wants corrected",
    )

    def examine(self, material: TaskMaterial) -> Iterator[Suspect]:
        """Yields one suspect for each case whose gold changes a stated result."""
        stated = {
            float(match["number"].replace(",", ""))
            for match in _STATED.finditer(material.task.instruction)
        }
        if stated:
            for case in material.cases:
                cells = _changed_results(case, stated)
                if cells:
                    yield self._suspect(material, case, cells)

    def _suspect(
        self, material: TaskMaterial, case: CaseMaterial, cells: list[CellAddress]
    ) -> Suspect:
        first = cells[0]
        return suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, the "
            f"question states {shown(case.input.value(first))}{and_more(len(cells))}",
            "the input shows the stated result in the same cell",
            gold_evidence(
                case,
                cells,
                expected={cell: case.input.value(cell) for cell in cells},
                note="expected as the question states it",
            ),
        )


def _changed_results(case: CaseMaterial, stated: set[float]) -> list[CellAddress]:
    """Finds answer cells in which the gold changes a stated value to one that is not stated."""
    if case.ranges != case.input_ranges:
        return []
    return [
        address
        for address, value in sorted(case.answer.items())
        if _is_among(case.input.value(address), stated)
        and not agree(value, case.input.value(address))
        and not _is_among(value, stated)
    ]


def _is_among(value: object, stated: set[float]) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and float(value) in stated


STATED_RESULT = StatedResult()


CUSTOMARY = frozenset({"yes", "no", "true", "false", "n/a", "na", "error", "total", "grand total"})
"""Words that people expect even if no question names them."""

STEM = 4
"""Words that begin with the same letters, at least this many, count as forms of one word."""

_WORD = re.compile(r"[^\W_]+")


class UnnamedLabel:
    """Finds words in an answer that neither the question nor the input contains.

    A program can compute a number, but it cannot guess which word the author of the gold chose for
    a result, unless the question or the input has the word.
    """

    name = "unnamed-label"
    title = "the answer holds a word that neither the question nor the input has"
    about = About.GOLD
    blind_spots = (
        "if the gold has formulas, a word counts only if a formula writes it as a whole cell",
        f"customary words are left out: {', '.join(sorted(CUSTOMARY))}",
        "a question in a language other than its workbook's may name the word in its language",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose answer has words that a program cannot know."""
        given = _words(material.task.instruction)
        for case in material.cases:
            given |= _words_of(case)
        for case in material.cases:
            yield from self._case(material, case, given)

    def _case(
        self, material: TaskMaterial, case: CaseMaterial, given: frozenset[str]
    ) -> Iterator[Suspect]:
        cells = [address for address in sorted(case.answer) if _is_unnamed(case, address, given)]
        if not cells:
            return
        first = cells[0]
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer[first])}"
            f"{and_more(len(cells))}",
            f"neither the question nor an input has the word: {counted(len(cells), 'cell')} of "
            f"{len(case.answer):,} in the answer can only be guessed",
            gold_evidence(case, cells),
        )


def _is_unnamed(case: CaseMaterial, address: CellAddress, given: frozenset[str]) -> bool:
    """Returns whether a word of the gold occurs nowhere else, so that its author chose it."""
    value, formula = case.answer[address], case.gold.formula(address)
    if not isinstance(value, str) or value.strip().casefold() in CUSTOMARY:
        return False
    if sum(character.isalpha() for character in value) < MIN_LETTERS:
        return False
    # A word with digits is a code or an identifier, which programs can construct.
    words = frozenset(word for word in _words(value) if word.isalpha())
    if words <= given:
        return False
    if formula is None:
        return True
    return words <= frozenset(word for text in texts_of(formula) for word in _words(text))


def _words(text: str) -> frozenset[str]:
    """Returns the words of a string, each shortened to the letters that its other forms share."""
    return frozenset(match[0].casefold()[:STEM] for match in _WORD.finditer(text))


def _words_of(case: CaseMaterial) -> frozenset[str]:
    """Returns the words in the cells, formulas and sheet names of an input."""
    texts = list(case.input.sheet_names)
    for sheet in case.input.sheet_names:
        texts += [value for value in case.input.values(sheet).values() if isinstance(value, str)]
        texts += [
            text for formula in case.input.formulas(sheet).values() for text in texts_of(formula)
        ]
    return frozenset(word for text in dict.fromkeys(texts) for word in _words(text))


UNNAMED_LABEL = UnnamedLabel()


MIN_ROWS = 4
"""How many rows a gold must fill in."""

MAX_OMITTED = 2
MAX_ROWS = 5_000

_QUOTED_WORD = re.compile(
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
    """Finds rows that one gold leaves out although they have a word that the question quotes."""

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
            for words in _QUOTED_WORD.findall(material.task.instruction)
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
            for column, column_texts in texts.items():
                for word in words:
                    named = frozenset(row for row, text in column_texts.items() if word in text)
                    if column != answer and len(changed) >= MIN_ROWS and len(named) < len(rows):
                        rule = _Rule(word, area.sheet, answer, column)
                        rules[rule] = (frozenset(changed), named)
    return rules


OMITTED_ROW = OmittedRow()
