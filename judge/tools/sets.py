"""Sets of tools: reads what ``--tools`` names, and executes the calls of one episode.

A set consists of native tools and of MCP servers, each of which has a separate root. A server lists
its tools once, when a run is planned, so that every request of the run offers the same tools.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.closable import Closable
from judge.console import visible
from judge.core.records.runs import ServerRecord
from judge.errors import JudgeError, SandboxError, UsageError
from judge.recalc.library import Recalculating
from judge.sandbox.contract import Sandbox
from judge.sandbox.roots import AGENT_ROOT, SERVER, SERVER_CONTENT
from judge.tools.box import HOME, BoxError, Boxes, BoxFile
from judge.tools.client import (
    START_S,
    BoxWire,
    ListedTool,
    McpClient,
    ServerError,
    offered_names,
)
from judge.tools.contract import (
    Tool,
    ToolFaultError,
    ToolOutcome,
    check_arguments,
    repaired,
)
from judge.tools.native import (
    ENVIRONMENT,
    SLOW,
    SUBMIT,
    NativeContext,
    definitions_of,
    shell_functions,
    tools_of,
)
from judge.tools.servers import BuiltServer, find_server

NATIVE = "native"
_MCP = "mcp:"
_SERVER_ENVIRONMENT = {
    "PYTHONPATH": f"{SERVER}/site",
    "PYTHONUNBUFFERED": "1",
    # The roots do not have ICU, without which .NET ends unless this is set.
    "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
}
_OPEN_S = 30.0


@dataclass(frozen=True, slots=True)
class ServerTools:
    """An MCP server of a set, with the tools that it offered when the run was planned.

    Attributes:
        server: its root and its command.
        tools: name for the model -> the tool.
        instructions: the instructions that the server sends.
        problem: what the server did wrong, so that it cannot be used; empty if it can be used.
        record: facts about the server.
        seconds: time from the start of its sandbox to its list of tools.
        memory_bytes: the memory of its sandbox at the end of this time.
    """

    server: BuiltServer
    tools: Mapping[str, ListedTool]
    instructions: str
    problem: str
    record: ServerRecord
    seconds: float = 0.0
    memory_bytes: int = 0

    @property
    def name(self) -> str:
        """The server's name, as in ``mcp:NAME``."""
        return self.server.name

    @property
    def digest(self) -> str:
        """The hash of the server's root."""
        return self.server.digest

    @property
    def licences(self) -> dict[str, str]:
        """Name of a package in the root -> its licence."""
        return {name: facts[1] for name, facts in self.server.packages.items()}


@dataclass(frozen=True, slots=True)
class ToolSet:
    """A set of tools.

    Attributes:
        requested: the value of ``--tools``.
        native: names of the judge's own tools.
        servers: the MCP servers.
        answer: ``workbook``, ``program`` or ``published``: which form the tool submit has.
    """

    requested: str
    native: tuple[str, ...]
    servers: tuple[ServerTools, ...] = ()
    answer: str = "workbook"

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """All tools in the format of chat completions; they are a part of every request."""
        own = definitions_of(self.native, self.answer)
        first = [tool for tool in own if tool.name != SUBMIT or self.answer == "published"]
        last = [tool for tool in own if tool not in first]
        listed = [
            _definition(name, tool.description, tool.schema)
            for server in self.servers
            for name, tool in server.tools.items()
        ]
        return [*map(self._own, first), *listed, *map(self._own, last)]

    def _own(self, tool: Tool) -> dict[str, Any]:
        """Returns the definition of a native tool; in the published set, no schema is strict."""
        schema = tool.schema
        if self.answer == "published":
            del schema["additionalProperties"]
        return _definition(tool.name, tool.description, schema)

    @property
    def instructions(self) -> str:
        """The instructions that the servers send, one after the other."""
        texts = (server.instructions for server in self.servers)
        return "\n\n".join(text for text in texts if text)

    @property
    def problem(self) -> str:
        """Why servers cannot be used; empty if all can."""
        problems = (f"{x.name}: {x.problem}" for x in self.servers if x.problem)
        return "; ".join(problems)

    @property
    def needs_agent(self) -> bool:
        """Whether any tool runs in the root for agents."""
        return any(name != SUBMIT for name in self.native) or not self.servers


