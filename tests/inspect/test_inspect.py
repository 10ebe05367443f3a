"""Inspect with a wheel in an empty folder: verdicts, unscored samples, the content of logs."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import math
import os
import re
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import judge
from judge.api.infer_options import InferOptions
from judge.api.inferring import make_plan
from judge.api.options import JudgingOptions
from judge.api.planning import Resumed
from judge.cli.main import main
from judge.errors import SubmissionError, UsageError, how_to_install
from judge.grading.store import RunDirectory
from judge.inference import inspect_logs
from judge.inference.inspect_logs import STORE_KEY, ImportedLog, import_inspect_log
from judge.inference.run import Resources, run_inference
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from judge.suites import load_suite
from tests.conftest import REPOSITORY
from tests.fakes.chat_model import ScriptedModel
from tests.inspect.conftest import EXPECTED, GOLD, NUMBER, SECRET, Evaluated

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.scorer import Score

pytestmark = pytest.mark.bubblewrap


# Every worker collects these tests, and one runs them: the framework is loaded there.
def read_eval_log(path: str, *, resolve_attachments: bool = False) -> EvalLog:
    import zipfile_zstd  # type: ignore[import-untyped]  # noqa: F401, PLC0415  as Inspect packs
    from inspect_ai import log  # noqa: PLC0415

    return log.read_eval_log(path, resolve_attachments=resolve_attachments)


def write_eval_log(written: EvalLog, path: str) -> None:
    from inspect_ai import log  # noqa: PLC0415

    log.write_eval_log(written, path)


def fail(sample: EvalSample, message: str) -> None:
    from inspect_ai.log import EvalError  # noqa: PLC0415

    sample.error = EvalError(message=message, traceback="", traceback_ansi="")


@pytest.fixture(scope="module")
def scripted(evaluated: Evaluated) -> EvalLog:
    return read_eval_log(str(evaluated.log("scripted")))


def score_of(sample: EvalSample) -> Score:
    assert sample.scores is not None
    return sample.scores["judge_verdict"]


def scores(log: EvalLog) -> dict[str, Score]:
    return {str(each.id): score_of(each) for each in log.samples or [] if each.epoch == 1}


def metadata(score: Score, name: str) -> object:
    assert score.metadata is not None
    return score.metadata[name]


def test_the_library_loads_no_framework(evaluated: Evaluated) -> None:
    assert evaluated.seen["without"] == []


def test_everything_is_closed_when_the_evaluation_ends(evaluated: Evaluated) -> None:
    assert evaluated.seen["open_after"] == 0


def test_the_names_resolve_and_verdicts_are_those_of_the_judge(evaluated: Evaluated) -> None:
    log = read_eval_log(str(evaluated.log("sample")))
    assert log.status == "success"
    assert log.eval.task == "sheetjudge/spreadsheetbench"
    found = {name: metadata(each, "verdicts") for name, each in scores(log).items()}
    assert found == {name: verdicts for name, (_, verdicts) in EXPECTED.items()}
    assert scores(log)["1001"].value == {"soft": pytest.approx(1 / 3), "hard": 0}
    assert evaluated.seen["sample config"] == [1.0, None]


def test_the_scorer_has_the_defaults_of_the_library() -> None:
    """Inspect lists the parameters of a scorer, so they are spelled out there."""
    from sheetjudge.inspect.scorer import JUDGING_OPTIONS, judge_verdict  # noqa: PLC0415

    usual = {each.name: each.default for each in dataclasses.fields(JudgingOptions)}
    parameters = inspect.signature(judge_verdict).parameters
    assert parameters.keys() == {*JUDGING_OPTIONS, "suite"}
    for name in JUDGING_OPTIONS:
        default = parameters[name].default
        assert default is None or default == usual[name]


def test_a_sample_is_a_task_with_its_prompt(scripted: EvalLog) -> None:
    sample = next(each for each in scripted.samples or [] if each.id == "wrong")
    assert isinstance(sample.input, str)
    assert "Do the work of wrong." in sample.input
    assert sample.target == ""
    assert [each.role for each in sample.messages] == ["user", "assistant"]
    assert sample.messages[0].text == sample.input
    assert sample.metadata["instruction_type"] == "Sheet-Level Manipulation"


def test_right_and_wrong_are_scored(scripted: EvalLog) -> None:
    found = scores(scripted)
    assert found["right"].value == {"soft": 1, "hard": 1}
    assert found["wrong"].value == {"soft": 0, "hard": 0}
    assert "first at B3" in str(found["wrong"].explanation)
    assert found["right"].answer == "print('right')\n"


def test_what_the_judge_fails_on_is_not_scored(scripted: EvalLog) -> None:
    score = scores(scripted)["lost"]
    assert isinstance(score.value, float)
    assert math.isnan(score.value)
    assert score.reason == "scoring_failed"
    assert metadata(score, "verdicts") == ["JE"] * 3


def test_a_bad_test_is_not_scored(scripted: EvalLog) -> None:
    score = scores(scripted)["bad"]
    assert isinstance(score.value, float)
    assert math.isnan(score.value)
    assert score.reason == "bad_test"


def test_no_program_is_an_invalid_response_and_counts(scripted: EvalLog) -> None:
    found = scores(scripted)
    assert found["words"].value == found["silent"].value == {"soft": 0, "hard": 0}
    assert found["words"].reason == "invalid_response_format"
    assert found["silent"].reason == "no_response"


def test_metrics_leave_out_what_is_not_scored(scripted: EvalLog) -> None:
    assert scripted.results is not None
    soft, hard = scripted.results.scores
    assert (soft.name, hard.name) == ("soft", "hard")
    assert (soft.scored_samples, soft.unscored_samples) == (4, 2)
    values = {name.removeprefix("sheetjudge/"): each.value for name, each in soft.metrics.items()}
    assert values["mean"] == 0.25
    assert values["stderr"] == pytest.approx(0.25)
    assert values["by_type_Cell-Level Manipulation"] == pytest.approx(1 / 3)
    assert values["by_type_Sheet-Level Manipulation"] == 0
    assert "by_type_Sheet-Level Manipulation stderr" in values


def unpacked(log: Path) -> str:
    with zipfile.ZipFile(log) as members:
        return "\n".join(members.read(name).decode() for name in members.namelist())


def test_a_log_tells_nothing_of_golds(evaluated: Evaluated) -> None:
    text = unpacked(evaluated.log("scripted"))
    assert "Do the work of wrong." in text, "the log is read as it is"
    for secret in (SECRET, str(NUMBER), "Quartz", str(int(NUMBER)), "answer.xlsx"):
        assert secret not in text
    assert GOLD[40:80].hex() not in text


def test_samples_hold_no_paths(evaluated: Evaluated, scripted: EvalLog) -> None:
    for sample in scripted.samples or []:
        assert str(evaluated.suite) not in sample.model_dump_json(exclude={"events"})


def test_the_judge_itself_does_tell(evaluated: Evaluated) -> None:
    """What the log leaves out does exist, so the test above can fail."""

    def unchanged(request: RunRequest) -> RunResult:
        (data,) = request.files.values()
        return RunResult(RunStatus.OK, OutputStatus.COLLECTED, output=data, output_bytes=len(data))

    options = judge.JudgingOptions(jobs=1, recalc="never")
    sandbox = ScriptedSandbox([unchanged] * 3)
    with judge.Judge(evaluated.suite, options, sandbox=sandbox) as opened:
        found = opened("wrong", "print()")
    assert str(NUMBER) in found.cases[0].cause
    assert SECRET in str(found.cases[0].comparison)


def test_typed_answers_and_pictures(evaluated: Evaluated) -> None:
    log = read_eval_log(str(evaluated.log("typed")), resolve_attachments=True)
    found = scores(log)
    assert found["trips"].value == {"soft": 1, "hard": 1}
    assert sum(each.value == {"soft": 0, "hard": 0} for each in found.values()) == 5
    images = [
        part.image
        for sample in log.samples or []
        for message in sample.messages
        if not isinstance(message.content, str)
        for part in message.content
        if part.type == "image"
    ]
    assert images
    assert all(each.startswith("data:image/") for each in images)


def test_rounds_are_those_of_the_judge(evaluated: Evaluated) -> None:
    log = read_eval_log(str(evaluated.log("rounds")), resolve_attachments=True)
    (sample,) = log.samples or []
    assert [each.role for each in sample.messages] == ["user", "assistant"] * 2
    assert "KeyError" in sample.messages[2].text
    kept = sample.store[STORE_KEY]
    assert (kept["ended"], kept["rounds"], kept["stands_alone"]) == ("output", 2, True)
    assert "shutil" in kept["solution"]
    assert metadata(score_of(sample), "verdicts") == ["WA"] * 3


def test_a_stored_log_is_judged_again(evaluated: Evaluated) -> None:
    again = evaluated.folder / "again.eval"
    evaluated.call(
        *("inspect", "score", evaluated.log("sample"), "--scorer", "sheetjudge/judge_verdict"),
        *("-S", "profile=official", "-S", "recalc=never", "-S", "sandbox=bubblewrap"),
        *("--action", "overwrite", "--output-file", again, "--display", "none"),
    )
    found = scores(read_eval_log(str(again)))
    assert {name: metadata(each, "profile") for name, each in found.items()} == dict.fromkeys(
        EXPECTED, "official"
    )
    assert metadata(found["1001"], "verdicts") == EXPECTED["1001"][1]


# -- without a network -----------------------------------------------------------------------------


def test_the_documented_commands_without_a_network(evaluated: Evaluated) -> None:
    """As in docs/inspect.md; nothing outside this machine can be reached."""
    page = (REPOSITORY / "docs" / "inspect.md").read_text(encoding="utf-8")
    section = page.split("## Without a network")[1].split("\n## ")[0]
    asked, served = re.findall(r"^```\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    proxies = {f"{name}_proxy": "http://127.0.0.1:9" for name in ("http", "https", "all")}
    environment = {
        name: value for name, value in evaluated.environment.items() if "proxy" not in name.lower()
    }
    environment |= proxies | {name.upper(): value for name, value in proxies.items()}
    environment |= {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
    environment["PATH"] = f"{evaluated.bin}{os.pathsep}{environment['PATH']}"
    waits = f"until (echo > /dev/tcp/127.0.0.1/{port}) 2> /dev/null; do sleep 0.1; done\n"
    script = f"{served}trap 'kill %1' EXIT\n{waits}{asked}".replace("8000", port)
    done = subprocess.run(
        [
            "bash",
            "-ec",
            script.replace("-T limit=2", "-T limit=2 --display none --log-dir offline"),
        ],
        cwd=evaluated.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = (evaluated.folder / "offline").glob("*.eval")
    log = read_eval_log(str(path))
    assert (log.status, log.eval.model) == ("success", "openai-api/local/MODEL")
    assert [metadata(each, "verdicts") for each in scores(log).values()] == [["NO"] * 3] * 2


# -- runs out of logs ------------------------------------------------------------------------------


def records_of(run: Path) -> list[dict[str, Any]]:
    lines = (run / "submissions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_log_becomes_a_run(evaluated: Evaluated) -> None:
    """The suite is a folder, which is found by its digest."""
    done = evaluated.call("judge", "infer", "--import-inspect", evaluated.log("scripted"),
                          "--out", "imported")  # fmt: skip
    assert "12 submissions imported" in done
    run = evaluated.folder / "imported"
    records = records_of(run)
    assert [each["sample"] for each in records] == [0, 1] * 6
    assert [each["id"] for each in records[:4]] == ["right", "right", "wrong", "wrong"]
    first, *_, last = records
    assert first["solution"] == "print('right')\n"
    assert last["solution"] is None
    assert first["reply"] == "Here it is:\n```python\nprint('right')\n```"
    assert first["tokens"] == {"prompt": 100, "completion": 20}
    assert (first["cost"], first["setting"]) == (0.5, "single")
    assert (first["model"], len(first["calls"])) == ("mockllm/model", 1)
    conversation = json.loads((run / first["conversation"]).read_text())
    assert [each["role"] for each in conversation["messages"]] == ["user", "assistant"]
    assert json.loads((run / "run.json").read_text())["suite"]["source"] == str(evaluated.suite)


def imported(log: Path, suite: Path | str, out: Path) -> ImportedLog:
    with RunDirectory(out) as store:
        return import_inspect_log(log, load_suite(suite), str(suite), store)


def test_rounds_and_pictures_are_included(evaluated: Evaluated, tmp_path: Path) -> None:
    assert imported(evaluated.log("rounds"), "sample", tmp_path / "rounds").submissions == 1
    (record,) = records_of(tmp_path / "rounds")
    assert (record["setting"], record["rounds"], record["stands_alone"]) == (
        "multi/row-exec", 2, True,
    )  # fmt: skip
    conversation = json.loads((tmp_path / "rounds" / record["conversation"]).read_text())
    assert "KeyError" in conversation["rounds"][0]["execution"]["error"]
    assert imported(evaluated.log("typed"), "sample-typed", tmp_path / "typed").submissions == 6
    pictures = list((tmp_path / "typed" / "pictures").iterdir())
    shown = [(tmp_path / "typed" / each["conversation"]).read_text()
             for each in records_of(tmp_path / "typed")]  # fmt: skip
    assert pictures
    assert all(any(picture.stem in text for text in shown) for picture in pictures)
    assert not any("base64" in text for text in shown)


def test_a_run_out_of_a_log_beside_one_of_judge_infer(evaluated: Evaluated, tmp_path: Path) -> None:
    ids = tuple(EXPECTED)
    imported(evaluated.log("sample"), "sample", tmp_path / "inspect")
    options = InferOptions(model="scripted", dataset="sample", ids=ids, out=tmp_path / "infer")
    planned = make_plan(Resumed(options.filled({})))

    async def ask() -> None:
        model = ScriptedModel(["```python\nprint(1)\n```"] * len(ids))
        resources = Resources(chat_model=model, concurrency=1)
        with RunDirectory(tmp_path / "infer") as store:
            await run_inference(planned.plan, store, resources)

    asyncio.run(ask())
    judged = judge.ScoreOptions(sandbox="bubblewrap", jobs=2, recalc="never")
    found = {each.path.name: each for each in judge.score(tmp_path, judged)}
    assert {
        name: [str(x.verdict) for x in found["inspect"].results if x.task_id == name]
        for name in EXPECTED
    } == {name: verdicts for name, (_, verdicts) in EXPECTED.items()}
    pair = judge.compare_runs(tmp_path / "infer", tmp_path / "inspect").pairs[0]
    assert (pair.tasks, pair.better, pair.worse) == (4, ("1001",), ())
    page = judge.report_html(tmp_path / "inspect")
    assert "mockllm/model" in page
    usage = judge.report_data(tmp_path / "inspect").usage
    assert usage is not None


# -- logs of strangers -----------------------------------------------------------------------------


def test_what_ended_with_an_error_has_no_submission(evaluated: Evaluated, tmp_path: Path) -> None:
    log = read_eval_log(str(evaluated.log("scripted")))
    assert log.samples
    fail(log.samples[0], "the model is gone")
    write_eval_log(log, str(tmp_path / "some.eval"))
    done = imported(tmp_path / "some.eval", evaluated.suite, tmp_path / "run")
    assert done.submissions == 11
    assert list(done.failed.values()) == ["the model is gone"]
    assert "the model is gone" in (tmp_path / "run" / "failures.jsonl").read_text()


def command(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[object, str]:
    with pytest.raises(SystemExit) as ending:
        main(["infer", *map(str, arguments)])
    return ending.value.code, capfd.readouterr().err


def test_the_command_says_what_is_missing(
    evaluated: Evaluated, tmp_path: Path, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    log = read_eval_log(str(evaluated.log("scripted")))
    assert log.samples
    fail(log.samples[0], "gone")
    some, out = tmp_path / "some.eval", tmp_path / "run"
    write_eval_log(log, str(some))
    code, error = command(capfd, "--import-inspect", some, "--out", out)
    assert (code, "--dataset" in error) == (2, True), "nobody here has loaded the suite before"
    options = ("--import-inspect", some, "--dataset", evaluated.suite, "--out", out)
    code, error = command(capfd, *options)
    assert (code, "1 sample ended with an error" in error) == (11, True)
    code, error = command(capfd, *options)
    assert (code, "already contains submissions" in error) == (9, True)


def test_an_evaluation_that_was_stopped_is_incomplete(
    evaluated: Evaluated, tmp_path: Path, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Also if no sample has an error, as after SIGKILL."""
    log = read_eval_log(str(evaluated.log("scripted")))
    assert log.samples
    log.status, log.results = "started", None
    log.samples = [each for each in log.samples if (each.id, each.epoch) != ("right", 2)][:-1]
    some = tmp_path / "some.eval"
    write_eval_log(log, str(some))
    options = ("--import-inspect", some, "--dataset", evaluated.suite)
    code, error = command(capfd, *options, "--out", tmp_path / "run")
    assert (code, "2 samples had not ended" in error) == (11, True)
    assert len(records_of(tmp_path / "run")) == len(log.samples)
    code, error = command(capfd, *options, "--out", tmp_path / "one", "--ids", "right")
    assert (code, "1 sample had not ended" in error) == (11, True)


