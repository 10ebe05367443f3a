"""Options that are declared once: the content of a declaration, and that nothing contradicts it."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import click
import pytest
from click.testing import CliRunner

from judge.api.infer_options import InferOptions
from judge.api.options import JudgingChanges, JudgingOptions, ScoreOptions, with_changes
from judge.cli.help import HelpCommand
from judge.cli.options import given_options, options_of
from judge.compare.cells.options import CheckOptions
from judge.compare.profiles import PROFILES
from judge.core.limits import Limits
from judge.core.option import Option, Section, check_bounds, options_in
from judge.desktop.choices import OBSERVATION_FORMS, ActionSpace
from judge.desktop.contract import DesktopOptions
from judge.errors import UsageError
from judge.files.paths import GivenPath, hold_paths
from judge.grading.batch import WorkerRecipe
from judge.grading.options import GradingOptions
from judge.inference.choices import DEFAULT_FEEDBACK, PICTURE_TYPES
from judge.inference.config import load_setting, load_typed_setting
from judge.inference.desktop.setting import load_desktop_setting
from judge.inference.tools.setting import load_preset
from judge.sandbox.select import SANDBOX_KINDS

HOLDERS: list[type[Any]] = [
    GradingOptions,
    JudgingOptions,
    ScoreOptions,
    InferOptions,
    CheckOptions,
    Limits,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Oven:
    """How to bake."""

    heat: Annotated[
        int, Option("Degrees [{default}].", Section.LIMITS, short="-t", least=50, most=300)
    ] = 180
    time_s: Annotated[float | None, Option("Seconds.", flag="time", least=0, above=True)] = None
    form: Annotated[Literal["round", "square"] | None, Option("Form.", usual="round")] = None
    recipe: Annotated[GivenPath | None, Option("Recipe.", folder=False)] = None
    suite: Annotated[str | Path | None, Option("Suite.")] = None
    fan: Annotated[bool, Option("Air moves.", negatable=True)] = True
    spices: Annotated[
        tuple[str, ...], Option("Spices.", choices=("salt", "mint"), commas=True)
    ] = ()
    weight: Annotated[int, Option("Flour [{default}].", size=True)] = 512 * 1024 * 1024
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        hold_paths(self)
        check_bounds(self)


def test_a_declaration_is_read_from_the_field() -> None:
    declared = options_in(Oven)
    assert [*declared] == ["heat", "time_s", "form", "recipe", "suite", "fan", "spices", "weight"]
    kinds = {name: each.kind for name, each in declared.items()}
    assert kinds == {
        "heat": int,
        "time_s": float,
        "form": str,
        "recipe": Path,
        "suite": str,
        "fan": bool,
        "spices": tuple,
        "weight": int,
    }
    assert declared["form"].choices() == ("round", "square")
    assert (declared["form"].default, declared["form"].usual) == (None, "round")
    assert declared["heat"].usual == 180


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("heat", 200, 200),
        ("time_s", 3, 3.0),
        ("form", None, None),
        ("recipe", "a.txt", Path("a.txt")),
        ("suite", Path("folder"), "folder"),
        ("spices", ["salt"], ("salt",)),
        ("spices", None, ()),
    ],
)
def test_a_value_is_read_as_the_field_holds_it(name: str, value: object, read: object) -> None:
    found = options_in(Oven)[name].read(value)
    assert found == read
    assert type(found) is type(read)


@pytest.mark.parametrize(
    ("name", "value", "error", "words"),
    [
        ("heat", True, TypeError, "not a whole number"),
        ("heat", 1.5, TypeError, "not a whole number"),
        ("heat", 301, ValueError, "not from 50 to 300"),
        ("time_s", 0, ValueError, "not above 0"),
        ("time_s", "1", TypeError, "not a number"),
        ("time_s", float("nan"), ValueError, "not a finite number"),
        ("form", "oval", ValueError, "not one of round, square"),
        ("form", ["round"], ValueError, "not one of round, square"),
        ("recipe", 3, TypeError, "not a path"),
        ("suite", 3, TypeError, "not text"),
        ("fan", 1, TypeError, "not true or false"),
        ("spices", "salt", TypeError, "not a list of strings"),
        ("spices", ["salt", "soap"], ValueError, "not one of salt, mint"),
    ],
)
def test_a_value_that_cannot_be(
    name: str, value: object, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        options_in(Oven)[name].read(value)


def test_numbers_are_checked_where_options_are_made() -> None:
    with pytest.raises(UsageError, match="heat is 49; it must be 50 or more"):
        Oven(heat=49)
    assert Oven(recipe="a.txt").recipe == Path("a.txt")


@click.command(cls=HelpCommand)
@options_of(Oven, form="Form of the cake.")
@click.pass_context
def bake(context: click.Context, /, **options: Any) -> None:
    """Bake."""
    click.echo(f"{sorted(given_options(context))} {Oven(**options)}")


def test_the_command_line_follows_from_the_declaration() -> None:
    shown = CliRunner().invoke(bake, ["--help"]).output
    for words in (
        r"-t, --heat N +Degrees \[180\]\.  \[50<=x<=300\]",
        r"--time NUMBER +Seconds\.  \[x>0\]",
        r"--form \[round\|square\] +Form of the cake\.  \[default: round\]",
        r"--recipe FILE +Recipe\.",
        r"--fan / --no-fan +Air moves\.",
        r"--weight SIZE +Flour \[512MiB\]\.",
    ):
        assert re.search(words, shown), (words, shown)
    typed = ["--time", "5", "--spices", "Salt,mint", "--no-fan", "--weight", "1k"]
    result = CliRunner().invoke(bake, typed)
    assert result.output.startswith("['fan', 'spices', 'time_s', 'weight'] ")
    assert "heat=180, time_s=5.0, form='round'" in result.output
    assert "fan=False, spices=('salt', 'mint'), weight=1024" in result.output
    refused = CliRunner().invoke(bake, ["--heat", "400"])
    assert refused.exit_code == 2
    assert "400 is not in the range 50<=x<=300" in refused.output


# -- nothing else says it differently --------------------------------------------------------------


@pytest.mark.parametrize("holder", HOLDERS)
def test_the_docstring_explains_every_field_in_its_order(holder: type[Any]) -> None:
    own = [each.name for each in fields(holder) if each.name in holder.__annotations__]
    assert holder.__doc__ is not None
    _, _, text = holder.__doc__.partition("Attributes:\n")
    attributes, _, _ = text.partition("Raises:")
    assert re.findall(r"^ {8}(\w+):", attributes, re.MULTILINE) == own


def test_what_functions_take_by_name_are_the_fields() -> None:
    assert get_type_hints(JudgingChanges).keys() == {each.name for each in fields(JudgingOptions)}
    given = with_changes(
        JudgingOptions(profile="strict", jobs=3),
        {"jobs": None, "style": ["fill"], "recalc": "never"},
    )
    assert (given.profile, given.jobs, given.style, given.recalc) == (
        "strict",
        3,
        ("fill",),
        "never",
    )


def test_workers_are_opened_from_the_same_options() -> None:
    shared = {each.name for each in fields(GradingOptions)}
    assert shared < {each.name for each in fields(JudgingOptions)}
    assert {each.name for each in fields(WorkerRecipe)} - shared == {
        "isolates",
        "task_limits",
        "threads",
    }


def test_choices_are_those_of_the_registries() -> None:
    declared = options_in(GradingOptions)
    assert declared["profile"].choices() == tuple(PROFILES)
    assert declared["sandbox"].choices() == tuple(SANDBOX_KINDS)
    declared = options_in(InferOptions)
    assert declared["observation"].choices() == tuple(OBSERVATION_FORMS)
    assert declared["action_space"].choices() == tuple(map(str, ActionSpace))


def in_brackets(name: str) -> str:
    """Returns the text in the first square brackets of an option's help: its default."""
    match = re.search(r"\[([^\]]*)\]", options_in(InferOptions)[name].option.help)
    assert match is not None
    return match[1]


