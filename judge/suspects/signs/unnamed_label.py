"""Finds words in an answer that neither the question nor the input contains.

A program can compute a number, but it cannot guess which word the author of the gold chose for a
result, unless the question or the input has the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from judge.console import counted
from judge.formulas.lexer import texts_of
from judge.suspects.books import CellAddress
from judge.suspects.contract import address_in, and_more, gold_evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, Suspect

CUSTOMARY = frozenset({"yes", "no", "true", "false", "n/a", "na", "error", "total", "grand total"})
"""Words that people expect even if no question names them."""

MIN_LETTERS = 2
STEM = 4
"""Words that share this many first letters are taken to be forms of one word."""

_WORD = re.compile(r"[^\W_]+")


class UnnamedLabel:
    """See :mod:`judge.suspects.signs.unnamed_label`."""

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


SIGN = UnnamedLabel()
