"""The interface of a kind of items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from judge.compare.checklists.fields import FieldForm
from judge.compare.checklists.items import Item, Judged, Outcome, Reading
from judge.compare.checklists.workspace import Workspace

JudgeItem = Callable[[Item, Workspace, Reading], Outcome]


@dataclass(frozen=True, slots=True)
class ItemKind:
    """A kind of item.

    Attributes:
        judge: decides an item of this kind. It may raise ``MissingError``, ``WorkbookError``,
            ``PatternError``, ``MalformedError`` and ``PublishedError``; each becomes an outcome.
        words: states the requirement of an item as a sentence.
        forms: the fields of this kind, besides those that every item has.
        judged: who judges items of this kind.
        has_two_readings: whether ``official`` and ``standard`` may differ.
        faults: yields a line for every other fault in the fields of an item.
    """

    judge: JudgeItem
    words: Callable[[Item], str]
    forms: Mapping[str, FieldForm] = field(default_factory=dict)
    judged: Judged = Judged.DETERMINISTIC
    has_two_readings: bool = False
    faults: Callable[[Item], Iterator[str]] = lambda _: iter(())
