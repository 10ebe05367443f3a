from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from judge.compare.cells.options import position_of
from judge.errors import SuiteError, UsageError
from judge.suites import archive as archive_module
from judge.suites import load_suite
from judge.suites.spreadsheetbench import InstructionType
from tests.unit.suites.conftest import WriteSuite, task_record


def faults_of(source: Path | str) -> tuple[str, ...]:
    with pytest.raises(SuiteError) as caught:
        load_suite(source)
    assert caught.value.faults, caught.value.message
    return caught.value.faults


def pack(folder: Path, archive: Path) -> Path:
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, folder.name)
    return archive


def test_every_field_arrives(write_suite: WriteSuite) -> None:
    record = task_record(
        "11-1",
        instruction_type="Sheet-Level Manipulation",
        answer_position="A1:D9",
        answer_sheet="Staff",
        data_position="A1:D9",
        exclude="the gold is wrong",
        style=["fill", "font_color"],
    )
    folder = write_suite([record, task_record(59196)])
    suite = load_suite(folder)
    first, second = suite.tasks
    assert suite.name == "suite"
    assert suite.root == folder
    assert suite.format == "spreadsheetbench-v0.1"
    assert (first.id, first.raw_id) == ("11-1", "11-1")
    assert first.kind == InstructionType.SHEET_LEVEL.value
    assert position_of(first.checker) == ("A1:D9", "Staff")
    assert first.context == {"data_position": "A1:D9"}
    assert first.excluded == "the gold is wrong"
    assert first.checker.name == "cell_range"
    assert first.checker.options["style"] == ("fill", "font_color")
    assert (second.id, second.raw_id, second.excluded) == ("59196", 59196, None)
    assert [case.number for case in second.cases] == [1, 2]
    assert second.cases[1].gold_path == folder / "spreadsheet/59196/2_59196_answer.xlsx"
    assert suite.case_count == 4
    assert not suite.notes


def test_the_verified_naming_is_recognised(write_suite: WriteSuite) -> None:
    files = [
        "spreadsheet/101/1_101_init.xlsx",
        "spreadsheet/101/1_101_golden.xlsx",
        "spreadsheet/101/prompt.txt",
    ]
    suite = load_suite(write_suite(None, files))
    assert suite.format == "spreadsheetbench-verified"
    assert suite.task(101).cases[0].input_path.name == "1_101_init.xlsx"


def test_the_same_suite_in_every_form(write_suite: WriteSuite, tmp_path: Path) -> None:
    folder = write_suite()
    archive = pack(folder, tmp_path / "mine.tar.gz")
    forms: list[Path | str] = [folder, str(folder), folder / "dataset.json", archive]
    suites = [load_suite(form) for form in forms]
    assert len({suite.digest for suite in suites}) == 1
    assert [suite.name for suite in suites] == ["suite", "suite", "suite", "mine"]
    # A folder with the suite one level down, as some archives unpack.
    outer = tmp_path / "outer"
    shutil.copytree(folder, outer / "suite")
    assert load_suite(outer).digest == suites[0].digest


def test_an_archive_is_unpacked_once(write_suite: WriteSuite, tmp_path: Path, cache: Path) -> None:
    archive = pack(write_suite(), tmp_path / "mine.tar.gz")
    root = load_suite(archive).root
    marker = root / "marker"
    marker.touch()
    assert load_suite(archive).root == root
    assert marker.exists()
    assert root.is_relative_to(cache)
    assert [path.name for path in (cache / "archives").iterdir()] == [root.parent.name]


