"""The sample suite: every submission gets its intended verdict."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, Snapshot
from tests.e2e.conftest import SHORT, Cli, read_report, require_backend, verdicts_of
from tests.records import snapshot_of_run

SUBMISSIONS = REPOSITORY / "dataset" / "sample" / "submissions.jsonl"
RULES = REPOSITORY / "dataset" / "sample-rules" / "submissions.jsonl"
SampleRun = Callable[[str], Path]


def test_every_sample_gets_its_verdict(
    cli: Cli, backend: str, sample_run: SampleRun, tmp_path: Path
) -> None:
    """All submissions in bubblewrap; in Docker, where the attacks also run, one per outcome."""
    run, submissions = tmp_path / "run", tmp_path / "submissions.jsonl"
    lines = SUBMISSIONS.read_text(encoding="utf-8").splitlines()
    if backend == "bubblewrap":
        shutil.copytree(sample_run("sample"), run)
        stdout = (sample_run("sample").parent / "stdout.txt").read_text(encoding="utf-8")
    else:
        lines = [*{str(json.loads(line)["expected"]): line for line in lines}.values()]
        submissions.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        options = ("--dataset", "sample", "--out", run, "--sandbox", backend, *SHORT)
        done = cli("score", submissions, *options)
        assert done.returncode == 0, done.stdout + done.stderr
        stdout = done.stdout
    assert "Overall" in stdout
    verdicts = verdicts_of(read_report(run))
    seen = {verdict for each in verdicts.values() for verdict in each}
    assert {"AC", "WA", "NO", "IW", "CE", "RE", "TLE", "MLE", "OLE", "SV"} <= seen
    for line in lines:
        record = json.loads(line)
        found = verdicts[str(record["id"]), record.get("sample", 0)]
        expected = record["expected"]
        codes = [expected] * len(found) if isinstance(expected, str) else expected
        if len(codes) == 1:
            codes = codes * len(found)
        assert found == codes, (record["id"], record.get("label"))

    before = (run / "cases.jsonl").read_bytes()
    again = cli("score", run, "--sandbox", backend, "--json", *SHORT)
    assert again.returncode == 0, again.stderr
    assert (run / "cases.jsonl").read_bytes() == before, "a finished case was judged again"
    assert verdicts_of(json.loads(again.stdout)) == verdicts


def test_golds_as_finished_outputs_are_accepted_without_running_anything(
    cli: Cli, tmp_path: Path
) -> None:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    for gold in (REPOSITORY / "dataset" / "sample").rglob("*_answer.xlsx"):
        (outputs / gold.name.replace("_answer", "_output")).write_bytes(gold.read_bytes())
    done = cli(
        "score", outputs, "--dataset", "sample", "--out", tmp_path / "run", "--recalc", "never",
        "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["overall"]["soft_restriction"] == 1.0
    assert set(report["overall"]["verdicts"]) == {"AC"}
    (outputs / next(outputs.iterdir()).name).write_text("not a workbook")
    again = json.loads(cli("score", tmp_path / "run", "--recalc", "never", "--json").stdout)
    assert again["overall"]["verdicts"]["IW"] == 1


@pytest.mark.bubblewrap
def test_samples_of_rules_get_their_verdicts_in_the_sandbox(sample_run: SampleRun) -> None:
    lines = RULES.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    verdicts = verdicts_of(read_report(sample_run("sample-rules")))
    expected = {
        (record["id"], record["sample"]): record["expected"] * (3 // len(record["expected"]))
        for record in records
    }
    assert verdicts == expected
    assert {code for codes in expected.values() for code in codes} == {"AC", "WA"}


@pytest.mark.bubblewrap
@pytest.mark.office
@pytest.mark.parametrize("suite", ["sample", "sample-rules"])
def test_records_are_as_recorded(sample_run: SampleRun, snapshot: Snapshot, suite: str) -> None:
    snapshot(f"{suite}.jsonl", snapshot_of_run(sample_run(suite)))


@pytest.mark.bubblewrap
def test_a_folder_of_runs_is_scored_run_by_run(cli: Cli, tmp_path: Path) -> None:
    require_backend("bubblewrap")
    limits = ("--sandbox", "bubblewrap", *SHORT)
    options = ("--dataset", "sample", "--ids", "1001", "--out", tmp_path / "first", *limits)
    assert cli("score", SUBMISSIONS, *options).returncode == 0
    (tmp_path / "first" / "report.json").unlink()
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    done = cli("score", tmp_path, "--ids", "1001", "--json", *limits)
    assert done.returncode == 0, done.stderr
    reports = json.loads(done.stdout)
    assert len(reports) == 2
    assert reports[0]["tasks"] == reports[1]["tasks"]
    assert read_report(tmp_path / "first") == reports[0]
    assert read_report(tmp_path / "second") == reports[1]


def test_the_golds_of_the_sample_are_not_suspect(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "suspects.json"
    done = cli("verify", "sample", "--audit", "--out", out)
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text(encoding="utf-8"))
    assert (document["tasks"], document["problems"]) == (14, [])
    found = {(each["task"], each["sign"], each["certainty"]) for each in document["suspects"]}
    # The question of 1006 names the error; the inputs of the others are tables to be completed.
    assert found == {
        ("1006", "error-value", "possible"),
        ("11-1", "manual-rule", "possible"),
        ("12-2", "manual-rule", "possible"),
    }
