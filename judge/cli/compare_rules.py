"""``judge compare --rules``: two workbooks compared by a rule list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.core.finding import in_words
from judge.errors import UsageError, WorkbookError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judge.compare.rules.options import RuleOptions
    from judge.core.finding import Finding
    from judge.core.records.cases import DifferenceRecord

_MAX_VALUE_LENGTH = 200
_COMPUTING = ("recalc", "engine", "lenient_names", "sandbox")


def compare_by_rules(
    gold: Path, output: Path, rules_path: Path, evaluator: str | None, options: dict[str, Any]
) -> Finding:
    """Compares two workbooks by the rules of a file.

    Args:
        gold: the gold workbook.
        output: the output workbook.
        rules_path: the rule list.
        evaluator: whose evaluator the rules were written for; None for what the file says.
        options: the command's options: profile, engines.

    Raises:
        UsageError: the file is not a rule list.
        WorkbookError: a workbook cannot be read.
        GoldFaultError: the rules cannot be judged with this gold.
    """
    from judge.api.workbooks import Engines  # noqa: PLC0415
    from judge.compare.contract import Rules  # noqa: PLC0415
    from judge.compare.profiles import get_profile  # noqa: PLC0415
    from judge.compare.rules.book import Book  # noqa: PLC0415
    from judge.compare.rules.checker import judge_rules  # noqa: PLC0415
    from judge.compare.rules.prints import prints_beside  # noqa: PLC0415
    from judge.compare.rules.raised import Side  # noqa: PLC0415
    from judge.core.submission import Origin  # noqa: PLC0415
    from judge.workbook.reader import open_workbook  # noqa: PLC0415

    chosen = _read_rules(rules_path, evaluator)
    golden = Book(open_workbook(gold), Side.GOLD, prints_beside(gold))
    answer = Book(open_workbook(output), Side.ANSWER, prints_beside(output))
    rules = Rules(get_profile(options["profile"]), options["style"], max_differences=200)
    try:
        with (
            Engines(**{name: options[name] for name in _COMPUTING}) as engines,
            answer.workbook.package.budget.working(),
        ):
            return judge_rules(chosen, answer, golden, Origin.FINISHED, engines, rules)
    except WorkbookError as error:
        path = gold if error.culprit is golden.workbook.package else output
        raise WorkbookError(f"{path}: {error.message}", hint=error.hint) from error


def _read_rules(path: Path, evaluator: str | None) -> RuleOptions:
    from judge.compare.rules.options import RuleOptions  # noqa: PLC0415
    from judge.files.documents import read_json  # noqa: PLC0415

    document = read_json(path, UsageError)
    given = {"rules": document} if isinstance(document, list) else document
    if not isinstance(given, dict) or "rules" not in given:
        raise UsageError(
            f"{path}: expected a list of rules, or an object with the field 'rules'",
            hint="docs/rules.md lists the types of rules.",
        )
    chosen = {name: given[name] for name in ("rules", "evaluator") if name in given}
    if evaluator is not None:
        chosen["evaluator"] = evaluator
    # A list that names its evaluator was published: what it says is not refused, but judged as
    # published. Any other is somebody's own, and is checked.
    try:
        return RuleOptions.of(chosen)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from error


def print_finding(
    found: Finding, *, show: int, as_json: bool, nouns: tuple[str, str] = ("rule", "rules")
) -> None:
    """Prints what differs, or the record as JSON.

    Args:
        found: what was found.
        show: how many differences to show.
        as_json: whether to print the record as JSON.
        nouns: what one and several of what is asked are called.
    """
    if as_json:
        click.echo(json.dumps({**found.record, "cause": found.cause}, ensure_ascii=False))
        return
    record = found.record
    differences = record.get("differences", [])
    click.echo(
        f"{'equal' if found.agrees else 'different'}: "
        f"{record.get('cells', 0)} {nouns[1]}, "
        f"profile {record.get('profile')}"
    )
    for difference in differences[:show]:
        for line in _lines_of(difference, nouns[0]):
            click.echo(line)
    if len(differences) > show:
        click.echo(f"  … and {len(differences) - show} more (all with --json)")
    if (error := record.get("published_error")) and record.get("profile") != "official":
        click.echo(f"the published evaluator raises {error}")
    elif record.get("official_equal") not in {None, found.agrees}:
        said = "accepts" if record.get("official_equal") else "does not accept"
        click.echo(f"the published evaluator {said} it")
    for note in record.get("notes", []):
        click.echo(f"note: {note}")


def _lines_of(difference: DifferenceRecord, noun: str = "rule") -> Iterator[str]:
    """A difference for people: what is asked, in words, and below it what was expected and found.

    Args:
        difference: the difference as it is on record.
        noun: what is asked.
    """
    where = f" ({difference['sheet']})" if difference.get("sheet") else ""
    values = (difference.get("expected"), difference.get("actual"))
    detail = difference.get("detail")
    if not (words := difference.get("words")):
        place = difference.get("place", {"name": ""})["name"]
        said = f"expected {_short(values[0])}, found {_short(values[1])}"
        yield f"  {noun} {place}{where}: {said}{f'; {detail}' if detail else ''}"
        return
    yield f"  {noun} {difference.get('rule')}{where}: {words}"
    if values != (None, None):
        yield f"    expected {_short(values[0])}"
        yield f"    found {_short(values[1])}"
    if detail:
        yield f"    {detail}"


def _short(value: object) -> str:
    """A value on one line; ``--json`` has all of it."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else in_words(value)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"
