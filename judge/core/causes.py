"""Why a case has its verdict, in words that may be shared. Pure."""

from __future__ import annotations

from judge.core.verdict import CaseResult, Verdict

_TOLD = frozenset(
    {
        *(Verdict.CE, Verdict.RE, Verdict.TLE, Verdict.MLE),
        *(Verdict.OLE, Verdict.SV, Verdict.NO, Verdict.IW),
    }
)
"""Verdicts whose causes concern the submission alone."""


def cause_without_golds(result: CaseResult) -> str:
    """Why a case has its verdict, without quoting its gold: for logs and traces.

    Of differences it has the numbers and the first cell; causes of bad tests and of the
    judge's own failures may quote golds and are left to ``judge score``.
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
    told = [f"{number} {kind.replace('_', ' ')}" for kind, number in sorted(counts.items())]
    if (cells := comparison.get("cells")) and (differing := comparison.get("differing_cells")):
        told.insert(0, f"{differing} of {cells} differ")
    first = next((each["cell"] for each in comparison.get("differences", ()) if each["cell"]), "")
    if first:
        told.append(f"first at {first}")
    return ", ".join(told) or result.verdict.description
