from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace

import click
import pytest

from judge.annotate.answers import MAX_SESSIONS, ProgramRuns
from judge.annotate.casebook import CaseData
from judge.annotate.gold import GoldMaker
from judge.annotate.idea import Idea
from judge.annotate.suggest import ENOUGH_KILLS, Progress, Suggestion, suggest
from judge.cli.annotate_suggest import _say_left_out, _Search, _summarise
from judge.cli.annotate_suggest import suggest as suggest_command
from judge.errors import SandboxError
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from tests.unit.annotate.books import table, values
from tests.unit.annotate.conftest import doubling_case
from tests.unit.annotate.test_gold import CRASHED, TASK, program, put, wrote

BASE = CaseData(1, *doubling_case(1, 2, 3, 4))


def double(request: RunRequest) -> RunResult:
    """A right solution: reads the numbers, and writes twice each of them."""
    (data,) = request.files.values()
    held = values(data)
    rows = [held.get((row, 1)) for row in range(2, 6)]
    return wrote(doubling_case(*rows)[1])


def suggestions(
    *names: str, steps: int = 20, step: object = double, **task: object
) -> list[Suggestion]:
    sandbox = ScriptedSandbox([step] * steps)  # type: ignore[list-item]
    maker = GoldMaker(Recalculator([], mode="never"), sandbox)
    changed = replace(TASK, **task)  # type: ignore[arg-type]
    return list(suggest(changed, BASE, maker, references=[program("a")], only=names))


def test_a_suggestion_has_the_gold_of_the_reference() -> None:
    (each,) = suggestions("negative")
    assert (each.number, each.state) == (1, "contested")
    assert each.contested == "only one source gives this answer"
    assert each.proposal is not None
    assert each.proposal.gold is not None
    after, gold = values(each.proposal.input), values(each.proposal.gold)
    for row in range(2, 6):
        number = after[row, 1]
        assert isinstance(number, int)
        assert gold[row, 2] == 2 * number


def test_numbers_have_no_gaps_and_nothing_is_computed_beyond_the_last_one_asked_for() -> None:
    everything = suggestions(steps=200)
    shown = [each for each in everything if not each.rejected]
    assert [each.number for each in shown] == list(range(1, len(shown) + 1))
    assert len(shown) < len(everything)
    assert {each.number for each in everything if each.rejected} == {0}
    maker = GoldMaker(Recalculator([], mode="never"), ScriptedSandbox([double] * 200))
    (each,) = suggest(TASK, BASE, maker, references=[program("a")], numbers=[2])
    assert (each.number, each.idea) == (2, shown[1].idea)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("numbers-as-text", "only one source"),
        ("one-row", ""),
        ("no-row", "only one source"),
    ],
)
def test_where_right_solutions_may_differ_two_are_asked_for(name: str, why: str) -> None:
    (each,) = suggestions(name)
    assert why in each.rejected
    assert bool(each.rejected) == bool(why)


def test_a_mutant_without_a_sound_answer_is_rejected() -> None:
    (each,) = suggestions("negative", step=CRASHED)
    assert "no source gives the answer" in each.rejected
    (each,) = suggestions("negative", step=wrote(BASE.gold))
    assert each.rejected == "no cell of the answer moves"
    blank = RunResult(
        RunStatus.OK, OutputStatus.COLLECTED, exit_code=0, output=table(("number", "double"), (1,))
    )
    (each,) = suggestions("negative", step=blank)
    assert each.rejected == "the answer becomes blank"
    errors = table(("number", "double"), *[(n, "#N/A") for n in range(4)])
    (each,) = suggestions("negative", step=wrote(errors))
    assert "error" in each.rejected


def test_an_answer_that_another_case_has_is_rejected() -> None:
    (first,) = suggestions("negative")
    assert first.proposal is not None
    assert first.proposal.gold is not None
    maker = GoldMaker(Recalculator([], mode="never"), ScriptedSandbox([double]))
    other = CaseData(2, first.proposal.input, first.proposal.gold)
    (again,) = suggest(
        TASK, BASE, maker, references=[program("a")], others=[other], only=["negative"]
    )
    assert again.rejected == "the answer is that of case 2"