def test_the_defaults_in_help_are_those_of_the_settings() -> None:
    """Settings files, which people edit, say what applies if an option is not given."""
    single, multi = load_setting("single", None), load_setting("multi", None)
    assert in_brackets("feedback") == DEFAULT_FEEDBACK
    assert multi.name == f"multi/{DEFAULT_FEEDBACK}"
    typed, typed_multi = load_typed_setting("single"), load_typed_setting("multi")
    desktop, spider2v = load_desktop_setting(""), load_desktop_setting("spider2v")
    assert in_brackets("rounds") == f"{multi.rounds}; {typed_multi.rounds} for typed answers"
    assert (
        f"turns in desktop mode [{desktop.rounds}]"
        in options_in(InferOptions)["rounds"].option.help
    )
    assert in_brackets("rows") == str(single.rows) == str(multi.rows)
    assert in_brackets("content") == single.content == multi.content
    assert in_brackets("temperature") == (
        f"{single.temperature:g}; typed answers {typed.temperature:g}; "
        f"Spider2-V's desktop {spider2v.temperature:g}"
    )
    assert in_brackets("top_p") == (
        f"{single.top_p:g}; {typed.top_p:g} for typed answers and on a desktop"
    )
    assert typed.top_p == desktop.top_p
    assert in_brackets("pictures") == typed.pictures
    assert in_brackets("max_pictures") == str(typed.max_pictures)
    assert in_brackets("picture_types") == ",".join(PICTURE_TYPES) == ",".join(typed.picture_types)
    for name in ("observation", "action_space", "history", "tree_tokens"):
        assert in_brackets(name) == str(getattr(desktop, name)).removesuffix(".0")
    tools = load_preset("native").setting
    assert in_brackets("minutes") == f"{desktop.minutes:g}; {tools.minutes:g} with tools"
    screen = DesktopOptions()
    assert in_brackets("screen") == f"{screen.width}x{screen.height}"
    assert in_brackets("clutter") == str(screen.clutter)
