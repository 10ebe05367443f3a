"""The judge's own tools for an episode: some run in the sandbox, others read workbooks from it."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from judge.recalc.library import Recalculating
from judge.sandbox import layout
from judge.sandbox.roots import AGENT_ROOT
from judge.tools.box import HOME, MAX_DRAWN_BYTES, BoxError, Boxes, BoxFolder
from judge.tools.client import cleaned
from judge.tools.contract import Tool, ToolFaultError, ToolOutcome
from judge.tools.workbooks import WorkbookTools
from judge.workbook.address import parse_cell

SUBMIT = "submit"
VIEW_XLSX = "view_xlsx"
MARKER = "<<SWE_AGENT_SUBMISSION>>"
"""The text by which the published agent of SpreadsheetBench 2 recognizes a submission."""

SLOW = frozenset({"recalc", "render"})
"""Tools whose calls have a longer time limit."""

MAX_ROWS, MAX_COLUMNS = 2_000, 100
"""Largest number of rows and columns of a range that is drawn."""

ENVIRONMENT = {"PYTHONPATH": layout.SITE, "LANG": "C.UTF-8", "TERM": "dumb"}
"""Environment variables of programs in the root for agents."""

_CONSOLE_BYTES = 256 * 1024
_PATH = {"type": "string", "description": "A workbook [the output if it exists, else the input]."}
_AREA = re.compile(r"\$?([A-Za-z]{1,3}\$?\d{1,7})(?::\$?([A-Za-z]{1,3}\$?\d{1,7}))?")
_PICTURES = {
    "folder": HOME,
    "max_pictures": 4,
    "max_bytes": 4 * 1024 * 1024,
    "suffixes": [".png", ".jpg", ".jpeg", ".webp", ".gif"],
}

# Not every sandbox can execute files as programs, so both commands are functions of the shell.
_FUNCTIONS = """\
view_xlsx() {{ python3 -s /tmp/.judge/view_xlsx.py "$@"; }}
submit() {{ printf '%s\\n' {word}; }}
"""


def shell_functions(*, marker: bool) -> str:
    """Returns the functions that the shell of the published setting has in addition.

    Args:
        marker: whether ``submit`` prints the text that ends an episode as published.
    """
    word = MARKER if marker else "Call the tool submit to hand in."
    return _FUNCTIONS.format(word=shlex.quote(word))


@dataclass(slots=True)
class NativeContext:
    """The files and resources that the tools of an episode work with.

    Attributes:
        boxes: the sandboxes.
        opened: path of the input workbook.
        collected: path of the workbook that is collected as the answer.
        calculator: opens the calculation engines, which all episodes share.
        call_s: time limit of a call, in seconds.
        slow_call_s: time limit of a call of one of :data:`SLOW`, in seconds.
        shifted: whether later arguments of view_xlsx move up if one is left out, as published.
    """

    boxes: Boxes
    opened: str
    collected: str
    calculator: Callable[[], Recalculating]
    call_s: float = 60.0
    slow_call_s: float = 120.0
    shifted: bool = False

    def default_path(self) -> str:
        """Returns the path of the answer's workbook if it exists, otherwise of the input."""
        box = self.boxes.at(AGENT_ROOT)
        return self.opened if box.hash(self.collected) is None else self.collected


def definitions_of(names: tuple[str, ...], answer: str) -> list[Tool]:
    """Returns tools by their names, for requests and documents; they cannot be called.

    Args:
        names: names of tools.
        answer: ``workbook`` or ``program``.

    Raises:
        ToolFaultError: there is no such tool.
    """
    tools = {tool.name: tool for tool in _all(None, answer)}
    for name in names:
        if name not in tools:
            raise ToolFaultError(
                f"there is no tool {name!r:.80}", hint=f"Tools: {', '.join(tools)}."
            )
    return [tools[name] for name in names]


def tools_of(names: tuple[str, ...], context: NativeContext, answer: str) -> list[Tool]:
    """Returns tools by their names, for the calls of an episode."""
    tools = {tool.name: tool for tool in _all(context, answer)}
    return [tools[name] for name in names]


_VIEW_PROPERTIES: Mapping[str, Mapping[str, Any]] = {
    "file_path": {"type": "string", "description": "the path to the xlsx file to view"},
    "mode": {
        "type": "string",
        "description": "mode to use: 'list' to list all sheet names, 'content' to view sheet "
        "contents (default: content)",
    },
    "sheet": {
        "type": "string",
        "description": "sheet name to view (if not provided, views the first visible sheet)",
    },
    "start_row": {
        "type": "integer",
        "description": "starting row number to view (1-based index, if not provided, starts from "
        "the first row with data)",
    },
    "end_row": {
        "type": "integer",
        "description": "ending row number to view (1-based index, if not provided, views until the "
        "last row with data)",
    },
}
"""Source: RUCKBReasoning/SpreadsheetBench-2, tools of its SWE-agent."""


