from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judge.sandbox.warden.case import Bounded


@given(st.lists(st.binary(max_size=300)), st.integers(0, 100))
def test_bounded_keeps_head_or_tail(chunks: list[bytes], keep_bytes: int) -> None:
    whole = b"".join(chunks)
    for tail in (False, True):
        buffer = Bounded(keep_bytes, tail=tail)
        for chunk in chunks:
            buffer.add(chunk)
        expected = whole[max(0, len(whole) - keep_bytes) :] if tail else whole[:keep_bytes]
        assert buffer.kept() == expected
        assert buffer.total_bytes == len(whole)


def test_a_flood_costs_bounded_memory() -> None:
    buffer = Bounded(1000, tail=True)
    for _ in range(2000):
        buffer.add(b"x" * 65536)
        assert len(buffer._kept) <= 2 * 1000 + 2 * 65536
    assert (len(buffer.kept()), buffer.total_bytes) == (1000, 2000 * 65536)
