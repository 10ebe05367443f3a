"""Logs of Inspect AI: a run of the judge out of one.

A log may come from anybody. What is in it is unpacked within bounds before Inspect's own reader
sees it, and what it says of a submission is taken as any line of a file of solutions is.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.core.messages import Content, Part
from judge.core.submission import Submission
from judge.errors import JudgeError, SubmissionError, UsageError
from judge.files.documents import MIB, parse_json, read_regular
from judge.files.media import PICTURES_FOLDER
from judge.grading.store import RunDirectory
from judge.inference.importing import empty_records, imported_run
from judge.inference.pictures import MOST_PICTURE_BYTES, PictureStore
from judge.inference.run_records import InferenceRecords
from judge.suites import Suite
from judge.suites.submissions import submission_of_record, submission_record
from judge.suites.zip_archive import ZipRefusedError, check_directory

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ChatMessage, ModelUsage

STORE_KEY = "sheetjudge"
"""Where the judge's solver keeps what was handed in, in the store of a sample."""

_MOST_MEMBER_BYTES = 64 * MIB
_MOST_BYTES = 4096 * MIB
_MOST_MEMBERS = 200_000
_MOST_JSON_BYTES = 64 * MIB
_MOST_MESSAGES = 10_000
_MOST_SAID = 128 * MIB
_UNREAD = {"events", "timelines", "events_data"}
_TEXTS = ("solution", "response", "reply", "input_path", "output_path", "ended", "finish_reason")
_FLAGS = ("truncated", "stands_alone")


@dataclass(slots=True)
class ImportedLog:
    """What came of a log.

    Attributes:
        submissions: how many submissions were taken.
        failed: samples that ended with an error, by their names.
        missing: samples that the log does not have, since the evaluation did not come to its end.
    """

    submissions: int = 0
    missing: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def import_inspect_log(
    log: Path, suite: Suite, source: str, store: RunDirectory, ids: Collection[str] | None = None
) -> ImportedLog:
    """Makes a run out of a log, as if the model had just been asked.

    Epochs are samples of a task. Samples that ended with an error have no submission.

    Args:
        log: a .eval or .json file.
        suite: the suite that it answers.
        source: what the suite is loaded from, for run.json.
        store: the run's directory, which must hold no submissions yet.
        ids: tasks that are wanted; None for all.

    Raises:
        UsageError: Inspect is not installed.
        SubmissionError: the log cannot be read, or does not answer the suite.
        StoreError: the directory holds submissions, or cannot be written.
    """
    check_installed()
    with empty_records(store) as records, _opened(log) as opened:
        done = _import(opened, suite, records, ids)
        if not done.submissions:
            raise SubmissionError(
                f"{log}: holds no finished sample of the tasks that are wanted",
                hint="Check --ids, and whether the evaluation came to its end.",
            )
        model, setting = opened.header.eval.model, _setting_of(opened.header)
        store.write_run(imported_run(log, suite, source, model=model, setting=setting))
    return done


def suite_named_in(log: Path) -> tuple[str, str] | None:
    """Name and digest of the suite that a log of the judge's own tasks answers; None for others.

    Raises:
        UsageError: Inspect is not installed.
        SubmissionError: the log cannot be read.
    """
    check_installed()
    with _opened(log) as opened:
        metadata = opened.header.eval.metadata or {}
    name, digest = metadata.get("suite"), metadata.get("suite_digest")
    return (name, digest) if isinstance(name, str) and isinstance(digest, str) else None


def check_installed() -> None:
    """Checks that Inspect can be imported.

    Raises:
        UsageError: it cannot; the hint names the extra.
    """
    try:
        import inspect_ai.log  # noqa: F401, PLC0415  loaded where logs are read
    except ImportError as error:
        raise UsageError(
            f"logs of Inspect are read with inspect_ai, which is not installed: {error}",
            hint="pip install 'sheetjudge[inspect]'",
        ) from error


