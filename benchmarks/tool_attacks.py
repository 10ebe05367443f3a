"""Runs the attacks of the corpus as calls of an agent's tools; reports what they reach and leave.

    python -m benchmarks.tool_attacks [--sandbox bubblewrap] [--call-s 5] [ATTACK ...]

Each program of tests/submissions/attacks runs in a separate episode: the shell writes and runs it,
with the paths of an agent. An attack that reaches its target prints REACHED; targets that belong to
the agent here (its own processes, the variables of its shell, anything that a fresh episode also
has) do not count. Afterwards the tools must perform a call, or report that they are gone; no later
episode may contain anything that the attack left (if the corpus has a program that searches for it,
that program is run); and no process may be left at the end. Prints a line for each attack.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import openpyxl

from benchmarks.command_line import run_command
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox
from judge.tools.box import HOME
from judge.tools.sets import EpisodeTools, SharedCalculator, ToolSet
from tests.conformance.attack_corpus import FOLDER, Attack, load_attack, load_attacks
from tests.conformance.leftovers import settled_descendants

INPUT, OUTPUT = f"{HOME}/in/1_1_input.xlsx", f"{HOME}/out/1_1_output.xlsx"
SCRIPT = "/tmp/attack.py"
PATHS = {"/mnt/data/input": f"{HOME}/in", "/mnt/data/output": f"{HOME}/out", "/mnt/data": HOME}
WORKS = "echo $((40 + 2))"
TOOLS = ToolSet("bash", ("bash", "submit"))
OWN = re.compile(
    r"REACHED (by )?(/proc/)?(?!1\b)\d+\b.*"  # a process of the agent: the driver is number 1
    r"|REACHED (_|TERM|SHLVL|PWD|OLDPWD)"
    r"|REACHED folder /dev/mqueue"  # of its container, which ends with it
)
"""Targets that an attack may reach here, because they belong to the agent."""


@dataclass(frozen=True, slots=True)
class Withstood:
    """The result of an attack.

    Attributes:
        reached: the targets that it claims to have reached, except its own.
        error: kind of the error of its call.
        after: the state of the tools afterwards: ``works``, or who broke them.
        seconds: how long the episode took.
    """

    reached: frozenset[str]
    error: str
    after: str
    seconds: float


def program_of(attack: Attack) -> str:
    """Returns the attack with the paths of an agent."""
    text = attack.program
    for old, new in PATHS.items():
        text = text.replace(old, new)
    return text


def withstood(
    sandbox: Sandbox, attack: Attack, data: bytes, calculator: SharedCalculator, call_s: float
) -> Withstood:
    """Runs an episode in which the agent runs an attack.

    Args:
        sandbox: the sandbox in which the tools run.
        attack: the attack.
        data: the input workbook.
        calculator: computes formulas.
        call_s: time limit of a call, in seconds.
    """
    began = time.monotonic()
    tools = EpisodeTools(TOOLS, sandbox, {INPUT: data}, INPUT, OUTPUT, calculator, call_s=call_s)
    with contextlib.closing(tools):
        tools.start()
        write = f"cat > {SCRIPT} <<'END OF IT'\n{program_of(attack)}\nEND OF IT"
        assert tools.call("bash", {"command": write}).error == ""
        # Remove the script's folder, which belongs to the agent, from the module path.
        outcome = tools.call("bash", {"command": f"python3 -P {SCRIPT}"})
        tools.collect()
        reply = tools.call("bash", {"command": WORKS})
        if not tools.dead and reply.text != "42":
            reply = tools.call("bash", {"command": WORKS})
        after = tools.dead or ("works" if reply.text == "42" else f"{reply.error}: {reply.text}")
    lines = [line for line in outcome.text.splitlines() if "REACHED" in line]
    reached = frozenset(line for line in lines if not OWN.fullmatch(line))
    return Withstood(reached, outcome.error, after, time.monotonic() - began)


def followed(attack: Attack) -> Iterator[Attack]:
    """Returns an attack, and the program that searches later episodes for its leftovers."""
    yield attack
    for name in (attack.next, attack.other):
        if name is not None:
            yield load_attack(FOLDER / name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs all attacks, or the named ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sandbox", default="bubblewrap")
    parser.add_argument("--call-s", type=float, default=5.0)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    attacks = [
        attack for attack in load_attacks() if not options.names or attack.name in options.names
    ]
    data = workbook_bytes()
    before = settled_descendants(os.getpid())
    failed = []
    print("attack | reached | call | afterwards | seconds")
    with (
        contextlib.closing(open_sandbox(options.sandbox)) as sandbox,
        SharedCalculator(options.sandbox) as calculator,
    ):

        def tried(attack: Attack) -> Withstood:
            return withstood(sandbox, attack, data, calculator, options.call_s)

        looking = {name for attack in attacks for name in (attack.next, attack.other) if name}
        fresh = {name: tried(load_attack(FOLDER / name)).reached for name in sorted(looking)}
        for attack in attacks:
            for part in followed(attack):
                seen = tried(part)
                reached = sorted(seen.reached - fresh.get(f"{part.name}.py", frozenset()))
                if reached or seen.after != "works":
                    failed.append(part.name)
                print(
                    f"{part.name} | {'; '.join(reached)[:160]!a} | {seen.error or 'ok'} | "
                    f"{seen.after[:120]!a} | {seen.seconds:.1f}",
                    flush=True,
                )
    left = len(settled_descendants(os.getpid()) - before)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(attacks)} attacks; reached something or broke the tools: {failed or 'none'}; "
        f"processes left: {left}; judge's peak MB: {peak:.0f}"
    )


def workbook_bytes() -> bytes:
    """Makes a workbook with a number in A1."""
    book = openpyxl.Workbook()
    book.worksheets[0]["A1"] = 1
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


if __name__ == "__main__":
    run_command(main)