def _definition(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": dict(schema)},
    }


def read_names(requested: str, native: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Reads the value of ``--tools``.

    Args:
        requested: names separated by commas: names of tools, ``native``, ``mcp:NAME``.
        native: names of the tools that ``native`` stands for.

    Returns:
        Names of tools, which include submit, and names of servers.

    Raises:
        UsageError: a name is unknown.
    """
    tools: list[str] = []
    servers: list[str] = []
    for part in (name.strip() for name in requested.split(",")):
        if part == NATIVE:
            tools += [name for name in native if name not in tools]
        elif part.startswith(_MCP):
            if part[len(_MCP) :] not in servers:
                servers.append(part[len(_MCP) :])
        elif part and part not in tools:
            tools.append(part)
    try:
        definitions_of(tuple(tools), "workbook")
    except ToolFaultError as error:
        raise UsageError(
            f"--tools: {error.message}",
            hint=f"{error.hint or ''} Or native, ssb2, or mcp:NAME for a server.".strip(),
        ) from error
    if not tools and not servers:
        raise UsageError("--tools names no tool", hint="native, ssb2, mcp:NAME, or tools by name.")
    if SUBMIT not in tools:
        tools.append(SUBMIT)
    return tuple(tools), tuple(servers)


def open_set(
    requested: str, native: Sequence[str], answer: str, sandbox: Callable[[], Sandbox]
) -> ToolSet:
    """Makes a set of tools; its servers are started once, to list their tools.

    Args:
        requested: the value of ``--tools``, as in :func:`read_names`.
        native: names of the tools that ``native`` stands for.
        answer: the form of the answer, as in :class:`ToolSet`.
        sandbox: opens the sandbox, if there are servers.

    Raises:
        UsageError: a name is unknown.
        SandboxError: a server was not built.
    """
    tools, names = read_names(requested, native)
    taken = set(tools)
    servers: list[ServerTools] = []
    if names:
        opened = sandbox()
        for name in names:
            prefix = f"{name}__" if len(names) > 1 else ""
            servers.append(list_server(find_server(name, opened), opened, prefix, taken))
    return ToolSet(requested, tools, tuple(servers), answer)


def list_server(
    server: BuiltServer,
    sandbox: Sandbox,
    prefix: str = "",
    taken: set[str] | None = None,
    start_s: float = START_S,
) -> ServerTools:
    """Starts a server, and lists its tools.

    Args:
        server: the server.
        sandbox: the sandbox in which it runs.
        prefix: prefix of the names of its tools.
        taken: names that other tools have; the names of its tools are added.
        start_s: seconds within which the server has to give its first answer.

    Raises:
        SandboxError: no sandbox can be opened for the server.
    """
    began = time.monotonic()
    with Boxes(sandbox, {}, folders=(f"{HOME}/in", f"{HOME}/out")) as boxes:
        running = _Running(server, boxes, start_s)
        problem, listed, memory = "", [], 0
        try:
            listed = running.start()
            memory = boxes.latest.memory_bytes()
            problem = "" if listed else "it has no tool that can be offered"
        except ServerError as error:
            problem = error.message
        except SandboxError as error:
            if not boxes.opened:
                raise
            problem = f"its sandbox ended: {error.message}"
        seconds = time.monotonic() - began
        names = offered_names(listed, prefix, taken if taken is not None else set())
        running.end()
    by_name = {tool.name: tool for tool in listed}
    record = running.record
    renamed = {name: own for name, own in names.items() if name != own}
    if renamed:
        record["renamed"] = renamed
    record["problem"] = problem
    return ServerTools(
        server,
        {name: by_name[own] for name, own in names.items()},
        running.instructions,
        problem,
        record,
        seconds,
        memory,
    )


class _Running:
    """A running server of an episode."""

    def __init__(self, server: BuiltServer, boxes: Boxes, start_s: float = START_S) -> None:
        self._server = server
        self._start_s = start_s
        self._boxes = boxes
        self._client: McpClient | None = None
        self.restarts = 0
        self._record: ServerRecord = {"name": server.name, "root": server.digest}
        self.instructions = ""

    @property
    def record(self) -> ServerRecord:
        """Facts about the server."""
        facts = self._client.facts() if self._client is not None else self._record
        return {**self._record, **facts, "restarts": self.restarts}

    @property
    def runs(self) -> bool:
        """Whether the server was started and has not been ended since."""
        return self._client is not None

    def start(self) -> list[ListedTool]:
        """Starts the server in its sandbox, and lists its tools.

        Raises:
            ServerError: the server does not start, and the fault is its own.
            SandboxError: the sandbox broke.
        """
        began = time.monotonic()
        box = self._boxes.at(self._server.root)
        try:
            header = {
                "op": "open",
                "server": self._server.name,
                "command": self._server.command(HOME),
                "environment": {**_SERVER_ENVIRONMENT, **self._server.variables(HOME)},
                "content": SERVER_CONTENT,
                "links": SERVER,
            }
            box.ask(header, [], _OPEN_S)
        except BoxError as error:
            raise ServerError("died", f"it does not start: {error.message}") from error
        client = McpClient(BoxWire(box, self._server.name), self._server.name)
        client.record = {"name": self._server.name, "root": self._server.digest}
        self._client = client
        client.start(self._start_s)
        listed = client.list_tools()
        self.instructions = client.instructions
        self._record["start_s"] = round(time.monotonic() - began, 3)
        return listed

    def call(self, name: str, arguments: Mapping[str, Any], limit_s: float) -> ToolOutcome:
        """Calls a tool of the server.

        Raises:
            ServerError: there is no result.
        """
        self._boxes.at(self._server.root)
        assert self._client is not None
        result = self._client.call(name, arguments, limit_s)
        return ToolOutcome(result.text, "tool" if result.failed else "", result.pictures)

    def forget(self) -> None:
        """Records that the server has ended together with its sandbox."""
        self._record |= self.record
        self._client = None

    def end(self) -> None:
        """Ends the server, if its sandbox still exists."""
        if self._client is None:
            return
        self.forget()
        with contextlib.suppress(BoxError, SandboxError):
            box = self._boxes.at(self._server.root)
            box.ask({"op": "close", "server": self._server.name}, [], _OPEN_S)


@dataclass(slots=True)
class EpisodeTools(Closable):
    """Executes the calls of one episode.

    Attributes:
        tools: the set of tools.
        sandbox: the sandbox in which the tools run.
        files: path inside the sandbox -> content.
        opened: path of the input workbook.
        collected: path of the workbook that is collected as the answer.
        calculator: opens the calculation engines.
        call_s: time limit of a call, in seconds.
        slow_call_s: time limit of a call of recalc or render, in seconds.
        marker: whether the shell's submit prints the text that ends an episode as published.
        shifted: whether later arguments of view_xlsx move up if one is left out, as published.
        start_s: seconds within which a server has to give its first answer.
        dead: what broke permanently, and whose fault it is; empty while everything works.
    """

    tools: ToolSet
    sandbox: Sandbox
    files: Mapping[str, bytes]
    opened: str
    collected: str
    calculator: Callable[[], Recalculating]
    call_s: float = 60.0
    slow_call_s: float = 120.0
    marker: bool = False
    shifted: bool = False
    start_s: float = START_S
    dead: str = ""
    _boxes: Boxes = field(init=False)
    _running: dict[str, _Running] = field(init=False, default_factory=dict)
    _table: dict[str, Tool] = field(init=False, default_factory=dict)
    _lost: int = field(init=False, default=0)
    _kept: bytes | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        published = self.tools.answer == "published"
        self._boxes = Boxes(
            self.sandbox,
            self.files,
            folders=(f"{HOME}/in", f"{HOME}/out"),
            environment=ENVIRONMENT,
            functions=shell_functions(marker=self.marker) if published else "",
        )
        context = NativeContext(
            self._boxes,
            self.opened,
            self.collected,
            self.calculator,
            self.call_s,
            self.slow_call_s,
            self.shifted,
        )
        for tool in tools_of(self.tools.native, context, self.tools.answer):
            self._table[tool.name] = tool
        for server in self.tools.servers:
            running = self._running[server.name] = _Running(
                server.server, self._boxes, self.start_s
            )
            for name, listed in server.tools.items():
                self._table[name] = _tool_of(self, running, name, listed)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools."""
        return tuple(self._table)

    @property
    def servers(self) -> list[ServerRecord]:
        """Facts about the servers."""
        planned = {server.name: server.record for server in self.tools.servers}
        return [{**planned[name], **server.record} for name, server in self._running.items()]

    @property
    def image(self) -> str:
        """The roots that the tools run in, with ids of their content."""
        return ", ".join(f"{box.root[:12]}:{box.image}" for box in self._boxes.opened)

    def start(self) -> None:
        """Opens the sandboxes and starts the servers, before the first call.

        If a server does not start, no error is raised, because it is the server's fault;
        :attr:`dead` says so.

        Raises:
            SandboxError: a sandbox cannot be opened.
        """
        if self.tools.problem:
            self.dead = self.tools.problem
        if self.tools.needs_agent or self.dead:
            root = AGENT_ROOT if self.tools.needs_agent else self.tools.servers[0].server.root
            self._boxes.at(root)
        for name, running in self._running.items():
            if self.dead:
                return
            try:
                running.start()
            except ServerError as error:
                self.dead = f"the server {name} does not start: {error.message}"
            except SandboxError as error:
                if self._boxes.opened:
                    self.dead = f"the server {name} ended its sandbox: {error.message}"
                else:
                    raise

    def limit_of(self, name: str) -> float:
        """Returns the time limit of a tool's calls, in seconds."""
        return self.slow_call_s if name in SLOW else self.call_s

    def repaired_arguments(
        self, name: str, arguments: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        """Returns the repaired arguments of a call, and the repairs in words."""
        tool = self._table.get(name)
        return (dict(arguments), []) if tool is None else repaired(tool.schema, arguments)

    def problem_with(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Returns why a call cannot be executed in this form; empty if it can."""
        tool = self._table.get(name)
        if tool is None:
            return f"there is no tool {name!r:.80}; tools: {', '.join(self._table)}"
        try:
            check_arguments(tool, arguments)
        except ToolFaultError as error:
            return error.message
        return ""

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Executes a call; faults are not raised, but reported in the outcome.

        If the tools cannot continue after it, :attr:`dead` is set.

        Args:
            name: the name of the tool.
            arguments: the repaired arguments.
        """
        tool = self._table.get(name)
        if tool is None:
            listed = ", ".join(self._table)
            return ToolOutcome(f"There is no tool {name!r:.80}. Tools: {listed}.", "argument")
        try:
            return tool.done(arguments)
        except ToolFaultError as error:
            return ToolOutcome(error.message + (f" {error.hint}" if error.hint else ""), "argument")
        except BoxError as error:
            kind = error.kind if error.kind in {"timeout", "died"} else "tool"
            return ToolOutcome(error.message, kind)
        except SandboxError as error:
            return self._after_loss(error)
        except JudgeError as error:
            return ToolOutcome(error.message, "tool")

    def _after_loss(self, error: SandboxError) -> ToolOutcome:
        """Opens the sandboxes again with the initial files after one has ended, but only once."""
        self._lost += 1
        fault = f"the sandbox of the tools ended: {error.message}"
        for running in self._running.values():
            running.forget()
        self._boxes.restart()
        if self._lost > 1:
            self.dead = fault
            return ToolOutcome("The tools are gone.", "died", fault=fault)
        root = AGENT_ROOT if self.tools.needs_agent else self.tools.servers[0].server.root
        try:
            box = self._boxes.at(root)
            if self._kept is not None:
                box.write(self.collected, self._kept)
        except (SandboxError, BoxError) as again:
            self.dead = f"{fault}; and again: {again}"
        text = "The machine was started again: the input is as it was, other work is lost."
        return ToolOutcome(text, "died", fault=fault)

    def call_server(
        self, running: _Running, own: str, arguments: Mapping[str, Any], name: str
    ) -> ToolOutcome:
        """Calls a tool of a server; if the server breaks, it is started again, but only once."""
        label = running.record["name"]
        try:
            if not running.runs:
                running.start()
            return running.call(own, arguments, self.limit_of(name))
        except ServerError as error:
            if error.kind == "timeout":
                text = f"It took longer than {self.limit_of(name):g} s and was cancelled."
                return ToolOutcome(text, "timeout", fault=f"the server {label}: {error.message}")
            return self._restarted(running, error)

    def _restarted(self, running: _Running, error: ServerError) -> ToolOutcome:
        label = running.record["name"]
        fault = f"the server {label}: {error.message}"
        running.end()
        kind = "timeout" if error.late else error.kind
        if running.restarts:
            self.dead = fault
            return ToolOutcome(f"The server is gone: {error.message}", kind, fault=fault)
        running.restarts += 1
        try:
            running.start()
        except ServerError as again:
            self.dead = f"{fault}; started again: {again.message}"
            return ToolOutcome(f"The server is gone: {error.message}", kind, fault=fault)
        text = f"{error.message}. The server was started again; its state is lost."
        return ToolOutcome(visible(text), kind, fault=fault)

    def workbook(self) -> str | None:
        """Returns the SHA-256 of the collected workbook; None if it is missing or too long."""
        try:
            return self._boxes.latest.hash(self.collected)
        except SandboxError:
            return None

    def collect(self) -> BoxFile:
        """Reads the collected workbook; if the sandbox broke, returns the last state read."""
        try:
            file = self._boxes.latest.read(self.collected)
        except SandboxError as error:
            return BoxFile(self._kept, "" if self._kept is not None else error.message)
        if file.data is not None:
            self._kept = file.data
        return file

    def read(self, path: str) -> BoxFile:
        """Reads any file below the home folder."""
        try:
            return self._boxes.latest.read(path)
        except SandboxError as error:
            return BoxFile(None, error.message)

    def memory_bytes(self) -> int:
        """Returns the proportional memory (PSS) of all processes of the tools."""
        total = 0
        for box in self._boxes.opened:
            with contextlib.suppress(SandboxError, BoxError):
                total += box.memory_bytes()
        return total

    def close(self) -> None:
        """Ends all sandboxes; safe to call twice."""
        self._boxes.close()


def _tool_of(tools: EpisodeTools, running: _Running, name: str, listed: ListedTool) -> Tool:
    def run(arguments: Mapping[str, Any]) -> ToolOutcome:
        return tools.call_server(running, listed.name, arguments, name)

    return Tool(name, listed.description, {}, (), run, given=listed.schema)


class SharedCalculator(Closable):
    """The calculation engines that all episodes of a run share; opened when they are first needed.

    Args:
        sandbox: ``auto``, ``docker`` or ``bubblewrap``.
    """

    def __init__(self, sandbox: str) -> None:
        self._kind = sandbox
        self._lock = threading.Lock()
        self._opened: Recalculating | None = None

    def __call__(self) -> Recalculating:
        """Returns the engines; opens them if necessary."""
        with self._lock:
            if self._opened is None:
                self._opened = Recalculating(sandbox=self._kind)
            return self._opened

    def close(self) -> None:
        """Ends the engines; safe to call twice."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()