def test_what_the_question_names_is_not_taken_away() -> None:
    texts = CaseData(
        1, table(("word", "r"), ("open", None), ("open", None)),
        table(("word", "r"), ("open", 1), ("open", 1)),
    )  # fmt: skip
    maker = GoldMaker(Recalculator([], mode="never"), ScriptedSandbox([]))
    task = replace(TASK, instruction='Mark each row that says "open" in column B.')
    (each,) = suggest(task, texts, maker, references=[program("a")], only=["case"])
    assert each.rejected == "it changes 'open', which the question names"


# -- with programs that are to fail ---------------------------------------------------------------


def absolute(request: RunRequest) -> RunResult:
    """An accepted program that is wrong for negative numbers."""
    (data,) = request.files.values()
    held = values(data)
    rows = [held.get((row, 1)) for row in range(2, 6)]
    doubled = doubling_case(*rows)[1]
    return wrote(
        table(
            ("number", "double"),
            *[
                (row, 2 * abs(row) if isinstance(row, int | float) else None)
                for row in (values(doubled).get((each, 1)) for each in range(2, 6))
            ],
        )
    )


def play(request: RunRequest) -> RunResult:
    """Plays whichever program is run: the victim, or the references."""
    if (request.collect or "").endswith("cells-read.json"):
        return wrote(b'{"Sheet": [[2, 1], [3, 1], [4, 1], [5, 1]]}')
    return absolute(request) if "victim" in request.program else double(request)


def killing(
    *references: str,
    only: tuple[str, ...] = (),
    step: Callable[[RunRequest], RunResult] = play,
    more: Sequence[Idea] = (),
) -> list[Suggestion]:
    maker = GoldMaker(Recalculator([], mode="never"), ScriptedSandbox([step] * 500))
    return list(
        suggest(
            TASK,
            BASE,
            maker,
            references=[program(name) for name in references],
            only=only,
            victims={"mine": program("victim")},
            more=more,
        )
    )


def test_only_what_kills_is_suggested_and_the_rest_is_tried_together() -> None:
    found = killing("a", "b")
    shown = [each for each in found if not each.rejected]
    assert [each.state for each in shown] == ["sound"] * len(shown)
    assert {each.idea.mutator for each in shown} == {"negative", "numbers"}
    for each in shown:
        (trial,) = each.kills
        assert (trial.name, trial.verdict.value) == ("mine", "WA")
        assert trial.comparison["differences"]
    assert any("tried with others" in each.rejected for each in found)


def test_an_answer_that_repeats_another_is_worth_having_if_it_kills() -> None:
    first = next(each for each in killing("a", "b", only=("negative",)) if not each.rejected)
    assert first.proposal is not None
    assert first.proposal.gold is not None
    maker = GoldMaker(Recalculator([], mode="never"), ScriptedSandbox([play] * 20))
    other = CaseData(2, first.proposal.input, first.proposal.gold)
    (again,) = suggest(
        TASK,
        BASE,
        maker,
        references=[program("a"), program("b")],
        others=[other],
        only=["negative"],
        victims={"mine": program("victim")},
    )
    assert (again.rejected, again.state) == ("", "sound")


def test_one_source_against_the_program_is_contested() -> None:
    (each,) = [each for each in killing("a", only=("negative",)) if not each.rejected]
    assert (each.state, each.contested) == ("contested", "only one source gives this answer")


def test_a_program_that_fails_is_killed_even_if_nobody_knows_the_answer() -> None:
    def crash(request: RunRequest) -> RunResult:
        if (request.collect or "").endswith("cells-read.json"):
            return wrote(b"{}")
        (data,) = request.files.values()
        return CRASHED if values(data) != values(BASE.input) else double(request)

    maker = GoldMaker(Recalculator([], mode="never"), ScriptedSandbox([crash] * 50))
    victims = {"mine": program("victim")}
    (each,) = suggest(TASK, BASE, maker, only=["negative"], victims=victims)
    assert (each.state, each.number) == ("contested", 1)
    assert each.contested == "no source gives the answer: give it by hand"
    assert each.kills[0].verdict.value == "RE"


def test_ideas_from_elsewhere_are_examined_like_all_others() -> None:
    idea = Idea("model", "a negative number", (put(3, 1, -7),))
    harmless = Idea("model", "another number", (put(4, 1, 70),))
    maker = GoldMaker(Recalculator([], mode="never"), ScriptedSandbox([play] * 50))
    found = list(
        suggest(
            TASK,
            BASE,
            maker,
            references=[program("a"), program("b")],
            only=["none"],
            victims={"mine": program("victim")},
            more=[idea, harmless],
        )
    )
    assert [(each.idea, each.state) for each in found] == [(idea, "sound"), (harmless, "rejected")]