@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("../escaped.xlsx", tarfile.REGTYPE, "leaves the archive's folder"),
        ("/tmp/escaped.xlsx", tarfile.REGTYPE, "leaves the archive's folder"),
        ("suite/link.xlsx", tarfile.SYMTYPE, "neither a file nor a folder"),
        ("suite/hard.xlsx", tarfile.LNKTYPE, "neither a file nor a folder"),
        ("suite/pipe", tarfile.FIFOTYPE, "neither a file nor a folder"),
    ],
)
def test_an_archive_that_reaches_outside_is_refused(
    tmp_path: Path, cache: Path, name: str, kind: bytes, problem: str
) -> None:
    archive = tmp_path / "evil.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        good = tarfile.TarInfo("suite/dataset.json")
        good.size = 2
        tar.addfile(good, io.BytesIO(b"[]"))
        member = tarfile.TarInfo(name)
        member.type = kind
        member.linkname = "../../../etc/passwd"
        tar.addfile(member, io.BytesIO())
    (fault,) = faults_of(archive)
    assert name in fault
    assert problem in fault
    assert not list((cache / "archives").iterdir())
    assert not (tmp_path / "escaped.xlsx").exists()


@pytest.mark.parametrize(("bound", "value"), [("MAX_MEMBERS", 3), ("MAX_UNPACKED_BYTES", 150)])
def test_an_archive_that_holds_too_much(
    write_suite: WriteSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    monkeypatch.setattr(archive_module, bound, value)
    archive = pack(write_suite(), tmp_path / "bomb.tar.gz")
    with pytest.raises(SuiteError, match="unpacks to more than a suite can be"):
        load_suite(archive)


@pytest.mark.parametrize("content", [b"", b"no archive at all", None])
def test_a_torn_archive(write_suite: WriteSuite, tmp_path: Path, content: bytes | None) -> None:
    archive = pack(write_suite(), tmp_path / "torn.tar.gz")
    whole = archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 2] if content is None else content)
    (fault,) = faults_of(archive)
    assert fault.startswith("torn.tar.gz")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"id": ...}, "field 'id' is missing"),
        ({"id": 1.5}, "field 'id' must be an integer or text, not 1.5"),
        ({"id": True}, "field 'id' must be an integer or text, not true"),
        ({"id": "../x"}, "field 'id' must not hold a slash: '../x'"),
        ({"instruction": ...}, "field 'instruction' is missing"),
        ({"instruction": 12}, "field 'instruction' must be text, not 12"),
        ({"instruction_type": "Chart"}, "field 'instruction_type' must be 'Cell-Level"),
        ({"instruction_type": None}, "field 'instruction_type' is null"),
        ({"answer_position": ""}, "field 'answer_position' is empty"),
        ({"answer_position": ["B1"]}, "field 'answer_position' must be text, not [\"B1\"]"),
        ({"answer_sheet": 3}, "field 'answer_sheet' must be text, not 3"),
        ({"exclude": 7}, "field 'exclude' must be text or true or false, not 7"),
        ({"style": "fill"}, 'field \'style\' must be a list such as ["fill"], not "fill"'),
        ({"style": []}, "field 'style' must be a list such as [\"fill\"], not []"),
        ({"checker": 5}, "field 'checker' must be a name or an object with a name, not 5"),
        ({"spreadsheet_path": "../other"}, "field 'spreadsheet_path' leaves the suite"),
        ({"spreadsheet_path": "/etc"}, "field 'spreadsheet_path' leaves the suite"),
        ({"spreadsheet_path": "spreadsheet/404"}, "there is no folder spreadsheet/404"),
    ],
)
def test_faults_of_a_record(write_suite: WriteSuite, changes: dict[str, Any], fault: str) -> None:
    files = ["spreadsheet/101/1_101_input.xlsx", "spreadsheet/101/1_101_answer.xlsx"]
    (found,) = faults_of(write_suite([task_record(**changes)], files))
    assert found.startswith("dataset.json, record 0")
    assert fault in found


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('[\n {"id": 1,}\n]', "dataset.json is not JSON at line 2, column 11"),
        ("[]", "dataset.json is empty"),
        ('{"id": 1}', "dataset.json must be a list of tasks, not dict"),
        ("", "dataset.json is not JSON at column 1"),
        (b'["\xff\xfe"]', "dataset.json is not UTF-8 at byte 2"),
        ("[" * 100_000, "dataset.json is nested more than 100 levels deep"),
        ("[3]", "record 0: must be an object with the fields of a task, not 3"),
    ],
)
def test_faults_of_the_file(write_suite: WriteSuite, content: str | bytes, fault: str) -> None:
    (found,) = faults_of(write_suite(content, []))
    assert fault in found


