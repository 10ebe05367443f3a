"""Numbers by sample: a few bytes for each, however many samples a task has."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

_SPARSE_BEYOND = 1024


class SampleNumbers:
    """A number for each of the samples of a task, which are counted from 0.

    An array; a mapping for those far off, so that a record that claims an enormous sample costs no
    more memory than any other.
    """

    __slots__ = ("_far", "_near")

    def __init__(self) -> None:
        self._near = array("q")
        self._far: dict[int, int] = {}

    def get(self, sample: int) -> int | None:
        """The number of a sample; None where it has none."""
        if 0 <= sample < len(self._near) and self._near[sample] >= 0:
            return self._near[sample]
        return self._far.get(sample)

    def put(self, sample: int, number: int) -> None:
        """Gives a sample a number, from 0 on."""
        if 0 <= sample < 2 * len(self._near) + _SPARSE_BEYOND:
            missing = sample + 1 - len(self._near)
            if missing > 0:
                self._near.extend([-1] * missing)
            self._near[sample] = number
        else:
            self._far[sample] = number

    def __iter__(self) -> Iterator[int]:
        yield from (sample for sample, number in enumerate(self._near) if number >= 0)
        yield from self._far
