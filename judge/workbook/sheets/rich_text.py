"""Text of a cell that consists of runs, without its formatting."""

from __future__ import annotations

from judge.errors import WorkbookError
from judge.workbook.cell_values import read_string

_CHILDREN = {
    "": {"t", "r", "rPh", "phoneticPr"},
    "r": {"t", "rPr"},
    "rPh": {"t"},
    "t": set(),
    "phoneticPr": set(),
}
"""What may be within what; the format of a run may hold anything."""

_DEEPEST = 64


class InlineText:
    """Text that consists of a plain part and formatted runs, without its phonetic hints.

    Args:
        part: name of the part, for messages.
    """

    __slots__ = ("_in_run", "_part", "_path", "_plain", "_runs", "_seen")

    def __init__(self, part: str) -> None:
        self._part = part
        self._plain = ""
        self._runs: list[str] = []
        self._path: list[str] = []
        self._seen: set[str] = set()
        self._in_run: set[str] = set()

    def start(self, tag: str) -> None:
        """Called for each element within, with its short name.

        Raises:
            WorkbookError: the element does not belong there, or is there twice.
        """
        above = self._path[-1] if self._path else ""
        path = self._path
        path.append(tag)
        if "rPr" in path[:-1]:
            if len(path) > _DEEPEST:
                raise WorkbookError(f"a string of {self._part} nests too many elements")
            return
        misplaced = tag not in _CHILDREN.get(above, ())
        if not above:
            # The plain part comes first, and once.
            misplaced = misplaced or (tag == "t" and bool(self._seen))
            self._seen.add(tag)
            self._in_run.clear()
        elif above == "r":
            misplaced = misplaced or tag in self._in_run
            self._in_run.add(tag)
        if misplaced:
            raise WorkbookError(
                f"{self._part} holds {tag[:80]} where it does not belong in a string"
            )

    def end(self, tag: str, text: list[str]) -> None:
        """Called at the end of each element within, with the text since it began."""
        path = self._path
        path.pop()
        if tag == "t" and "rPr" not in path:
            if not path:
                self._plain = read_string("".join(text))
            elif path == ["r"]:
                self._runs.append(read_string("".join(text)))

    @property
    def content(self) -> str:
        """The text without formatting."""
        return self._plain + "".join(self._runs) if self._runs else self._plain
