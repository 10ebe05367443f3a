"""Searches everything that an agent's tools can read for golds, other cases, keys and earlier work.

    python -m benchmarks.tool_secrets [--sandbox bubblewrap] [--tools native --tools mcp:excel ...]

Makes a suite in which each gold and each input contains a different, uncompressed mark; there are
more marks in the suite's list of tasks, in the key of the endpoint and in the files of earlier
episodes. Then a scripted model has an episode for each case, two at a time, with each set of tools,
and searches with every tool. Python, the shell, and a server that runs any given code read all
files (also in /usr, /lib, /proc, /sys and /dev) and the memory, descriptors and environment of all
processes, and try every socket; tools that take a path get the paths of the golds. The mark of
the case's own input must be found, and no other mark may be found, neither by a tool nor in the
folder of the results. Nor may any object in the judge's own process, which never creates a gold,
contain the mark of a gold.

Prints a line for each set: episodes, files and bytes searched, marks found, and forbidden marks
found.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl

from benchmarks.command_line import run_command
from benchmarks.hostile_servers import SERVER
from judge.api.infer_options import InferOptions
from judge.api.inferring import make_plan
from judge.api.planning import resume
from judge.core.task import Task
from judge.grading.store import RunDirectory
from judge.inference.chat import ChatReply, ChatRequest, ToolCall
from judge.inference.run import Resources, run_inference
from judge.sandbox import open_sandbox
from judge.suites import load_suite
from judge.tools.box import HOME
from judge.tools.episodes import read_tool_episodes
from judge.tools.servers import ServerSource, build_servers
from judge.tools.sets import SharedCalculator

SEARCHING = "searching"
MARK = re.compile(rb"PLANTED-([a-z]+)-(\w+)-(\d+)-[0-9a-f]{24}")
FIRST = 2
"""How many messages the first request of an episode has."""

TASKS, CASES = ("one", "two"), (1, 2)

SEARCH = r"""
import json, os, re, socket, stat
mark = re.compile(rb"PLANTED-[a-z]+-\w+-\d+-[0-9a-f]{24}")
seen, counts, connected = {}, {"files": 0, "bytes": 0, "processes": 0, "descriptors": 0}, []
def note(data, where):
    for match in mark.finditer(data):
        places = seen.setdefault(match[0].decode(), [])
        if len(places) < 3 and where not in places:
            places.append(where)
def search(path, most):
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return
    try:
        tail, left = b"", most
        while left > 0 and (chunk := os.read(handle, min(left, 1 << 22))):
            note(tail + chunk, path)
            tail, left = chunk[-100:], left - len(chunk)
            counts["bytes"] += len(chunk)
    except OSError:
        pass
    finally:
        os.close(handle)
    counts["files"] += 1
for root, folders, names in os.walk("/"):
    note("\n".join([*folders, *names]).encode("utf-8", "replace"), root)
    strange = root.startswith(("/proc", "/sys", "/dev"))
    for name in names:
        path = os.path.join(root, name)
        if root.startswith("/proc/") and name in ("mem", "kmsg", "kcore", "clear_refs"):
            continue
        search(path, 1 << 20 if strange else 1 << 32)
for process in filter(str.isdigit, os.listdir("/proc")):
    counts["processes"] += 1
    try:
        for name in os.listdir(f"/proc/{process}/fd"):
            counts["descriptors"] += 1
            note(os.readlink(f"/proc/{process}/fd/{name}").encode(), f"/proc/{process}/fd/{name}")
            if int(process) != os.getpid():
                search(f"/proc/{process}/fd/{name}", 1 << 20)
    except OSError:
        pass
    try:
        with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb", 0) as memory:
            for line in maps:
                span, rights = line.split()[:2]
                if rights.startswith("r") and "[v" not in line:
                    first, last = (int(part, 16) for part in span.split("-"))
                    try:
                        memory.seek(first)
                        note(memory.read(last - first), f"/proc/{process}/mem")
                    except (OSError, OverflowError, ValueError):
                        pass
    except OSError:
        pass
note("\n".join(f"{k}={v}" for k, v in os.environ.items()).encode("utf-8", "replace"), "environ")
places = [(socket.AF_UNIX, path) for path in ("/var/run/docker.sock", "/run/docker.sock",
          "/run/systemd/private", "/run/dbus/system_bus_socket")]
try:
    for line in open("/proc/net/unix").read().splitlines()[1:]:
        path = line.split(maxsplit=7)[7:]
        if path:
            name = path[0].replace("@", "\0", 1) if path[0].startswith("@") else path[0]
            places.append((socket.AF_UNIX, name))
except OSError:
    pass
