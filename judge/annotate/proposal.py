"""What the sources of a gold say: an input with the gold that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from judge.annotate.answers import Moved
from judge.annotate.voices import FORMULA_VOICE, Side, vote_line
from judge.core.records.cases import CaseComparison

FORMULAS = FORMULA_VOICE
SAME_VALUES = "gold of the case, whose values did not change"
BY_HAND = "by hand"

MIN_AGREEING = 2
"""Independent sources that should agree on a gold: its formulas, each reference, the annotator's
own hand."""


@dataclass(frozen=True, slots=True)
class GoldSource:
    """What one source says of the answer.

    Attributes:
        name: :data:`FORMULAS`, or the name of a reference solution.
        problem: why it gives no answer, or empty.
        data: its workbook, where it has one.
        agrees: whether it agrees with the gold; None where it says nothing.
        comparison: cells in which it does not, as the comparison records them.
        voice: sources with the same voice are not independent of each other.
    """

    name: str
    problem: str = ""
    data: bytes | None = None
    agrees: bool | None = None
    comparison: CaseComparison = field(default_factory=CaseComparison)
    voice: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """An input with the gold that follows from it.

    Attributes:
        input: the changed input workbook.
        gold: the gold workbook; None where no source says anything.
        sources: what each source says, the one that the gold is from first.
        moved: cells of the answer that moved.
        notes: lines for people.
        sides: the sources by what they say, the side that the gold is from first.
        decided: the source that a person named to decide between the sides, or empty.
    """

    input: bytes
    gold: bytes | None
    sources: tuple[GoldSource, ...]
    moved: tuple[Moved, ...] = ()
    notes: tuple[str, ...] = ()
    sides: tuple[Side, ...] = ()
    decided: str = ""

    @property
    def agreeing(self) -> tuple[str, ...]:
        """Names of the sources that agree with the gold."""
        return tuple(source.name for source in self.sources if source.agrees)

    @property
    def disagreeing(self) -> tuple[GoldSource, ...]:
        """The sources that disagree with the gold."""
        return tuple(source for source in self.sources if source.agrees is False)

    @property
    def voices(self) -> int:
        """How many independent sources agree with the gold."""
        return len({source.voice or source.name for source in self.sources if source.agrees})

    @property
    def vote(self) -> str:
        """How the sources voted, in one line; empty if they do not disagree."""
        return vote_line(self.sides) if len(self.sides) > 1 else ""

    @property
    def is_open(self) -> bool:
        """Whether the sources disagree and nobody has decided yet."""
        return len(self.sides) > 1 and not self.decided
