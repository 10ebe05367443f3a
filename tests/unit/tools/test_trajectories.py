"""Trajectories written and read: the same turns again, and nothing that a file does not say."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from judge import api
from judge.api.options import ScoreOptions
from judge.api.trajectories import to_atif
from judge.cli.infer import infer
from judge.cli.report import report
from judge.core.records.tool_episodes import ToolCallLine, ToolEpisodeEnd, ToolEpisodeHead, ToolTurn
from judge.errors import SubmissionError, UsageError
from judge.grading.store import RunDirectory
from judge.tools.episodes import (
    ToolEpisode,
    ToolEpisodeWriter,
    read_tool_episodes,
    write_definitions,
)
from judge.tools.trajectories import of_atif, of_inspect, of_swe_agent, read_trajectory
from tests.harbor_jobs import MadeTrial, make_job
from tests.unit.report.runs import TABLE, Solution, TaskSpec, book, make_run, make_suite

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
PICTURE = hashlib.sha256(PNG).hexdigest()
DEFINITIONS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]


def line(identifier: str, shown: str, **fields: Any) -> ToolCallLine:
    text = {"sha256": hashlib.sha256(shown.encode()).hexdigest(), "chars": len(shown)}
    call: Any = {
        "id": identifier,
        "id_sent": identifier or "abcdefghi",
        "tool": "bash",
        "arguments": {"command": "ls"},
        "ok": "error" not in fields,
        "text": {**text, "shown": shown},
        "seconds": 0.25,
        "workbook": None,
        **fields,
    }
    if "raw" in fields:
        del call["arguments"]
    return call  # type: ignore[no-any-return]


def turn(number: int, *calls: ToolCallLine, **fields: Any) -> ToolTurn:
    received = [
        {
            "id": call["id"],
            "name": call["tool"],
            "arguments": call.get("raw") or '{"command": "ls"}',
        }
        for call in calls
    ]
    made: Any = {
        "line": "turn",
        "number": number,
        "reply": {"text": f"words {number}", "calls": received},
        "sent": {"messages": [0, 1], "left_out": []},
        "tokens": {"prompt": 100, "completion": 7, "cached": None},
        "cost": 0.01,
        "latency_s": 1.5,
        "cut": False,
        "told": "",
        "calls": list(calls),
        "seconds": 0.5,
        **fields,
    }
    return made  # type: ignore[no-any-return]


TURNS = (
    turn(1, line("call_a", "a file\nanother"), line("call_b", "", workbook="0" * 64)),
    turn(2, line("", "not run", raw='{"comm', fault="is no JSON", error="argument"), cut=True),
    turn(3, line("call_a", "long … text", text={"sha256": "1" * 64, "chars": 90, "shown": "x"})),
    turn(4, line("call_c", "a picture follows", pictures=[PICTURE])),
    turn(
        5, told="Continue, or call submit.", tokens={"prompt": None, "completion": 3, "cached": 1}
    ),
    turn(6, line("call_d", "done", repairs=["whole floats"], tool="submit", arguments={})),
)
TURNS[4]["reply"]["reasoning"] = "first this, then that"
HEAD: ToolEpisodeHead = {
    "line": "head",
    "id": "a b",
    "sample": 0,
    "case": 1,
    "model": "m",
    "setting": "tools/native",
    "instruction": "Do the work.",
    "answer": "workbook",
    "tools": "0" * 64,
    "servers": [],
    "image": "",
    "files": {},
    "collected": "out/x.xlsx",
    "limits": {},
    "started": "2026-11-27T10:00:00+00:00",
    "start_s": 1.0,
    "attempt": 0,
}
END: ToolEpisodeEnd = {
    "line": "end",
    "ended": "submitted",
    "turns": 6,
    "calls": 6,
    "errors": {"argument": 1},
    "repairs": 1,
    "tokens": {"prompt": 500, "completion": 38, "cached": 1},
    "cost": 0.06,
    "seconds": 20.0,
    "output": None,
    "output_bytes": 0,
    "changed": False,
    "problem": "",
}


def document_of(turns: tuple[ToolTurn, ...] = TURNS, **facts: Any) -> dict[str, Any]:
    episode = ToolEpisode(Path("x"), HEAD, turns, END)
    return to_atif(
        episode,
        DEFINITIONS,
        system="You work on spreadsheets.",
        facts=facts,
        picture=lambda sha256: ("image/png", f"pictures/{sha256}.png"),
    )


# -- ATIF ------------------------------------------------------------------------------------------


def test_what_goes_out_comes_in_as_the_same_turns(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / f"{PICTURE}.png").write_bytes(PNG)
    document = json.loads(json.dumps(document_of(verdict="AC")))
    again = of_atif(document, tmp_path)
    for before, after in zip(TURNS, again.turns, strict=True):
        assert after == before
    assert again.opening == (("system", "You work on spreadsheets."), ("user", "Do the work."))
    assert (again.ended, again.errors, again.cost) == ("submitted", {"argument": 1}, 0.06)
    assert again.tokens == END["tokens"]
    assert again.definitions == DEFINITIONS
    assert again.pictures == {PICTURE: PNG}
    assert document["extra"]["verdict"] == "AC"


CHECK = """
import json, sys
from harbor.models.trajectories import Trajectory
for text in json.load(sys.stdin):
    Trajectory.model_validate(text)