def test_every_fault_is_listed_at_once(write_suite: WriteSuite) -> None:
    records = [
        task_record(1, instruction=None, answer_position=5),
        task_record(2),
        task_record("2"),
        task_record(3),
        task_record(4, instruction_type="?"),
    ]
    files = [
        *("spreadsheet/2/1_2_input.xlsx", "spreadsheet/2/1_2_answer.xlsx"),
        *("spreadsheet/3/1_3_input.xlsx", "spreadsheet/3/2_3_answer.xlsx"),
    ]
    faults = faults_of(write_suite(records, files))
    assert [fault.split(":")[0] for fault in faults] == [
        "dataset.json, record 0 (id 1)",
        "dataset.json, record 0 (id 1)",
        "dataset.json, record 2 (id 2)",
        "spreadsheet/3/",
        "spreadsheet/3/",
        "dataset.json, record 4 (id 4)",
    ]
    assert "is already used by record 1" in faults[2]


@pytest.mark.parametrize("source", ["nowhere", "no/where", "nowhere.tar.gz"])
def test_nothing_there(source: str) -> None:
    with pytest.raises(SuiteError, match=f"no suite at {source}"):
        load_suite(source)


def test_a_folder_without_a_suite(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SuiteError, match=r"holds no dataset\.json"):
        load_suite(tmp_path / "empty")


def test_a_folder_with_several_suites(write_suite: WriteSuite, tmp_path: Path) -> None:
    write_suite(name="one")
    write_suite(name="two")
    with pytest.raises(SuiteError, match="several suites: one, two"):
        load_suite(tmp_path)


def test_another_json_is_not_a_suite(tmp_path: Path) -> None:
    other = tmp_path / "tasks.json"
    other.write_text("[]")
    with pytest.raises(SuiteError, match="is not a suite"):
        load_suite(other)


@pytest.mark.parametrize("what", ["folder", "file"])
def test_links_may_not_leave_the_suite(write_suite: WriteSuite, tmp_path: Path, what: str) -> None:
    folder = write_suite()
    secret = tmp_path / "secret"
    shutil.move(folder / "spreadsheet/101", secret)
    if what == "folder":
        (folder / "spreadsheet/101").symlink_to(secret)
        (fault,) = faults_of(folder)
        assert "spreadsheet/101 is a link that leaves the suite" in fault
        return
    shutil.copytree(secret, folder / "spreadsheet/101")
    gold = folder / "spreadsheet/101/1_101_answer.xlsx"
    gold.unlink()
    gold.symlink_to(secret / gold.name)
    assert faults_of(folder) == (
        "spreadsheet/101/1_101_answer.xlsx: a link that leaves the suite",
        "spreadsheet/101/: case 1 has no gold (1_101_answer.xlsx)",
    )


def test_links_inside_the_suite_are_fine(write_suite: WriteSuite) -> None:
    folder = write_suite()
    (folder / "spreadsheet/101").rename(folder / "kept")
    (folder / "spreadsheet/101").symlink_to(folder / "kept")
    assert len(load_suite(folder).task(101).cases) == 2


def test_odd_but_understood(write_suite: WriteSuite) -> None:
    suite = load_suite(write_suite([task_record(instruction="", difficulty=3)]))
    assert suite.task("101").instruction == ""
    label = "dataset.json, record 0 (id 101)"
    assert suite.notes == (f"{label}: unknown fields are ignored: difficulty",)


@pytest.mark.parametrize(
    ("written", "excluded"),
    [
        (None, None),
        (False, None),
        ("", None),
        (True, "excluded by the suite, without a reason"),
        ("wrong gold", "wrong gold"),
    ],
)
def test_excluded(write_suite: WriteSuite, written: object, excluded: str | None) -> None:
    suite = load_suite(write_suite([task_record(exclude=written)]))
    assert suite.tasks[0].excluded == excluded