def test_a_value_where_the_gold_holds_an_error_is_shown_to_a_person_and_a_blank_is_not() -> None:
    def answers(value: object) -> list[Suggestion]:
        def run(request: RunRequest) -> RunResult:
            if (request.collect or "").endswith("cells-read.json"):
                return wrote(b"{}")
            (data,) = request.files.values()
            victim, changed = "victim" in request.program, values(data) != values(BASE.input)
            if not changed:
                return double(request)
            last = value if victim else "#N/A"
            return wrote(table(("number", "double"), (1, 2), (2, 4), (3, 6), (4, last)))

        return killing("a", "b", only=("negative",), step=run)

    (shown,) = answers(8)
    assert shown.state == "contested"
    assert "becomes an error in 1 cells" in shown.contested
    (rejected,) = answers(None)
    assert rejected.rejected == "the answer becomes an error in 1 cells"


def test_ideas_beyond_a_bound_of_cells_are_left_out_and_can_be_asked_for_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everything = suggestions(steps=200)
    of_a_pair = 6 + 10  # a column, and a word, of the input; two columns of the gold
    monkeypatch.setattr("judge.annotate.suggest.MAX_CELLS", 3 * of_a_pair)
    runs: list[RunRequest] = []

    def counted(request: RunRequest) -> RunResult:
        runs.append(request)
        return double(request)

    bounded = suggestions(steps=200, step=counted)
    assert [each.idea for each in bounded] == [each.idea for each in everything]
    assert len(runs) == 3
    left_out = [each for each in bounded if each.state == "left out"]
    assert len(left_out) > 3
    assert left_out[0].rejected == (
        "not examined: the two workbooks have 16 cells, which every idea computes and compares, "
        "and after 48 cells no more ideas are tried"
    )
    named = suggestions(left_out[0].idea.mutator, steps=200)
    assert named
    assert all(each.examined for each in named[:3])


def test_the_first_idea_is_examined_however_large_the_case_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("judge.annotate.suggest.MAX_CELLS", 1)
    first, *others = (each for each in suggestions(steps=200) if each.proposal or not each.examined)
    assert first.examined
    assert others
    assert not any(each.examined for each in others)


def test_the_command_says_what_was_left_out_and_how_to_ask_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    everything = suggestions("negative", "huge", "fractions")
    _say_left_out(everything)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("judge.annotate.suggest.MAX_CELLS", 1)
    bounded = suggestions("negative", "huge", "fractions")
    _summarise(bounded, {"files": (), "show_all": False})
    assert "0 ideas rejected" in capsys.readouterr().err
    _say_left_out(bounded)
    said = capsys.readouterr().err
    assert said.startswith("2 of 3 ideas were not examined: the two workbooks have 16 cells, ")
    assert said.endswith("Ask for a few at a time: --mutator fractions --mutator huge\n")


# -- runs of programs, and ideas that are tried together ------------------------------------------


def test_all_runs_of_a_program_share_a_session_and_a_started_run_is_used() -> None:
    sandbox = ScriptedSandbox([double] * 4)
    first, second = program("a"), program("b")
    with ProgramRuns(sandbox) as runs:
        runs.start([first, second], BASE.input)
        runs.start([first], BASE.input)
        assert runs.outcome(second, BASE.input).answer is not None
        assert runs.outcome(first, BASE.input).answer is not None
        assert len(sandbox.requests) == 2
        runs.outcome(first, BASE.input)
    assert len(sandbox.requests) == 3
    assert sandbox.opened == 2


def test_a_session_in_which_the_sandbox_failed_is_not_used_again() -> None:
    sandbox = ScriptedSandbox([SandboxError("the daemon is gone"), double])
    with ProgramRuns(sandbox) as runs:
        with pytest.raises(SandboxError, match="the daemon is gone"):
            runs.outcome(program("a"), BASE.input)
        assert runs.outcome(program("a"), BASE.input).answer is not None
    assert sandbox.opened == 2