def _all(context: NativeContext | None, answer: str) -> Iterator[Tool]:
    yield Tool(
        "python",
        "Run Python in an interpreter that keeps its state. Returns what the code prints, or its "
        "traceback; pictures that it saves or leaves open are shown. openpyxl, pandas, numpy and "
        "matplotlib can be imported.",
        {"code": {"type": "string", "description": "The code."}},
        ("code",),
        lambda arguments: _python(_given(context), arguments),
    )
    yield Tool(
        "bash",
        "runs the given command directly in bash",
        {"command": {"type": "string", "description": "The bash command to execute."}},
        ("command",),
        lambda arguments: _bash(_given(context), arguments["command"]),
    )
    yield Tool(
        "render",
        "Draw a range of a workbook as LibreOffice shows it, with charts.",
        {"range": {"type": "string", "description": "Such as Sheet1!A1:H40."}, "path": _PATH},
        ("range",),
        lambda arguments: _render(_given(context), arguments),
    )
    yield from _of_workbooks(context)
    yield Tool(
        VIEW_XLSX,
        "view the content of an xlsx file. Can list all sheets or view a specific sheet's contents "
        "with optional row range",
        _VIEW_PROPERTIES,
        ("file_path",),
        lambda arguments: _bash(_given(context), view_command(_given(context).shifted, arguments)),
    )
    yield _submit(answer)


def _submit(answer: str) -> Tool:
    """Returns the tool that ends an episode; the conversation executes it."""
    if answer == "program":
        return Tool(
            SUBMIT,
            "Hand in the program that solves the task. It is run by itself; if it leaves a "
            "workbook, the episode ends.",
            {"path": {"type": "string", "description": "Where the complete Python program is."}},
            ("path",),
            _nothing,
        )
    if answer == "published":
        return Tool(SUBMIT, "submits the current file", {}, (), _nothing)
    return Tool(
        SUBMIT,
        "End the work: the workbook at the output path is handed in as it is.",
        {"note": {"type": "string", "description": "A word about it, for people."}},
        (),
        _nothing,
    )


def _nothing(_: Mapping[str, Any]) -> str:
    return ""


def _given(context: NativeContext | None) -> NativeContext:
    if context is None:
        raise ToolFaultError("nothing runs here")
    return context


# -- tools that run inside ------------------------------------------------------------------------


def _python(context: NativeContext, arguments: Mapping[str, Any]) -> ToolOutcome:
    limit_s = context.call_s
    frame = {
        "do": "execute",
        "code": arguments["code"],
        "output_path": None,
        "console_bytes": _CONSOLE_BYTES,
        "pictures": _PICTURES,
    }
    header = {"op": "python", "frame": frame, "limit_s": limit_s}
    try:
        answer, _ = context.boxes.at(AGENT_ROOT).ask(header, [], limit_s)
    except BoxError as error:
        if error.kind == "timeout":
            text = f"It ran longer than {limit_s:g} s and was ended; all variables are lost."
            return ToolOutcome(text, "timeout")
        return ToolOutcome(f"The interpreter is gone ({error.message}); its state is lost.", "died")
    printed = cleaned(str(answer.get("stdout", ""))).strip("\n")
    problem = answer.get("error")
    parts = [printed, "" if problem is None else cleaned(str(problem)).strip("\n")]
    interrupted = answer.get("interrupted") is True
    if interrupted:
        parts.append(f"It ran longer than {limit_s:g} s and was interrupted; variables are kept.")
    kind = "timeout" if interrupted else ("tool" if problem is not None else "")
    text = "\n".join(part for part in parts if part)
    return ToolOutcome(text, kind, tuple(_pictures(answer.get("pictures"))))


def _pictures(listed: object) -> Iterator[bytes]:
    import base64  # noqa: PLC0415

    for entry in listed[:4] if isinstance(listed, list) else ():
        data = entry.get("data") if isinstance(entry, dict) else None
        if isinstance(data, str) and len(data) < 8 * 1024 * 1024:
            with contextlib.suppress(ValueError):
                yield base64.b64decode(data, validate=True)


