"""Options that contradict a published profile are refused, in every command and in the library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import judge
from judge.api.rejudging import _with_recorded
from judge.cli.main import judge as main
from judge.compare.cells.options import CheckOptions, check_contradictions
from judge.compare.profiles import PROFILES, Profile, get_profile
from judge.errors import UsageError
from tests.unit.compare.cells.packages import simple

PUBLISHED = [name for name, each in PROFILES.items() if each.published]

CHANGES: dict[str, Any] = {
    "tolerance": 0.1,
    "relative_tolerance": 0.1,
    "ignore_case": True,
    "ignore_whitespace": True,
    "unordered_rows": True,
    "ignore_extra": True,
    "ignore": ("A1",),
    "style": ("fill",),
    "untouched": True,
    "keep": "note",
    "formula_asked": "fail",
    "collateral": "note",
    "dynamic": "note",
    "formulas": True,
    "accept": "groups",
}
"""Every option of a comparison, with a value that changes the verdict or the report."""

OF_THE_SCRIPT = {"formulas", "accept"}
"""The options that the published functions of SpreadsheetBench 2 support."""

FLAGS: dict[str, list[str]] = {
    name: [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    for name, value in CHANGES.items()
    if not isinstance(value, tuple)
} | {"ignore": ["--ignore", "A1"], "style": ["--style", "fill"]}


def test_no_option_is_missing_here() -> None:
    assert CHANGES.keys() == CheckOptions.__dataclass_fields__.keys()


@pytest.mark.parametrize("profile", PUBLISHED)
@pytest.mark.parametrize("option", CHANGES)
def test_what_contradicts_a_published_profile_is_refused(profile: str, option: str) -> None:
    given = {option: CHANGES[option]}
    if profile == "ssb2-official" and option in OF_THE_SCRIPT:
        check_contradictions(get_profile(profile), given)
        return
    with pytest.raises(UsageError, match=f"profile {profile} .* contradicts") as raised:
        check_contradictions(get_profile(profile), given)
    assert option in raised.value.message
    assert raised.value.exit_code == 2
    assert "standard" in (raised.value.hint or "")
    check_contradictions(get_profile("standard"), given)


@pytest.mark.parametrize("profile", PUBLISHED)
def test_an_option_that_agrees_with_the_profile_is_not_a_contradiction(profile: str) -> None:
    usual = {name: getattr(CheckOptions(), name) for name in CHANGES}
    flags = {name: False for name, value in CHANGES.items() if value is True}
    check_contradictions(get_profile(profile), {**usual, **flags, "tolerance": 0, "keep": "off"})


def test_styles_and_modes_that_the_script_has() -> None:
    ssb2 = get_profile("ssb2-official")
    check_contradictions(ssb2, {"style": "font_color"}, style=["font_color"], recalc="never")
    for asked in ({"style": ("font_color", "bold")}, {"style": "bold"}):
        with pytest.raises(UsageError, match="style bold"):
            check_contradictions(ssb2, asked)
    with pytest.raises(UsageError, match=r"option recalc \(always\)"):
        check_contradictions(ssb2, {}, recalc="always")
    check_contradictions(get_profile("official"), {}, recalc="always")
    with pytest.raises(UsageError, match=r"option profile \(standard\)"):
        check_contradictions(get_profile("official"), {"profile": "standard"})


def test_a_published_profile_has_the_rules_of_its_script() -> None:
    with pytest.raises(UsageError, match="another rule contradicts"):
        get_profile("official", absolute_tolerance=0.1)
    book = simple({"A1": 1})
    mine = Profile("mine", published=True, decimals=5)
    with pytest.raises(UsageError, match="another rule contradicts"):
        judge.compare(book, book, "A1", profile=mine)


LIBRARY: dict[str, Callable[..., object]] = {
    "compare": lambda book, **given: judge.compare(
        book, book, "A1", profile="official", options=given
    ),
    "Judge.compare": lambda book, **given: judge.Judge().compare(
        book, book, "A1", profile="official", checker=given
    ),
    "Judge": lambda _, **given: judge.Judge(
        options=judge.JudgingOptions(profile="official", checker=given)
    ),
    "ScoreOptions": lambda _, **given: judge.ScoreOptions(profile="official", checker=given),
    "run": lambda _, **given: judge.run("1", "x.py", profile="official", checker=given),
    "verify": lambda _, **given: judge.verify("sample", profile="official", checker=given),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_the_library_refuses_it_before_anything_is_opened(name: str) -> None:
    with pytest.raises(UsageError, match=r"profile official .* option tolerance contradicts"):
        LIBRARY[name](simple({"A1": 1}), tolerance=0.1)


def test_a_run_that_was_scored_with_styles_can_be_rejudged_as_published() -> None:
    usual = judge.JudgingOptions()
    run: Any = {"profile": "standard", "style": ["fill"], "recalc": {"mode": "always"}}
    assert _with_recorded(run, usual, {"profile": "official"}).style == ()
    assert _with_recorded(run, usual, {"profile": "ssb2-official"}).recalc == "auto"
    assert _with_recorded(run, usual, {}).style == ("fill",)
    with pytest.raises(UsageError, match="style fill contradicts"):
        _with_recorded(run, usual, {"profile": "ssb2-official", "style": ["fill"]})
    with pytest.raises(UsageError, match="contradicts"):
        _with_recorded(run, usual, {"profile": "ssb2-official", "recalc": "always"})


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "gold.xlsx").write_bytes(simple({"A1": 1}))
    (tmp_path / "program.py").write_text("print(1)\n")
    (tmp_path / "rules.json").write_text('[{"type": "freeze", "sheet_idx0": 0, "sheet_idx1": 0}]')
    (tmp_path / "solutions.jsonl").write_text('{"id": "1001", "solution": "print(1)"}\n')
    return tmp_path


def asked(command: str, files: Path) -> list[str]:
    book = str(files / "gold.xlsx")
    return {
        "compare": ["compare", book, book, "--at", "A1", "--input", book],
        "score": ["score", f"{files}/solutions.jsonl", "--dataset=sample", f"--out={files}/out"],
        "run": ["run", "1001", str(files / "program.py")],
        "verify": ["verify", "sample"],
    }[command]


@pytest.mark.parametrize("option", FLAGS)
@pytest.mark.parametrize("command", ["compare", "score", "run", "verify"])
def test_every_command_refuses_it(command: str, option: str, files: Path) -> None:
    run = CliRunner().invoke(
        main, [*asked(command, files), "--profile", "official", *FLAGS[option]]
    )
    assert isinstance(run.exception, UsageError), run.output
    assert "contradicts" in run.exception.message
    assert not (files / "out").exists()


@pytest.mark.parametrize("option", FLAGS)
def test_rules_and_boards_take_no_options_of_positions(option: str, files: Path) -> None:
    book = str(files / "gold.xlsx")
    given = ["compare", book, book, "--rules", str(files / "rules.json"), *FLAGS[option]]
    run = CliRunner().invoke(main, given)
    assert isinstance(run.exception, UsageError), run.output
    assert run.exception.message == f"--{option.replace('_', '-')} can only be used with --at"
