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
    """Tasks like those that are judged by rules, but with items instead of rules."""

    name = "checklist"
    marks: ClassVar[tuple[str, ...]] = ("items",)
    example = "--instruction QUESTION --from GOLD --input INPUT --items proposed"

    def proposals(self, options: Mapping[str, Any]) -> Proposals | None:
        """Proposes items for the differences between input and gold, unless items were given."""
        if options.get("items") != PROPOSED:
            return None
        (files,) = self.files_of(options)
        return propose_items(files.inputs[0], files.gold, str(options.get("instruction") or ""))

    def fields_of(self, options: Mapping[str, Any]) -> RulesFields:
        """The fields of the task; its items come from a file, or are the kept proposals."""
        given = dict(options)
        items = given.pop("items", None)
        kept = given.pop("kept", None)
        fields = super().fields_of(given)
        if kept is not None:
            return replace(fields, definition=_definition(rule_lists(kept, 1)[0]))
        return fields if items is None else replace(fields, definition=_definition(items))


KIND = ChecklistKind()


def _definition(document: Any) -> Definition:
    """Reads the items: a list, or an object with the options of the checker."""
    options = {"items": document} if isinstance(document, list) else document
    if not isinstance(options, dict) or "items" not in options:
        raise UsageError(
            "--items: must be a list of items, or an object with the field 'items'",
            hint="docs/checklists.md lists the kinds of items.",
        )
    check_options(CheckerSpec(CHECKER, options))
    return Definition(CHECKER, options, {})
