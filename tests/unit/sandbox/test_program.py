from __future__ import annotations

import resource

from judge.sandbox.warden.program import _bound
from tests.bounds import in_bounds


def test_the_kernel_leaves_the_time_limit_to_the_warden() -> None:
    """The kernel's count was up to a twentieth above the warden's, which gave RE instead of TLE."""

    def bound() -> None:
        _bound({"cpu_s": 60.0, "processes": 64}, None)
        soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
        assert 60 * 1.1 < soft < hard < 60 * 2

    assert in_bounds(bound, cpu_s=1000, memory_bytes=1 << 30) == 0
