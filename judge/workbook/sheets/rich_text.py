"""Text of a cell that consists of runs, without its formatting."""

from __future__ import annotations


class InlineText:
    """Text that consists of a plain part and formatted runs, without its phonetic hints."""

    __slots__ = ("_depth", "_phonetic", "_plain", "_runs")

    def __init__(self) -> None:
        self._plain = ""
        self._runs: list[str] = []
        self._depth = 0
        self._phonetic = False

    def start(self, tag: str) -> None:
        """Called for each element within."""
        self._depth += 1
        if tag == "rPh":
            self._phonetic = True

    def end(self, tag: str, text: list[str]) -> None:
        """Called at the end of each element within, with the text since it began."""
        self._depth -= 1
        if tag == "rPh":
            self._phonetic = False
        elif tag == "t" and not self._phonetic:
            if self._depth == 0:
                self._plain = "".join(text)
            else:
                self._runs.append("".join(text))

    @property
    def content(self) -> str:
        """The text without formatting."""
        return self._plain + "".join(self._runs) if self._runs else self._plain
