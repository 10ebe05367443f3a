"""Relations that change keys, and the material that all relations are made from."""

from __future__ import annotations

import functools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from judge.annotate.edits import Edit, SetCell
from judge.annotate.idea import CarriedAnswer, Idea, Subject, Values
from judge.annotate.support import Group
from judge.annotate.tables import Kind
from judge.formulas.lexer import texts_of
from judge.workbook.address import MAX_COLUMN, MAX_ROW
from judge.workbook.cell import CellRange, CellRef, CellValue
from judge.workbook.reader import Workbook, sheet_formulas

MAX_KEYS = 2
"""How many ideas one relation may contribute for one workbook."""

MAX_KEY_CHARS = 40

MIN_PIECE = 3
"""How long text in the answer must be to count as part of a key."""


_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
"""A word of a key that is long enough for a question to refer to the key by it."""

_SEPARATOR = re.compile(r"\s+[-\u2013|/:]\s+|\s*[,;]\s+")


@dataclass(frozen=True)
class Material:
    """The material that relations are made from.

    Attributes:
        subject: the tables and columns of the input.
        workbook: the input.
        gold: the gold of the case.
        instruction: the question.
        answer: the values of the gold's answer.
    """

    subject: Subject
    workbook: Workbook
    gold: Workbook
    instruction: str
    answer: Values

    @cached_property
    def constants(self) -> Mapping[CellRef, CellValue]:
        """The constants of the input, by cell."""
        return {
            CellRef(sheet, row, column): cell.value
            for sheet in self.workbook.sheet_names
            for (row, column), cell in self.workbook.cells(
                CellRange(sheet, 1, 1, MAX_ROW, MAX_COLUMN)
            ).items()
            if cell.formula is None and cell.value not in {None, ""}
        }

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """Text within the formulas of input and gold, in lower case."""
        return tuple(
            {
                text.casefold()
                for workbook in (self.workbook, self.gold)
                for sheet in workbook.sheet_names
                for formula in {cell.formula for cell in sheet_formulas(workbook, sheet)}
                for text in texts_of(formula or "")
                if text.strip()
            }
        )

    @cached_property
    def headings(self) -> frozenset[str]:
        """The headings of the tables, in lower case."""
        return frozenset(
            str(cell.value).casefold()
            for table in self.subject.tables
            for cell in (table.head or {}).values()
        )

    @cached_property
    def answer_texts(self) -> frozenset[str]:
        """The strings in the answer."""
        return frozenset(value for value in self.answer.values() if isinstance(value, str))

    @cached_property
    def whole_texts(self) -> frozenset[str]:
        """The strings that are the whole content of a cell."""
        return frozenset(value for value in self.constants.values() if isinstance(value, str))

    def _holds_another(self, text: str) -> bool:
        """Whether a key contains others: they would keep their names if this key were renamed."""
        if len(_SEPARATOR.split(text)) > 1:
            return True
        return any(
            len(other) > 1 and len(other) < len(text) and _word(other).search(text)
            for other in self.whole_texts
            if other in text
        )

    def counts(self, text: str) -> int:
        """How many cells contain a piece of text as whole words."""
        pattern = _word(text)
        return sum(
            isinstance(value, str) and pattern.search(value) is not None
            for value in self.constants.values()
        )

    def may_rename(self, text: str, others: Sequence[str]) -> bool:
        """Whether a key can be renamed: only its own cells mention the key or a part of it.

        Args:
            text: the key.
            others: the other keys of its column; a word that it shares with one of them is not a
                mention of the key.
        """
        folded = text.casefold()
        if not (
            1 < len(text) <= MAX_KEY_CHARS and any(map(str.isalpha, text)) and text == text.strip()
        ):
            return False
        question = self.instruction.casefold()
        if _word(folded).search(question) or folded in self.headings:
            return False
        shared = {word for other in others for word in _LONG_WORD.findall(other.casefold())}
        own = set(_LONG_WORD.findall(folded)) - shared
        if any(_word(word).search(question) for word in own):
            return False
        if any(folded == name.casefold() for name in self.workbook.sheet_names):
            return False
        if any(literal in folded or folded in literal for literal in self.literals):
            return False
        if self._holds_another(text):
            return False
        return not any(
            piece != text and len(piece) >= MIN_PIECE and piece in text
            for piece in self.answer_texts
        )


