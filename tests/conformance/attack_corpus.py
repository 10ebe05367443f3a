"""Reads the attack corpus: hostile programs with the verdict that each must get.

The head of each file says what it attacks and what must come of it::

    # property: one line
    # verdict: AC
    # limits: cpu_s=0.5 wall_s=4 memory_mib=256                             (optional)
    # survivors: 4              processes that must be counted              (optional)
    # cause: processor time     what the cause of the verdict must say      (optional)
    # next: other.py            program of the next case of the submission  (optional)
    # other: other.py           program of another submission afterwards    (optional)

A program prints ``REACHED`` where it got at what it attacks; that fails whatever its verdict is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from judge.core.limits import MIB, Limits
from judge.core.verdict import Verdict

FOLDER = Path(__file__).resolve().parent.parent / "submissions" / "attacks"
LIMITS = Limits(cpu_s=20, wall_s=120, memory_bytes=320 * MIB, output_bytes=16 * MIB)
"""As small as they can be: what fills memory or the disk fills it sooner, and the disk (twice the
output and 128 MiB) is full before memory is. Programs that agree on memory, processes and output
share their containers, so few say anything else than this."""
_UNITS = {"memory_mib": "memory_bytes", "output_mib": "output_bytes"}


@dataclass(frozen=True)
class Attack:
    """One program of the corpus."""

    name: str
    attacked: str
    verdict: Verdict
    program: str
    limits: Limits
    survivors: int | None
    cause: str | None
    next: str | None
    other: str | None


def load_attack(path: Path) -> Attack:
    """Reads one program and its head."""
    program = path.read_text(encoding="utf-8")
    head = {}
    for line in program.splitlines():
        if not line.startswith("# ") or ": " not in line:
            break
        key, _, value = line[2:].partition(": ")
        head[key] = value
    unknown = set(head) - {
        "property",
        "verdict",
        "limits",
        "survivors",
        "cause",
        "next",
        "other",
    }
    assert not unknown, f"{path.name}: unknown {unknown}"
    limits: dict[str, float] = {}
    for part in head.get("limits", "").split():
        name, _, value = part.partition("=")
        limits[_UNITS.get(name, name)] = int(value) * MIB if name in _UNITS else float(value)
    return Attack(
        name=path.stem,
        attacked=head["property"],
        verdict=Verdict(head["verdict"]),
        program=program,
        limits=replace(LIMITS, **limits),  # type: ignore[arg-type]
        survivors=int(head["survivors"]) if "survivors" in head else None,
        cause=head.get("cause"),
        next=head.get("next"),
        other=head.get("other"),
    )


def load_attacks() -> list[Attack]:
    """The whole corpus, by name."""
    return [load_attack(path) for path in sorted(FOLDER.glob("*.py"))]