"""


def test_harbors_own_models_take_it(tmp_path: Path) -> None:
    python = os.environ.get("JUDGE_HARBOR_PYTHON")
    if python is None:
        pytest.skip("no loader of Harbor here: scripts/with-test-machine installs it")
    bare = {**document_of(), **to_atif(ToolEpisode(Path("x"), HEAD, (), None), None)}
    imported = to_atif(ToolEpisode(Path("x"), {**HEAD, "imported": "atif"}, TURNS, END), None)
    sent = json.dumps([document_of(), bare, imported])
    done = subprocess.run(
        [python, "-c", CHECK], input=sent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # A field that ATIF does not have is refused, so the check can fail.
    wrong = {**document_of(), "verdict": "AC"}
    done = subprocess.run(
        [python, "-c", CHECK],
        input=json.dumps([wrong]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0


def test_what_another_agent_does_not_say_is_null(tmp_path: Path) -> None:
    step = {
        "step_id": 1,
        "source": "agent",
        "message": "hello",
        "tool_calls": [{"tool_call_id": "1", "function_name": "bash", "arguments": {"a": 1}}],
    }
    found = of_atif({"agent": {"name": "x", "version": "2"}, "steps": [step]}, tmp_path)
    (only,) = found.turns
    assert only["tokens"] == {"prompt": None, "completion": None, "cached": None}
    assert (only["cost"], only["latency_s"], only["seconds"]) == (None, None, None)
    assert (found.agent, found.model, found.ended, found.cost) == ("x 2", None, None, None)
    assert (only["calls"][0]["seconds"], only["calls"][0]["workbook"]) == (None, None)


def test_copied_steps_are_left_out_and_words_of_the_user_belong_to_the_turn_before() -> None:
    agent = {"source": "agent", "message": "b"}
    steps = [
        {"source": "user", "message": "task"},
        {"source": "agent", "message": "a", "is_copied_context": True},
        agent,
        {"source": "user", "message": [{"type": "text", "text": "go on"}]},
        agent,
    ]
    found = of_atif({"steps": steps}, Path())
    assert [turn["reply"]["text"] for turn in found.turns] == ["b", "b"]
    assert [turn.get("told") for turn in found.turns] == ["go on", ""]
    assert found.opening == (("user", "task"),)


@pytest.mark.parametrize("path", ["../secret.png", "/etc/hostname", "x\0.png", "missing.png"])
def test_pictures_are_read_from_the_folder_of_the_trajectory_alone(
    tmp_path: Path, path: str
) -> None:
    (tmp_path / "secret.png").write_bytes(PNG)
    (tmp_path / "in").mkdir()
    content = [{"type": "image", "source": {"media_type": "image/png", "path": path}}]
    step = {
        "source": "agent",
        "message": "",
        "tool_calls": [{"tool_call_id": "1", "function_name": "f", "arguments": {}}],
        "observation": {"results": [{"source_call_id": "1", "content": content}]},
    }
    found = of_atif({"steps": [step]}, tmp_path / "in")
    assert found.pictures == {}
    assert "pictures" not in found.turns[0]["calls"][0]


@pytest.mark.parametrize(
    "document",
    [
        {"steps": [1, None, {"source": 3, "message": {"a": 1}, "tool_calls": "x"}]},
        {"steps": [{"source": "agent", "message": None, "metrics": {"prompt_tokens": -1e400}}]},
        {"steps": [{"source": "agent", "observation": {"results": [{"content": [1, "x"]}]}}]},
        {"agent": [], "steps": [{"source": "agent", "extra": {"sent": {"messages": [True, "1"]}}}]},
    ],
)
def test_fields_of_other_types_count_as_missing(document: dict[str, Any]) -> None:
    for found in of_atif(document, Path()).turns:
        assert found["sent"] == {"messages": [], "left_out": []}
        assert (found.get("tokens") or {}).get("prompt") is None


# -- Inspect, SWE-agent ----------------------------------------------------------------------------

INSPECT = {
    "id": "1001",
    "epoch": 1,
    "messages": [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": [{"type": "text", "text": "the task"}]},
        {
            "role": "assistant",
            "content": "attachment://abc",
            "tool_calls": [
                {"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}, "type": "function"},
                {"id": "c2", "function": "bash", "arguments": {}, "parse_error": "no JSON"},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "function": "bash", "content": "a.xlsx"},
        {
            "role": "tool",
            "tool_call_id": "c2",
            "content": "",
            "error": {"type": "parsing", "message": "no JSON"},
        },
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": "done"},
    ],
    "attachments": {"abc": "I look around."},
    "events": [{"event": "tool", "id": "c1", "working_time": 0.5}],
    "model_usage": {"m": {"input_tokens": 50, "output_tokens": 5}},
    "total_time": 9.0,
}


def test_a_sample_of_inspect() -> None:
    found = of_inspect(INSPECT, {"eval": {"model": "mockllm/model", "solver": "agent"}})
    first, second = found.turns
    assert first["reply"]["text"] == "I look around."
    one, two = first["calls"]
    assert (one["text"]["shown"], one["ok"], one["seconds"]) == ("a.xlsx", True, 0.5)
    assert (two["text"]["shown"], two["ok"], two["error"]) == ("no JSON", False, "argument")
    assert (first["told"], second["calls"], second["reply"]["text"]) == ("go on", [], "done")
    assert found.opening == (("system", "be good"), ("user", "the task"))
    assert found.tokens == {"prompt": 50, "completion": 5, "cached": None}
    assert (found.model, found.agent, found.seconds) == ("mockllm/model", "agent", 9.0)
    assert found.errors == {"argument": 1}


TRAJ = {
    "trajectory": [
        {
            "action": "view_xlsx /in.xlsx list",
            "observation": "['Sheet1']",
            "response": "Let me see.",
            "thought": "Let me see.",
            "execution_time": 0.4,
        },
        {"action": "ls", "observation": "x", "response": "", "thought": "hm"},
        {"action": "", "observation": "Exited", "response": "I give up.", "thought": ""},
    ],
    "history": [
        {"role": "system", "content": "engineer"},
        {"role": "user", "content": [{"type": "text", "text": "the task"}]},
        {
            "role": "assistant",
            "action": "view_xlsx /in.xlsx list",
            "tool_calls": [
                {
                    "id": "t1",
                    "function": {
                        "name": "view_xlsx",
                        "arguments": '{"file_path": "/in.xlsx", "mode": "list"}',
                    },
                }
            ],
        },
        {"role": "assistant", "action": "ls", "tool_calls": None},
    ],
    "info": {
        "exit_status": "submitted",
        "model_stats": {
            "instance_cost": 0.5,
            "tokens_sent": 900,
            "tokens_received": 90,
            "api_calls": 2,
        },
    },
}


def test_a_traj_of_swe_agent() -> None:
    found = of_swe_agent(TRAJ)
    first, second, third = found.turns
    assert first["calls"][0]["tool"] == "view_xlsx"
    assert first["calls"][0]["arguments"] == {"file_path": "/in.xlsx", "mode": "list"}
    assert (first["calls"][0]["id"], first["calls"][0]["seconds"]) == ("t1", 0.4)
    assert second["calls"][0]["arguments"] == {"command": "ls"}
    assert (second["reply"]["text"], second["calls"][0]["tool"]) == ("hm", "bash")
    assert (third["calls"], third["told"]) == ([], "Exited")
    assert found.tokens == {"prompt": 900, "completion": 90, "cached": None}
    assert (found.ended, found.cost, found.model) == ("submitted", 0.5, None)
    assert found.opening == (("system", "engineer"), ("user", "the task"))


def test_a_file_that_is_not_a_trajectory_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ("[]", "{", '{"steps": 3}', "[" * 100_000):
        path.write_text(text)
        with pytest.raises(SubmissionError, match=r"x\.json"):
            read_trajectory(path)
    path.write_text(json.dumps(TRAJ))
    assert read_trajectory(path).format == "swe-agent"


# -- runs ------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What an agent left for one of two tasks: workbooks of both cases, and a trajectory."""
    make_suite(tmp_path / "suite", [TaskSpec("101", cases=2), TaskSpec("102", cases=1)])
    left = tmp_path / "left"
    for case in (1, 2):
        (left / "101" / str(case)).mkdir(parents=True)
        (left / "101" / str(case) / "out.xlsx").write_bytes(book(TABLE))
    (left / "101" / "trajectory.json").write_text(json.dumps(document_of()))
    (left / "102").mkdir()
    (left / "102" / "trajectory.json").write_text(json.dumps(TRAJ))
    return left


