"""Finds strings in an answer that the question writes in a different letter case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from judge.console import counted
from judge.suspects.books import CellAddress
from judge.suspects.contract import address_in, gold_evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, Suspect

MIN_LETTERS = 2

# Longer quoted strings are sentences, not contents of a cell.
_QUOTED = re.compile(
    r"\"([^\"\n]{1,60})\"|\u201c([^\u201d\n]{1,60})\u201d|\u2018([^\u2019\n]{1,60})\u2019"
    r"|(?<![\w'])'([^'\n]{1,60})'(?![\w'])"
)


class Wording:
    """See :mod:`judge.suspects.signs.wording`."""

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


SIGN = Wording()
