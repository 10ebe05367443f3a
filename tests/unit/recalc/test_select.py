"""Which engines are available."""

import json
from pathlib import Path

import pytest

from judge.core.submission import Origin
from judge.errors import RecalcError, SandboxError, UsageError
from judge.recalc.select import (
    available_engines,
    engine_report,
    open_recalculator,
    report_as_json,
)
from judge.sandbox.scripted import ScriptedSandbox
from tests.unit.recalc.fakes import ALL, ref, workbook

BOTH = ("python", "office")


def describe(**versions: str) -> bytes:
    return json.dumps({"versions": versions}).encode()


def test_engines_follow_the_roots() -> None:
    assert available_engines(ScriptedSandbox(roots=BOTH)) == (
        "libreoffice",
        "ironcalc",
        "formualizer",
        "formulas",
    )
    assert available_engines(ScriptedSandbox(roots=["python"]))[0] == "ironcalc"
    assert available_engines(ScriptedSandbox(roots=[])) == ()


def test_nothing_is_started_before_it_is_needed() -> None:
    sandbox = ScriptedSandbox(roots=BOTH)
    opened = open_recalculator(sandbox)
    opened.fill(workbook({"A1": 1}), [ALL], origin=Origin.SOLUTION)
    opened.close()
    assert sandbox.calls == []


def test_one_engine_alone() -> None:
    sandbox = ScriptedSandbox(
        roots=BOTH,
        answers=[describe(ironcalc="0.9"), json.dumps({"values": [[7]], "seconds": 0}).encode()],
    )
    opened = open_recalculator(sandbox, engine="ironcalc")
    computed = opened.fill(workbook({"A1": "=CUBEVALUE(1)"}), [ALL], origin=Origin.SOLUTION)
    assert opened.identity[0] == "ironcalc 0.9"
    assert opened.identity[1].startswith("rules ")
    assert dict(computed.values) == {ref(1): 7}


def test_without_libreoffice_the_reason_names_the_command() -> None:
    sandbox = ScriptedSandbox(roots=[])
    computed = open_recalculator(sandbox).fill(
        workbook({"A1": "=1"}), [ALL], origin=Origin.SOLUTION
    )
    why = computed.not_calculated[ref(1)]
    assert "not installed: libreoffice, ironcalc" in why
    assert "(`judge sandbox build`)" in why


def test_wrong_use() -> None:
    with pytest.raises(UsageError, match="auto, never or always"):
        open_recalculator(None, mode="sometimes")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not a calculation engine"):
        open_recalculator(None, engine="lotus")
    with pytest.raises(RecalcError, match="libreoffice is not in the sandbox") as caught:
        open_recalculator(ScriptedSandbox(roots=["python"]), engine="libreoffice")
    assert "judge sandbox build" in (caught.value.hint or "")


def test_nothing_to_compute_needs_no_sandbox() -> None:
    opened = open_recalculator(None, mode="never")
    assert opened.identity == ("never",)


def test_the_report_names_version_coverage_and_missing_engines() -> None:
    versions = describe(ironcalc="0.9", formualizer="0.13")
    sandbox = ScriptedSandbox(roots=["python"], answers=[versions] * 3)
    entries = {entry.name: entry for entry in engine_report(sandbox)}
    assert entries["ironcalc"].available
    assert entries["ironcalc"].version == "0.9"
    assert entries["ironcalc"].coverage["trusted"] > 50
    assert not entries["libreoffice"].available
    assert "judge sandbox build" in entries["libreoffice"].hint
    assert not entries["formulas"].available
    assert "not installed" in entries["formulas"].hint
    assert report_as_json(engine_report(None))[0]["available"] is False


def test_versions_are_queried_once_for_a_root(tmp_path: Path) -> None:
    asked = ScriptedSandbox(
        roots=BOTH,
        answers=[describe(libreoffice="26"), describe(ironcalc="1", formualizer="2", formulas="3")],
    )
    first = open_recalculator(asked, cache_dir=tmp_path).identity
    assert len(asked.calls) == 2
    silent = ScriptedSandbox(roots=BOTH)
    assert open_recalculator(silent, cache_dir=tmp_path).identity == first
    assert silent.calls == []
    assert first[:4] == ("libreoffice 26", "ironcalc 1", "formualizer 2", "formulas 3")


@pytest.mark.parametrize("content", ["", "[]", "null", "{"])
def test_versions_are_queried_again_if_the_record_is_broken_or_the_root_changed(
    tmp_path: Path, content: str
) -> None:
    class Made(ScriptedSandbox):
        def root_digest(self, root: str) -> str:
            return f"{root} {digests[-1]}"

    digests = [""]

    def asked_of(digest: str) -> int:
        digests.append(digest)
        sandbox = Made(roots=["office"], answers=[describe(libreoffice="26")])
        opened = open_recalculator(sandbox, engine="libreoffice", cache_dir=tmp_path)
        assert opened.identity[0] == "libreoffice 26"
        return len(sandbox.calls)

    assert [asked_of("a"), asked_of("a"), asked_of("b")] == [1, 0, 1]
    for path in (tmp_path / "versions").iterdir():
        path.write_text(content)
    assert asked_of("a") == 1


def test_the_report_queries_the_engines_themselves() -> None:
    sandbox = ScriptedSandbox(roots=["office"], answers=[SandboxError("broken")] * 2)
    assert not engine_report(sandbox)[0].available
