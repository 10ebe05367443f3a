"""Limits of a run: a value that would decide every verdict is refused."""

from __future__ import annotations

import pytest

from judge.core.limits import Limits
from judge.errors import UsageError


@pytest.mark.parametrize("name", ["cpu_s", "wall_s", "memory_bytes", "processes", "output_bytes"])
@pytest.mark.parametrize("value", [0, -1, "20", None, True, float("inf"), float("nan")])
def test_a_bound_is_a_number_above_0(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"the limit {name} is"):
        Limits(**{name: value})  # type: ignore[arg-type]


def test_bytes_are_whole() -> None:
    assert Limits(cpu_s=1, wall_s=0.5, memory_bytes=1, processes=1).wall_s == 0.5
    with pytest.raises(UsageError, match="not a whole number"):
        Limits(memory_bytes=1.5)  # type: ignore[arg-type]