def test_a_checker_with_options(write_suite: WriteSuite) -> None:
    records = [
        task_record(1, checker="rules"),
        task_record(2, checker={"name": "rules", "file": "rules.json"}, style=["fill"]),
        task_record(3, checker={"decimals": 4}),
    ]
    one, two, three = (task.checker for task in load_suite(write_suite(records)).tasks)
    assert (one.name, dict(one.options)) == ("rules", {})
    assert (two.name, dict(two.options)) == ("rules", {"file": "rules.json", "style": ("fill",)})
    assert three.name == "cell_range"
    assert dict(three.options) == {"answer_position": "B1", "decimals": 4}
    assert three.public == ("answer_position", "answer_sheet")


def test_the_position_is_said_once(write_suite: WriteSuite) -> None:
    folder = write_suite([task_record(1, checker={"answer_position": "A1"})])
    with pytest.raises(SuiteError) as caught:
        load_suite(folder)
    assert "must not hold 'answer_position'" in caught.value.faults[0]


def test_tasks_by_id(write_suite: WriteSuite) -> None:
    suite = load_suite(write_suite([task_record(3), task_record("1-1"), task_record(2)]))
    assert suite.task(3) is suite.task("3")
    assert 3 in suite
    assert "4" not in suite
    with pytest.raises(UsageError, match="has no task 4"):
        suite.task("4")
    assert [task.id for task in suite.select(["2", 3]).tasks] == ["3", "2"]
    assert suite.select([]).tasks == suite.select().tasks == suite.tasks
    assert [task.id for task in suite.select(limit=2).tasks] == ["3", "1-1"]
    assert suite.select([2]).digest == suite.digest
    with pytest.raises(UsageError, match="has no task 4, 5"):
        suite.select(["5", "2", 4])


def test_the_digest_sees_every_byte(write_suite: WriteSuite) -> None:
    folder = write_suite()
    before = load_suite(folder).digest
    assert load_suite(folder).digest == before
    gold = folder / "spreadsheet/101/2_101_answer.xlsx"
    content = gold.read_bytes()
    gold.write_bytes(content[:-1] + b"!")
    assert load_suite(folder).digest != before
    gold.write_bytes(content)
    assert load_suite(folder).digest == before
    (folder / "dataset.json").write_text(json.dumps([task_record(answer_position="B2")]))
    assert load_suite(folder).digest != before


def test_inputs_and_golds_are_not_interchangeable(write_suite: WriteSuite) -> None:
    folder = write_suite()
    before = load_suite(folder).digest
    case = folder / "spreadsheet/101"
    gold, question = case / "1_101_answer.xlsx", case / "1_101_input.xlsx"
    first, second = gold.read_bytes(), question.read_bytes()
    gold.write_bytes(second)
    question.write_bytes(first)
    assert load_suite(folder).digest != before


def test_a_file_that_went_away(write_suite: WriteSuite) -> None:
    suite = load_suite(write_suite())
    suite.tasks[0].cases[0].gold_path.unlink()
    with pytest.raises(SuiteError, match=r"1_101_answer\.xlsx cannot be read"):
        _ = suite.digest


def test_the_sample_suite_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    suite = load_suite("sample")
    assert suite.name == "sample"
    assert len(suite.tasks) >= 12
    # A folder that happens to have the name and is no suite does not stand in the way.
    (tmp_path / "sample").mkdir()
    assert load_suite("sample").digest == suite.digest


def test_a_published_suite_that_is_not_there() -> None:
    with pytest.raises(SuiteError, match="not on this machine yet") as caught:
        load_suite("spreadsheetbench-912")
    assert caught.value.hint == "judge dataset fetch spreadsheetbench-912"


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "format_name", "tasks", "cases"),
    [
        ("spreadsheetbench_912_dev300", "spreadsheetbench-v0.1", 300, 897),
        ("spreadsheetbench_verified_dev128", "spreadsheetbench-verified", 128, 128),
    ],
)
def test_published_suites(
    judge_data: Path, name: str, format_name: str, tasks: int, cases: int
) -> None:
    suite = load_suite(judge_data / name)
    assert (suite.format, len(suite.tasks), suite.case_count) == (format_name, tasks, cases)