def scored(folder: Path, **options: Any) -> Path:
    out = folder.parent / "run"
    api.score(
        folder,
        ScoreOptions(
            dataset=folder.parent / "suite",
            out=out,
            outputs="{task}/{case}/*.xlsx",
            recalc="never",
            **options,
        ),
    )
    return out


def test_an_agent_with_its_own_harness_gets_the_figures_of_its_trajectory(folder: Path) -> None:
    run = scored(folder, trajectories="{task}/trajectory.json", checker={"collateral": "note"})
    one, two = read_tool_episodes(run)
    assert (one.key, two.key) == (("101", 0, 1), ("102", 0, 1))
    assert len(one.turns) == 6
    assert one.end is not None
    assert two.end is not None
    assert (one.end["calls"], one.end["errors"], one.end["changed"]) == (6, {"argument": 1}, False)
    assert (two.end["problem"], two.end["ended"]) == ("the agent left no workbook", "submitted")
    with RunDirectory(run) as store:
        described = store.read_run() or {}
        attempts = {str(each["id"]): each for each in store.read_records("attempts.jsonl")}
        report_of = store.read_document("report.json") or {}
    assert (described["setting"] or "").startswith("tools/")
    assert attempts["101"]["tokens"] == {"prompt": 500, "completion": 38}
    assert attempts["102"]["cost"] == 0.5
    # The task without a workbook was attempted, and is not solved.
    overall: Any = report_of["overall"]
    assert overall["tasks"] == 2
    assert overall["soft_restriction"] == 0.5


