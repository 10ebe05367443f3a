"""Logs that expand to a large size are refused without using much memory."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from judge.errors import SubmissionError
from judge.grading.store import RunDirectory
from judge.inference import inspect_logs
from judge.inference.inspect_logs import ImportedLog, import_inspect_log
from judge.suites import load_suite
from tests.bounds import in_bounds

MB = 1_000_000
LONG = 20 * MB
ZSTANDARD = 93
HEADER: dict[str, Any] = {
    "version": 2,
    "status": "success",
    "eval": {
        "created": "2026-01-01T00:00:00+00:00",
        "task": "spreadsheets",
        "dataset": {},
        "model": "some/model",
        "config": {},
    },
}


@pytest.fixture(scope="module", autouse=True)
def framework() -> None:
    """Loaded before a process with limits is forked."""
    import inspect_ai.log  # noqa: F401, PLC0415
    import zipfile_zstd  # type: ignore[import-untyped]  # noqa: F401, PLC0415


def sample(*, epoch: int = 1, **fields: Any) -> dict[str, Any]:
    reply = {"role": "assistant", "content": "```python\nprint(1)\n```"}
    return {
        "id": "1001",
        "epoch": epoch,
        "input": "",
        "target": "",
        "messages": [reply],
        "output": {"model": "some/model", "choices": [{"message": reply}]},
        **fields,
    }


def write(
    path: Path, *samples: Mapping[str, Any], header: Mapping[str, Any] = HEADER, packed: int = 93
) -> Path:
    """Makes a log as Inspect packs it, with samples that Inspect would not write."""
    summaries = [{**each, "messages": [], "attachments": {}} for each in samples]
    if path.suffix == ".json":
        path.write_text(json.dumps({**header, "samples": samples}))
        return path
    with zipfile.ZipFile(path, "w", packed) as log:
        log.writestr("header.json", json.dumps(header))
        log.writestr("summaries.json", json.dumps(summaries))
        for each in samples:
            log.writestr(f"samples/{each['id']}_epoch_{each['epoch']}.json", json.dumps(each))
    return path


def imported(log: Path, out: Path) -> ImportedLog:
    with RunDirectory(out) as store:
        return import_inspect_log(log, load_suite("sample"), "sample", store)


def referring(count: int, *, protocol: str = "attachment://") -> dict[str, Any]:
    message = {"role": "user", "content": f"{protocol}a"}
    return sample(messages=[message] * count, attachments={"a": "A" * LONG})


def bomb(path: Path) -> Path:
    """A member that claims 10 MB but unpacks to 2 GB."""
    data = (b" " * MB) * 2000
    with zipfile.ZipFile(path, "w", ZSTANDARD) as log:
        log.writestr("header.json", data)
    whole = bytearray(path.read_bytes())
    at = whole.rindex(b"PK\x01\x02") + 24
    whole[at : at + 4] = (10 * MB).to_bytes(4, "little")
    path.write_bytes(whole)
    return path


def values(path: Path) -> Path:
    """60 MB of empty lists would take 1.4 GB of memory."""
    return write(path, sample(store={"a": [[]] * 15_000_000}))


LARGE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a hundred references to one attachment": (
        lambda path: write(path, referring(100)),
        "more than 128 MiB of text",
    ),
    "three thousand": (lambda path: write(path, referring(3000)), "more than 128 MiB of text"),
    "in the old form": (
        lambda path: write(path, referring(100, protocol="tc://")),
        "more than 128 MiB of text",
    ),
    "in parts of a message": (
        lambda path: write(
            path,
            sample(
                messages=[
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": "attachment://a"}] * 1000,
                    }
                ],
                attachments={"a": "A" * LONG},
            ),
        ),
        "more than 128 MiB of text",
    ),
    "a Zstandard frame longer than it says": (bomb, "cannot be read|not a log|times its size"),
    "millions of values": (values, "more than 4,000,000 values"),
    "too many parts": (
        lambda path: write(
            path,
            sample(
                messages=[{"role": "user", "content": [{"type": "text", "text": ""}] * 200_000}]
            ),
        ),
        "more than 50,000 parts",
    ),
    "too many samples": (
        lambda path: write(path, *[sample()] * 100_001),
        "100,001 samples",
    ),
    "an epoch of four thousand digits": (
        lambda path: write(path, sample(epoch=10**4000)),
        "has the epoch 1000",
    ),
    "tokens of four hundred digits": (
        lambda path: write(path, sample(model_usage={"m": {"input_tokens": 10**400}})),
        "no evaluation can have this number of tokens",
    ),
    "deep": (lambda path: write(path, sample(store={"a": deep(300)})), "nested more than"),
}
ONE_DOCUMENT = {"millions of values", "too many samples"}


def deep(levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("name", LARGE)
def test_what_expands_is_refused_before_it_is_made(name: str, tmp_path: Path) -> None:
    make, words = LARGE[name]
    log = make(tmp_path / ("log.json" if name in ONE_DOCUMENT else "log.eval"))

    def work() -> None:
        with pytest.raises(SubmissionError, match=words):
            imported(log, tmp_path / "run")

    assert in_bounds(work, cpu_s=120, memory_bytes=1200 * MB) == 0


def test_all_samples_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is short enough, but a thousand of them would fill the disk."""
    texts = [
        sample(
            epoch=number,
            messages=[{"role": "user", "content": "attachment://a"}] * 10,
            attachments={"a": "A" * 1000},
        )
        for number in range(1, 11)
    ]
    log = write(tmp_path / "log.eval", *texts)
    assert imported(log, tmp_path / "whole").submissions == 10
    monkeypatch.setattr(inspect_logs, "_MAX_QUOTED_IN_ALL", 99_999)
    with pytest.raises(SubmissionError, match="the messages up to here"):
        imported(log, tmp_path / "run")


