"""A suite as a dataset folder with its card and its index, but without golds."""

from __future__ import annotations

import hashlib
import importlib
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from judge.cli.groups import dataset
from judge.errors import UsageError, how_to_install
from judge.files.yaml_documents import read_yaml
from judge.suites import load_suite


def export(*arguments: object) -> Result:
    return CliRunner().invoke(dataset, ["export", *map(str, arguments)])


@pytest.fixture(scope="module")
def parquet() -> Any:
    """The reader of Parquet, which takes 28 MB of memory and stays out of workers without it."""
    return importlib.import_module("pyarrow.parquet")


@pytest.fixture(scope="module", params=["sample", "sample-typed"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("cards") / str(request.param)
    result = export(request.param, target, "--format", "dataset-card")
    assert result.exit_code == 0, result.output
    return target


def test_the_card_has_licence_source_and_counts(exported: Path, tmp_path: Path) -> None:
    suite = load_suite(exported.name)
    _, front, text = (exported / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    (tmp_path / "front.yaml").write_text(front, encoding="utf-8")
    card = read_yaml(tmp_path / "front.yaml", UsageError)
    assert (card["license"], card["size_categories"]) == ("apache-2.0", ["n<1K"])
    assert (exported / card["configs"][0]["data_files"]).is_file()
    assert f"| tasks | {len(suite.tasks)} |" in text
    assert f"| test cases | {suite.case_count} |" in text
    assert suite.digest in text


def test_the_index_has_every_question_with_its_inputs(exported: Path, parquet: Any) -> None:
    suite = load_suite(exported.name)
    rows = parquet.read_table(exported / "data" / "tasks.parquet").to_pylist()
    assert [row["instruction"] for row in rows] == [each.instruction for each in suite.tasks]
    for row, task in zip(rows, suite.tasks, strict=True):
        assert {each["name"]: each["value"] for each in row["details"]} == dict(task.details)
        for written, case in zip(row["cases"], task.cases, strict=True):
            assert written["number"] == case.number
            for file, each in zip(written["inputs"], case.inputs, strict=True):
                data = (exported / file["path"]).read_bytes()
                assert data == each.path.read_bytes()
                assert (file["bytes"], file["kind"]) == (len(data), each.kind.value)
                assert file["sha256"] == hashlib.sha256(data).hexdigest()


def test_the_columns_are_of_types_that_dataset_libraries_read(exported: Path, parquet: Any) -> None:
    """The library `datasets` has no type for mappings."""
    kinds = str(parquet.read_schema(exported / "data" / "tasks.parquet").remove_metadata())
    assert "list<" in kinds
    assert "map<" not in kinds


def test_no_gold_is_in_it(exported: Path, parquet: Any) -> None:
    written = [path.read_bytes() for path in exported.rglob("*") if path.is_file()]
    hashes = {hashlib.sha256(data).digest() for data in written}
    cases = [case for task in load_suite(exported.name).tasks for case in task.cases]
    inputs = {each.path.read_bytes() for case in cases for each in case.inputs}
    golds = [gold for case in cases for gold in case.golds]
    assert golds
    for gold in golds:
        if gold.path is not None and (data := gold.path.read_bytes()) not in inputs:
            assert hashlib.sha256(data).digest() not in hashes
    columns = parquet.read_schema(exported / "data" / "tasks.parquet").names
    assert not {"golds", "gold", "options", "checker"} & set(columns)


def test_an_archive_and_what_a_card_cannot_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = load_suite("sample-typed").root
    card = ["--format", "dataset-card"]
    unknown = export(folder, tmp_path / "x", *card)
    assert isinstance(unknown.exception, UsageError)
    assert "--licence" in (unknown.exception.hint or "")
    packed = tmp_path / "mine.tar.gz"
    made = export(folder, packed, *card, "--licence", "Ours | <all> rights", "--source", "us")
    assert made.exit_code == 0, made.output
    with tarfile.open(packed) as archive:
        member = archive.extractfile("mine/README.md")
        assert member is not None
        text = member.read().decode()
    assert 'license: "other"\nlicense_name: "Ours | <all> rights"' in text
    assert "| licence | Ours \\| &lt;all> rights |\n| source | us |" in text
    for options in (["--state", "draft", *card], ["--licence", "x"]):
        refused = export(folder, tmp_path / "y", *options)
        assert isinstance(refused.exception, UsageError), options
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("judge.authoring.export.find_spec", lambda _: None)
    missing = export("sample", tmp_path / "z", *card)
    assert isinstance(missing.exception, UsageError)
    assert missing.exception.hint == how_to_install("parquet")
    assert not (tmp_path / "z").exists()
