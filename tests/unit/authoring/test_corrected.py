"""A corrected suite that is written as a separate suite."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.authoring.export import export_corrected
from judge.cli.main import judge
from judge.compare.cells.options import CheckOptions, position_of
from judge.core.task import Task
from judge.errors import UsageError
from judge.grading.case import known_fault
from judge.suites import Suite, load_suite
from judge.suites.corrections import CellCorrection, CorrectedSuite, Correction, apply_corrections
from judge.suites.own_format import suite_document
from judge.workbook.cell import CellRef
from tests.unit.annotate.books import values
from tests.unit.report.runs import TaskSpec, make_suite


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=["spreadsheetbench-v0.1", "sheetjudge-v1"])
def suite(request: pytest.FixtureRequest, tmp_path: Path) -> Suite:
    folder = tmp_path / "published"
    made = make_suite(folder, [TaskSpec(each, cases=2) for each in "12345"])
    if request.param == made.format:
        return made
    document = suite_document(made.tasks, folder)
    (folder / "dataset.json").unlink()
    (folder / "suite.json").write_text(json.dumps(document))
    return load_suite(folder)


def corrected(suite: Suite) -> CorrectedSuite:
    gold = suite.task("1").cases[1].gold_path.read_bytes()
    bound = {
        "gold_sha256": hashlib.sha256(gold).hexdigest(),
        "evidence": "seen",
        "by": "Ann",
        "at": "2026-11-01",
    }
    cells = (CellCorrection(CellRef("Sheet1", 3, 2), 2, 5),)
    position = "Sheet1!B2:B4"

    def of(task: str, field: str, **more: object) -> Correction:
        said = {"was": None, "now": "why", "reason": "why", "source": "review", **more}
        return Correction(suite.format, task, field, **said)  # type: ignore[arg-type]

    return apply_corrections(
        suite,
        [
            of("1", "gold", case=2, cells=cells, **bound),
            of("2", "answer_position", was=position, now="Sheet1!B3:B4"),
            of("3", "style", now=("fill",)),
            of("4", "exclude"),
            of("5", "exclude", case=2, **bound),
        ],
    )


def test_a_corrected_suite_is_a_suite_with_its_provenance(suite: Suite, tmp_path: Path) -> None:
    wanted = corrected(suite)
    assert len(wanted.applied) == 5
    done = export_corrected(suite, wanted, tmp_path / "out" / "mended")
    made = load_suite(tmp_path / "out" / "mended")
    assert (done.tasks, done.cases, done.golds, done.corrections) == (5, 10, 1, 5)
    assert made.format == suite.format
    assert not made.notes
    assert made.digest == done.digest != suite.digest

    def checker(task: Task) -> object:
        return task.checker.name, json.loads(json.dumps(task.checker.options))

    assert [checker(each) for each in made.tasks] == [checker(e) for e in wanted.suite.tasks]
    assert position_of(made.task(2).checker)[0] == "Sheet1!B3:B4"
    assert CheckOptions.of(made.task(3).checker.options).style == ("fill",)
    assert known_fault(made.task(4)) == "the task is left out: why"
    assert [known_fault(made.task(5), case) for case in (1, 2)] == [
        None,
        "the case is left out: why",
    ]
    first, second = made.task(1).cases
    assert first.gold_path.read_bytes() == suite.task(1).cases[0].gold_path.read_bytes()
    assert values(second.gold_path.read_bytes(), "Sheet1")[3, 2] == 5
    assert [each.name for each in second.paths] == ["2_1_input.xlsx", "2_1_answer.xlsx"]
    provenance = json.loads((made.root / "provenance.json").read_text())
    assert provenance["published"]["digest"] == suite.digest
    assert provenance["digest"] == made.digest
    assert [each["by"] for each in provenance["corrections"] if "by" in each] == ["Ann", "Ann"]
    (changed,) = provenance["files"]
    assert changed["path"].endswith("2_1_answer.xlsx")
    for name, path in (("published_sha256", suite.root), ("sha256", made.root)):
        data = (path / changed["path"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == changed[name]


def test_the_same_corrections_are_not_needed_again(suite: Suite, tmp_path: Path) -> None:
    wanted = corrected(suite)
    export_corrected(suite, wanted, tmp_path / "mended.tar.gz")
    made = load_suite(tmp_path / "mended.tar.gz")
    (gold,) = [each for each in wanted.applied if each.field == "gold"]
    again = apply_corrections(made, [gold])
    assert (again.applied, again.unfit) == ((), (gold,))
    with pytest.raises(UsageError, match="no correction applies"):
        export_corrected(made, again, tmp_path / "twice")


def test_the_command(suite: Suite, tmp_path: Path) -> None:
    file = tmp_path / "corrections.yaml"
    entry = {"task": "1", "field": "exclude", "reason": "no question", "source": "its text"}
    file.write_text(json.dumps({"format": suite.format, "corrections": [entry]}))
    command = ["dataset", "export", str(suite.root), str(tmp_path / "out")]
    done = CliRunner().invoke(judge, [*command, "--corrections-from", str(file)])
    assert done.output == (
        f"{tmp_path / 'out'}: 5 tasks, 10 cases; corrections applied: 1, golds changed: 0\n"
    )
    assert known_fault(load_suite(tmp_path / "out").task(1)) is not None
    both = [*command, "--corrections-from", str(file), "--state", "draft"]
    assert isinstance(CliRunner().invoke(judge, both).exception, UsageError)
