"""Runs misbehaving MCP servers; reports how long they take, whose fault it is, what they leave.

    python -m benchmarks.hostile_servers [--sandbox bubblewrap] [--call-s 3] [MODE ...]

Each mode of tests/conformance/hostile_server.py is an episode with two calls of its tool, after
which a call of another server must succeed. Prints a line for each mode: the kinds of errors of the
calls, whose fault it was, seconds, the judge's own peak memory, and the number of leftover
processes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.command_line import run_command
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox
from judge.tools.box import HOME
from judge.tools.servers import BuiltServer, ServerSource, build_servers, find_server
from judge.tools.sets import EpisodeTools, ServerTools, SharedCalculator, ToolSet, list_server

SERVER = Path(__file__).resolve().parent.parent / "tests/conformance/hostile_server.py"
NAME = "hostile"
OUTPUT = f"{HOME}/out/book.xlsx"
OWN = f"of-run-{os.getpid()}"
"""An argument of all servers of this process: others may run hostile servers at the same time."""


def modes() -> list[str]:
    """Returns all modes of the server, in the order of its source text."""
    text = SERVER.read_text(encoding="utf-8")
    modes = re.findall(r'MODE == "(\w+)"', text)
    for several in re.findall(r"MODE in \{([^}]*)\}", text):
        modes += re.findall(r'"(\w+)"', several)
    for table in ("RAW", "GREETINGS"):
        listed = re.search(rf"^{table} = \{{(.*?)^\}}", text, re.MULTILINE | re.DOTALL)
        assert listed is not None
        modes += re.findall(r'^    "(\w+)": ', listed[1], re.MULTILINE)
    return list(dict.fromkeys(["polite", *modes]))


def build(kind: str) -> None:
    """Builds the root of the server for a backend."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "server.py")
        target.write_bytes(SERVER.read_bytes())
        source = ServerSource(NAME, Path(folder), command="server.py")
        build_servers(source, kind, lambda _: None)


def in_mode(server: BuiltServer, mode: str) -> BuiltServer:
    """Makes the server with a mode as its argument."""
    return replace(server, argv=(*server.argv, mode, OWN))


def episode(
    sandbox: Sandbox, server: BuiltServer, mode: str, call_s: float, start_s: float
) -> dict[str, Any]:
    """Runs an episode with two calls of a server in a mode.

    Returns:
        ``listed`` tools, ``errors`` and texts of the calls, the ``fault``, ``dead``, ``seconds``.
    """
    began = time.monotonic()
    polite = list_server(in_mode(server, "polite"), sandbox, start_s=start_s)
    listed = list_server(in_mode(server, mode), sandbox, start_s=start_s)
    tools = listed.tools or polite.tools
    offered = ServerTools(listed.server, tools, "", "", listed.record)
    errors, texts, faults, seconds = [], [], [], []
    files = {f"{HOME}/in/book.xlsx": b"input"}
    episode = EpisodeTools(
        ToolSet(f"mcp:{NAME}", ("submit",), (offered,)),
        sandbox, files, f"{HOME}/in/book.xlsx", OUTPUT, SharedCalculator("auto"),
        call_s=call_s, start_s=start_s,
    )  # fmt: skip
    with contextlib.closing(episode):
        episode.start()
        for _ in range(2):
            if episode.dead:
                break
            at = time.monotonic()
            outcome = episode.call(next(iter(tools)), {"text": "hello"})
            seconds.append(time.monotonic() - at)
            errors.append(outcome.error)
            texts.append(outcome.text)
            faults.append(outcome.fault)
            episode.workbook()
        collected = episode.collect()
    return {
        "listed": len(listed.tools),
        "problem": listed.problem,
        "record": listed.record,
        "errors": errors,
        "texts": texts,
        "faults": faults,
        "dead": episode.dead,
        "calls_s": seconds,
        "output": collected.problem or "a file",
        "seconds": time.monotonic() - began,
    }


def left_over() -> int:
    """Finds processes of this benchmark's servers that still exist on this machine."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return sum(OWN in line for line in listed.stdout.splitlines())


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs all modes, or the named ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sandbox", default="bubblewrap")
    parser.add_argument("--call-s", type=float, default=3.0)
    parser.add_argument("--start-s", type=float, default=12.0)
    parser.add_argument("modes", nargs="*")
    options = parser.parse_args(arguments)
    build(options.sandbox)
    with contextlib.closing(open_sandbox(options.sandbox)) as sandbox:
        server = find_server(NAME, sandbox)
        for line in _lines(sandbox, server, options):
            print(line, flush=True)


def _lines(sandbox: Sandbox, server: BuiltServer, options: argparse.Namespace) -> Iterator[str]:
    yield "mode | calls | whose fault | seconds | judge's peak MB | left"
    for mode in options.modes or modes():
        facts = episode(sandbox, server, mode, options.call_s, options.start_s)
        fault = facts["problem"] or facts["dead"] or next(filter(None, facts["faults"]), "")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        calls = ", ".join(error or "ok" for error in facts["errors"]) or "none"
        yield (
            f"{mode} | {calls} | {fault[:110]!a} | {facts['seconds']:.1f} | {peak:.0f} | "
            f"{left_over()}"
        )


if __name__ == "__main__":
    run_command(main)