@functools.lru_cache(maxsize=4096)
def _word(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")


def unchanged(answer: Values) -> Values:
    """The answer of a relation that changes nothing in it."""
    return answer


def _terms(group: Group) -> list[list[str]]:
    """The strings of a column and then, for each position, their parts between separators."""
    texts = [value for value in group.values() if isinstance(value, str)]
    split = [_SEPARATOR.split(text) for text in texts]
    width = min((len(parts) for parts in split), default=0)
    columns = [[parts[index] for parts in split] for index in range(width)] if width > 1 else []
    return [texts, *columns]


def _named(old: str, new: str, material: Material) -> tuple[Edit, ...]:
    pattern = _word(old)
    return tuple(
        SetCell(ref, pattern.sub(new.replace("\\", r"\\"), value))
        for ref, value in material.constants.items()
        if isinstance(value, str) and pattern.search(value)
    )


def _renamed(old: str, new: str) -> Callable[[Values], Values]:
    pattern = _word(old)

    def carry(answer: Values) -> Values:
        return {
            ref: pattern.sub(new.replace("\\", r"\\"), value) if isinstance(value, str) else value
            for ref, value in answer.items()
        }

    return carry


def _is_free(new: str, material: Material) -> bool:
    folded = new.casefold()
    return not any(
        isinstance(value, str) and folded in value.casefold()
        for value in material.constants.values()
    )


MAX_TRIED = 12
"""How many terms of one column are tried."""

MAX_TERMS = 200
"""How many terms of one column are compared with each other."""


def _keys(material: Material, *, named: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Yields keys that occur at least twice, with all terms of the column; the answer's keys first.

    With ``named``, keys that the question names are included.
    """
    used_terms: set[str] = set()
    for group in material.subject.groups:
        if group.kind is not Kind.TEXT:
            continue
        for terms in _terms(group):
            counts = Counter(terms)
            if named and len(counts) == 1:
                continue  # another column holds this term together with others
            usual = sorted(
                counts,
                key=lambda term: (
                    term not in material.answer_texts,
                    term not in material.whole_texts,
                    -counts[term],
                    term,
                ),
            )
            for term in usual[:MAX_TRIED]:
                if term in used_terms or material.counts(term) < 2:
                    continue
                others = [other for other in usual[:MAX_TERMS] if other != term]
                if (named and _is_key(term)) or material.may_rename(term, others):
                    used_terms.add(term)
                    yield term, list(counts)[:MAX_TERMS]


def _is_key(text: str) -> bool:
    return 1 < len(text) <= MAX_KEY_CHARS and any(map(str.isalpha, text))


_PARTS = re.compile(r"contain|includ|partial|portion|begin|start(?:s|ing) with|end(?:s|ing) with")
"""Words after which a key in a question may mean all keys that contain it."""


def _longer(key: str) -> str:
    """Makes a longer key that sorts right after this one: Anna, Annan; RP-3, RP-31."""
    last = key[-1]
    if last.isdigit():
        return f"{key}1"
    return f"{key}{'N' if key.isupper() else 'n'}" if last.isalpha() else f"{key}x"


def renamed_keys(material: Material, rng: random.Random) -> Iterator[Idea]:
    """Renames one key everywhere to a name that does not exist yet."""
    keys = [key for key, _ in _keys(material) if _is_free(_longer(key), material)]
    for key in keys[: MAX_KEYS // 2] + _drawn(keys[MAX_KEYS // 2 :], rng, MAX_KEYS // 2):
        new = _longer(key)
        yield Idea(
            "renamed-key",
            f"{key!r} is called {new!r} everywhere",
            _named(key, new, material),
            relation=f"the same workbook, in which {key!r} is called {new!r} everywhere, has the "
            "same answer but for that name",
            carried=CarriedAnswer(_renamed(key, new), is_certain=True),
        )


def _drawn(keys: Sequence[str], rng: random.Random, count: int) -> list[str]:
    return rng.sample(list(keys), min(count, len(keys)))


def keys_within_keys(material: Material, rng: random.Random) -> Iterator[Idea]:
    """Renames one key to a name that begins, or ends, with another key."""
    ideas_by_place: Counter[str] = Counter()
    named = _PARTS.search(material.instruction.casefold()) is None
    for short, terms in _keys(material, named=named):
        others = [
            term
            for term in rng.sample(terms, min(MAX_TRIED, len(terms)))
            if short not in term
            and term not in short
            and material.may_rename(term, [key for key in terms if key != term])
        ]
        if not others or _is_sorted(terms, material):
            continue
        other = others[0]
        for verb, new in (("begins", _longer(short)), ("ends", _with_beginning(short))):
            if ideas_by_place[verb] < MAX_KEYS and _is_free(new, material):
                ideas_by_place[verb] += 1
                yield Idea(
                    "key-within-key",
                    f"{other!r} is called {new!r} everywhere, which {verb} with {short!r}",
                    _named(other, new, material),
                    relation=f"{other!r} is called {new!r} everywhere; that it {verb} with "
                    f"{short!r} does not make it {short!r}",
                    carried=CarriedAnswer(_renamed(other, new), is_certain=True),
                )


def _with_beginning(key: str) -> str:
    """Makes a longer key that ends with this one: Ann, Joann."""
    if key.isupper() or not key[0].isalpha():
        return f"X{key}"
    return f"Jo{key[0].lower()}{key[1:]}"


def _is_sorted(terms: Sequence[str], material: Material) -> bool:
    """Whether the answer lists keys in sorted order, which a new name would change."""
    term_set = frozenset(terms)
    by_column: dict[tuple[str, int], list[str]] = {}
    for ref in sorted(material.answer):
        value = material.answer[ref]
        if isinstance(value, str) and value in term_set:
            by_column.setdefault((ref.sheet, ref.column), []).append(value.casefold())
    return any(len(set(values)) > 1 and values in (sorted(values), sorted(values, reverse=True))
               for values in by_column.values())  # fmt: skip


_CODE = re.compile(r"(?P<prefix>[A-Za-z]{1,6})[-_ ]?\d[\w.-]*")


def other_prefixes(material: Material, rng: random.Random) -> Iterator[Idea]:
    """Changes the letters before the digits in all codes of a column: ca-1004, db-1004."""
    del rng
    used_prefixes: set[str] = set()
    for group in material.subject.groups:
        codes = [match for value in group.values() if (match := _CODE.fullmatch(str(value)))]
        prefixes = {match["prefix"] for match in codes}
        if len(codes) < max(2, len(group.cells)) or len(prefixes) != 1 or prefixes & used_prefixes:
            continue
        (old,) = prefixes
        new = "".join(map(_next_letter, old))
        question = material.instruction.casefold()
        named = re.search(rf"(?<!\w){re.escape(old.casefold())}(?![^\W\d])", question)
        if named or any(old.casefold() in literal for literal in material.literals):
            continue
        if any(piece in old for piece in material.answer_texts):
            continue
        used_prefixes.add(old)
        pattern = re.compile(rf"(?<!\w){re.escape(old)}(?=[-_ ]?\d)")

        def carry(answer: Values, pattern: re.Pattern[str] = pattern, new: str = new) -> Values:
            return {
                ref: pattern.sub(new, value) if isinstance(value, str) else value
                for ref, value in answer.items()
            }

        yield Idea(
            "other-prefix",
            f"all codes begin with {new!r} and no longer with {old!r}",
            tuple(
                SetCell(ref, pattern.sub(new, value))
                for ref, value in material.constants.items()
                if isinstance(value, str) and pattern.search(value)
            ),
            relation=f"all codes begin with {new!r} in place of {old!r}, and so do those in the "
            "answer; nothing else changes",
            carried=CarriedAnswer(carry, is_certain=True),
        )


def _next_letter(letter: str) -> str:
    first = "A" if letter.isupper() else "a"
    return chr((ord(letter) - ord(first) + 1) % 26 + ord(first))


def keys_as_text(material: Material, rng: random.Random) -> Iterator[Idea]:
    """Stores numeric keys as text, wherever they occur."""
    del rng
    groups = [group for group in material.subject.groups if group.kind is Kind.NUMBER]
    answers = set(material.answer.values())
    for keys in groups:
        if not keys.is_looked_up or set(keys.values()) & answers:
            continue
        partners = [
            group
            for group in groups
            if group is not keys and set(group.values()) & set(keys.values())
        ]
        integers = {
            group.ref(row): group.cells[row].value
            for group in (keys, *partners)
            for row in group.rows(Kind.NUMBER)
        }
        texts = {
            ref: str(int(value)) for ref, value in integers.items()
            if isinstance(value, int | float) and float(value).is_integer()
        }  # fmt: skip
        if partners and len(texts) == len(integers):
            yield Idea(
                "keys-as-text",
                f"the keys of {keys.sheet!r} as text, on both sides",
                tuple(SetCell(ref, text) for ref, text in texts.items()),
                relation="the keys are text on both sides, and still the same keys",
                carried=CarriedAnswer(unchanged),
            )


def keys_with_blanks(material: Material, rng: random.Random) -> Iterator[Idea]:
    """Appends a blank to one key in every cell that holds only this key."""
    keys = [key for key, _ in _keys(material) if key not in material.answer_texts]
    for key in _drawn(keys, rng, 1):
        edits = tuple(
            SetCell(ref, f"{key} ") for ref, value in material.constants.items() if value == key
        )
        if len(edits) > 1:
            yield Idea(
                "key-with-blank",
                f"{key!r} has a blank after it everywhere",
                edits,
                relation=f"{key!r} has a blank after it on both sides, and is still one key",
                carried=CarriedAnswer(unchanged, is_certain=True),
            )
