"""``suite.json``: everything that a task can have, and every fault, with its field."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from judge.cli.main import judge
from judge.core.submission import AnswerForm
from judge.core.task import FileKind, Gold, InputFile
from judge.errors import SuiteError, UsageError
from judge.suites import load_suite
from judge.suites.formats import format_of_folder
from judge.suites.own_format import suite_document
from judge.suites.suite import data_folder

Write = Callable[..., Path]

CELLS = {
    "name": "cell_range",
    "options": {"answer_position": "B1", "ignore_case": True, "style": ["fill"]},
    "public": ["answer_position"],
}


def task_record(**changes: Any) -> dict[str, Any]:
    """Returns a good task with changes; a change to ``...`` removes a field."""
    record: dict[str, Any] = {
        "id": "q1",
        "instruction": "Sum column A.",
        "kind": "Sum",
        "checker": CELLS,
        "cases": [{"inputs": ["files/in.xlsx"], "golds": ["files/gold.xlsx"]}],
    }
    record.update(changes)
    return {name: value for name, value in record.items() if value is not ...}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_suite(*tasks: object, **changes: object) -> Path:
        root = tmp_path / "own"
        (root / "files").mkdir(parents=True)
        for name in ("in.xlsx", "gold.xlsx", "other.xlsx", "rates.csv", "scan.png", "notes.dat"):
            (root / "files" / name).write_bytes(f"bytes of {name}".encode())
        document = {"format": "sheetjudge", "version": 1, "tasks": list(tasks)} | changes
        (root / "suite.json").write_text(json.dumps(document))
        return root

    return write_suite


def faults_of(root: Path) -> tuple[str, ...]:
    with pytest.raises(SuiteError) as caught:
        load_suite(root)
    return caught.value.faults


def test_it_says_everything_that_a_task_can_have(write: Write) -> None:
    case = {
        "number": 2,
        "inputs": [
            "files/rates.csv",
            "files/scan.png",
            {"path": "files/notes.dat", "kind": "text"},
            "files/in.xlsx",
        ],
        "golds": [
            "files/gold.xlsx",
            {"path": "files/other.xlsx", "options": {"ignore_case": False}},
            {"value": {"total": [1, None]}, "options": {"tolerance": 0.5}},
        ],
    }
    record = task_record(
        id=7,
        groups={"category": "sum"},
        context={"data_position": "A1:A9"},
        answer="table",
        excluded="two readings",
        cases=[case, {"number": 1}],
    )
    root = write(record)
    suite = load_suite(root)
    (task,) = suite.tasks
    assert (suite.format, task.id, task.raw_id) == ("sheetjudge-v1", "7", 7)
    assert (task.kind, task.groups, task.excluded) == ("Sum", {"category": "sum"}, "two readings")
    assert task.answer is AnswerForm.TABLE
    assert task.details == {"answer_position": "B1", "data_position": "A1:A9"}
    assert task.checker.options["style"] == ("fill",)
    first, second = task.cases
    assert (first.number, first.inputs, first.golds) == (1, (), ())
    files = root / "files"
    assert second.inputs == (
        InputFile(files / "rates.csv", FileKind.TABLE),
        InputFile(files / "scan.png", FileKind.IMAGE),
        InputFile(files / "notes.dat", FileKind.TEXT),
        InputFile(files / "in.xlsx", FileKind.WORKBOOK),
    )
    assert second.golds == (
        Gold(files / "gold.xlsx"),
        Gold(files / "other.xlsx", options={"ignore_case": False}),
        Gold(value={"total": [1, None]}, options={"tolerance": 0.5}),
    )
    assert suite_document(suite.tasks, root)["tasks"] == [
        {
            **record,
            "cases": [
                {"number": 1, "inputs": [], "golds": []},
                {
                    "number": 2,
                    "inputs": [
                        {"path": "files/rates.csv", "kind": "table"},
                        {"path": "files/scan.png", "kind": "image"},
                        {"path": "files/notes.dat", "kind": "text"},
                        {"path": "files/in.xlsx", "kind": "workbook"},
                    ],
                    "golds": [{"path": "files/gold.xlsx"}, *case["golds"][1:]],  # type: ignore[index]
                },
            ],
            "checker": {**CELLS, "options": {**CELLS["options"], "style": ("fill",)}},  # type: ignore[dict-item]
        }
    ]


def test_a_task_says_its_rules_and_a_gold_completes_them(write: Write) -> None:
    freeze = {"type": "freeze", "sheet_idx0": 0, "sheet_idx1": "EI0"}
    odd = {"type": "pane"}
    golds = [
        {"path": "files/gold.xlsx", "options": {"profile": "official"}},
        {"path": "files/other.xlsx", "options": {"rules": [odd, freeze]}},
    ]
    published = {"rules": [odd], "evaluator": "spider2v"}
    record = task_record(
        checker={"name": "rules", "options": published},
        cases=[{"inputs": ["files/in.xlsx"], "golds": golds}],
    )
    (task,) = load_suite(write(record)).tasks
    assert task.checker.options == {"rules": (odd,), "evaluator": "spider2v"}
    assert task.cases[0].golds[1].options == {"rules": (odd, freeze)}


def test_a_slip_in_a_rule_is_named_with_its_task(write: Write) -> None:
    freeze = {"type": "freeze", "sheet_idx0": 0, "sheet_idx1": "EI0"}
    own = {"path": "files/gold.xlsx", "options": {"rules": [freeze, {"type": "zom"}]}}
    good = {"name": "rules", "options": {"rules": [freeze]}}
    bad = {"name": "rules", "options": {"rules": [{**freeze, "props": []}]}}
    found = faults_of(
        write(
            task_record(checker=good, cases=[{"golds": [own]}]),
            task_record(id="q2", checker=bad, cases=[{"golds": ["files/gold.xlsx"]}]),
        )
    )
    start = "does not fit: option rules: rule"
    assert [fault.partition(": ")[0] for fault in found] == [
        'suite.json, task 0 (id "q1")',
        'suite.json, task 1 (id "q2")',
    ]
    own_place, place = "'cases[0].golds[0].options'", "'checker.options'"
    assert f"field {own_place} {start} 2: there is no type 'zom'; types: sheet_name" in found[0]
    unknown = "option 'props' is unknown; options: sheet_idx0, sheet_idx1"
    assert found[1].endswith(f"field {place} {start} 1 (freeze): {unknown}")


def test_the_sample_suite_is_the_same_in_it(tmp_path: Path) -> None:
    root = tmp_path / "sample"
    shutil.copytree(data_folder() / "sample", root)
    published = load_suite(root)
    (root / "suite.json").write_text(json.dumps(suite_document(published.tasks, root)))
    own = load_suite(root / "suite.json")
    assert own.format == "sheetjudge-v1"
    for before, after in zip(published.tasks, own.tasks, strict=True):
        assert (after.question, after.cases) == (before.question, before.cases)
        assert after.checker.options == before.checker.options
        assert (after.groups, after.raw_id) == (before.groups, before.raw_id)
    with pytest.raises(SuiteError, match="several formats"):
        load_suite(root)
    with pytest.raises(UsageError, match="is not in"):
        suite_document(published.tasks, root / "spreadsheet" / "nowhere")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"id": ...}, "field 'id' is missing"),
        ({"id": True}, "field 'id' must be text, not true"),
        ({"id": "a/b"}, "field 'id' must be at most 200 printable"),
        ({"id": "a\nb"}, "field 'id' must be at most 200 printable"),
        ({"kind": " "}, "field 'kind' is empty"),
        ({"instruction": 3}, "field 'instruction' must be text, not 3"),
        ({"answer": "movie"}, "field 'answer' must be one of workbook, table, files, text"),
        ({"answer": ["text"]}, "field 'answer' must be one of"),
        ({"groups": {"size": 3}}, "field 'groups.size' must be text, not 3"),
        ({"context": []}, "field 'context' must be an object, not an array"),
        ({"excluded": False}, "field 'excluded' must be text, not false"),
        ({"difficulty": 3}, "field 'difficulty' is unknown"),
        ({"checker": ...}, "field 'checker' is missing"),
        ({"checker": "cell_range"}, "field 'checker' must be an object"),
        ({"checker": {"name": "magic"}}, "there is no checker 'magic'"),
        (
            {"checker": {"name": "cell_range", "options": {"tolerance": "x"}}},
            "field 'checker.options' does not fit: option tolerance",
        ),
        (
            {"checker": {"name": "cell_range", "public": ["answer_position"]}},
            "field 'checker.public[0]' must name an option",
        ),
        ({"cases": []}, "field 'cases' is empty"),
        ({"cases": {}}, "field 'cases' must be a list"),
        ({"cases": [3]}, "field 'cases[0]' must be an object, not 3"),
        ({"cases": [{"number": 0}]}, "field 'cases[0].number' must be an integer of at least 1"),
        ({"cases": [{"number": 2}, {}]}, "field 'cases[1].number' is 2, which another"),
        ({"cases": [{"inputs": [3]}]}, "field 'cases[0].inputs[0]' must be an object or text"),
        (
            {"cases": [{"inputs": ["files/notes.dat"]}]},
            "field 'cases[0].inputs[0].kind' is missing",
        ),
        ({"cases": [{"inputs": ["files/in.xlsx"] * 2}]}, "is a second input called 'in.xlsx'"),
        ({"cases": [{"golds": [{}]}]}, "field 'cases[0].golds[0].path' or 'value' is required"),
        (
            {"cases": [{"golds": [{"value": 1, "options": {"magic": 1}}]}]},
            "field 'cases[0].golds[0].options' does not fit",
        ),
    ],
)
def test_a_fault_is_named_with_its_field(write: Write, changes: dict[str, Any], fault: str) -> None:
    (found,) = faults_of(write(task_record(**changes)))
    assert found.startswith("suite.json, task 0")
    assert fault in found


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("../secret.xlsx", "must be relative to the suite"),
        ("files/../../secret.xlsx", "must be relative to the suite"),
        ("/etc/passwd", "must be relative to the suite"),
        ("files\\in.xlsx", "must be relative to the suite"),
        ("files/in.xlsx\0", "must be relative to the suite"),
        ("files/none.xlsx", "cannot be read: files/none.xlsx: No such file"),
        ("files/" + "x" * 5000, "File name too long"),
        ("files", "is not a regular file"),
        ("files/fifo.xlsx", "is not a regular file"),
        ("files/loop.xlsx", "cannot be read"),
        ("files/link.xlsx", "is a link that leaves the suite"),
        ("out/secret.xlsx", "is a link that leaves the suite"),
        ("files/\ud800.xlsx", "cannot be the name of a file"),
    ],
)
@pytest.mark.parametrize("role", ["inputs", "golds"])
def test_files_are_regular_and_do_not_leave_the_suite(
    write: Write, tmp_path: Path, path: str, fault: str, role: str
) -> None:
    item = {"path": path} | ({"kind": "workbook"} if role == "inputs" else {})
    root = write(task_record(cases=[{role: [item]}]))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.xlsx").write_bytes(b"secret")
    os.mkfifo(root / "files" / "fifo.xlsx")
    (root / "files" / "loop.xlsx").symlink_to("loop.xlsx")
    (root / "files" / "link.xlsx").symlink_to(tmp_path / "elsewhere" / "secret.xlsx")
    (root / "out").symlink_to(tmp_path / "elsewhere")
    (found,) = faults_of(root)
    assert f"field 'cases[0].{role}[0].path'" in found
    assert fault in found


def test_links_within_the_suite_are_fine(write: Write) -> None:
    root = write(task_record(cases=[{"inputs": ["files/link.xlsx"]}]))
    (root / "files" / "link.xlsx").symlink_to("in.xlsx")
    assert load_suite(root).case_count == 1


def test_all_faults_are_listed_at_once(write: Write) -> None:
    faults = faults_of(write(task_record(kind=..., cases=[]), 3, task_record(), task_record()))
    assert [fault.split(": ")[0] for fault in faults] == [
        'suite.json, task 0 (id "q1")',
        'suite.json, task 0 (id "q1")',
        "suite.json, task 1",
        'suite.json, task 3 (id "q1")',
    ]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"format": "other"}, "field 'format' must be 'sheetjudge', not \"other\""),
        ({"version": 2}, "field 'version' must be 1, not 2"),
        ({"version": True}, "field 'version' must be 1, not true"),
        ({"tasks": []}, "field 'tasks' is empty"),
        ({"tasks": {}}, "field 'tasks' must be a list"),
        ({"more": 1}, "field 'more' is unknown"),
    ],
)
def test_faults_of_the_head(write: Write, changes: dict[str, object], fault: str) -> None:
    (found,) = faults_of(write(task_record(), **changes))
    assert found.startswith(f"suite.json: {fault}")


def test_a_definition_that_is_a_fifo_is_not_a_suite(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "suite.json")
    assert format_of_folder(tmp_path) is None


def test_the_digest_sees_definition_and_files(write: Write) -> None:
    root = write(task_record())
    before = load_suite(root).digest
    (root / "files" / "gold.xlsx").write_bytes(b"other")
    assert load_suite(root).digest != before


def test_commands_work_on_it(write: Write) -> None:
    case = {"inputs": ["files/rates.csv"], "golds": [{"value": 42}]}
    root = write(task_record(answer="text", groups={"category": "sum"}, cases=[case]))

    def run(*arguments: object) -> Any:
        command = ["dataset", *map(str, arguments)]
        return CliRunner().invoke(judge, command, standalone_mode=False)

    shown = json.loads(run("show", root, "q1", "--json").stdout)
    assert (shown["answer"], shown["groups"]) == ("text", {"category": "sum"})
    assert shown["cases"][0]["gold"] is None
    assert shown["cases"][0]["golds"] == [{"value": 42}]
    assert "42" in run("show", root, "q1").stdout
    assert "1 tasks, 1 cases (sheetjudge-v1)" in run("list", root).stdout
    counts = json.loads(run("stats", root, "--json").stdout)
    assert (counts["tasks_by_type"], counts["cases"]) == ({"Sum": 1}, 1)
    validated = run("validate", root, "--json")
    (finding,) = json.loads(validated.stdout)
    assert (finding["severity"], finding["file"]) == ("error", "suite.json")
    assert "compared with a gold workbook" in finding["message"]


def test_tables_of_scores(write: Write) -> None:
    columns = [
        {"label": "Total"},
        {"label": "yes", "heading": "Picture", "division": "picture", "group": "yes"},
    ]
    table = {"title": "By picture", "columns": columns}
    root = write(task_record(groups={"picture": "no"}), tables=[table])
    suite = load_suite(root)
    (read,) = suite.tables
    assert (read.title, [each.label for each in read.columns]) == ("By picture", ["Total", "yes"])
    assert [each.holds(suite.tasks[0].groups) for each in read.columns] == [True, False]
    assert suite_document(suite.tasks, root, suite.tables)["tables"] == [table]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"columns": []}, "field 'tables[0].title' is missing"),
        ({"title": "A"}, "field 'tables[0].columns' is missing"),
        ({"title": "A", "columns": [{"label": 1}]}, "'tables[0].columns[0].label' must be text"),
        (
            {"title": "A", "columns": [{"label": "a", "division": "b"}]},
            "'tables[0].columns[0].group' is missing",
        ),
        ({"title": "A", "columns": [], "rows": 1}, "'tables[0].rows' is unknown"),
    ],
)
def test_faults_of_tables(write: Write, table: object, said: str) -> None:
    assert any(said in fault for fault in faults_of(write(task_record(), tables=[table])))