def test_trials_of_harbor_keep_what_harbor_counted(tmp_path: Path) -> None:
    make_suite(tmp_path / "suite", [TaskSpec("101", cases=1)])
    left = {
        "artifacts/1_101_output.xlsx": book(TABLE),
        "agent/trajectory.json": json.dumps(document_of()).encode(),
    }
    trials = [MadeTrial("101", f"101__{minute}", minute, left) for minute in (1, 2)]
    job = make_job(tmp_path / "job", *trials)
    options = ScoreOptions(
        dataset=tmp_path / "suite",
        out=tmp_path / "run",
        recalc="never",
        trajectories="agent/trajectory.json",
    )
    api.score(job, options)
    episodes = list(read_tool_episodes(tmp_path / "run"))
    assert [(each.key, len(each.turns)) for each in episodes] == [
        (("101", 0, 1), 6),
        (("101", 1, 1), 6),
    ]
    with RunDirectory(tmp_path / "run") as store:
        attempts = list(store.read_records("attempts.jsonl"))
        setting = (store.read_run() or {}).get("setting")
    assert attempts[0]["tokens"] == {"prompt": 1000, "completion": 50}
    assert setting == "tools/some-agent 1.2"


@pytest.mark.slow
def test_a_log_of_inspect_is_named_by_itself(folder: Path) -> None:
    pytest.importorskip("inspect_ai")
    log = folder.parent / "log.json"
    sample = {**INSPECT, "id": "101"}
    log.write_text(json.dumps({"eval": {"model": "m"}, "samples": [sample]}))
    (only,) = read_tool_episodes(scored(folder, trajectories=str(log)))
    assert (only.key, only.head["imported"], len(only.turns)) == (("101", 0, 1), "inspect", 2)


