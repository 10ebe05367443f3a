"""Ranks suggestions, so that a person sees the most useful first, and finds doubtful ones. Pure.

The more likely the input of a suggestion is, and the more independent sources agree on its answer,
the more it is worth. If the answer comes only from a formula of the gold that is doubtful, it is
worth less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from judge.annotate.carried import RELATIONS
from judge.annotate.edits import MergeCells
from judge.annotate.gold_sources import FORMULAS, MIN_AGREEING, Proposal, skeleton
from judge.annotate.idea import REPEATS_KEYS
from judge.annotate.relations import RELATION_NAMES
from judge.suspects.books import NO_ANSWER
from judge.workbook.address import parse_cell
from judge.workbook.editing.sheet_xml import SetCell

if TYPE_CHECKING:
    from judge.annotate.idea import Idea
    from judge.annotate.strength import Trial
    from judge.annotate.suggest import Suggestion

CONTRADICTS = "the program contradicts itself"
DOUBTFUL = "the gold's own formulas are doubtful here"
SAME_EFFECT = "the same as one above: these formulas against the program, in the same way"
OTHER_VALUES = "other values"

_GROUPS: Mapping[str, tuple[float, tuple[str, ...]]] = {
    "other keys, and keys that repeat": (
        3,
        (
            *("other-key", "lookup-edges", "equal-amounts", "repeated-keys", "duplicate-keys"),
            *("ties", "categories", "named-words"),
        ),
    ),
    "more records, and other rows": (
        2.5,
        (
            *("inserted-row", "one-more-row", "same-key-record", "duplicate-rows", "edge-rows"),
            *("shuffled-rows", "ten-times-the-rows", "one-more-column"),
        ),
    ),
    "keys that are not in the list": (2.5, ("unknown-label", "text-key")),
    "text among numbers, numbers among text": (2, ("minority-kinds",)),
    "numbers and days at their limits": (
        2,
        (
            *("at-limits", "limits", "sum-at-limit", "days", "dates", "numbers", "fractions"),
            *("equal-columns", "negative"),
        ),
    ),
    "text of another shape": (2, ("text-shapes", "times-of-day", "reordered-text")),
    "cells that are blank": (
        1.5,
        (
            *("blank-read", "blank-columns", "blank-cells", "blank-rows", "empty-key"),
            *("zeros-and-blanks", "blank-numbers-of-a-row"),
        ),
    ),
    "values stored in another way": (
        1,
        (
            *("constant-to-formula", "key-as-text", "numbers-as-text", "text-as-numbers"),
            *("spaces", "nbsp", "case", "unicode"),
        ),
    ),
    "tables and workbooks that are rare": (
        0.5,
        (
            *("one-row", "no-row", "huge", "swapped-pair", "date-system", "renamed-sheet"),
            *("merged-cells",),
        ),
    ),
    "proposed by a chat model": (2, ("model",)),
}
"""Kind of change -> how likely such inputs are, from 0 to 3, and the mutators that make them."""

_LIKELY = {name: likely for likely, names in _GROUPS.values() for name in names}
_LIKELY |= {"word-of-the-macro": 2, "same-word-or-another": 2, "sorted-whatever-the-order": 3}
_LIKELY |= {"renamed-key": 3, "key-within-key": 2.5, "other-prefix": 2.5, "keys-as-text": 2}
_LIKELY |= {"repeated-record": 3, "split-record": 2.5, "swapped-records": 2.5}
_LIKELY |= {"remark-column": 2, "blank-row": 1.5, "other-unit": 2, "key-with-blank": 1}

_GROUP_OF = {name: group for group, (_, names) in _GROUPS.items() for name in names}


def likelihood(mutator: str) -> float:
    """How likely a mutator's inputs are, from 0 to 3."""
    return _LIKELY.get(mutator, 1.0)


def by_likelihood(ideas: Iterable[Idea]) -> list[Idea]:
    """Sorts ideas by the likelihood of their inputs, the most likely first; the sort is stable."""
    return sorted(ideas, key=lambda idea: -likelihood(idea.mutator))


def group_of(suggestion: Suggestion, contradictions: Sequence[str] = ()) -> str:
    """The group of a suggestion, by its kind of change or its kind of evidence.

    Args:
        suggestion: the suggestion.
        contradictions: relations that the gold's formulas do not keep.
    """
    if doubt_of(suggestion, contradictions):
        return DOUBTFUL
    name = suggestion.idea.mutator
    if name in RELATIONS or name in RELATION_NAMES:
        return CONTRADICTS
    if suggestion.proposal is None or suggestion.proposal.gold is None:
        return CONTRADICTS if suggestion.idea.twins else "no source says what the answer is"
    return _GROUP_OF.get(name, OTHER_VALUES)


def worth(suggestion: Suggestion, contradictions: Sequence[str] = ()) -> float:
    """How useful it is to review a suggestion; higher is better."""
    points = likelihood(suggestion.idea.mutator)
    proposal = suggestion.proposal
    independent = proposal.independent if proposal is not None else 0
    if not suggestion.contested:
        points += 2
    elif independent >= MIN_AGREEING:
        points += 1
    if group_of(suggestion) == CONTRADICTS:
        points += 1.5
    if suggestion.idea.disputed:
        points -= 0.5
    if doubt_of(suggestion, contradictions):
        points -= 2.5
    return points