def test_what_is_not_read_is_not_expanded(tmp_path: Path) -> None:
    """Events refer to pools of messages and calls by ranges; timelines refer to events."""
    model = {"event": "model", "model": "m", "input": [], "input_refs": [[0, 10**9]], "tools": []}
    call = {"request": {}, "response": {}, "call_refs": [[0, 10**9]]}
    events = [{**model, "call": call, "output": {"choices": []}, "config": {}}] * 1000
    pool = [{"role": "user", "content": "attachment://a"}] * 1000
    hostile = sample(
        events=events,
        events_data={"messages": pool, "calls": [{"role": "user"}]},
        timelines=[{"root": {}}],
        error_retries=[{"events": events}],
        scores={"s": {"value": 1, "history": [{}] * 1000}},
        attachments={"a": "A" * LONG},
    )
    log = write(tmp_path / "log.eval", hostile)

    def work() -> None:
        assert imported(log, tmp_path / "run").submissions == 1

    assert in_bounds(work, cpu_s=60, memory_bytes=600 * MB) == 0


def test_missing_samples_of_endless_epochs_are_counted_not_listed(tmp_path: Path) -> None:
    spec = {**HEADER["eval"], "config": {"epochs": 10**15}, "dataset": {"sample_ids": ["1001"]}}
    log = write(tmp_path / "log.eval", sample(), header={**HEADER, "status": "error", "eval": spec})

    def work() -> None:
        assert imported(log, tmp_path / "run").missing == 99_999

    assert in_bounds(work, cpu_s=60, memory_bytes=600 * MB) == 0


@pytest.mark.parametrize("suffix", [".eval", ".json"])
def test_attachments_are_what_inspect_makes_of_them(suffix: str, tmp_path: Path) -> None:
    """Expanded once, as in Inspect: an attachment that names another one keeps the name."""
    from inspect_ai.log import read_eval_log_sample  # noqa: PLC0415

    parts = [{"type": "text", "text": "attachment://b"}, {"type": "text", "text": "attachment://?"}]
    messages = [
        {"role": "system", "content": "attachment://a"},
        {"role": "user", "content": parts},
        {"role": "user", "content": "tc://c"},
        {"role": "assistant", "content": "<think>why</think>done"},
        {"role": "tool", "content": "printed", "tool_call_id": "1", "function": "f"},
    ]
    texts = {"a": "attachment://b", "b": "word " * 100, "c": "old"}
    log = write(
        tmp_path / f"log{suffix}",
        sample(messages=messages, attachments=texts, events=[], timelines=None),
    )
    there = read_eval_log_sample(str(log), "1001", 1, resolve_attachments="core")
    assert imported(log, tmp_path / "run").submissions == 1
    (kept,) = (tmp_path / "run" / "conversations").iterdir()
    here = json.loads(kept.read_text())["messages"]
    assert [each["role"] for each in here] == [each.role for each in there.messages]
    assert [each["content"] for each in here] == [each.text for each in there.messages]
    assert here[0]["content"] == "attachment://b"


def test_a_record_that_could_not_be_read_again_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text is limited; together they may be longer than a line."""
    monkeypatch.setattr("judge.files.json_lines.MAX_LINE_BYTES", 10_000)
    kept = {"solution": "print(1)", "reply": "x" * 6000, "response": "y" * 6000}
    log = write(tmp_path / "log.eval", sample(store={inspect_logs.STORE_KEY: kept}))
    with pytest.raises(Exception, match="no command would read it"):
        imported(log, tmp_path / "run")
    assert not (tmp_path / "run" / "submissions.jsonl").exists()
