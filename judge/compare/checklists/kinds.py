"""All kinds of items by name, and the function that judges an item of any kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from judge.compare.checklists import cell_items, file_items, object_items, work_items
from judge.compare.checklists.items import (
    COUNT,
    NUMBER,
    OBJECT,
    TEXT,
    TEXTS,
    TRUTH,
    ChecklistOptions,
    FieldForm,
    Item,
    ItemKind,
    Judged,
    JudgeItem,
    Outcome,
    Reading,
    broken,
    fails,
    faults_of,
    not_judged,
    one_of,
)
from judge.compare.checklists.suites import SUITES, suite_named
from judge.compare.checklists.workspace import MissingError, Workspace
from judge.compare.published_error import PublishedError
from judge.compare.rules.patterns import PatternError
from judge.errors import UsageError, WorkbookError
from judge.files.documents import MalformedError

# -- published checks ------------------------------------------------------------------------------


def _published(item: Item, workspace: Workspace, reading: Reading) -> Outcome:
    suite = suite_named(item.text("suite"))
    decide = suite.official if reading is Reading.OFFICIAL else suite.standard
    return decide(item.fields["check"], workspace)


def _published_words(item: Item) -> str:
    return suite_named(item.text("suite")).words(item.fields["check"])


def _published_faults(item: Item) -> Iterator[str]:
    yield from suite_named(item.text("suite")).faults(item.fields["check"])


# -- items that are not judged here ----------------------------------------------------------------

_WAITING = {
    Judged.LLM: "a model judges it, only on request",
    Judged.HUMAN: "a person judges it",
    Judged.PROGRAM: "the suite's own program judges it, which was not run",
}


def waiting(judged: Judged) -> Outcome:
    """Returns the outcome of an item that only a model, a person or a program can judge."""
    return not_judged(_WAITING[judged])


def _waits(judged: Judged) -> JudgeItem:
    def wait(item: Item, workspace: Workspace, reading: Reading) -> Outcome:  # noqa: ARG001
        return waiting(judged)

    return wait


SCALES = ("binary", "likert", "numeric", "rubric")
_SCALE_FORMS = {
    "scale": one_of(*SCALES),
    "steps": COUNT,
    "min": NUMBER,
    "max": NUMBER,
    "levels": TEXTS,
    "guide": TEXT,
    "concepts": TEXTS,
    "files": TEXTS,
    "negate": TRUTH,
    "source": OBJECT,
}


def _description(item: Item) -> str:
    return item.words or item.id


KINDS: Mapping[str, ItemKind] = {
    **cell_items.KINDS,
    **object_items.KINDS,
    **file_items.KINDS,
    **work_items.KINDS,
    "published": ItemKind(
        _published,
        _published_words,
        {
            "suite": FieldForm(
                lambda value: value in SUITES, "a suite with published checks", required=True
            ),
            "check": FieldForm(lambda value: value is not None, "a check", required=True),
        },
        has_two_readings=True,
        faults=_published_faults,
    ),
    "llm": ItemKind(_waits(Judged.LLM), _description, _SCALE_FORMS, Judged.LLM),
    "human": ItemKind(_waits(Judged.HUMAN), _description, _SCALE_FORMS, Judged.HUMAN),
    "program": ItemKind(
        _waits(Judged.PROGRAM),
        _description,
        {"code": TEXT, "command": TEXT, "source": OBJECT},
        Judged.PROGRAM,
    ),
}
"""Name of a kind -> the kind."""


def kind_of(item: Item) -> ItemKind:
    """Returns the kind of an item.

    Raises:
        UsageError: there is no such kind.
    """
    if item.kind not in KINDS:
        raise UsageError(
            f"item {item.id}: there is no kind {item.kind!r}", hint=f"Kinds: {', '.join(KINDS)}."
        )
    return KINDS[item.kind]


def words_of(item: Item) -> str:
    """Returns an item's requirement, in the suite's words if it has any, or from its fields."""
    return item.words or kind_of(item).words(item)


def check_items(options: ChecklistOptions) -> None:
    """Checks the kinds and fields of all items.

    Raises:
        UsageError: an item has a fault; the message names the first fault.
    """
    for item in options.items:
        kind = kind_of(item)
        for gate in item.gates:
            if gate not in KINDS:
                raise UsageError(
                    f"item {item.id}: gates names {gate!r}, which is not a kind of item"
                )
        fault = next(faults_of(item, kind.forms), None) or next(kind.faults(item), None)
        if fault is not None:
            raise UsageError(fault)


def judge_item(item: Item, workspace: Workspace, reading: Reading) -> Outcome:
    """Returns the outcome of an item; a faulty answer gives an outcome and no error.

    Raises:
        GoldFaultError: a gold that the item names is missing or cannot be read.
        RecalcError: an engine cannot be started.
    """
    try:
        return kind_of(item).judge(item, workspace, reading)
    except MissingError as error:
        return fails(detail=str(error))
    except WorkbookError as error:
        return fails(detail=error.message)
    except PatternError as error:
        return broken(f"the pattern cannot be searched: {error}")
    except PublishedError as error:
        return broken(f"the published code raises {error}")
    except MalformedError as error:
        return broken(str(error))
    except RecursionError:
        return fails(detail="the answer is nested too deep")
