"""What asking the chat model took, summed up from the records of submissions. Pure."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable
from statistics import median

from judge.core.conversation import Asking
from judge.core.records.reports import Latencies, UsageReport


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
    tally = UsageTally()
    for submission in submissions:
        tally.add(submission)
    return tally.report()


class UsageTally:
    """The same summed up submission by submission."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._retries = self._prompt = self._completion = 0.0
        self._costs, self._seconds, self._latencies = array("d"), array("d"), array("d")

    def add(self, asking: Asking) -> None:
        """Takes what is on record of asking for a submission."""
        if not asking.is_counted:
            return
        self._counts["submissions"] += 1
        self._counts["calls"] += len(asking.calls)
        self._counts["truncated"] += asking.is_truncated
        self._counts["not_alone"] += asking.stands_alone is False
        self._retries += sum(max(call.attempts - 1, 0) for call in asking.calls)
        self._prompt += asking.prompt_tokens or 0
        self._completion += asking.completion_tokens or 0
        self._seconds.append(asking.seconds or 0)
        if asking.cost_usd is not None:
            self._costs.append(asking.cost_usd)
        self._latencies.extend(
            float(call.latency_s) for call in asking.calls if call.latency_s is not None
        )

    def report(self) -> UsageReport | None:
        """The sums; None where the tokens of no submission are on record."""
        known = self._counts["submissions"]
        if not known:
            return None
        return {
            "submissions": known,
            "calls": self._counts["calls"],
            "retries": round(self._retries),
            "truncated": self._counts["truncated"],
            "not_alone": self._counts["not_alone"],
            "prompt_tokens": round(self._prompt),
            "completion_tokens": round(self._completion),
            "cost_usd": round(math.fsum(self._costs), 8) if len(self._costs) == known else None,
            "inference_s": round(math.fsum(self._seconds), 3),
            "latency_s": _latencies(list(self._latencies)),
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
