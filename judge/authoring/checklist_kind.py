"""Tasks that are judged by a checklist, in suites of the judge's own format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from judge.authoring.kinds import PROPOSED
from judge.authoring.proposals.items import propose_items
from judge.authoring.proposals.propose import Proposals, rule_lists
from judge.authoring.rules_kind import Definition, RulesFields, RulesKind
from judge.compare.checklists.items import NAME as CHECKER
from judge.compare.registry import check_options
from judge.core.task import CheckerSpec
from judge.errors import UsageError


class ChecklistKind(RulesKind):
    """Like tasks that are judged by rules, with items in place of rules."""

    name = "checklist"
    marks: ClassVar[tuple[str, ...]] = ("items",)
    example = "--instruction QUESTION --from GOLD --input INPUT --items proposed"

    def proposals(self, options: Mapping[str, Any]) -> Proposals | None:
        """Items for the differences between the input and the gold, if they are not stated."""
        if options.get("items") != PROPOSED:
            return None
        (files,) = self.files_of(options)
        return propose_items(files.inputs[0], files.gold, str(options.get("instruction") or ""))

    def fields_of(self, options: Mapping[str, Any]) -> RulesFields:
        """The fields; the items are given in a file, or are the proposals that were kept."""
        given = dict(options)
        items = given.pop("items", None)
        kept = given.pop("kept", None)
        fields = super().fields_of(given)
        if kept is not None:
            return replace(fields, definition=_definition(rule_lists(kept, 1)[0]))
        return fields if items is None else replace(fields, definition=_definition(items))


KIND = ChecklistKind()


def _definition(document: Any) -> Definition:
    """The definition of items: a list of them, or an object with the options of the checker."""
    options = {"items": document} if isinstance(document, list) else document
    if not isinstance(options, dict) or "items" not in options:
        raise UsageError(
            "--items: must be a list of items, or an object with the field 'items'",
            hint="docs/checklists.md lists the kinds of items.",
        )
    check_options(CheckerSpec(CHECKER, options))
    return Definition(CHECKER, options, {})
