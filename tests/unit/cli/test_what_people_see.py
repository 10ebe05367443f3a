"""The output of a command after a user's mistake, and at the end of a run."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.text import Text

import judge as library
from judge.annotate.rules import RULES
from judge.cli.main import judge, main
from judge.cli.output import Unbroken, print_table, table
from judge.compare.profiles import get_profile
from judge.core.finding import DifferenceLocation, FoundDifference, LocationKind, in_words
from judge.core.records.runs import RunDocument, served_model
from judge.errors import InferenceError, SubmissionError, SuiteError, UsageError
from judge.files.documents import written
from judge.files.yaml_documents import MalformedYamlError, parse_yaml
from judge.suites import Suite, load_suite
from judge.suites.suite import shown_source
from tests.conftest import REPOSITORY
from tests.unit.report.runs import TABLE, TaskSpec, book, make_suite

WRONG = book((("Name", "Amount"), ("Ann", 9), ("Bob", 9), ("Cyd", 9)))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(judge, [str(each) for each in arguments], prog_name="judge")


# -- the end of `judge score` ----------------------------------------------------------------------


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "suite", [TaskSpec("1", cases=2), TaskSpec("7-1", cases=2)])


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    folder = tmp_path / "my outputs"
    folder.mkdir()
    for name, content in (
        ("1_1", book(TABLE)), ("2_1", WRONG), ("1_7-1", b"no workbook"), ("2_7-1", WRONG),
    ):  # fmt: skip
        (folder / f"{name}_output.xlsx").write_bytes(content)
    return folder


def score(outputs: Path, suite: Suite, *more: str | Path) -> Result:
    common = ("--dataset", suite.root, "--recalc", "never", "--jobs", "1")
    return run("score", outputs, *common, *more)


def test_score_ends_with_what_failed_and_what_to_do_next(
    outputs: Path, suite: Suite, tmp_path: Path
) -> None:
    out = tmp_path / "results" / "my run"
    result = score(outputs, suite, "--out", out)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    start = lines.index("my run: 3 of 4 cases failed: WA 2, IW 1")
    assert lines[start + 1].startswith("  WA task 1, case 2: ")
    assert "expected" in lines[start + 1]
    assert lines[start + 2].startswith("  IW task 7-1, case 1: ")
    assert lines[start + 3].startswith("  WA task 7-1, case 2: ")
    report, view = (line.removeprefix("next: ").split("   #")[0] for line in lines[start + 4 :])
    assert shlex.split(report) == ["judge", "report", str(out)]
    assert shlex.split(view) == ["judge", "view", str(out.parent)]
    assert run(*shlex.split(report)[1:]).exit_code == 0
    assert "failed" not in score(outputs, suite, "--out", out, "--quiet").stdout
    assert json.loads(score(outputs, suite, "--out", out, "--json").stdout)["overall"]["cases"] == 4


def test_many_failures_are_counted_and_a_long_cause_is_cut(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", [TaskSpec("1", cases=9)])
    folder = tmp_path / "outputs"
    folder.mkdir()
    for case in range(1, 10):
        (folder / f"{case}_1_output.xlsx").write_bytes(WRONG)
    stdout = score(folder, suite, "--out", tmp_path / "run").stdout
    assert "run: 9 of 9 cases failed: WA 9" in stdout
    assert sum(line.startswith("  WA task 1, case ") for line in stdout.splitlines()) == 5
    assert "  and 4 more" in stdout


def test_a_pipe_in_place_of_solutions_is_named_as_such(suite: Suite, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe: neither a file nor a folder"):
        library.score(tmp_path / "pipe", library.ScoreOptions(dataset=str(suite.root)))


def test_a_run_without_failures_says_only_what_is_next(
    outputs: Path, suite: Suite, tmp_path: Path
) -> None:
    for name in ("2_1", "1_7-1", "2_7-1"):
        (outputs / f"{name}_output.xlsx").write_bytes(book(TABLE))
    stdout = score(outputs, suite, "--out", tmp_path / "run").stdout
    assert "failed" not in stdout
    assert "next: judge report " in stdout


def test_a_changed_verdict_is_json_where_json_is_asked_for(
    outputs: Path, suite: Suite, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert score(outputs, suite, "--out", out).exit_code == 0
    by_hand = ("--case", "1/2", "--by", "Ann", "--why", "rounding", "--json")
    said = json.loads(run("rejudge", out, *by_hand, "--verdict", "AC").stdout)
    assert (said["case"], said["change"]["verdict"], said["change"]["by"]) == ("1/2", "AC", "Ann")
    assert json.loads(run("rejudge", out, *by_hand, "--verdict", "auto").stdout)["change"] is None


# -- did you mean ----------------------------------------------------------------------------------


def test_names_of_suites_and_tasks_are_suggested() -> None:
    with pytest.raises(SuiteError, match=r"Did you mean sample\?"):
        load_suite("sampel")
    with pytest.raises(SuiteError, match="Did you mean spreadsheetbench-verified-400"):
        load_suite("spreadsheetbench-verfied-400")
    with pytest.raises(UsageError, match=r"has no task 101\. Did you mean 1001\?") as caught:
        load_suite("sample").task("101")
    assert caught.value.hint == "`judge dataset list sample` names its tasks"
    with pytest.raises(UsageError, match=r"has no task 101x\. Did you mean 1001"):
        load_suite("sample").select(["1001", "101x"])


def test_names_of_profiles_and_models_are_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError) as caught:
        get_profile("strickt")
    assert str(caught.value.hint).startswith("Did you mean strict? Profiles: ")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(
        InferenceError, match=r"deepseek-codr is not an alias .*Did you mean deepseek-"
    ):
        library.infer(library.InferOptions(model="deepseek-codr", limit=1))
    with pytest.raises(InferenceError) as unknown:
        library.infer(library.InferOptions(model="zzzzzz", limit=1))
    assert "Did you mean" not in unknown.value.message


def test_a_suite_that_has_a_name_is_called_by_it(tmp_path: Path) -> None:
    assert shown_source(load_suite("sample-rules").root) == "sample-rules"
    assert shown_source(tmp_path) == str(tmp_path)


def test_with_chosen_tasks_solutions_of_another_suite_are_left_out_and_named(
    tmp_path: Path,
) -> None:
    replies = tmp_path / "replies.jsonl"
    given = [{"id": task_id, "response": "{}"} for task_id in ("bars", "cards", "unknown")]
    replies.write_text("\n".join(map(json.dumps, given)))
    common = ("score", replies, "--dataset", "sample-typed", "--out", tmp_path / "run")
    refused = run(*common)
    assert isinstance(refused.exception, SubmissionError)
    assert "has no task unknown (line 3)" in refused.exception.message
    assert "--ids" in str(refused.exception.hint)
    scored = run(*common, "--ids", "bars")
    assert "solutions of 1 task that the suite does not have are left out: unknown" in scored.output
    whole = run("score", tmp_path / "run", "--json", "--quiet")
    assert json.loads(whole.stdout)["overall"]["tasks"] == 2


# -- suites by name where cases are made -----------------------------------------------------------


def test_hack_and_annotate_take_the_name_of_a_suite() -> None:
    sample = REPOSITORY / "dataset" / "sample"
    workbook = sample / "spreadsheet" / "1001" / "1_1001_input.xlsx"
    solutions = ("--submissions", sample / "submissions.jsonl")
    missing = run("hack", "sampel", "1001", workbook, *solutions)
    assert isinstance(missing.exception, SuiteError)
    assert "Did you mean sample" in missing.exception.message
    unknown = run("hack", "sample", "101", workbook, *solutions, "--dry-run")
    assert isinstance(unknown.exception, UsageError)
    assert "has no task 101" in unknown.exception.message
    checked = run("annotate", "log", "sample")
    assert checked.exit_code == 0, checked.output


def test_nothing_is_written_into_a_suite_as_published() -> None:
    sample = REPOSITORY / "dataset" / "sample"
    workbook = sample / "spreadsheet" / "1001" / "1_1001_input.xlsx"
    solutions = ("--submissions", sample / "submissions.jsonl")
    for words in (
        ("annotate", "add", "sample", "1001", "--author", "Ann"),
        ("hack", "sample", "1001", workbook, *solutions),
    ):
        refused = run(*words)
        assert isinstance(refused.exception, UsageError)
        assert "nothing is written into it" in refused.exception.message
        assert f"cp -r {sample} my-sample" in str(refused.exception.hint)
    assert not (REPOSITORY / "dataset" / "sample" / "annotations").exists()


# -- values in messages ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing"),
        (True, "true"),
        (2.5, "2.5"),
        ("a b", "'a b'"),
        ({"date": "2024-03-01T00:00:00"}, "2024-03-01"),
        ({"error": "#N/A"}, "#N/A"),
        ([], "nothing"),
        ([1, None, "x"], "1, nothing, 'x'"),
        ([["A", 1], [{"date": "2024-03-01T08:30:00"}, 2]], "'A', 1; 2024-03-01 08:30:00, 2"),
        ({"kind": "bar", "series": [1, 2]}, "kind 'bar', series 1, 2"),
    ],
)  # fmt: skip
def test_findings_hold_no_values_of_python(value: object, words: str) -> None:
    assert in_words(value) == words
    place = DifferenceLocation(LocationKind.CHART, "1")
    said = str(FoundDifference("values", place, expected=value, actual=3))
    assert f"expected {words}, found 3" in said
    said = str(FoundDifference("values", place, expected=3, actual=value))
    assert f"expected 3, found {words}" in said
    assert "None" not in said


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (False, "false"),
        ("x", "'x'"),
        ([1, "a"], '[1, "a"]'),
        ({"a": None}, '{"a": null}'),
        (list(range(100)), "an array"),
        ({(1, 2): 3}, "an object"),
        (parse_yaml("2024-03-01"), "2024-03-01"),
        (parse_yaml("[2024-03-01]"), '["2024-03-01"]'),
    ],
)
def test_faults_of_documents_name_values_as_documents_do(value: object, text: str) -> None:
    assert written(value) == text


def test_yaml_faults_say_where_and_not_in_what_python_calls_the_input() -> None:
    for text, words in (
        ("a: [", "line 1, column 5: while parsing a flow node|line 1, column 4"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed here"),
        ("a: \x01", "character 4: special characters are not allowed"),
        ("- &a 1\n- *a", "line 2, column 3: aliases are not supported"),
    ):
        with pytest.raises(MalformedYamlError, match=words) as caught:
            parse_yaml(text)
        assert "unicode string" not in str(caught.value)


# -- files and folders that are not what was asked for --------------------------------------------


def test_a_workbook_or_a_program_in_place_of_solutions(tmp_path: Path) -> None:
    for name, command in (("mine.xlsx", "judge compare"), ("mine.py", "judge run TASK PROGRAM")):
        (tmp_path / name).write_bytes(WRONG)
        result = run("score", tmp_path / name, "--dataset", "sample")
        assert isinstance(result.exception, UsageError)
        assert result.exception.message == f"{tmp_path / name} is not a file of solutions"
        assert command in (result.exception.hint or "")


def test_a_folder_inside_a_suite_is_answered_with_the_suite(suite: Suite) -> None:
    with pytest.raises(SuiteError, match="spreadsheet is not a suite") as caught:
        load_suite(suite.root / "spreadsheet")
    assert caught.value.hint == f"it is inside a suite: give {suite.root}"


def test_a_file_that_defines_no_suite_is_said_to_be_none_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(WRONG)
    with pytest.raises(SuiteError, match=r"neither an archive nor a file that defines one") as file:
        load_suite(tmp_path / "a.xlsx")
    assert file.value.faults == ()


def test_missing_fields_of_a_task_are_named_once_and_with_where_their_options_are(
    tmp_path: Path,
) -> None:
    run("dataset", "new", tmp_path / "made")
    result = run("dataset", "add-task", tmp_path / "made", "2")
    assert isinstance(result.exception, UsageError)
    assert result.exception.message.count("instruction is") == 0
    assert result.exception.message.count("'instruction' is missing") == 1
    assert "--help" in (result.exception.hint or "")


def test_a_text_file_that_does_not_exist_is_named_without_the_words_of_python(
    tmp_path: Path,
) -> None:
    run("dataset", "new", tmp_path / "made")
    result = run("dataset", "add-task", tmp_path / "made", "2", "--instruction", "@gone.txt")
    assert isinstance(result.exception, UsageError)
    assert result.exception.message.endswith("cannot be read: No such file or directory")
    assert "Errno" not in result.exception.message


def test_a_checklist_that_cannot_be_exported_is_named(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[1]")
    result = run("dataset", "export-rewardkit", tmp_path / "list.json", tmp_path / "made")
    assert isinstance(result.exception, UsageError)
    assert result.exception.message.startswith(f"{tmp_path / 'list.json'}: option items: item 1")


def test_a_fault_that_is_the_whole_message_is_printed_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run("dataset", "new", tmp_path / "made")
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(tmp_path / "made")])
    assert ended.value.code == SuiteError.exit_code
    assert capsys.readouterr().err.count("a suite needs at least one task") == 1


def test_a_suite_that_is_no_folder_here_is_not_called_broken(tmp_path: Path) -> None:
    result = run("dataset", "export", tmp_path / "none", tmp_path / "out")
    assert isinstance(result.exception, SuiteError)
    assert result.exception.message == f"there is no folder {tmp_path / 'none'}"


# -- tables ----------------------------------------------------------------------------------------


def test_names_in_tables_are_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name, path = "n" * 50, "p" * 70
    shown = table("!name", "!path", "words")
    shown.add_row(name, path, "several words " * 10)
    print_table(shown)
    printed = capsys.readouterr().out
    assert name in printed
    assert path in printed


def test_names_with_spaces_and_in_headings_are_whole_whatever_gives_way(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"a run of {word} and of much besides" for word in ("models", "tasks", "cells")]
    shown = table(*(f"!{name}" for name in names), "words")
    shown.add_row(*(name.upper() for name in names), "several words " * 10)
    print_table(shown)
    heading, _, row, *_ = filter(str.strip, capsys.readouterr().out.splitlines())
    assert [name for name in names if name not in heading] == []
    assert [name for name in names if name.upper() not in row] == []


def test_pieces_of_a_cell_are_not_broken_when_it_takes_several_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    shown = table("!", "verdicts")
    shown.add_row("n" * 10, Unbroken(Text(piece) for piece in ("AC 213", "WA 84", "RE 1")))
    print_table(shown)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert f"{'n' * 10}   AC 213  WA 84" in lines
    assert "RE 1" in lines


LONG = "a run with a name of its own-" + "0123456789" * 6


def test_runs_are_named_whole_where_they_are_compared_and_scored(
    outputs: Path, suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    folders = [tmp_path / f"{LONG}{number}" for number in (1, 2)]
    for folder in folders:
        scored = score(outputs, suite, "--out", folder)
        titles = [line for line in scored.stdout.splitlines() if "profile standard" in line]
        assert len(titles) == 1
        assert titles[0].startswith(f"{folder.name} · suite ")
    compared = run("compare-runs", *folders).stdout.splitlines()
    rows = [line for line in compared if line.rstrip().count("standard") and "never" in line]
    assert [row.partition("standard")[0].strip() for row in rows] == [
        folder.name for folder in folders
    ]


@pytest.mark.parametrize("command", ["annotate check", "engines"])
def test_what_a_table_lists_is_named_whole(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    if command == "engines":
        names, shown = ["formualizer", "ironcalc", "libreoffice"], run("engines")
    else:
        names, shown = list(RULES), run("annotate", "check", suite.root, "--summary")
    lines = shown.stdout.splitlines()
    assert [name for name in names if not any(name in line for line in lines)] == []


@pytest.mark.parametrize(
    ("model", "inference", "shown"),
    [
        ("llama.cpp", {"model": "llama.cpp", "model_name": "S.gguf"}, "S.gguf (llama.cpp)"),
        ("gpt-4o", {"model": "gpt-4o", "model_name": "gpt-4o"}, "gpt-4o"),
        ("vllm", {"model": "vllm", "model_name": ""}, "vllm"),
        ("a, b", {"model": "a", "model_name": "x"}, "a, b"),
        ("claude", None, "claude"),
    ],
)  # fmt: skip
def test_a_run_is_called_by_the_model_that_answered(
    model: str, inference: dict[str, str] | None, shown: str
) -> None:
    run_document: RunDocument = {"model": model}
    if inference is not None:
        run_document["inference"] = inference  # type: ignore[typeddict-item]
    assert served_model(run_document) == shown


def test_tables_and_pages_are_titled_by_the_model_that_answered(
    outputs: Path, suite: Suite, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert score(outputs, suite, "--out", out).exit_code == 0
    document = json.loads((out / "run.json").read_text())
    document |= {"model": "vllm", "inference": {"model": "vllm", "model_name": "maker/model-7b"}}
    (out / "run.json").write_text(json.dumps(document))
    # What departs from the suite as published is said first.
    departs, title = score(outputs, suite, "--out", out).stdout.splitlines()[:2]
    assert departs.startswith("departs from the suite as published: ")
    assert "maker/model-7b (vllm)" in title
    report = json.loads((out / "report.json").read_text())["run"]
    assert (report["model"], report["inference"]["model_name"]) == ("vllm", "maker/model-7b")
    page = tmp_path / "page.html"
    assert run("report", out, "--out", page).exit_code == 0
    assert "maker/model-7b (vllm)" in page.read_text()
    markdown = run("report", out, "--format", "markdown").stdout
    assert "- chat model: maker/model-7b (vllm)\n" in markdown