def test_nothing_is_written_of_a_log_that_does_not_fit(
    evaluated: Evaluated, tmp_path: Path
) -> None:
    log = read_eval_log(str(evaluated.log("scripted")))
    assert log.samples
    log.samples[-1].id = "another"
    write_eval_log(log, str(tmp_path / "some.eval"))
    with pytest.raises(SubmissionError, match="has no task another"):
        imported(tmp_path / "some.eval", evaluated.suite, tmp_path / "run")
    assert not (tmp_path / "run" / "submissions.jsonl").exists()


def test_a_log_without_the_judges_solver_is_read_from_its_replies(
    evaluated: Evaluated, tmp_path: Path
) -> None:
    log = read_eval_log(str(evaluated.log("scripted")))
    for sample in log.samples or []:
        sample.store = {STORE_KEY: {"solution": ["not", "text"]}}
        sample.metadata = {}
    write_eval_log(log, str(tmp_path / "some.json"))
    assert imported(tmp_path / "some.json", evaluated.suite, tmp_path / "run").submissions == 12
    record = records_of(tmp_path / "run")[0]
    assert record["solution"] == "print('right')\n"
    assert record["tokens"] == {"prompt": 100, "completion": 20}


def test_a_log_of_another_suite_is_refused(evaluated: Evaluated, tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="the suite sample has no task"):
        imported(evaluated.log("scripted"), "sample", tmp_path / "run")