def _bash(context: NativeContext, command: str) -> ToolOutcome:
    limit_s = context.call_s
    header = {"op": "bash", "command": command, "limit_s": limit_s}
    answer, _ = context.boxes.at(AGENT_ROOT).ask(header, [], limit_s + 10)
    parts = [cleaned(str(answer.get("text", ""))).rstrip("\n")]
    code, lost = answer.get("code"), answer.get("lost") is True
    error = ""
    if answer.get("timeout") is True:
        kept = "the shell was ended and its state is lost" if lost else "the shell keeps its state"
        return ToolOutcome("\n".join([*parts, f"(stopped after {limit_s:g} s; {kept})"]), "timeout")
    if lost:
        parts.append(f"(the shell ended with exit code {code}; a new one starts)")
    elif code != 0:
        parts.append(f"(exit code {code})")
        error = "tool"
    return ToolOutcome("\n".join(part for part in parts if part), error)


def view_command(shifted: bool, arguments: Mapping[str, Any]) -> str:
    """Returns the command line of a call of view_xlsx.

    Args:
        shifted: whether a missing argument is simply omitted, as published, so that later ones
            move up.
        arguments: the arguments of the call.
    """
    parts = [VIEW_XLSX]
    for name in _VIEW_PROPERTIES:
        value = arguments.get(name)
        if value is not None:
            parts.append(shlex.quote(str(value)))
        elif not shifted:
            parts.append("''")
    return " ".join(parts)


def _render(context: NativeContext, arguments: Mapping[str, Any]) -> ToolOutcome:
    sheet, area = area_of(arguments["range"])
    path = arguments.get("path") or context.default_path()
    limit_s = context.slow_call_s
    header = {
        "op": "draw",
        "path": path,
        "sheet": sheet,
        "area": area,
        "limit_s": limit_s,
        "max_bytes": MAX_DRAWN_BYTES,
    }
    try:
        _, parts = context.boxes.at(AGENT_ROOT).ask(header, [], limit_s + 10)
    except BoxError as error:
        kind = error.kind if error.kind in {"timeout", "died"} else "tool"
        return ToolOutcome(f"It was not drawn: {error.message}", kind)
    return ToolOutcome(f"{sheet}!{area}", pictures=(parts[0],))


def area_of(text: str) -> tuple[str, str]:
    """Returns the sheet and the cells of a range to be drawn.

    Raises:
        ToolFaultError: the text is not a range, or the range is too large.
    """
    sheet, separator, cells = text.rpartition("!")
    match = _AREA.fullmatch(cells.strip())
    if not separator or not sheet or match is None:
        raise ToolFaultError(f"{text!r:.80} is not a range with its sheet, such as Sheet1!A1:H40")
    if sheet.startswith("'") and sheet.endswith("'"):
        sheet = sheet[1:-1].replace("''", "'")
    corners = [parse_cell(corner.replace("$", "")) for corner in match.groups() if corner]
    if None in corners:
        raise ToolFaultError(f"{cells!r:.80} is not a range of a sheet")
    first, last = corners[0], corners[-1]
    assert first is not None
    assert last is not None
    rows, columns = abs(last[0] - first[0]) + 1, abs(last[1] - first[1]) + 1
    if rows > MAX_ROWS or columns > MAX_COLUMNS:
        raise ToolFaultError(
            f"{rows:,} rows and {columns:,} columns are too many to draw; draw up to "
            f"{MAX_ROWS:,} rows and {MAX_COLUMNS} columns at a time"
        )
    return sheet, cells.strip().replace("$", "")


# -- tools that read workbooks from the sandbox ---------------------------------------------------


def _of_workbooks(context: NativeContext | None) -> Iterator[Tool]:
    """Returns the tools of :mod:`judge.tools.workbooks`, with default paths."""

    def calculator() -> Recalculating:
        return _given(context).calculator()

    folder = BoxFolder(context.boxes if context is not None else _no_boxes())
    for tool in WorkbookTools(folder, calculator).tools():
        if tool.name != "list_workbooks":
            yield _with_paths(tool, context)


def _no_boxes() -> Boxes:
    return Boxes(_NO_SANDBOX, {})


def _with_paths(tool: Tool, context: NativeContext | None) -> Tool:
    properties = {name: dict(schema) for name, schema in tool.properties.items()}
    properties["path"] = _PATH
    if "against" in properties:
        properties["against"]["description"] = "The workbook as it was [the input]."
    if tool.writes:
        properties["save_as"]["description"] = "Where to save [the output path]."

    def run(arguments: Mapping[str, Any]) -> str | ToolOutcome:
        there = _given(context)
        there.boxes.at(AGENT_ROOT)
        more = {"path": there.default_path()} if "path" not in arguments else {}
        if "against" in properties:
            more["against"] = there.opened
        if tool.writes:
            more["save_as"] = there.collected
        return tool.run({**more, **arguments})

    required = tuple(name for name in tool.required if name not in {"path", "against"})
    return replace(tool, properties=properties, required=required, run=run)


class _NoSandbox:
    """Takes the place of the sandbox if tools are only described and never called."""


_NO_SANDBOX: Any = _NoSandbox()
