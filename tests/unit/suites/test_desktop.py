"""The layouts of Spider2-V and OSWorld: what is judged, and why the rest is not."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from judge.api import verify
from judge.cli.main import judge as judge_command
from judge.core.submission import AnswerForm
from judge.core.task import Phrasing
from judge.errors import SuiteError
from judge.suites.suite import Suite, load_suite
from judge.suites.validate import Severity, validate_suite
from tests.phrased_suite import write_phrased_suite

CORPUS = Path(__file__).parents[2] / "workbook_rules" / "corpus"
ZOOM = {"type": "zoom", "sheet_idx": 0, "method": "eq", "ref": 9}
DATA = {"type": "sheet_data", "sheet_idx0": 0, "sheet_idx1": "EI0"}


def record(task_id: str, evaluator: dict[str, Any], name: str = "in.xlsx") -> dict[str, Any]:
    files = [{"url": f"https://example.org/{name}", "path": f"/home/user/{name}"}]
    return {
        "id": task_id,
        "instruction": "Do it.",
        "config": [{"type": "download", "parameters": {"files": files}}, {"type": "open"}],
        "evaluator": evaluator,
    }


def table(*rules: dict[str, Any], gold: str | None = "gold.xlsx") -> dict[str, Any]:
    made: dict[str, Any] = {"func": "compare_table", "options": {"rules": list(rules)}}
    if gold is not None:
        made["expected"] = {"type": "cloud_file", "path": f"https://example.org/a/{gold}"}
    return made


PDF = [{"type": "vm_file", "path": "/home/user/a.pdf"}] * 2


def pages(conj: str, *files: str) -> dict[str, Any]:
    rules = {"relation": "eq", "ref_value": 1}
    return {
        "func": ["check_pdf_pages"] * len(files),
        "conj": conj,
        "result": [{"type": "vm_file", "path": f"/home/user/{each}"} for each in files],
        "expected": [{"type": "rule", "rules": rules} for _ in files],
    }


def make(root: Path, records: list[dict[str, Any]], folder: str = "libreoffice_calc") -> Path:
    examples = root / "evaluation_examples" / "examples"
    for each in records:
        name = f"{each['id']}.json"
        inner = name if folder == "libreoffice_calc" else f"{each['id']}/{name}"
        place = examples / folder / inner
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(each))
        cache = root / "cache" / each["id"]
        cache.mkdir(parents=True)
        shutil.copy(CORPUS / "base.xlsx", cache / "in.xlsx")
        shutil.copy(CORPUS / "val5.xlsx", cache / "gold.xlsx")
    return root


def reasons(suite: Suite) -> dict[str, object]:
    return {task.id: task.checker.options.get("left_out") for task in suite.tasks}


def test_osworld(tmp_path: Path) -> None:
    gone = record("gone", table(DATA), "nowhere.xlsx")
    on_desktop = table(DATA)
    on_desktop["expected"] = {"type": "vm_file", "path": "/home/user/gold.xlsx"}
    root = make(
        tmp_path,
        [
            record("plain", table(DATA)),
            record("zoom", table(ZOOM, gold=None)),
            record("csv", {"func": "compare_csv"}),
            record("both", {"func": ["check_pdf_pages", "is_expected_tabs"], "result": PDF}),
            record("either", pages("or", "a.pdf", "a.pdf")),
            record("several", pages("and", "a.pdf", "b.pdf")),
            record("shell", {"func": "exact_match", "result": {"type": "vm_command_line"}}),
            record("never", {"func": "infeasible"}),
            record("print", table({**DATA, "type": "sheet_print"})),
            record("desktop", on_desktop),
            gone,
        ],
    )  # fmt: skip
    suite = load_suite(root)
    assert suite.format == "osworld"
    said = reasons(suite)
    assert {task_id for task_id, reason in said.items() if reason is None} == {
        "plain",
        "zoom",
        "print",
        "never",
        "either",
    }
    assert "nowhere.xlsx" in str(said["gone"])
    assert "is_expected_tabs needs the desktop" in str(said["both"])
    assert "2 files: a.pdf, b.pdf" in str(said["several"])
    assert "vm_command_line" in str(said["shell"])
    assert "None" in str(said["csv"])
    tasks = {task.id: task for task in suite.tasks}
    assert tasks["never"].answer is AnswerForm.TEXT
    assert tasks["never"].groups["feasible"] == "no"
    assert tasks["either"].groups["feasible"] == "yes"
    assert tasks["either"].details == {"file": "a.pdf"}
    assert tasks["either"].checker.options["conj"] == "or"
    paths = suite.suite_format.default_paths(tasks["either"].question)
    assert paths.output_path == "/mnt/data/in_output.pdf"
    assert suite.suite_format.output_of("either_output.pdf") == ("either", 1)
    left_out: dict[str, str] = {}
    found = verify(root, recalc="never", on_left_out=left_out.__setitem__)
    checks = {each.task_id: each for each in found}
    assert checks["plain"].gold_accepted
    assert checks["plain"].untouched_accepted is False
    assert str(said["gone"]) in left_out["gone"]
    assert checks["never"].gold_accepted
    assert len(found) == 5
    assert not checks["print"].gold_accepted  # nothing prints here


def test_the_digest_covers_every_task_file(tmp_path: Path) -> None:
    root = make(tmp_path, [record("one", table(DATA))])
    before = load_suite(root).digest
    path = root / "evaluation_examples" / "examples" / "libreoffice_calc" / "one.json"
    path.write_text(json.dumps(record("one", table({**DATA, "precision": 1}))))
    assert load_suite(root).digest != before


@pytest.mark.parametrize(
    ("actions", "difficulty"),
    [(0, "easy"), (5, "easy"), (6, "medium"), (15, "medium"), (16, "hard"), (True, None)],
)
def test_difficulty_by_the_number_of_actions(
    tmp_path: Path, actions: int, difficulty: str | None
) -> None:
    suite = load_suite(make(tmp_path, [record("one", table(DATA)) | {"action_number": actions}]))
    (task,) = suite.tasks
    assert task.groups.get("actions") == difficulty
    # Where every task can be done, feasibility parts nothing.
    assert "feasible" not in task.groups


def test_spider2v_and_both_in_one_folder(tmp_path: Path) -> None:
    entry = record("a-1", table(DATA))
    entry["tags"] = ["verbose"]
    entry["action_number"] = 15
    step = {"src": "evaluation_examples/examples/excel/a-1/in.xlsx", "dest": "/home/user/in.xlsx"}
    entry["config"] = [{"type": "copyfile_from_host_to_guest", "parameters": step}]
    entry["evaluator"]["expected"] = {"type": "local_file", "path": "x/excel/a-1/gold.xlsx"}
    root = make(tmp_path, [entry], "excel")
    folder = root / "evaluation_examples" / "examples" / "excel" / "a-1"
    for each in (root / "cache" / "a-1").iterdir():
        each.rename(folder / each.name)
    suite = load_suite(root)
    assert suite.format == "spider2v"
    (task,) = suite.tasks
    assert task.groups == {"instruction": "verbose", "actions": "medium"}
    (columns,) = (table.columns for table in suite.tables)
    assert [each.label for each in columns] == ["Overall", "Medium", "Verbose"]
    assert task.checker.options["evaluator"] == "spider2v"
    assert reasons(suite) == {"a-1": None}
    paths = suite.suite_format.default_paths(task.question)
    assert paths.input_path != paths.output_path
    assert suite.suite_format.output_of("a-1_output.xlsx") == ("a-1", 1)
    other = root / "evaluation_examples" / "examples" / "libreoffice_calc"
    other.mkdir()
    (other / "a-1.json").write_text(json.dumps(record("a-1", table(DATA))))
    both = load_suite(root)
    assert both.format == "osworld"
    assert reasons(both) == {"a-1": None}


@pytest.mark.parametrize(
    "broken",
    [
        {"id": "../up"},
        {"instruction": 7},
        {"evaluator": None},
        {"evaluator": table(DATA, gold="..")},
        {"evaluator": {"func": "compare_table", "options": {"rules": "none"}}},
        {"config": [{"type": "download", "parameters": None}]},
        {"config": [{"type": "download", "parameters": {"files": [{"path": 3}]}}]},
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, broken: dict[str, Any]) -> None:
    root = make(tmp_path, [record("one", table(DATA))])
    path = root / "evaluation_examples" / "examples" / "libreoffice_calc" / "one.json"
    path.write_text(json.dumps({**record("one", table(DATA)), **broken}))
    with pytest.raises(SuiteError) as found:
        load_suite(root)
    assert "one.json: field" in found.value.faults[0]


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    root = make(tmp_path / "suite", [record("one", table(DATA))])
    outside = tmp_path / "outside.xlsx"
    shutil.copy(CORPUS / "base.xlsx", outside)
    gold = root / "cache" / "one" / "gold.xlsx"
    gold.unlink()
    gold.symlink_to(outside)
    assert "gold.xlsx" in str(reasons(load_suite(root))["one"])


@pytest.mark.data
def test_the_published_folders(judge_data: Path, tmp_path: Path) -> None:
    checks = verify(judge_data / "spider2v_calc", profile="official", recalc="never", jobs=1)
    assert sum(each.gold_accepted for each in checks) == len(checks) == 62
    assert not any(each.untouched_accepted for each in checks)
    tasks = load_suite(judge_data / "spider2v_calc").tasks
    assert Counter(task.groups["actions"] for task in tasks) == {
        "easy": 2,
        "medium": 32,
        "hard": 28,
    }
    phrasings = Counter(task.groups["instruction"] for task in tasks)
    assert phrasings == {"abstract": 31, "verbose": 31}
    for name in ("spider2v_calc", "osworld_calc"):
        shutil.copytree(judge_data / name, tmp_path, dirs_exist_ok=True)
    reasons_of: dict[str, str] = {}
    judged = verify(
        tmp_path,
        profile="official",
        recalc="never",
        jobs=1,
        on_left_out=reasons_of.__setitem__,
    )
    assert sum(each.gold_accepted for each in judged) == len(judged) == 19
    assert not any(each.untouched_accepted for each in judged)
    assert len(reasons_of) == 28
    assert sum("infeasible" in reason for reason in reasons_of.values()) == 1


def test_phrasings_are_joined_where_both_name_each_other(tmp_path: Path) -> None:
    root = write_phrased_suite(tmp_path, {"a": [DATA], "b": [DATA]})
    lone = root / "evaluation_examples" / "examples" / "excel" / "b-verbose" / "b-verbose.json"
    lone.write_text(lone.read_text().replace('"counterpart": "b"', '"counterpart": "a"'))
    tasks = {task.id: task for task in load_suite(root).tasks}
    assert tasks["a-verbose"].phrasing == Phrasing("verbose", "a")
    assert tasks["a"].phrasing == Phrasing("abstract", "a")
    assert tasks["b"].phrasing == Phrasing("abstract", "b")
    assert tasks["b-verbose"].phrasing == Phrasing("verbose", "b-verbose")
    assert tasks["a"].plan == tasks["a-verbose"].plan
    assert "1. Open it;" in tasks["a"].question.plan
    assert tasks["a"].plan not in tasks["a"].instruction


def test_a_task_that_is_left_out_is_not_an_error_of_the_suite(tmp_path: Path) -> None:
    root = make(tmp_path / "s", [record("here", table(DATA)), record("gone", table(DATA))])
    shutil.rmtree(root / "cache" / "gone")
    findings = {each.task: each for each in validate_suite(load_suite(root))}
    assert findings["gone"].severity is not Severity.ERROR
    said = [each for each in validate_suite(load_suite(root)) if each.task == "gone"]
    assert any(each.message.startswith("left out, and not judged: ") for each in said)
    assert not [each for each in said if each.severity is Severity.ERROR]
    # A gold of a task that is judged is an error still.
    (root / "cache" / "here" / "gold.xlsx").write_bytes(b"no workbook")
    broken = [each for each in validate_suite(load_suite(root)) if each.task == "here"]
    assert [each.severity for each in broken] == [Severity.ERROR]


def test_with_both_folders_of_tasks_the_other_one_is_named_and_can_be_judged(
    tmp_path: Path,
) -> None:
    root = make(tmp_path / "both", [record("ours", table(DATA))])
    make(root, [record("theirs", table(DATA)), record("more", table(DATA))], "excel")
    suite = load_suite(root)
    assert (suite.format, [task.id for task in suite.tasks]) == ("osworld", ["ours"])
    (note,) = suite.notes
    other = root / "evaluation_examples" / "examples" / "excel"
    assert note == (
        "evaluation_examples/examples/excel: its 2 tasks of the format spider2v are not part of "
        f"this suite; name that folder to judge them: {other}"
    )
    assert note.partition(": ")[2] in {each.message for each in validate_suite(suite)}
    named = load_suite(other)
    assert (named.format, [task.id for task in named.tasks]) == ("spider2v", ["more", "theirs"])
    assert named.root == suite.root
    assert load_suite(root / "evaluation_examples/examples/libreoffice_calc").format == "osworld"


def test_workbooks_of_the_other_suite_without_its_tasks_are_not_mentioned(tmp_path: Path) -> None:
    root = make(tmp_path / "s", [record("ours", table(DATA))])
    (root / "evaluation_examples/examples/excel/ours").mkdir(parents=True)
    assert load_suite(root).notes == ()


def test_verify_of_nothing_is_an_error(tmp_path: Path) -> None:
    root = make(tmp_path / "s", [record("gone", table(DATA))])
    shutil.rmtree(root / "cache" / "gone")
    run = CliRunner().invoke(judge_command, ["verify", str(root), "--recalc", "never"])
    assert isinstance(run.exception, SuiteError)
    assert run.exception.exit_code == 3
    assert "no case was checked: 1 task is left out" in run.exception.message
    assert "these files are missing" in run.output


def test_an_audit_names_tasks_that_are_left_out_and_of_nothing_is_an_error(tmp_path: Path) -> None:
    root = make(tmp_path / "s", [record("gone", table(DATA)), record("kept", table(DATA))])
    shutil.rmtree(root / "cache" / "gone")
    audit = ["verify", str(root), "--recalc", "never", "--audit"]
    run = CliRunner().invoke(judge_command, audit)
    assert run.exit_code == 0, run.output
    assert "1 case of 1 task examined" in run.output
    assert "tasks that are not examined: 1\n  gone: the task is left out: " in run.output
    run = CliRunner().invoke(judge_command, [*audit, "--ids", "gone"])
    assert isinstance(run.exception, SuiteError)
    assert run.exception.exit_code == 3
    assert "no case was examined: 1 task is left out" in run.exception.message