for address in ("127.0.0.1", "172.17.0.1", "10.0.2.2", "169.254.169.254", "1.1.1.1"):
    ports = range(1, 65536) if address == "127.0.0.1" else (22, 53, 80, 443, 2375, 2376, 8080)
    places += [(socket.AF_INET, (address, port)) for port in ports]
for family, place in places:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as end:
            end.settimeout(0.2)
            end.connect(place)
            connected.append(str(place))
    except OSError:
        pass
print("SEARCHED " + json.dumps({**counts, "seen": seen, "connected": connected[:9]}))
"""


def make_suite(folder: Path) -> None:
    """Writes the suite, in a separate process, so that the judge's process has seen no mark."""
    records = []
    for task in TASKS:
        inside = folder / "spreadsheet" / task
        inside.mkdir(parents=True)
        for case in CASES:
            for kind, name in (("input", "input"), ("gold", "answer")):
                _write(inside / f"{case}_{task}_{name}.xlsx", planted(kind, task, case))
        records.append(
            {
                "id": task,
                "instruction": "Write the word.",
                "spreadsheet_path": f"spreadsheet/{task}",
                "instruction_type": "Cell-Level Manipulation",
                "answer_position": "A1",
                "comment": planted("suite", task, 0),
            }
        )
    (folder / "dataset.json").write_text(json.dumps(records), encoding="utf-8")


def planted(kind: str, task: str, case: int) -> str:
    """Makes a mark that nobody can guess."""
    return f"PLANTED-{kind}-{task}-{case}-{secrets.token_hex(12)}"


def _write(path: Path, mark: str) -> None:
    """Makes a workbook with a mark in A1, whose parts are not compressed."""
    book = openpyxl.Workbook()
    book.worksheets[0]["A1"] = mark
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


class Searching:
    """A chat model that searches with every tool, and then submits.

    Args:
        tasks: the tasks.
        definitions: the definitions of the tools that it may call.
    """

    endpoint = "http://scripted/v1"

    def __init__(self, tasks: Mapping[str, Task], definitions: Sequence[Mapping[str, Any]]) -> None:
        self._tasks = tasks
        self._schemas = {
            str(definition["function"]["name"]): definition["function"]["parameters"]
            for definition in definitions
        }
        self._left: dict[str, str] = {}
        self.remembered: set[str] = set()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Returns the next call."""
        if len(request.messages) == FIRST:
            self.remembered |= golds_among_objects()
        prompt = str(request.messages[1]["content"])
        for task in self._tasks.values():
            for case, question_input in zip(task.cases, task.question.inputs, strict=True):
                if f"{HOME}/in/{question_input.path.name}" in prompt:
                    gold = case.golds[0].path
                    assert gold is not None
                    calls = list(self._calls(question_input.path.name, gold))
                    turn = sum(message["role"] == "assistant" for message in request.messages)
                    name, arguments = calls[turn]
                    call = ToolCall(f"c{turn}", name, json.dumps(arguments))
                    return ChatReply("", "tool_calls", 100, 10, calls=(call,))
        raise AssertionError("a prompt about no task")

    def _calls(self, input_path: str, gold: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        names = self._schemas.keys()
        case, task, _ = input_path.split("_")
        left = self._left.setdefault(input_path, planted("left", task, int(case)))
        paths = [
            f"{HOME}/in/{input_path}",
            str(gold),
            f"/proc/1/root{gold}",
            f"{HOME}/in/../../..{gold}",
            str(gold.parent),
        ]
        if "python" in names:
            yield "python", {"code": SEARCH}
        if "bash" in names:
            yield "bash", {"command": f"python3 - <<'END OF IT'\n{SEARCH}\nEND OF IT"}
            yield "bash", {"command": f"ln -s {gold} {HOME}/out/linked.xlsx; echo {left} > out/l"}
            paths.append(f"{HOME}/out/linked.xlsx")
        if "say" in names:
            yield "say", {"text": SEARCH}
        for name, schema in self._schemas.items():
            if name not in {"python", "bash", "say", "submit"}:
                for path in paths:
                    yield name, filled(schema, path)
        yield "submit", {}

    async def close(self) -> None:
        """Does nothing: nothing is open."""


def filled(schema: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Makes arguments for a tool with a path wherever the tool may accept one."""
    plain: dict[str, Any] = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}
    arguments: dict[str, Any] = {}
    for name, own in schema.get("properties", {}).items():
        kind = own.get("type")
        if re.search(r"path|file|folder|against", name, re.IGNORECASE):
            arguments[name] = path
        elif name in schema.get("required", ()):
            words = {"range": "Sheet!A1:C9", "text": "PLANTED", "sheet_name": "Sheet"}
            choices = own.get("enum") or [words.get(name, "Sheet")]
            arguments[name] = choices[0] if kind in {None, "string"} else plain[kind]
    return arguments