def doubt_of(suggestion: Suggestion, contradictions: Sequence[str] = ()) -> str:
    """Why the gold's formula is a doubtful source if it is a suggestion's only one; or empty.

    Args:
        suggestion: the suggestion.
        contradictions: relations that the gold's formulas do not keep.
    """
    if suggestion.doubtful:
        return suggestion.doubtful
    proposal = suggestion.proposal
    follows = proposal is not None and proposal.agreeing == (FORMULAS,)
    if follows and contradictions:
        return f"the gold's formulas contradict themselves: {contradictions[0]}"
    if follows and suggestion.idea.disputed == REPEATS_KEYS:
        return "the gold's formulas take the first or the last of several rows with a key"
    return ""


def doubt_of_formulas(idea: Idea, proposal: Proposal, kills: Sequence[Trial]) -> str:
    """Why the gold's formulas are a doubtful source if they are an answer's only one; or empty.

    Args:
        idea: the changes.
        proposal: input and gold.
        kills: the outcomes of the programs that fail on it.
    """
    if proposal.agreeing != (FORMULAS,):
        return ""
    differences = [
        difference for trial in kills for difference in trial.comparison.get("differences", [])
    ]
    if not differences:
        return ""
    if all(_is_broken(difference["expected"]) for difference in differences):
        return "the gold's formulas give an error that says nothing about the question"
    if all(
        _is_nothing(difference["expected"]) and _is_nothing(difference["actual"])
        for difference in differences
    ):
        return "gold and program only differ in how they say that there is no answer"
    emptied = _emptied_rows(idea)
    if emptied and all(_is_zero(difference["expected"]) for difference in differences):
        return "the gold's formulas treat the blank as zero"
    if emptied and all(
        (difference["actual"] is None or difference["actual"] == "")
        and (difference["sheet"], row_of(difference["cell"])) in emptied
        for difference in differences
    ):
        return "the program leaves a row blank whose cell is blank; the gold's formulas do not"
    return ""


def _emptied_rows(idea: Idea) -> set[tuple[str, int]]:
    """The rows where an idea empties cells, or merges them into others."""
    rows: set[tuple[str, int]] = set()
    for edit in idea.edits:
        if isinstance(edit, SetCell) and edit.content is None:
            rows.add((edit.ref.sheet, edit.ref.row))
        elif isinstance(edit, MergeCells):
            rows |= {
                (edit.sheet, row) for row in range(edit.window.min_row, edit.window.max_row + 1)
            }
    return rows


def row_of(cell: str) -> int:
    """The row of a cell's address in a record; 0 if it is not an address."""
    at = parse_cell(cell)
    return 0 if at is None else at[0]


_NOT_FOUND = "#N/A"


def _error(value: object) -> str:
    text = value.get("error") if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def _is_broken(value: object) -> bool:
    return _error(value) not in {"", _NOT_FOUND}


def _is_zero(value: object) -> bool:
    if isinstance(value, dict):
        return str(value.get("date", "")).startswith(("1899-12-3", "1900-01-00"))
    return value == 0 and not isinstance(value, bool)


def _is_nothing(value: object) -> bool:
    says_none = isinstance(value, str) and value.strip().casefold() in NO_ANSWER
    return value is None or says_none or _is_zero(value) or _error(value) == _NOT_FOUND


def effect_of(suggestion: Suggestion) -> tuple[str, ...]:
    """The effect of a suggestion; suggestions with the same effect raise the same question.

    If the gold's formulas are the only source, this is the first cell that differs: the formula
    without its references, and the kinds of the two values. Empty if there is no such cell.
    """
    proposal = suggestion.proposal
    if proposal is None or proposal.agreeing != (FORMULAS,) or not suggestion.kills:
        return ()
    for difference in suggestion.kills[0].comparison.get("differences", [])[:1]:
        formula = difference.get("expected_formula", "")
        if formula:
            kinds = map(_kind, (difference["expected"], difference["actual"]))
            return (skeleton(formula), *kinds)
    return ()


def _kind(value: object) -> str:
    if value is None or value == "":
        return "blank"
    return _error(value) or type(value).__name__


def ranked(
    suggestions: Iterable[Suggestion], contradictions: Sequence[str] = ()
) -> list[tuple[str, list[Suggestion]]]:
    """Groups suggestions; the best group comes first, and so does the best suggestion of a group.

    Suggestions with a doubtful gold form the last group; before them come those that only repeat
    the effect of a better one (:func:`effect_of`).

    Args:
        suggestions: the suggestions to show.
        contradictions: relations that the gold's formulas do not keep.
    """
    groups: dict[str, list[Suggestion]] = {}
    ordered = sorted(
        suggestions,
        key=lambda suggestion: (-worth(suggestion, contradictions), suggestion.number),
    )
    effects: set[tuple[str, ...]] = set()
    for suggestion in ordered:
        group = group_of(suggestion, contradictions)
        if group != DOUBTFUL and suggestion.contested and (effect := effect_of(suggestion)):
            if effect in effects:
                group = SAME_EFFECT
            effects.add(effect)
        groups.setdefault(group, []).append(suggestion)
    return sorted(groups.items(), key=lambda item: _LAST.get(item[0], 0))


_LAST = {SAME_EFFECT: 1, DOUBTFUL: 2}
"""The groups that come last, in this order."""