def test_no_trajectory_is_an_error_that_says_so(folder: Path) -> None:
    with pytest.raises(SubmissionError, match="no file matches"):
        scored(folder, trajectories="{task}/nothing.json")


def test_trajectories_belong_to_finished_workbooks(folder: Path) -> None:
    run = scored(folder)
    with pytest.raises(UsageError, match="for a folder of finished workbooks"):
        api.score(run, ScoreOptions(trajectories="{task}.json"))


def imported(folder: Path, *arguments: str) -> Result:
    options = ["--dataset", str(folder.parent / "suite"), "--out", str(folder.parent / "run")]
    return CliRunner().invoke(infer, [*arguments, *options])


def test_a_run_is_made_of_trajectories_and_keeps_the_workbooks(folder: Path) -> None:
    book_of_102 = folder / "102" / "1_102_output.xlsx"
    book_of_102.write_bytes(book(TABLE))
    pattern = ["--import-trajectory", f"{folder}/{{task}}/trajectory.json"]
    books = ["--import-outputs", f"{folder}/{{task}}/{{case}}/*.xlsx"]
    done = imported(folder, *pattern, *books)
    assert (done.exit_code, done.output) == (
        0, f"2 trajectories and 2 workbooks imported; to grade: judge score {folder.parent}/run\n"
    )  # fmt: skip
    shutil.rmtree(folder)  # the run needs nothing of it
    api.score(folder.parent / "run", ScoreOptions(recalc="never"))
    with RunDirectory(folder.parent / "run") as store:
        lines: dict[str, Any] = {
            str(each["id"]): each for each in store.read_records("submissions.jsonl")
        }
        report_of = store.read_document("report.json") or {}
        setting = (store.read_run() or {}).get("setting")
    assert setting == "tools/SWE-agent, judge tools/native 0.1.0"
    assert lines["101"]["tokens"] == {"prompt": 500, "completion": 38}
    # The second case has a workbook, and no trajectory of its own.
    facts = [(one["problem"], one.get("turns")) for one in lines["101"]["outputs"].values()]
    assert facts == [("", 6), ("", None)]
    overall: Any = report_of["overall"]
    assert (overall["tasks"], overall["soft_restriction"]) == (2, 0.5)
    first, second = read_tool_episodes(folder.parent / "run")
    assert (first.head["imported"], second.head["imported"]) == ("atif", "swe-agent")
    assert imported(folder, *pattern).exit_code != 0  # the directory holds a run


