"""Imports an Inspect AI log as a run of the judge.

A log is untrusted. The sizes and the numbers of values of its members are counted first, and
Inspect's reader is given only the fields that a run needs. Attachments (text that many messages
refer to) are not expanded by Inspect: the judge counts them for each message, and inserts them when
it writes the message. The submission in a sample is read like a line of any other file of
solutions.
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
from typing import IO, TYPE_CHECKING, Any

from judge.core.conversation import Content, Part
from judge.core.submission import Submission
from judge.errors import JudgeError, SubmissionError, UsageError, how_to_install
from judge.files.documents import (
    MIB,
    MalformedError,
    as_object,
    dump_json,
    parse_json,
    read_regular,
)
from judge.files.media import PICTURES_FOLDER
from judge.grading.store import RunDirectory
from judge.inference.logs import empty_records, imported_run
from judge.inference.pictures import MAX_PICTURE_BYTES, PictureStore
from judge.inference.run_records import InferenceRecords
from judge.suites import Suite
from judge.suites.archive import ZipRefusedError, check_directory
from judge.suites.submissions import submission_of_record, submission_record

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ChatMessage, ModelUsage

STORE_KEY = "sheetjudge"
"""The key under which the judge's solver keeps the submission in the store of a sample."""

_MAX_MEMBER_BYTES = 64 * MIB
_MAX_BYTES = 4096 * MIB
_MAX_RATIO = 1000
_MAX_MEMBERS = 200_000
_MAX_SAMPLES = 100_000
_MAX_EPOCH = 100_000
_MAX_JSON_BYTES = 64 * MIB
_MAX_VALUES = 4_000_000
_MAX_MESSAGES = 10_000
_MAX_PARTS = 50_000
_MAX_MODELS = 1_000
_MAX_QUOTED = 128 * MIB
_MAX_QUOTED_IN_ALL = _MAX_BYTES
_MAX_AMOUNT = 2**53

_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93}
"""Accepted methods of compression; 93 is Zstandard, which Inspect uses."""
_PIECE_BYTES = 4096
"""Bytes read at a time; 4 KiB of Zstandard decompress to at most 128 MiB (RFC 8878, 3.1.1.2)."""

_SUMMARIES, _JOURNAL = "summaries.json", "_journal/summaries/"
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLES = "samples/"

# The fields that are read. Inspect also requires input and target, which are left empty.
_OF_LOG = ("version", "status")
_OF_EVAL = ("created", "task", "model", "solver")
_OF_SAMPLE = ("id", "epoch", "working_time", "total_time", "attachments")
_OF_CHOICE = ("stop_reason",)
_OF_SPEC = ("dataset", "config")
_REFERENCES = ("attachment://", "tc://")
_PART_TEXTS = {"text": "text", "image": "image"}
_TEXTS = ("solution", "response", "reply", "input_path", "output_path", "ended", "finish_reason")
_FLAGS = ("truncated", "stands_alone")


@dataclass(slots=True)
class ImportedLog:
    """The result of an import.

    Attributes:
        submissions: how many submissions were imported.
        failed: name of a sample that ended with an error -> the error.
        missing: how many samples are not in the log because the evaluation did not finish.
    """

    submissions: int = 0
    missing: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def import_inspect_log(
    log: Path, suite: Suite, source: str, store: RunDirectory, ids: Collection[str] | None = None
) -> ImportedLog:
    """Makes a run out of a log, as if the model had just replied.

    Epochs are samples of a task. Samples that ended with an error have no submission.

    Args:
        log: a .eval or .json file.
        suite: the suite of the log's tasks.
        source: where the suite is loaded from, for run.json.
        store: the run's directory, which must hold no submissions yet.
        ids: the tasks to import; None for all.

    Raises:
        UsageError: Inspect is not installed.
        SubmissionError: the log cannot be read, or is about tasks of another suite.
        StoreError: the directory holds submissions, or cannot be written.
    """
    check_installed()
    with empty_records(store) as records, _opened(log) as opened:
        imported = _import(opened, suite, records, ids)
        if not imported.submissions:
            raise SubmissionError(
                f"{log}: has no finished sample of the tasks to import",
                hint="Check --ids, and whether the evaluation has finished.",
            )
        model, setting = opened.header.eval.model, _setting_of(opened.header)
        store.write_run(imported_run(log, suite, source, model=model, setting=setting))
    return imported