def record_of_store(kept: object, *, is_file: bool) -> dict[str, Any] | None:
    """What the judge's solver kept of a sample, without what it cannot have written.

    Args:
        kept: the value in the store; it may come from anybody.
        is_file: whether the task asks for a workbook.

    Returns:
        Fields of a record of submissions.jsonl; None if what was handed in is not among them.
    """
    if not isinstance(kept, Mapping):
        return None
    handed_in = kept.get("solution" if is_file else "response", kept)
    if not (handed_in is None or isinstance(handed_in, str)):
        return None
    texts = {name: kept[name] for name in _TEXTS if isinstance(kept.get(name), str)}
    flags = {name: kept[name] for name in _FLAGS if isinstance(kept.get(name), bool)}
    record: dict[str, Any] = {**texts, **flags}
    record.setdefault("solution" if is_file else "response", None)
    if type(kept.get("rounds")) is int:
        record["rounds"] = kept["rounds"]
    return record


# -- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _OpenedLog:
    """A log that can be read.

    Attributes:
        named: the file that the user named, for messages.
        path: what Inspect reads.
        header: everything but the samples.
    """

    named: Path
    path: Path
    header: EvalLog

    def names(self, suite: Suite, ids: Collection[str] | None) -> list[tuple[int | str, int]]:
        """Ids and epochs of the samples that are wanted, in suite order.

        Raises:
            SubmissionError: the suite has no such task.
        """
        from inspect_ai.log import read_eval_log_sample_summaries  # noqa: PLC0415

        with _bad_log_is_an_error(self.named):
            summaries = read_eval_log_sample_summaries(str(self.path))
        found = [(x.id, x.epoch) for x in summaries if ids is None or str(x.id) in ids]
        order = {task.id: place for place, task in enumerate(suite.tasks)}
        for sample_id, epoch in found:
            if str(sample_id) not in order:
                raise SubmissionError(
                    f"{self.named}: the suite {suite.name} has no task {str(sample_id)[:80]}",
                    hint="is it the right suite (--dataset)? --ids imports only the tasks that you "
                    "name",
                )
            if epoch < 1:
                raise SubmissionError(f"{self.named}: sample {sample_id} has the epoch {epoch}")
        return sorted(found, key=lambda each: (order[str(each[0])], each[1]))

    def missing(self, ids: Collection[str] | None, found: Collection[tuple[int | str, int]]) -> int:
        """How many samples there would be if the evaluation had come to its end."""
        asked = self.header.eval.dataset.sample_ids
        if self.header.status == "success" or asked is None:
            return 0
        wanted = {str(each) for each in asked} if ids is None else {str(x) for x in asked} & {*ids}
        epochs = range(1, (self.header.eval.config.epochs or 1) + 1)
        there = {(str(sample_id), epoch) for sample_id, epoch in found}
        return sum((each, epoch) not in there for each in wanted for epoch in epochs)

    def sample(self, sample_id: int | str, epoch: int) -> EvalSample:
        """A sample without its events.

        Raises:
            SubmissionError: there is none, or it says that it is another one.
        """
        from inspect_ai.log import read_eval_log_sample  # noqa: PLC0415

        with _bad_log_is_an_error(self.named):
            found = read_eval_log_sample(
                str(self.path),
                sample_id,
                epoch,
                resolve_attachments="core",
                exclude_fields=_UNREAD,
            )
        if (found.id, found.epoch) != (sample_id, epoch):
            raise SubmissionError(
                f"{self.named}: sample {str(sample_id)[:80]}, epoch {epoch}, says that it is "
                f"{str(found.id)[:80]}, epoch {found.epoch}"
            )
        return found


@contextlib.contextmanager
def _opened(log: Path) -> Iterator[_OpenedLog]:
    from inspect_ai.log import read_eval_log  # noqa: PLC0415

    if log.suffix not in {".eval", ".json"}:
        raise SubmissionError(
            f"{log}: is not a log of Inspect", hint="Its logs end with .eval or .json."
        )
    with tempfile.TemporaryDirectory(prefix="judge-inspect-") as folder:
        path = Path(folder) / f"log{log.suffix}"
        with _bad_log_is_an_error(log):
            if log.suffix == ".json":
                data = read_regular(log, SubmissionError, most_bytes=_MOST_JSON_BYTES)
                if data is None:
                    raise SubmissionError(f"{log}: cannot be read: no such file")
                parse_json(data)
                path.write_bytes(data)
            else:
                _repack(log, path)
            header = read_eval_log(str(path), header_only=True)
        yield _OpenedLog(log, path, header)


