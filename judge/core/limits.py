"""Limits on the resources of one run of a solution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from judge.core.option import Option, Section
from judge.errors import UsageError
from judge.files.documents import written

MIB = 1024 * 1024
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on one run; the sandbox enforces them all.

    Attributes:
        cpu_s: processor seconds of the whole process tree.
        wall_s: wall-clock seconds from the fork of the solution.
        memory_bytes: memory of the whole process tree.
        processes: how many processes and threads may be alive at the same time.
        output_bytes: size of the collected output file; also limits how much is written to disk.
        console_bytes: how many bytes of stdout, and of stderr, are kept; the rest is only counted.

    Raises:
        UsageError: a limit is not a number above 0, or a limit in bytes or processes is not whole.
    """

    cpu_s: Annotated[
        float,
        Option("CPU seconds of a program [{default}].", Section.LIMITS, flag="cpu", least=0.1),
    ] = 60.0
    wall_s: Annotated[
        float, Option("Seconds of a program [{default}].", Section.LIMITS, flag="wall", least=0.1)
    ] = 90.0
    memory_bytes: Annotated[
        int, Option("Memory of a program [{default}].", Section.LIMITS, flag="memory", size=True)
    ] = 2 * GIB
    processes: Annotated[
        int, Option("Processes of a program [{default}].", Section.LIMITS, least=1)
    ] = 64
    output_bytes: Annotated[
        int,
        Option(
            "Output size of a program [{default}].", Section.LIMITS, flag="output-size", size=True
        ),
    ] = 64 * MIB
    console_bytes: int = 64 * 1024

    def __post_init__(self) -> None:
        for name in ("cpu_s", "wall_s"):
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 < value < math.inf:
                raise UsageError(f"the limit {name} is {written(value)}: not a number above 0")
        for name in ("memory_bytes", "processes", "output_bytes", "console_bytes"):
            value = getattr(self, name)
            if type(value) is not int or value <= 0:
                raise UsageError(
                    f"the limit {name} is {written(value)}: not a whole number above 0"
                )