def test_only_a_few_sessions_stay_open() -> None:
    sandbox = ScriptedSandbox([double] * 20)
    programs = [program(f"p{number}") for number in range(MAX_SESSIONS + 2)]
    with ProgramRuns(sandbox) as runs:
        for each in (*programs, programs[-1], programs[0]):
            runs.outcome(each, BASE.input)
    assert sandbox.opened == len(programs) + 1  # the first one's session was closed meanwhile


def test_programs_run_on_the_next_input_while_an_idea_is_examined() -> None:
    ideas = [Idea("model", f"row {row}", (put(row, 1, -7), put(2, 1, 5))) for row in (3, 4, 5)]
    sandbox = ScriptedSandbox([play] * 50)
    maker = GoldMaker(Recalculator([], mode="never"), sandbox)
    victims = {"mine": program("victim")}
    references = [program("a"), program("b")]
    found = suggest(
        TASK, BASE, maker, references=references, only=["none"], victims=victims, more=ideas
    )
    assert next(found).state == "sound"
    assert next(found).state == "sound"
    found.close()  # type: ignore[attr-defined]
    # A session for each program, and one for the layer that sees what the victim reads.
    assert sandbox.opened == 4


@pytest.mark.parametrize("killing_rows", [(), (3,), (3, 4), (2, 3, 4, 5)])
def test_killing_changes_are_distinguished_from_those_tried_with_them(
    killing_rows: tuple[int, ...],
) -> None:
    ideas = [
        Idea(f"model {row}", f"row {row}", (put(row, 1, -7 if row in killing_rows else 70 + row),))
        for row in (2, 3, 4, 5)
    ]
    found = killing("a", "b", only=("none",), more=ideas)
    assert {each.idea.title for each in found} == {each.title for each in ideas}
    assert {each.idea.title for each in found if not each.rejected} == {
        f"row {row}" for row in killing_rows
    }


def test_ideas_that_make_errors_are_skipped_together_once_enough_are_shown() -> None:
    def run(request: RunRequest) -> RunResult:
        (data,) = request.files.values()
        held = values(data)
        rows = [held.get((row, 1)) for row in range(2, 6)]
        gold = "victim" not in request.program
        answers = [
            (row, "#N/A" if gold and isinstance(row, int) and row > 50 else 2 * row)  # type: ignore[operator]
            for row in rows
        ]
        return wrote(table(("number", "double"), *answers))

    ideas = [
        Idea(f"model {row} {size}", f"{size} in row {row}", (put(row, 1, size),))
        for size in (60, 70, 80)
        for row in (2, 3, 4)
    ]
    found = killing("a", "b", only=("none",), step=run, more=ideas)
    shown = [each for each in found if not each.rejected]
    assert len(shown) == ENOUGH_KILLS
    assert all("becomes an error in 1 cells" in each.contested for each in shown)
    together = [each for each in found if "tried with others" in each.rejected]
    assert len(together) >= 6
    assert all("becomes an error in 3 cells" in each.rejected for each in together)


def test_the_proposals_of_a_chat_model_are_not_tried_together() -> None:
    ideas = [
        Idea(mutator, f"row {row}", (put(row, 1, 70 + row),))
        for row, mutator in ((2, "model"), (3, "other"), (4, "another"), (5, "model"))
    ]
    found = killing("a", "b", only=("none",), more=ideas)
    together = {each.idea.title: "tried with others" in each.rejected for each in found}
    assert together == {"row 2": False, "row 3": True, "row 4": True, "row 5": False}


@pytest.mark.parametrize("interrupted", [True, False])
def test_only_an_interrupted_search_says_how_far_it_came(
    interrupted: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def search(_: object, __: str, ___: object, progress: _Search) -> Iterator[Suggestion]:
        progress(Progress(examined=44, ideas=50, shown=0, contradictions=()))
        yield from ()
        if interrupted:
            raise KeyboardInterrupt

    monkeypatch.setattr("judge.cli.annotate_suggest._suggestions", search)
    monkeypatch.setattr("judge.annotate.Annotator", lambda *_, **__: nullcontext())
    expected = pytest.raises(click.Abort) if interrupted else nullcontext()
    with expected:
        suggest_command.main(["sample", "1001"], standalone_mode=False)
    assert ("interrupted after 44 of 50 ideas" in capsys.readouterr().err) is interrupted