def test_one_file_is_imported_for_one_task_with_the_workbook_next_to_it(folder: Path) -> None:
    (folder / "102" / "1_102_output.xlsx").write_bytes(book(TABLE))
    only = ["--import-trajectory", f"{folder}/102/trajectory.json", "--ids", "102", "--json"]
    done = imported(folder, *only)
    assert json.loads(done.output) == {
        "submissions": 1, "trajectories": 1, "workbooks": 1, "results": f"{folder.parent}/run"
    }  # fmt: skip


def test_only_tasks_that_are_wanted_are_imported(folder: Path) -> None:
    (folder / "102" / "1_102_output.xlsx").write_bytes(book(TABLE))
    (folder / "102" / "trajectory.json").write_text("broken")
    only = ["--import-trajectory", f"{folder}/{{task}}/trajectory.json", "--ids", "101", "--json"]
    assert json.loads(imported(folder, *only).stdout) == {
        "submissions": 1, "trajectories": 1, "workbooks": 0, "results": f"{folder.parent}/run"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--import-trajectory", "{folder}/{{task}}/none.json"], "no file matches"),
        (["--import-trajectory", "{folder}/101/trajectory.json"], "does not say which task"),
        (["--import-outputs", "x/*.xlsx"], "can only be used with --import-trajectory"),
    ],
)
def test_an_import_that_cannot_be_done_says_why(
    folder: Path, arguments: list[str], message: str
) -> None:
    done = imported(folder, *(each.format(folder=folder) for each in arguments))
    assert message in str(done.exception)
    assert not (folder.parent / "run" / "submissions.jsonl").exists()


def test_without_a_workbook_the_import_says_that_nothing_can_be_solved(folder: Path) -> None:
    done = imported(folder, "--import-trajectory", f"{folder}/{{task}}/trajectory.json")
    assert "nothing can be solved" in done.output
    with RunDirectory(folder.parent / "run") as store:
        first: Any = next(iter(store.read_records("submissions.jsonl")))
    assert first["outputs"]["1"]["problem"] == "the agent left no workbook"


def test_a_run_is_written_as_atif_and_comes_in_again(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", [TaskSpec("101", cases=1)])
    run = make_run(tmp_path / "run", suite, [Solution("101", ["AC"])], setting="tools/native")
    head: ToolEpisodeHead = {**HEAD, "id": "101", "tools": write_definitions(run, DEFINITIONS)}
    with ToolEpisodeWriter(run, head) as writer:
        for one in TURNS:
            writer.append(one)
        writer.append(END)
    (run / "pictures").mkdir()
    (run / "pictures" / f"{PICTURE}.png").write_bytes(PNG)
    done = CliRunner().invoke(
        report,
        [str(run), "--format", "atif", "--out", str(tmp_path / "out")],
        catch_exceptions=False,
    )
    assert done.exit_code == 0
    again = read_trajectory(tmp_path / "out" / "101.0.1.json")
    assert again.turns == TURNS
    assert again.pictures == {PICTURE: PNG}
    assert again.definitions == DEFINITIONS
    document = json.loads((tmp_path / "out" / "101.0.1.json").read_text())
    assert document["extra"]["verdict"] == "AC"


def test_a_run_without_episodes_of_tools_is_not_for_atif(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", [TaskSpec("101", cases=1)])
    run = make_run(tmp_path / "run", suite, [Solution("101", ["AC"])])
    with pytest.raises(UsageError, match="no episodes with tools"):
        api.write_atif(run, tmp_path / "out")
