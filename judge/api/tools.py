"""Checks sets of tools for chat models, without a model."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judge.core.conversation import estimate_tokens
from judge.files.documents import dump_json
from judge.inference.tools.setting import PRESETS, load_preset
from judge.sandbox import open_sandbox
from judge.tools.box import HOME
from judge.tools.sets import EpisodeTools, ServerTools, SharedCalculator, ToolSet, open_set


@dataclass(frozen=True, slots=True)
class CheckedTools:
    """A set of tools as it would be offered to a model.

    Attributes:
        definitions: the definition of each tool, with an estimate of the tokens that it takes in
            every request.
        servers: MCP servers, with times.
        start_s: seconds until the root for agents is ready; None if nothing runs there.
        problem: why a server cannot be used; empty if all servers can be used.
    """

    definitions: tuple[tuple[Mapping[str, Any], int], ...]
    servers: tuple[ServerTools, ...]
    start_s: float | None
    problem: str

    @property
    def tokens(self) -> int:
        """An estimate of the tokens of all definitions."""
        return sum(tokens for _, tokens in self.definitions)

    def to_json(self) -> dict[str, Any]:
        """The set of tools as a JSON object."""
        return {
            "tools": [definition for definition, _ in self.definitions],
            "tokens": self.tokens,
            "servers": [
                {
                    **server.record,
                    "tools": len(server.tools),
                    "seconds": round(server.seconds, 3),
                    "memory_bytes": server.memory_bytes,
                    "licences": server.licences,
                }
                for server in self.servers
            ],
            "start_s": None if self.start_s is None else round(self.start_s, 3),
            "problem": self.problem,
        }


def named_set(name: str, answer: str, sandbox: Any) -> ToolSet:
    """The set of tools with a name that ``--tools`` accepts.

    Args:
        name: the name.
        answer: ``workbook`` or ``program``.
        sandbox: opens the sandbox, if there are servers.

    Raises:
        UsageError: it names nothing.
        SandboxError: a server was not built.
    """
    if name in PRESETS and name != PRESETS[0]:
        return ToolSet(name, load_preset(name).tools, answer="published")
    return open_set(name, load_preset(PRESETS[0]).tools, answer, sandbox)


def check_tools(name: str, sandbox: str = "auto") -> CheckedTools:
    """Starts tools, and lists what would be offered to a model.

    Args:
        name: the tools, as for ``--tools`` of ``judge infer``.
        sandbox: ``auto``, ``docker`` or ``bubblewrap``.

    Raises:
        UsageError: it names nothing.
        SandboxError: a server was not built, or a root is missing.
    """
    with contextlib.closing(open_sandbox(sandbox)) as opened:
        tools = named_set(name, "workbook", lambda: opened)
        start_s = None
        if tools.needs_agent:
            began = time.monotonic()
            native = ToolSet(name, tools.native, answer=tools.answer)
            paths = f"{HOME}/in/none.xlsx", f"{HOME}/out/none.xlsx"
            with EpisodeTools(native, opened, {}, *paths, SharedCalculator(sandbox)) as episode:
                episode.start()
            start_s = time.monotonic() - began
    definitions = tuple(
        (definition, estimate_tokens(dump_json(definition))) for definition in tools.definitions
    )
    return CheckedTools(definitions, tools.servers, start_s, tools.problem)
