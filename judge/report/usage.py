"""What asking the chat model took, summed up from the records of submissions. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median

from judge.core.asking import Asking
from judge.core.results import Latencies, UsageReport


def usage_of(submissions: Iterable[Asking]) -> UsageReport | None:
    """Tokens, cost and time of a run's submissions, as ``judge infer`` recorded them.

    Args:
        submissions: what is on record of asking for each of them.

    Returns:
        A JSON object; None where the tokens of no submission are on record:

        - ``submissions`` that know theirs, ``calls`` (from the cache included), ``retries``
          (attempts beyond the first of a call), ``truncated`` replies, ``not_alone`` (solutions
          that only worked because of earlier rounds);
        - ``prompt_tokens``, ``completion_tokens``;
        - ``cost_usd``, null where the price of some call is not known;
        - ``inference_s``, seconds of all calls together, waiting between attempts included;
        - ``latency_s`` of a call that was answered: ``median``, ``p95``, ``maximum``; null where
          none was timed.
    """
    known = [each for each in submissions if each.is_counted]
    if not known:
        return None
    calls = [call for each in known for call in each.calls]
    costs = [each.cost_usd for each in known if each.cost_usd is not None]
    return {
        "submissions": len(known),
        "calls": len(calls),
        "retries": round(sum(max(call.attempts - 1, 0) for call in calls)),
        "truncated": sum(each.is_truncated for each in known),
        "not_alone": sum(each.stands_alone is False for each in known),
        "prompt_tokens": round(sum(each.prompt_tokens or 0 for each in known)),
        "completion_tokens": round(sum(each.completion_tokens or 0 for each in known)),
        "cost_usd": round(math.fsum(costs), 8) if len(costs) == len(known) else None,
        "inference_s": round(math.fsum(each.seconds or 0 for each in known), 3),
        "latency_s": _latencies(
            [float(call.latency_s) for call in calls if call.latency_s is not None]
        ),
    }


def _latencies(seconds: list[float]) -> Latencies | None:
    if not seconds:
        return None
    ordered = sorted(seconds)
    return {
        "median": round(median(ordered), 3),
        # The smallest number that at least 95 % do not exceed.
        "p95": ordered[math.ceil(0.95 * len(ordered)) - 1],
        "maximum": ordered[-1],
    }
