"""Verdicts: one primary verdict for each case, with a phase and a cause."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from judge.core.records.cases import CaseComparison, CaseRun


class Verdict(enum.StrEnum):
    """The verdict on a case; its value is the code that reports show."""

    AC = "AC"
    WA = "WA"
    NO = "NO"
    IW = "IW"
    NC = "NC"
    CE = "CE"
    RE = "RE"
    TLE = "TLE"
    MLE = "MLE"
    OLE = "OLE"
    SV = "SV"
    SK = "SK"
    BT = "BT"
    JE = "JE"

    @property
    def description(self) -> str:
        """The verdict in words."""
        return _TITLES[self]

    @property
    def phase(self) -> Phase:
        """The phase in which a case gets the verdict."""
        return _PHASES[self]

    @property
    def is_scored(self) -> bool:
        """Whether a case with this verdict counts in the scores: SK, BT and JE do not."""
        return self not in _UNSCORED


class Phase(enum.StrEnum):
    """The phases of a case, in order."""

    CODE = "code"
    RUN = "run"
    OUTPUT = "output"
    RECALCULATION = "recalculation"
    COMPARISON = "comparison"
    JUDGE = "judge"


_TITLES = {
    Verdict.AC: "accepted",
    Verdict.WA: "wrong answer",
    Verdict.NO: "no output workbook",
    Verdict.IW: "output is not a readable workbook",
    Verdict.NC: "formulas that could not be calculated",
    Verdict.CE: "no code, or it does not compile",
    Verdict.RE: "runtime error",
    Verdict.TLE: "time limit exceeded",
    Verdict.MLE: "memory limit exceeded",
    Verdict.OLE: "output limit exceeded",
    Verdict.SV: "security violation",
    Verdict.SK: "skipped",
    Verdict.BT: "bad test: the gold is at fault",
    Verdict.JE: "judge error",
}
_PHASES = {
    Verdict.AC: Phase.COMPARISON,
    Verdict.WA: Phase.COMPARISON,
    Verdict.NO: Phase.OUTPUT,
    Verdict.IW: Phase.OUTPUT,
    Verdict.NC: Phase.RECALCULATION,
    Verdict.CE: Phase.CODE,
    Verdict.RE: Phase.RUN,
    Verdict.TLE: Phase.RUN,
    Verdict.MLE: Phase.RUN,
    Verdict.OLE: Phase.OUTPUT,
    Verdict.SV: Phase.OUTPUT,
    Verdict.SK: Phase.JUDGE,
    Verdict.BT: Phase.JUDGE,
    Verdict.JE: Phase.JUDGE,
}
_UNSCORED = frozenset({Verdict.SK, Verdict.BT, Verdict.JE})


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The judge's result for one submission on one test case.

    Attributes:
        task_id: the task's id as text.
        sample: 0-based number among several solutions of the same task.
        case: 1-based number of the test case.
        verdict: the primary verdict.
        cause: one line for people: the exception's class, the limit, the first difference.
        run: facts about the run; empty if nothing was run.
        comparison: the result of the comparison; empty if nothing was compared.
        timings_s: seconds spent in each phase: ``run``, ``recalculation``, ``comparison``.
    """

    task_id: str
    sample: int
    case: int
    verdict: Verdict
    cause: str = ""
    run: CaseRun = field(default_factory=CaseRun)
    comparison: CaseComparison = field(default_factory=CaseComparison)
    timings_s: Mapping[str, float] = field(default_factory=dict)


_TOLD = frozenset(
    {
        *(Verdict.CE, Verdict.RE, Verdict.TLE, Verdict.MLE),
        *(Verdict.OLE, Verdict.SV, Verdict.NO, Verdict.IW),
    }
)
"""Verdicts whose causes are only about the submission."""


def cause_without_golds(result: CaseResult) -> str:
    """Explains a verdict without quoting the gold, for logs and traces.

    For differences it has their numbers and the first cell. The causes of bad tests and of failures
    of the judge may quote golds, so only ``judge score`` shows them.
    """
    if result.verdict in _TOLD or result.cause.startswith("sandbox:"):
        return result.cause
    if result.verdict in {Verdict.WA, Verdict.NC}:
        return _differences(result)
    if result.verdict is Verdict.AC:
        return ""
    return result.verdict.description


def _differences(result: CaseResult) -> str:
    comparison = result.comparison
    counts = comparison.get("difference_counts") or {}
    parts = [f"{number} {kind.replace('_', ' ')}" for kind, number in sorted(counts.items())]
    if (cells := comparison.get("cells")) and (differing := comparison.get("differing_cells")):
        parts.insert(0, f"{differing} of {cells} differ")
    first = next(
        (
            difference["cell"]
            for difference in comparison.get("differences", ())
            if difference["cell"]
        ),
        "",
    )
    if first:
        parts.append(f"first at {first}")
    return ", ".join(parts) or result.verdict.description
