"""The options of the checker ``rules``: a rule list, and whose evaluator it was written for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.compare.published.spider2v.compare_table import RULE_TYPES, Evaluator
from judge.compare.rules.catalogue import faults_of
from judge.compare.rules.naming import Rule
from judge.core.finding import DifferencePlace, PlaceKind
from judge.errors import UsageError
from judge.files.documents import written

NAME = "rules"
PROFILES = ("standard", "official")
_OPTIONS = ("rules", "evaluator", "profile")
_MAX_RULES = 1000
_MAX_FAULTS = 20


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """What a task asks of a whole workbook.

    Attributes:
        rules: the rule list; all have to hold.
        evaluator: whose published functions the rules were written for.
        profile: the profile that decides whatever profile a run has; None for that of the run.
    """

    rules: tuple[Rule, ...]
    evaluator: Evaluator = Evaluator.SPIDER2V
    profile: str | None = None

    @staticmethod
    def of(options: Mapping[str, object]) -> RuleOptions:
        """Reads the options as a suite or a command gives them.

        A list that names its evaluator was published and is taken as it is: the published
        functions get to a rule that does not exist only if no earlier rule fails. Without an
        evaluator it is somebody's own, and every fault of it is named.

        Raises:
            UsageError: an option is unknown, or its value does not fit.
        """
        unknown = [name for name in options if name not in _OPTIONS]
        if unknown:
            raise UsageError(
                f"the checker {NAME} has no option {unknown[0]!r}",
                hint=f"Options: {', '.join(_OPTIONS)}.",
            )
        rules = options.get("rules")
        if not isinstance(rules, Sequence) or isinstance(rules, str):
            raise UsageError(
                f"option rules: expected a list of rules, found {written(rules)}"[:200]
            )
        if len(rules) > _MAX_RULES:
            raise UsageError(f"option rules: more than {_MAX_RULES:,} rules")
        for number, rule in enumerate(rules, start=1):
            if not isinstance(rule, Mapping) or not isinstance(rule.get("type"), str):
                raise UsageError(
                    f"option rules: rule {number} is not an object with a type",
                    hint=f"Types: {', '.join(RULE_TYPES)}.",
                )
        faults = [] if "evaluator" in options else list(faults_of(rules))
        if faults:
            more = f" (and {len(faults) - _MAX_FAULTS} more)" if faults[_MAX_FAULTS:] else ""
            raise UsageError(
                f"option rules: {'; '.join(faults[:_MAX_FAULTS])}{more}",
                hint="docs/rules.md lists the types of rules and their options.",
            )
        evaluator = options.get("evaluator", Evaluator.SPIDER2V)
        if evaluator not in set(Evaluator):
            raise UsageError(
                f"option evaluator: {evaluator!r} is not known",
                hint=f"Evaluators: {', '.join(Evaluator)}.",
            )
        profile = options.get("profile")
        if profile is not None and profile not in PROFILES:
            raise UsageError(f"option profile: {profile!r} is none of {', '.join(PROFILES)}")
        chosen = None if profile is None else str(profile)
        return RuleOptions(tuple(rules), Evaluator(str(evaluator)), chosen)


def described(rule: Rule) -> str:
    """A rule on one line: its type, and what of it is asked."""
    parts = [str(rule.get("type"))]
    sheets = [str(rule[name]) for name in ("sheet_idx", "sheet_idx0", "sheet_idx1") if name in rule]
    if sheets:
        parts.append(" ~ ".join(sheets))
    if "coordinate" in rule:
        parts.append(str(rule["coordinate"]))
    for name in ("props", "chart_props", "pivot_props"):
        asked = rule.get(name)
        if asked:
            parts.append(", ".join(map(str, asked)))
    return " · ".join(parts)[:200]


def place_of(index: int, rule: Rule, sheet: str = "") -> DifferencePlace:
    """Where a difference is: the rule, by its number and what it asks."""
    return DifferencePlace(PlaceKind.RULE, f"{index + 1} ({described(rule)})", sheet)