def golds_among_objects() -> set[str]:
    """Finds the marks of golds in strings and bytes of this process's objects."""
    seen: set[str] = set()
    for object_ in gc.get_objects():
        for part in gc.get_referents(object_):
            if isinstance(part, str | bytes | bytearray) and len(part) > len(b"PLANTED-gold"):
                data = part.encode("utf-8", "replace") if isinstance(part, str) else bytes(part)
                if b"PLANTED-gold" in data:
                    seen.update(match[0].decode() for match in MARK.finditer(data))
    return seen


def marks_in(folder: Path) -> set[str]:
    """Finds the marks in the files of a folder."""
    seen: set[str] = set()
    for path in folder.rglob("*"):
        if path.is_file():
            seen.update(match[0].decode() for match in MARK.finditer(path.read_bytes()))
    return seen


def searched(
    options: argparse.Namespace, tool_set: str, suite: Path, out: Path
) -> tuple[str, bool]:
    """Makes the line about one set of tools; returns also whether no forbidden mark was found."""
    tasks = {task.id: task for task in load_suite(str(suite)).tasks}
    planned = make_plan(
        resume(
            InferOptions(
                model="scripted", base_url="http://scripted/v1", dataset=str(suite),
                mode="tools", tools=tool_set, out=out, sandbox=options.sandbox, rounds=1_000,
            )
        )
    )  # fmt: skip
    model = Searching(tasks, planned.plan.tool_definitions)
    with contextlib.ExitStack() as stack:
        sandbox = stack.enter_context(contextlib.closing(open_sandbox(options.sandbox, jobs=2)))
        calculator = stack.enter_context(SharedCalculator(options.sandbox))
        store = stack.enter_context(RunDirectory(out))
        resources = Resources(
            model, sandbox=sandbox, calculator=calculator, jobs=2, concurrency=2
        )  # fmt: skip
        asyncio.run(run_inference(planned.plan, store, resources))
    wrong: set[str] = set(model.remembered)
    totals = {"files": 0, "bytes": 0, "processes": 0, "descriptors": 0}
    episodes, calls, own = 0, 0, 0
    for episode in read_tool_episodes(out):
        task, case = str(episode.head["id"]), episode.head["case"]
        mine = f"PLANTED-input-{task}-{case}-"
        episodes += 1
        for turn in episode.turns:
            for line in turn["calls"]:
                calls += 1
                text = line["text"]["shown"]
                seen = {match[0].decode() for match in MARK.finditer(text.encode())}
                own += any(mark.startswith(mine) for mark in seen)
                wrong |= {mark for mark in seen if not mark.startswith(mine)}
                if text.startswith("SEARCHED "):
                    document = json.loads(text.removeprefix("SEARCHED "))
                    wrong |= {f"connected: {address}" for address in document["connected"]}
                    for name in totals:
                        totals[name] += document[name]
        if episode.end is None or episode.end["ended"] != "submitted":
            wrong.add(f"{task} {case} ended {episode.end and episode.end['ended']}")
    kept = marks_in(out)
    wrong |= {mark for mark in kept if MARK.match(mark.encode())[1] in {b"gold", b"suite", b"key"}}  # type: ignore[index]
    if not own:
        wrong.add("no tool sees the case's own input")
    return (
        f"{tool_set} | {episodes} | {calls} | {totals['files']:,} | {totals['bytes'] / 1e6:,.0f} | "
        f"{totals['processes']} | {totals['descriptors']} | {own} | {sorted(wrong) or 'none'}"
    ), not wrong


def build_searching(kind: str) -> None:
    """Builds the root of a server that runs any given code."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "server.py").write_bytes(SERVER.read_bytes())
        source = ServerSource(SEARCHING, Path(folder), command="server.py", arguments="run_code")
        build_servers(source, kind, lambda _: None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Searches with each set; exits with 1 if a set finds a forbidden mark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sandbox", default="bubblewrap")
    parser.add_argument("--tools", action="append")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.make is not None:
        make_suite(options.make)
        return
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder, "suite")
        command = [sys.executable, "-m", "benchmarks.tool_secrets", "--make", str(suite)]
        subprocess.run(command, check=True)
        os.environ["OPENAI_API_KEY"] = planted("key", "none", 0)
        build_searching(options.sandbox)
        print(
            "tools | episodes | calls | files | MB | processes | descriptors | own input seen | "
            "forbidden marks seen"
        )
        clean = True
        for number, tool_set in enumerate(options.tools or ["native", "ssb2", f"mcp:{SEARCHING}"]):
            line, fine = searched(options, tool_set, suite, Path(folder, f"run{number}"))
            print(line, flush=True)
            clean = clean and fine
    sys.exit(not clean)


if __name__ == "__main__":
    run_command(main)