def test_damaged_logs_are_refused(
    evaluated: Evaluated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = evaluated.log("sample").read_bytes()
    (tmp_path / "cut.eval").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "none.eval").write_bytes(b"")
    (tmp_path / "text.json").write_text('{"version": 2}')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    for name in ("cut.eval", "none.eval", "text.json", "deep.json", "missing.eval"):
        with pytest.raises(SubmissionError, match=name):
            imported(tmp_path / name, "sample", tmp_path / "run")
    with pytest.raises(SubmissionError, match="is not an Inspect log"):
        imported(tmp_path / "log.txt", "sample", tmp_path / "run")
    monkeypatch.setattr(inspect_logs, "_MAX_MEMBER_BYTES", 1000)
    with pytest.raises(SubmissionError, match="unpacks to more than"):
        imported(evaluated.log("sample"), "sample", tmp_path / "run")


def test_a_member_is_never_longer_than_it_says(evaluated: Evaluated, tmp_path: Path) -> None:
    """The checked sizes are those in the list of members."""
    target = tmp_path / "lying.eval"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b" " * 100_000)
    data = bytearray(target.read_bytes())
    place = data.rindex(b"PK\x01\x02") + 24
    data[place : place + 4] = (10).to_bytes(4, "little")
    target.write_bytes(data)
    with pytest.raises(SubmissionError, match="lying"):
        imported(target, "sample", tmp_path / "run")
    del evaluated


def test_without_the_extra_the_message_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(UsageError) as caught:
        imported(tmp_path / "log.eval", "sample", tmp_path / "run")
    assert caught.value.hint == how_to_install("inspect")