def suite_named_in(log: Path) -> tuple[str, str] | None:
    """Returns the name and digest of a log's suite; None if its tasks are not those of the judge.

    Raises:
        UsageError: Inspect is not installed.
        SubmissionError: the log cannot be read.
    """
    check_installed()
    with _opened(log) as opened:
        metadata = opened.header.eval.metadata or {}
    name, digest = metadata.get("suite"), metadata.get("suite_digest")
    return (name, digest) if isinstance(name, str) and isinstance(digest, str) else None


def raw_samples(log: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yields the header of a log with each of its samples, as JSON; the usual limits apply.

    Raises:
        UsageError: Inspect is not installed.
        SubmissionError: the log cannot be read.
    """
    check_installed()
    header: dict[str, Any] = {}
    samples: list[dict[str, Any]] = []
    with _bad_log_is_an_error(log):
        if log.suffix == ".json":
            data = read_regular(log, SubmissionError, max_bytes=_MAX_JSON_BYTES)
            if data is None:
                raise SubmissionError(f"{log}: cannot be read: no such file")
            header = as_object(parse_json(data, max_values=_MAX_VALUES))
            samples = [as_object(sample) for sample in header.pop("samples", None) or []]
        else:
            with log.open("rb") as file:
                for name, data in _members(file):
                    document = parse_json(data, max_values=_MAX_VALUES)
                    if name in _HEADERS:
                        header = as_object(document)
                    elif name.startswith(_SAMPLES):
                        samples.append(as_object(document))
    yield from ((header, sample) for sample in samples)


def check_installed() -> None:
    """Checks that Inspect can be imported.

    Raises:
        UsageError: it cannot be imported; the hint names the extra to install.
    """
    try:
        import inspect_ai.log  # noqa: F401, PLC0415  loaded where logs are read
    except ImportError as error:
        raise UsageError(
            f"Inspect logs are read with inspect_ai, which is not installed: {error}",
            hint=how_to_install("inspect"),
        ) from error


def record_of_store(kept: object, *, is_file: bool) -> dict[str, Any] | None:
    """Reads the submission in the store of a sample; drops fields that the solver does not write.

    Args:
        kept: the value in the store, which is untrusted.
        is_file: whether the task asks for a workbook.

    Returns:
        Fields of a record of submissions.jsonl; None if there is no valid submission.
    """
    if not isinstance(kept, Mapping):
        return None
    submitted = kept.get("solution" if is_file else "response", kept)
    if not (submitted is None or isinstance(submitted, str)):
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
    """A log that is open for reading.

    Attributes:
        named: the file that the user named, for messages.
        path: the cleaned copy that Inspect reads.
        header: everything but the samples.
    """

    named: Path
    path: Path
    header: EvalLog

    def names(self, suite: Suite, ids: Collection[str] | None) -> list[tuple[int | str, int]]:
        """Returns ids and epochs of the samples to import, in the order of the suite.

        Raises:
            SubmissionError: the suite has no such task.
        """
        from inspect_ai.log import read_eval_log_sample_summaries  # noqa: PLC0415

        with _bad_log_is_an_error(self.named):
            summaries = read_eval_log_sample_summaries(str(self.path))
        names = [(x.id, x.epoch) for x in summaries if ids is None or str(x.id) in ids]
        order = {task.id: index for index, task in enumerate(suite.tasks)}
        for sample_id, epoch in names:
            if str(sample_id) not in order:
                raise SubmissionError(
                    f"{self.named}: the suite {suite.name} has no task {str(sample_id)[:80]}",
                    hint="is it the right suite (--dataset)? --ids imports only the tasks that you "
                    "name",
                )
            if not 1 <= epoch <= _MAX_EPOCH:
                raise SubmissionError(
                    f"{self.named}: sample {sample_id} has the epoch {str(epoch)[:40]}"
                )
        return sorted(names, key=lambda name: (order[str(name[0])], name[1]))

    def missing(self, ids: Collection[str] | None, names: Collection[tuple[int | str, int]]) -> int:
        """Returns how many samples are not in the log because the evaluation did not finish."""
        sample_ids = self.header.eval.dataset.sample_ids
        if self.header.status == "success" or sample_ids is None:
            return 0
        expected = {str(x) for x in sample_ids}
        expected = expected if ids is None else expected & {*ids}
        epochs = min(max(self.header.eval.config.epochs or 1, 1), _MAX_EPOCH)
        there = {(str(sample_id), epoch) for sample_id, epoch in names if epoch <= epochs}
        return len(expected) * epochs - sum(sample_id in expected for sample_id, _ in there)

    def sample(self, sample_id: int | str, epoch: int) -> EvalSample:
        """Reads a sample; attachments are not expanded.

        Raises:
            SubmissionError: there is no such sample, or its content has another id or epoch.
        """
        from inspect_ai.log import read_eval_log_sample  # noqa: PLC0415

        # Write a log with only this sample, since Inspect reads the whole directory of the archive
        # for each sample.
        name = _sample_name(sample_id, epoch)
        alone = self.path.with_name("sample.eval")
        with _bad_log_is_an_error(self.named):
            with zipfile.ZipFile(self.path) as all_samples, zipfile.ZipFile(alone, "w") as single:
                single.writestr(name, all_samples.read(name))
            sample = read_eval_log_sample(str(alone), sample_id, epoch)
        if (sample.id, sample.epoch) != (sample_id, epoch):
            raise SubmissionError(
                f"{self.named}: sample {str(sample_id)[:80]}, epoch {epoch}, says that it is "
                f"{str(sample.id)[:80]}, epoch {sample.epoch}"
            )
        return sample


@contextlib.contextmanager
def _opened(log: Path) -> Iterator[_OpenedLog]:
    from inspect_ai.log import read_eval_log  # noqa: PLC0415

    if log.suffix not in {".eval", ".json"}:
        raise SubmissionError(
            f"{log}: is not an Inspect log", hint="Its logs end with .eval or .json."
        )
    with tempfile.TemporaryDirectory(prefix="judge-inspect-") as folder:
        path = Path(folder) / "log.eval"
        with _bad_log_is_an_error(log), zipfile.ZipFile(path, "w") as plain:
            for name, document in _documents(log):
                plain.writestr(name, dump_json(document).encode())
        with _bad_log_is_an_error(log):
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


def _documents(log: Path) -> Iterator[tuple[str, Any]]:
    """Yields the documents of a log, with the names that they have in an .eval file.

    They contain only the fields that are read. Limits on length, depth and number of values apply.

    Raises:
        MalformedError: a member is not JSON, is nested too deeply, or has too many values.
        SubmissionError: the log is missing or too long.
        ZipRefusedError: the archive decompresses to too much.
        zipfile.BadZipFile: the archive is damaged.
    """
    if log.suffix == ".json":
        data = read_regular(log, SubmissionError, max_bytes=_MAX_JSON_BYTES)
        if data is None:
            raise SubmissionError(f"{log}: cannot be read: no such file")
        yield from _documents_of_json(as_object(parse_json(data, max_values=_MAX_VALUES)))
        return
    if not log.is_file():
        raise SubmissionError(f"{log}: cannot be read: no such file")
    with log.open("rb") as file:
        for name, data in _members(file):
            document = parse_json(data, max_values=_MAX_VALUES)
            if name in _HEADERS:
                yield name, _header(as_object(document))
            elif name.startswith(_SAMPLES):
                yield name, _sample(as_object(document))
            else:
                yield name, _summaries(document)


def _documents_of_json(log: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the documents of a log that is a single JSON document; see :func:`_documents`."""
    yield _HEADERS[0], _header(log)
    samples = log.get("samples") or []
    yield _SUMMARIES, _summaries(samples)
    named = {_sample_name(sample.get("id"), sample.get("epoch")): sample for sample in samples}
    yield from ((name, _sample(sample)) for name, sample in named.items())


def _sample_name(sample_id: object, epoch: object) -> str:
    return f"{_SAMPLES}{sample_id}_epoch_{epoch}.json"


def _members(file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yields names and contents of the members that are read; the last member of a name counts.

    Raises:
        ZipRefusedError: the archive decompresses to too much.
        zipfile.BadZipFile: the archive is damaged.
    """
    import zipfile_zstd  # type: ignore[import-untyped]  # noqa: F401, PLC0415  as Inspect packs

    check_directory(file)  # type: ignore[arg-type]  # a regular file
    with zipfile.ZipFile(file) as packed:
        members = packed.infolist()
        if len(members) > _MAX_MEMBERS:
            raise ZipRefusedError(f"it has {len(members):,} members")
        total, size = sum(member.file_size for member in members), file.seek(0, 2)
        if total > _MAX_BYTES:
            raise ZipRefusedError(f"it unpacks to more than {_MAX_BYTES // MIB:,} MiB")
        if total > _MAX_MEMBER_BYTES + _MAX_RATIO * size:
            raise ZipRefusedError(f"it unpacks to more than {_MAX_RATIO:,} times its size")
        for name, member in {member.filename: member for member in members}.items():
            is_read = name in {*_HEADERS, _SUMMARIES} or name.startswith((_SAMPLES, _JOURNAL))
            if not (is_read and name.endswith(".json")):
                continue
            shown = repr(name[:200])
            if member.file_size > _MAX_MEMBER_BYTES:
                raise ZipRefusedError(
                    f"{shown} unpacks to more than {_MAX_MEMBER_BYTES // MIB} MiB"
                )
            if member.compress_type not in _METHODS:
                raise ZipRefusedError(f"{shown} is packed in a way that Inspect does not use")
            # Reading stops at the declared size, which was checked above.
            with packed.open(member) as source:
                yield name, b"".join(iter(lambda: source.read(_PIECE_BYTES), b""))


def _header(log: dict[str, Any]) -> dict[str, Any]:
    """Reads the fields of a log's header that the judge uses."""
    spec = log.get("eval")
    if not isinstance(spec, dict):
        raise MalformedError("it does not say what was evaluated")
    dataset, config = (_only(spec.get(name), "sample_ids", "epochs") for name in _OF_SPEC)
    kept = {**_only(spec, *_OF_EVAL), "dataset": dataset, "config": config}
    kept["metadata"] = _only(spec.get("metadata"), "suite", "suite_digest", "setting")
    return {**_only(log, *_OF_LOG), "eval": kept, "plan": {}}


def _summaries(samples: object) -> list[dict[str, Any]]:
    """Reads the ids and epochs of the samples.

    Raises:
        MalformedError: there are too many samples, or one is not an object.
    """
    if not isinstance(samples, list):
        raise MalformedError("its samples are not a list")
    if len(samples) > _MAX_SAMPLES:
        raise MalformedError(f"it has {len(samples):,} samples, more than {_MAX_SAMPLES:,}")
    empty = {"input": "", "target": ""}
    return [{**empty, **_only(as_object(sample), "id", "epoch")} for sample in samples]


def _sample(sample: dict[str, Any]) -> dict[str, Any]:
    """Reads the fields of a sample that the judge uses.

    Raises:
        MalformedError: the sample has too many messages, parts of messages, or models.
    """
    kept = {"input": "", "target": "", **_only(sample, *_OF_SAMPLE)}
    transcript = _only(sample.get("transcript"), "content")  # before Inspect 0.3.60
    kept.setdefault("attachments", transcript.get("content", {}))
    messages = sample.get("messages", [])
    if isinstance(messages, list):
        messages = [_message(message) for message in messages[:_MAX_MESSAGES]]
        contents = (message["content"] for message in messages if isinstance(message, dict))
        parts = sum(len(content) for content in contents if isinstance(content, list))
        if parts > _MAX_PARTS:
            raise MalformedError(f"its messages have more than {_MAX_PARTS:,} parts")
    usage = sample.get("model_usage") or {}
    if isinstance(usage, dict) and len(usage) > _MAX_MODELS:
        raise MalformedError(f"it names more than {_MAX_MODELS:,} models")
    output = sample.get("output")
    if isinstance(output, dict):
        kept["output"] = _output(output)
    if isinstance(error := sample.get("error"), dict):
        kept["error"] = {"traceback": "", "traceback_ansi": "", **_only(error, "message")}
    elif error is not None:
        kept["error"] = error
    kept["store"] = _only(sample.get("store"), STORE_KEY)
    kept["metadata"] = _only(sample.get("metadata"), "setting")
    return {**kept, "messages": messages, "model_usage": usage}


def _output(output: dict[str, Any]) -> dict[str, Any]:
    choices = output.get("choices")
    if isinstance(choices, list):
        choices = [
            {
                **_only(choice, *_OF_CHOICE),
                "message": _message(_only(choice, "message").get("message")),
            }
            for choice in choices[:1]
        ]
    return {**_only(output, "model", "completion"), "choices": choices or []}


def _message(message: object) -> object:
    """Returns role, text and pictures of a message; Inspect refuses anything else."""
    if not isinstance(message, dict):
        return message
    content = message.get("content")
    if isinstance(content, list):
        kinds = ((part, _PART_TEXTS.get(str(_only(part, "type").get("type")))) for part in content)
        content = [_only(part, "type", field) for part, field in kinds if field is not None]
    return {**_only(message, "role"), "content": content}


def _only(document: object, *fields: str) -> dict[str, Any]:
    """Returns the named fields of an object; an empty dictionary if it is not an object."""
    if not isinstance(document, dict):
        return {}
    return {name: document[name] for name in fields if name in document}


# -- writing --------------------------------------------------------------------------------------


def _import(
    log: _OpenedLog, suite: Suite, records: InferenceRecords, ids: Collection[str] | None
) -> ImportedLog:
    names = log.names(suite, ids)  # before anything is written
    imported = ImportedLog(missing=log.missing(ids, names))
    messages = _Messages(log.named, PictureStore(records.store.path / PICTURES_FOLDER))
    for sample_id, epoch in names:
        sample = log.sample(sample_id, epoch)
        task_id, number = str(sample_id), epoch - 1
        if sample.error is not None:
            problem = sample.error.message[:2000]
            imported.failed[f"{task_id}.{number}" if number else task_id] = problem
            records.append_failure(
                {"id": suite.task(task_id).written_id, "sample": number, "problem": problem}
            )
            continue
        submission = _submission(sample, suite, log.header)
        record = submission_record(submission, suite)
        record["conversation"] = records.conversation_path(task_id, number)
        conversation = _conversation(sample, record, messages)
        records.write_conversation(task_id, number, conversation)
        records.append_submission(record)
        imported.submissions += 1
    return imported


def _submission(sample: EvalSample, suite: Suite, header: EvalLog) -> Submission:
    """Returns a sample as a submission, with its cost."""
    task = suite.task(str(sample.id))
    field_name = "solution" if task.answer.is_file else "response"
    usage = list(sample.model_usage.values())
    seconds = sample.working_time if sample.working_time is not None else sample.total_time
    prompt = sum(map(prompt_tokens_of, usage))
    completion = sum(model_usage.output_tokens for model_usage in usage)
    cost = _cost(usage)
    for unit, number in (("tokens", prompt), ("tokens", completion), ("dollars", cost),
                         ("seconds", seconds)):  # fmt: skip
        if number is not None and not 0 <= number < _MAX_AMOUNT:
            raise SubmissionError(
                f"sample {str(sample.id)[:80]}: no evaluation can have this number of {unit}",
                hint="The log was not written by Inspect.",
            )
    facts: dict[str, Any] = {
        "id": task.id,
        "sample": sample.epoch - 1,
        "instruction_type": task.kind,
        "model": header.eval.model,
        "setting": _setting_of_sample(sample) or _setting_of(header),
        "tokens": {
            "prompt": prompt,
            "completion": completion,
        },
        "cost": cost,
        "seconds": None if seconds is None else round(seconds, 3),
        "calls": [],
    }
    reply = facts | {field_name: sample.output.completion}
    stored = sample.store.get(STORE_KEY)
    record = record_of_store(stored, is_file=task.answer.is_file)
    if record is None:
        return submission_of_record(reply, suite)
    try:
        return submission_of_record(record | facts | {"calls": _calls(stored)}, suite)
    except SubmissionError:  # the judge did not write the store
        return submission_of_record(reply, suite)


def prompt_tokens_of(usage: ModelUsage) -> int:
    """Returns the tokens of the requests, including those that were read from a cache."""
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return usage.input_tokens + cached


def _cost(usage: Collection[ModelUsage]) -> float | None:
    costs = [model_usage.total_cost for model_usage in usage]
    amounts = [cost for cost in costs if cost is not None]
    return round(sum(amounts), 8) if amounts and len(amounts) == len(costs) else None


def _calls(kept: Any) -> list[dict[str, Any]]:
    calls = kept.get("calls") if isinstance(kept, Mapping) else None
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _setting_of_sample(sample: EvalSample) -> str | None:
    setting = sample.metadata.get("setting")
    return setting if isinstance(setting, str) and len(setting) <= 100 else None


def _setting_of(header: EvalLog) -> str | None:
    setting = (header.eval.metadata or {}).get("setting")
    return setting if isinstance(setting, str) and len(setting) <= 100 else header.eval.solver


def _conversation(
    sample: EvalSample, record: Mapping[str, Any], messages: _Messages
) -> dict[str, Any]:
    stored = sample.store.get(STORE_KEY)
    rounds = stored.get("round_records") if isinstance(stored, Mapping) else None
    return {
        "id": record["id"],
        "sample": record["sample"],
        "model": record.get("model"),
        "setting": record.get("setting"),
        "state": "finished",
        "messages": messages.of(sample),
        "rounds": [record for record in rounds if isinstance(record, dict)]
        if isinstance(rounds, list)
        else [],
        "calls": record.get("calls") or [],
    }


class _Messages:
    """Messages of samples, with attachments inserted; their length is checked first.

    Args:
        log: the log, for error messages.
        pictures: the store for the pictures of messages.
    """

    def __init__(self, log: Path, pictures: PictureStore) -> None:
        self._log = log
        self._pictures = pictures
        self._in_all = 0

    def of(self, sample: EvalSample) -> list[dict[str, Any]]:
        """Returns the messages of a sample.

        Raises:
            SubmissionError: its messages, or those of all samples so far, are too long.
        """
        size = sum(
            len(_resolved(text, sample.attachments))
            for message in sample.messages
            for text in _texts(message)
        )
        self._in_all += size
        name = f"{self._log}: sample {str(sample.id)[:80]}"
        if size > _MAX_QUOTED:
            raise SubmissionError(
                f"{name}: its messages have more than {_MAX_QUOTED // MIB} MiB of text and pictures"
            )
        if self._in_all > _MAX_QUOTED_IN_ALL:
            raise SubmissionError(
                f"{name}: the messages up to here have more than "
                f"{_MAX_QUOTED_IN_ALL // MIB:,} MiB of text and pictures",
                hint="--ids imports only the tasks that you name.",
            )
        return [
            {"role": message.role, "content": _content(message, sample.attachments, self._pictures)}
            for message in sample.messages
        ]


def _resolved(text: str, attachments: Mapping[str, str]) -> str:
    """Returns a string, or the attachment that it refers to; resolved only once, as in Inspect."""
    for protocol in _REFERENCES:
        if text.startswith(protocol):
            return attachments.get(text.removeprefix(protocol), text)
    return text


def _texts(message: ChatMessage) -> list[str]:
    """Returns the strings of a message: its text, and the addresses of its pictures."""
    if isinstance(message.content, str):
        return [message.content]
    pictures = [part.image for part in message.content if part.type == "image"]
    return [*pictures, *(part.text for part in message.content if part.type == "text")]


def _content(
    message: ChatMessage, attachments: Mapping[str, str], pictures: PictureStore
) -> Content:
    if isinstance(message.content, str):
        return _resolved(message.content, attachments)
    parts: list[Part] = []
    for number, part in enumerate(message.content, start=1):
        if part.type == "image":
            image = _resolved(part.image, attachments)
            parts.append(_picture(image, f"picture {number}", pictures))
        elif part.type == "text":
            parts.append({"type": "text", "text": _resolved(part.text, attachments)})
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _picture(url: str, name: str, pictures: PictureStore) -> Part:
    """Stores a picture with the run; if there is only its address, returns this as text."""
    head, _, data = url.partition(",")
    if head.startswith("data:") and head.endswith(";base64") and len(data) < 2 * MAX_PICTURE_BYTES:
        with contextlib.suppress(binascii.Error, ValueError):
            picture = pictures.add_made(base64.b64decode(data, validate=True), name)
            if picture is not None:
                return picture.part
    return {"type": "text", "text": f"[a picture that is not kept: {url[:200]}]"}
