"""Imports trajectories of agents, as a new run or with finished workbooks; exports ATIF.

Episodes of tools are written as ATIF documents, which :mod:`judge.tools.trajectories` reads back.
Reading a document back gives the same turns, because facts for which ATIF has no field go into
``extra``. Source: harbor 0.25.0, ``harbor/models/trajectories`` (ATIF-v1.8).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from judge.core.conversation import plain_text
from judge.core.records.runs import EpisodeOutput, LayoutRecord
from judge.core.records.tool_episodes import ReceivedCall, TokenRecord, ToolCallLine, ToolTurn
from judge.core.task import Task
from judge.errors import StoreError, SubmissionError, UsageError
from judge.files.documents import dump_json
from judge.files.media import PICTURE_SUFFIXES, PICTURES_FOLDER
from judge.files.paths import GivenPath, as_path
from judge.files.writing import naming_what_is_written, write_whole
from judge.grading.store import CASES_FILE, SUBMISSIONS_FILE, RunDirectory
from judge.inference.logs import empty_records, imported_run
from judge.inference.run_records import InferenceRecords
from judge.suites.file_pattern import folder_and_pattern
from judge.suites.folders import regular_files
from judge.suites.formats import is_output_name
from judge.suites.layouts import PATTERN, FoundOutputs, Layout, outputs_in, trajectories_in
from judge.suites.suite import Suite
from judge.tools.episodes import (
    SETTING,
    ToolEpisode,
    has_tool_episodes,
    read_definitions,
    read_tool_episodes,
)
from judge.tools.trajectories import (
    Object,
    Trajectory,
    is_trajectory,
    of_inspect,
    read_trajectory,
    result_text,
    without_none,
    write_trajectory,
)
from judge.version import __version__

_TALKS = "conversations/"
_MAX_WORKBOOK_BYTES = 256 * 2**20


def take_trajectories(
    store: RunDirectory,
    folder: GivenPath,
    suite: Suite,
    layout: LayoutRecord | None,
    given: str,
    outputs: FoundOutputs,
) -> list[dict[str, object]]:
    """Adds the trajectories of finished outputs to their run, as episodes of tools.

    Args:
        store: the run's directory.
        folder: the folder of the outputs.
        suite: the suite whose tasks are answered.
        layout: where the outputs are in the folder.
        given: pattern of the trajectories, or the path of an Inspect log.
        outputs: the outputs.

    Returns:
        The cost of each attempt, as records of ``attempts.jsonl``.

    Raises:
        SubmissionError: a file is not a trajectory, or a named trajectory was not found.
        StoreError: an episode cannot be written.
    """
    folder = as_path(folder)
    attempts: dict[tuple[str, int], dict[str, Any]] = {}
    for task, sample, case, trajectory in _trajectories(folder, suite, layout, given, suite):
        workbook, changed = _workbook_left(task, case, outputs.of_sample(task.id, sample, case))
        _keep(store, task, sample, case, trajectory, workbook, changed=changed)
        _add_to(attempts, task, sample, trajectory)
    if not attempts:
        raise _no_match(folder, "--trajectories", given)
    return list(attempts.values())


def _no_match(folder: Path, option: str, given: str) -> SubmissionError:
    return SubmissionError(
        f"{folder}: no file matches {option} {given!r}",
        hint="Give a pattern such as '{task}/trajectory.json', or an Inspect log.",
    )


def _workbook_left(task: Task, case: int, path: Path | None) -> tuple[bytes | None, bool]:
    """The workbook that was left for a case, and whether it differs from the input."""
    if path is None:
        return None, False
    workbook = path.read_bytes()[:_MAX_WORKBOOK_BYTES]
    own = next(test_case for test_case in task.cases if test_case.number == case)
    return workbook, not own.inputs or workbook != own.input_path.read_bytes()


def _keep(
    store: RunDirectory,
    task: Task,
    sample: int,
    case: int,
    trajectory: Trajectory,
    workbook: bytes | None,
    *,
    changed: bool,
) -> Path:
    return write_trajectory(
        store.path,
        trajectory,
        task_id=task.written_id,
        sample=sample,
        case=case,
        output=workbook,
        changed=changed,
    ).path


@dataclass(frozen=True, slots=True)
class ImportedTrajectories:
    """The result of an import.

    Attributes:
        submissions: number of samples of tasks that have a trajectory or a workbook.
        trajectories: how many trajectories were imported.
        workbooks: how many workbooks were imported.
    """

    submissions: int
    trajectories: int
    workbooks: int


def import_trajectories(
    given: str,
    outputs: str | None,
    suite: Suite,
    source: str,
    store: RunDirectory,
    ids: Collection[str] | None = None,
) -> ImportedTrajectories:
    """Makes a run out of trajectories and workbooks of another agent, as if it had just ended.

    Args:
        given: path of the trajectories, with the fields of a pattern; or of an Inspect log.
        outputs: path of the workbooks, with fields; None to look in the folder of the trajectories
            for workbooks with the names of outputs.
        suite: the suite that they answer.
        source: where the suite is loaded from, for run.json.
        store: the run's directory, which must hold no submissions yet.
        ids: the tasks to import; None for all.

    Raises:
        UsageError: a pattern cannot be read, or an id is not of the suite.
        SubmissionError: there is no trajectory, or a file is not a trajectory.
        StoreError: the directory holds submissions, or cannot be written.
    """
    requested = suite.select(sorted(ids or ()))

    def named_in(path: str) -> Suite:
        """The suite with only the requested task, if the path does not name the task."""
        return requested if "{task}" not in path and len(requested.tasks) == 1 else suite

    folder, pattern = folder_and_pattern(given)
    workbooks = _workbooks(folder, outputs, suite if outputs is None else named_in(outputs))
    attempts: dict[tuple[str, int], dict[str, Any]] = {}
    outputs_by_sample: dict[tuple[str, int], dict[str, EpisodeOutput]] = defaultdict(dict)
    count = 0
    with empty_records(store) as records:
        layout = Layout(PATTERN, pattern).record()
        trajectories = _trajectories(
            folder, named_in(given), layout, given if _is_log(given) else pattern, requested
        )
        for task, sample, case, trajectory in trajectories:
            data, changed = _workbook_left(task, case, workbooks.of_sample(task.id, sample, case))
            path = _keep(store, task, sample, case, trajectory, data, changed=changed)
            outputs_by_sample[task.id, sample][str(case)] = {
                **_output_of(store, data, changed=changed),
                "ended": trajectory.ended or "",
                "turns": len(trajectory.turns),
                "steps": sum(len(turn["calls"]) for turn in trajectory.turns),
                "episode": f"{path.parent.name}/{path.name}",
            }
            _add_to(attempts, task, sample, trajectory)
            count += 1
        if not count:
            raise _no_match(folder, "--import-trajectory", given)
        for task in requested.tasks:
            for sample in workbooks.samples_of(task.id):
                if outputs is not None or (task.id, sample) in outputs_by_sample:
                    _add_workbooks(
                        store, task, sample, workbooks, outputs_by_sample[task.id, sample]
                    )
        _write_run(records, suite, source, given, outputs_by_sample, attempts)
    books = sum(
        one["sha256"] is not None
        for by_case in outputs_by_sample.values()
        for one in by_case.values()
    )
    return ImportedTrajectories(len(outputs_by_sample), count, books)


def _write_run(
    records: InferenceRecords,
    suite: Suite,
    source: str,
    given: str,
    outputs_by_sample: Mapping[tuple[str, int], dict[str, EpisodeOutput]],
    attempts: Mapping[tuple[str, int], Mapping[str, Any]],
) -> None:
    """Writes the submissions, and run.json."""
    setting = SETTING + ", ".join(sorted({str(one["agent"]) for one in attempts.values()}))
    for (task_id, sample), by_case in outputs_by_sample.items():
        task = suite.task(task_id)
        attempt = attempts.get((task_id, sample), {})
        facts = {name: value for name, value in attempt.items() if name != "agent"}
        facts |= {"id": task.written_id, "sample": sample, "instruction_type": task.kind}
        records.append_submission({**facts, "setting": setting, "outputs": by_case})
    models = sorted({str(one["model"]) for one in attempts.values() if one["model"]})
    model = ", ".join(models) or None
    run = imported_run(Path(given), suite, source, model=model, setting=setting)
    records.store.write_run(run)


def _add_workbooks(
    store: RunDirectory,
    task: Task,
    sample: int,
    workbooks: FoundOutputs,
    outputs: dict[str, EpisodeOutput],
) -> None:
    """Adds the workbooks of the cases that have no trajectory."""
    for case in (own.number for own in task.cases if str(own.number) not in outputs):
        data, changed = _workbook_left(task, case, workbooks.of_sample(task.id, sample, case))
        outputs[str(case)] = _output_of(store, data, changed=changed)


def _workbooks(folder: Path, outputs: str | None, suite: Suite) -> FoundOutputs:
    """The workbooks that were left with trajectories."""
    if outputs is not None:
        folder, pattern = folder_and_pattern(outputs)
        return outputs_in(folder, suite, Layout(PATTERN, pattern).record())
    if any(is_output_name(path.name) for path in regular_files(folder)):
        return outputs_in(folder, suite, Layout().record())
    return FoundOutputs(suite, (), {})


def _output_of(store: RunDirectory, data: bytes | None, *, changed: bool) -> EpisodeOutput:
    """Stores the workbook that was left for a case in the run, and returns its record."""
    return {
        "sha256": None if data is None else store.put_workbook(data),
        "bytes": len(data or b""),
        "name": "output.xlsx",
        "gui_only": False,
        "changed": changed,
        "problem": "" if data is not None else "the agent left no workbook",
    }


def _trajectories(
    folder: Path, suite: Suite, layout: LayoutRecord | None, given: str, requested: Suite
) -> Iterator[tuple[Task, int, int, Trajectory]]:
    """Yields task, sample, case and trajectory, for the requested tasks."""
    if _is_log(given):
        log = Path(given)
        from judge.inference.inspect_logs import raw_samples  # noqa: PLC0415  few runs have one

        for header, sample in raw_samples(log):
            task_id = suite.task_id_in(str(sample.get("id")), ())
            if task_id not in suite:
                raise SubmissionError(f"{log}: the suite {suite.name} has no task {task_id[:80]}")
            if task_id not in requested:
                continue
            task, epoch = suite.task(task_id), sample.get("epoch")
            number = epoch - 1 if isinstance(epoch, int) and epoch > 0 else 0
            yield task, number, task.cases[0].number, of_inspect(sample, header)
        return
    for (task_id, number, case), path in trajectories_in(folder, suite, layout, given).items():
        if task_id not in requested:
            continue
        task = suite.task(task_id)
        if case not in {test_case.number for test_case in task.cases}:
            raise SubmissionError(f"{path}: there is no case {case} of task {task_id}")
        yield task, number, case, read_trajectory(path)


def _is_log(given: str) -> bool:
    """Whether the path names an Inspect log, and is not a pattern."""
    log = Path(given)
    return log.suffix in {".eval", ".json"} and log.is_file() and not is_trajectory(log)


def _add_to(
    attempts: dict[tuple[str, int], dict[str, Any]], task: Task, sample: int, one: Trajectory
) -> None:
    """Adds the cost of an episode to its attempt."""
    fresh: dict[str, Any] = {
        "id": task.written_id,
        "sample": sample,
        "model": one.model,
        "agent": one.agent or one.format,
        "tokens": None,
        "cost": None,
        "seconds": None,
    }
    attempt = attempts.setdefault((task.id, sample), fresh)
    tokens = {"prompt": one.tokens.get("prompt"), "completion": one.tokens.get("completion")}
    if any(value is not None for value in tokens.values()):
        counts = attempt["tokens"] or {}
        attempt["tokens"] = {name: _plus(counts.get(name), tokens[name]) for name in tokens}
    attempt["cost"] = _plus(attempt["cost"], one.cost)
    attempt["seconds"] = _plus(attempt["seconds"], one.seconds)


def _plus(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other


# -- out ------------------------------------------------------------------------------------------


def write_atif(run: GivenPath, out: GivenPath) -> int:
    """Writes the episodes of a run as ATIF: a file for each, and their pictures next to them.

    Args:
        run: the run's directory.
        out: the folder to write to; it is created.

    Returns:
        How many episodes were written.

    Raises:
        UsageError: the run has no episodes of tools.
        StoreError: an episode cannot be read, or a file cannot be written.
    """
    run, out = as_path(run), as_path(out)
    store = RunDirectory(run)
    setting = (store.read_run() or {}).get("setting")
    if not has_tool_episodes(setting):
        raise UsageError(
            f"{run}: has no episodes with tools, the only kind that can be written as ATIF",
            hint="judge infer --mode tools and judge score FOLDER --trajectories make such runs.",
        )
    verdicts = {
        (str(record["task"]), record["sample"], record["case"]): record["verdict"]
        for record in (store.read_records(CASES_FILE) if (run / CASES_FILE).exists() else ())
    }
    talks = {
        (str(record["id"]), record.get("sample") or 0): str(record["conversation"])
        for record in (
            store.read_records(SUBMISSIONS_FILE) if (run / SUBMISSIONS_FILE).exists() else ()
        )
        if isinstance(record.get("conversation"), str)
    }
    count = 0
    for episode in read_tool_episodes(run):
        count += 1
        task_id, sample, _ = episode.key
        system = _system_message(store, talks.get((task_id, sample)), episode)
        _write_episode(run, out, episode, verdicts, system)
    return count


def _system_message(store: RunDirectory, name: str | None, episode: ToolEpisode) -> str:
    """The system message of an episode; empty if the run recorded none."""
    talk = None
    if name is not None and name.startswith(_TALKS) and "/" not in name[len(_TALKS) :]:
        with contextlib.suppress(StoreError):
            talk = store.read_document(name)
    messages = None if talk is None else talk.get("messages")
    parts = None if talk is None else talk.get("parts")
    first = 0
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, list) and part[:1] == [episode.key[2]]:
            first = int(part[1])
    if not isinstance(messages, list) or not 0 <= first < len(messages):
        return ""
    message = messages[first]
    is_system = isinstance(message, dict) and message.get("role") == "system"
    return plain_text(message.get("content") or "") if is_system else ""


def _write_episode(
    run: Path,
    out: Path,
    episode: ToolEpisode,
    verdicts: Mapping[tuple[Any, ...], object],
    system: str,
) -> None:
    def picture(sha256: str) -> tuple[str, str] | None:
        for media_type, suffix in PICTURE_SUFFIXES.items():
            name = f"{sha256}{suffix}"
            path = run / PICTURES_FOLDER / name
            if path.is_file() and hashlib.sha256(data := path.read_bytes()).hexdigest() == sha256:
                _write(out / PICTURES_FOLDER / name, data)
                return media_type, f"{PICTURES_FOLDER}/{name}"
        return None

    verdict = verdicts.get(episode.key)
    document = to_atif(
        episode,
        read_definitions(run, episode.head["tools"]),
        system=system,
        facts={} if verdict is None else {"verdict": verdict},
        picture=picture,
    )
    task_id, sample, case = episode.key
    name = f"{quote(task_id, safe=' ', errors='surrogatepass')}.{sample}.{case}.json"
    _write(out / name, dump_json(document).encode("utf-8", "replace"))


def _write(path: Path, data: bytes) -> None:
    with naming_what_is_written(path, UsageError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)


_ATIF_VERSION = "ATIF-v1.8"

FindPicture = Callable[[str], tuple[str, str] | None]
"""SHA-256 of a picture -> media type and path of its file; None if the file is missing."""


def to_atif(
    episode: ToolEpisode,
    definitions: Sequence[Object] | None,
    *,
    system: str = "",
    facts: Object | None = None,
    picture: FindPicture | None = None,
) -> dict[str, Any]:
    """Converts an episode to an ATIF document.

    Args:
        episode: the episode.
        definitions: its tools, in the format of chat completions; None if they are unknown.
        system: the system message; empty if there is none.
        facts: further facts, such as the verdict; they must not quote a gold.
        picture: finds the files of pictures; if None, pictures are left out.
    """
    head, end = episode.head, episode.end
    steps: list[dict[str, Any]] = []
    if system:
        steps.append({"source": "system", "message": system})
    steps.append({"source": "user", "message": head["instruction"]})
    if head["started"]:
        steps[0]["timestamp"] = head["started"]
    steps += [_step_of_turn(turn, picture) for turn in episode.turns]
    name, _, version = head["setting"].removeprefix(SETTING).rpartition(" ")
    own = not head.get("imported")
    agent: dict[str, Any] = {
        "name": f"judge {head['setting']}" if own else name or version,
        "version": __version__ if own else (version if name else "unknown"),
    }
    if head["model"]:
        agent["model_name"] = head["model"]
    if definitions:
        agent["tool_definitions"] = list(definitions)
    extra: dict[str, Any] = {"task": head["id"], "sample": head["sample"], "case": head["case"]}
    document: dict[str, Any] = {
        "schema_version": _ATIF_VERSION,
        "session_id": f"{head['id']}.{head['sample']}.{head['case']}",
        "agent": agent,
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, start=1)],
    }
    if end is not None:
        tokens = end.get("tokens") or TokenRecord()
        totals = {
            "total_prompt_tokens": tokens.get("prompt"),
            "total_completion_tokens": tokens.get("completion"),
            "total_cached_tokens": tokens.get("cached"),
            "total_cost_usd": end.get("cost"),
            "total_steps": len(steps),
        }
        document["final_metrics"] = without_none(totals)
        extra |= without_none(
            {"ended": end["ended"] or None, "errors": end["errors"], "seconds": end["seconds"]}
        )
    document["extra"] = extra | dict(facts or {})
    return document


def _step_of_turn(turn: ToolTurn, picture: FindPicture | None) -> dict[str, Any]:
    reply, tokens = turn["reply"], turn.get("tokens") or TokenRecord()
    metrics = without_none(
        {
            "prompt_tokens": tokens.get("prompt"),
            "completion_tokens": tokens.get("completion"),
            "cached_tokens": tokens.get("cached"),
            "cost_usd": turn.get("cost"),
        }
    )
    step: dict[str, Any] = {"source": "agent", "message": reply["text"], "llm_call_count": 1}
    if reply.get("reasoning"):
        step["reasoning_content"] = reply["reasoning"]
    if metrics:
        step["metrics"] = metrics
    results: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for number, line in enumerate(turn["calls"]):
        received = reply["calls"][number] if number < len(reply["calls"]) else None
        calls.append(_atif_call(line, received))
        results.append(_atif_result(line, picture))
    if turn.get("told"):
        results.append({"content": turn["told"]})
    if calls:
        step["tool_calls"] = calls
    if results:
        step["observation"] = {"results": results}
    sent = turn["sent"]
    step["extra"] = without_none(
        {
            "seconds": turn["seconds"],
            "latency_s": turn.get("latency_s"),
            "cut": turn["cut"] or None,
            "sent": dict(sent) if sent["messages"] else None,
        }
    )
    return step


def _atif_call(line: ToolCallLine, received: ReceivedCall | None) -> dict[str, Any]:
    arguments = line.get("arguments", {})
    plain = json.dumps(arguments, ensure_ascii=False)
    extra = {
        "id": line["id"] if line["id"] != line["id_sent"] else None,
        "raw": line.get("raw"),
        "fault": line.get("fault"),
        "repairs": line.get("repairs") or None,
    }
    if received is not None:
        extra["name"] = received["name"] if received["name"] != line["tool"] else None
        extra["received"] = received["arguments"] if received["arguments"] != plain else None
    call = {
        "tool_call_id": line["id_sent"],
        "function_name": line["tool"],
        "arguments": dict(arguments),
    }
    stated = without_none(extra)
    return {**call, "extra": stated} if stated else call


def _atif_result(line: ToolCallLine, picture: FindPicture | None) -> dict[str, Any]:
    text = line["text"]
    parts = [file for digest in line.get("pictures", ()) if picture and (file := picture(digest))]
    content: object = text["shown"]
    if parts:
        content = [{"type": "text", "text": text["shown"]}] + [
            {"type": "image", "source": {"media_type": media_type, "path": path}}
            for media_type, path in parts
        ]
    whole = result_text(text["shown"]) != text
    return {
        "source_call_id": line["id_sent"],
        "content": content,
        "extra": without_none(
            {
                "ok": line["ok"],
                "error": line.get("error"),
                "seconds": line["seconds"],
                "workbook": line["workbook"],
                "sha256": text["sha256"] if whole else None,
                "chars": text["chars"] if whole else None,
            }
        ),
    }
