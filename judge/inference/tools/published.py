"""How the published agent of SpreadsheetBench 2 treats replies that it cannot use.

Source: RUCKBReasoning/SpreadsheetBench-2, folder SWE-agent.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from judge.inference.tools.calls import ReadCall
from judge.inference.tools.setting import ToolMode
from judge.tools.sets import EpisodeTools

_PREFIXES = (
    *("vim", "vi", "emacs", "nano", "nohup", "gdb", "less", "tail -f"),
    *("python -m venv", "make"),
)
_ALONE = frozenset(
    {"python", "python3", "ipython", "bash", "sh", "/bin/bash", "nohup", "vi", "vim"}
    | {"emacs", "nano", "su"}
)


def is_blocked(command: str, *, published: bool) -> bool:
    """Whether a command is refused because it would wait for a person.

    Args:
        command: the command.
        published: whether prefixes are compared the wrong way round, as published: this refuses
            ``v`` and ``tail``, but allows ``vim x``.
    """
    action = command.strip()
    if not action:
        return False
    if action in _ALONE:
        return True
    if published:
        return any(entry.startswith(action) for entry in _PREFIXES)
    return any(re.match(rf"{re.escape(entry)}(\s|$)", action) for entry in _PREFIXES)


def why_refused(
    calls: Sequence[ReadCall],
    mode: ToolMode,
    tools: EpisodeTools,
    published: frozenset[str],
    *,
    cut: bool,
) -> str:
    """Returns why a reply cannot be used, as shown to the model; empty if it can be used.

    Args:
        calls: the calls of the reply.
        mode: how the model works.
        tools: checks arguments and the shell's grammar.
        published: names of the :data:`~judge.inference.tools.setting.DEPARTURES` that are kept.
        cut: whether the reply was cut off.
    """
    words = mode.preset.words
    if not calls:
        return words.say("no_call")
    if len(calls) > 1:
        return words.say("too_many", calls=str(len(calls)))
    call = calls[0]
    if call.arguments is None:
        return words.say("format", error=f"{call.fault}." if not cut else "it was cut off.")
    problem = tools.problem_with(call.call.name, call.arguments)
    if problem:
        return words.say("format", error=f"{problem}.")
    command = call.arguments.get("command")
    if call.call.name == "bash" and isinstance(command, str) and command.strip() != "exit":
        if is_blocked(command, published="blocklist" in published):
            shown = command.strip()[:80]
            return words.say("format", error=f"the command {shown!r} is not available here.")
        checked = tools.call("bash", {"command": f"bash -n -c {shlex.quote(command)}"})
        if checked.error == "tool":
            return words.say("format", error=f"bash cannot read the command: {checked.text[:500]}")
    return ""
