"""What asking the chat model took, summed up from the records of submissions. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any


def usage_of(records: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Tokens, cost and time of a run's submissions, as ``judge infer`` recorded them.

    Args:
        records: what is on record of each submission (of ``submissions.jsonl``).

    Returns:
        A JSON object; None where no record knows its tokens:

        - ``submissions`` that know theirs, ``calls`` (from the cache included), ``retries``
          (attempts beyond the first of a call), ``truncated`` replies, ``not_alone`` (solutions
          that only worked because of earlier rounds);
        - ``prompt_tokens``, ``completion_tokens``;
        - ``cost_usd``, null where the price of some call is not known;
        - ``inference_s``, seconds of all calls together, waiting between attempts included;
        - ``latency_s`` of a call that was answered: ``median``, ``p95``, ``maximum``; null where
          none was timed.
    """
    known = [each for each in records if isinstance(each.get("tokens"), Mapping)]
    if not known:
        return None
    calls = [call for each in known for call in each.get("calls") or () if _is_call(call)]
    costs = [each["cost"] for each in known if isinstance(each.get("cost"), int | float)]
    return {
        "submissions": len(known),
        "calls": len(calls),
        "retries": round(sum(max(_number(call.get("attempts")) - 1, 0) for call in calls)),
        "truncated": sum(each.get("truncated") is True for each in known),
        "not_alone": sum(each.get("stands_alone") is False for each in known),
        "prompt_tokens": round(sum(_number(each["tokens"].get("prompt")) for each in known)),
        "completion_tokens": round(
            sum(_number(each["tokens"].get("completion")) for each in known)
        ),
        "cost_usd": round(math.fsum(costs), 8) if len(costs) == len(known) else None,
        "inference_s": round(math.fsum(_number(each.get("seconds")) for each in known), 3),
        "latency_s": _latencies([float(call["latency_s"]) for call in calls if _was_timed(call)]),
    }


def _number(value: object) -> float:
    """The number; 0 for what others may have written there."""
    return float(value) if isinstance(value, int | float) else 0.0


def _is_call(call: object) -> bool:
    return isinstance(call, Mapping)


def _was_timed(call: Mapping[str, Any]) -> bool:
    return isinstance(call.get("latency_s"), int | float) and not call.get("cached")


def _latencies(seconds: list[float]) -> dict[str, float] | None:
    if not seconds:
        return None
    ordered = sorted(seconds)
    return {
        "median": round(median(ordered), 3),
        # The smallest number that at least 95 % do not exceed.
        "p95": ordered[math.ceil(0.95 * len(ordered)) - 1],
        "maximum": ordered[-1],
    }