@contextlib.contextmanager
def _bad_log_is_an_error(log: Path) -> Iterator[None]:
    try:
        yield
    except JudgeError:
        raise
    except ZipRefusedError as error:
        raise SubmissionError(f"{log}: {error}") from error
    except OSError as error:
        raise SubmissionError(f"{log}: cannot be read: {error.strerror or error}") from error
    except MemoryError:
        raise
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise SubmissionError(
            f"{log}: is not a log that Inspect can read ({type(error).__name__}: {first[:200]})",
            hint="`inspect log dump FILE` shows what Inspect makes of it.",
        ) from error


def _repack(log: Path, target: Path) -> None:
    """Copies a log without compression; no member is longer or deeper nested than may be read.

    Raises:
        MalformedError: a member is not JSON, or is nested too deep.
        ZipRefusedError: it is made to be large.
        zipfile.BadZipFile: it is damaged.
    """
    import zipfile_zstd  # type: ignore[import-untyped]  # noqa: F401, PLC0415  as Inspect packs

    if not log.is_file():
        raise SubmissionError(f"{log}: cannot be read: no such file")
    with log.open("rb") as file:
        check_directory(file)
        with zipfile.ZipFile(file) as packed, zipfile.ZipFile(target, "w") as plain:
            members = packed.infolist()
            if len(members) > _MOST_MEMBERS:
                raise ZipRefusedError(f"it has {len(members):,} members")
            if sum(member.file_size for member in members) > _MOST_BYTES:
                raise ZipRefusedError(f"it unpacks to more than {_MOST_BYTES // MIB:,} MiB")
            for member in members:
                if member.file_size > _MOST_MEMBER_BYTES:
                    raise ZipRefusedError(
                        f"{member.filename[:200]!r} unpacks to more than "
                        f"{_MOST_MEMBER_BYTES // MIB} MiB"
                    )
                if not member.filename.endswith(".json"):
                    continue
                with packed.open(member) as source:
                    data = source.read()  # no more than the size that was counted above
                parse_json(data)
                plain.writestr(member.filename, data)


# -- writing --------------------------------------------------------------------------------------


def _import(
    log: _OpenedLog, suite: Suite, records: InferenceRecords, ids: Collection[str] | None
) -> ImportedLog:
    names = log.names(suite, ids)  # all of them are known before anything is written
    done = ImportedLog(missing=log.missing(ids, names))
    pictures = PictureStore(records.store.path / PICTURES_FOLDER)
    for sample_id, epoch in names:
        sample = log.sample(sample_id, epoch)
        task_id, number = str(sample_id), epoch - 1
        if sample.error is not None:
            problem = sample.error.message[:2000]
            done.failed[f"{task_id}.{number}" if number else task_id] = problem
            records.append_failure(
                {"id": suite.task(task_id).written_id, "sample": number, "problem": problem}
            )
            continue
        submission = _submission(sample, suite, log.header)
        record = submission_record(submission, suite)
        record["conversation"] = records.conversation_path(task_id, number)
        conversation = _conversation(sample, record, pictures)
        records.write_conversation(task_id, number, conversation)
        records.append_submission(record)
        done.submissions += 1
    return done


def _submission(sample: EvalSample, suite: Suite, header: EvalLog) -> Submission:
    """A sample as a submission, with what it cost."""
    task = suite.task(str(sample.id))
    said = "solution" if task.answer.is_file else "response"
    usage = list(sample.model_usage.values())
    seconds = sample.working_time if sample.working_time is not None else sample.total_time
    facts: dict[str, Any] = {
        "id": task.id,
        "sample": sample.epoch - 1,
        "instruction_type": task.kind,
        "model": header.eval.model,
        "setting": _setting_of_sample(sample) or _setting_of(header),
        "tokens": {
            "prompt": sum(map(prompt_tokens_of, usage)),
            "completion": sum(each.output_tokens for each in usage),
        },
        "cost": _cost(usage),
        "seconds": None if seconds is None else round(seconds, 3),
        "calls": [],
    }
    reply = facts | {said: sample.output.completion}
    kept = sample.store.get(STORE_KEY)
    record = record_of_store(kept, is_file=task.answer.is_file)
    if record is None:
        return submission_of_record(reply, suite)
    try:
        return submission_of_record(record | facts | {"calls": _calls(kept)}, suite)
    except SubmissionError:  # a store that the judge did not write
        return submission_of_record(reply, suite)


def prompt_tokens_of(usage: ModelUsage) -> int:
    """Tokens of the requests, those that a cache spared included."""
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return usage.input_tokens + cached


def _cost(usage: Collection[ModelUsage]) -> float | None:
    costs = [each.total_cost for each in usage]
    known = [each for each in costs if each is not None]
    return round(sum(known), 8) if known and len(known) == len(costs) else None


def _calls(kept: Any) -> list[dict[str, Any]]:
    calls = kept.get("calls") if isinstance(kept, Mapping) else None
    return [each for each in calls if isinstance(each, dict)] if isinstance(calls, list) else []


def _setting_of_sample(sample: EvalSample) -> str | None:
    setting = sample.metadata.get("setting")
    return setting if isinstance(setting, str) and len(setting) <= 100 else None


def _setting_of(header: EvalLog) -> str | None:
    setting = (header.eval.metadata or {}).get("setting")
    return setting if isinstance(setting, str) and len(setting) <= 100 else header.eval.solver


def _conversation(
    sample: EvalSample, record: Mapping[str, Any], pictures: PictureStore
) -> dict[str, Any]:
    kept = sample.store.get(STORE_KEY)
    rounds = kept.get("round_records") if isinstance(kept, Mapping) else None
    messages: list[dict[str, Any]] = []
    size = 0
    for each in sample.messages[:_MOST_MESSAGES]:
        size += _length(each)
        if size > _MOST_SAID:
            raise SubmissionError(
                f"sample {str(sample.id)[:80]}: its messages have more than "
                f"{_MOST_SAID // MIB} MiB of text and pictures"
            )
        messages.append({"role": each.role, "content": _content(each, pictures)})
    return {
        "id": record["id"],
        "sample": record["sample"],
        "model": record.get("model"),
        "setting": record.get("setting"),
        "state": "finished",
        "messages": messages,
        "rounds": [each for each in rounds if isinstance(each, dict)]
        if isinstance(rounds, list)
        else [],
        "calls": record.get("calls") or [],
    }


def _length(message: ChatMessage) -> int:
    """Characters of a message; several may refer to the same long text."""
    if isinstance(message.content, str):
        return len(message.content)
    return sum(
        len(each.image) if each.type == "image" else len(each.text)
        for each in message.content
        if each.type in {"image", "text"}
    )


def _content(message: ChatMessage, pictures: PictureStore) -> Content:
    if isinstance(message.content, str):
        return message.content
    parts: list[Part] = []
    for number, each in enumerate(message.content, start=1):
        if each.type == "image":
            parts.append(_picture(each.image, f"picture {number}", pictures))
        elif each.type == "text":
            parts.append({"type": "text", "text": each.text})
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _picture(url: str, name: str, pictures: PictureStore) -> Part:
    """A picture that is kept with the run; one that is only an address becomes text."""
    head, _, data = url.partition(",")
    if head.startswith("data:") and head.endswith(";base64") and len(data) < 2 * MOST_PICTURE_BYTES:
        with contextlib.suppress(binascii.Error, ValueError):
            picture = pictures.add_made(base64.b64decode(data, validate=True), name)
            if picture is not None:
                return picture.part
    return {"type": "text", "text": f"[a picture that is not kept: {url[:200]}]"}
