"""Notebooks with many outputs: the work grows with their text, not with its square."""

from __future__ import annotations

from judge.compare.files.documents import shown


class Piece(str):
    """Text that counts how many characters are copied when it is appended to other text."""

    __slots__ = ()
    copied = 0

    def __str__(self) -> str:
        return self

    def __add__(self, other: str) -> str:
        Piece.copied += len(self) + len(other)
        return Piece(super().__add__(other))


def test_a_stream_in_many_pieces_is_put_together_once() -> None:
    count = 2_000
    pieces = [Piece(f"line {number}\n") for number in range(count)]
    outputs = [{"output_type": "stream", "name": "stdout", "text": each} for each in pieces]
    Piece.copied = 0
    (stream,) = shown({"outputs": outputs})
    assert stream == ["stream", "stdout", "".join(pieces).rstrip()]
    assert Piece.copied <= 2 * sum(map(len, pieces))


def test_streams_are_apart_where_something_else_is_between_them() -> None:
    def stream(name: str, text: str) -> dict[str, object]:
        return {"output_type": "stream", "name": name, "text": text}

    outputs = [
        stream("stdout", "a  \n"),
        stream("stdout", "b\n"),
        stream("stderr", "c"),
        stream("stdout", "d"),
        {"output_type": "display_data", "data": {"text/plain": "e"}},
        stream("stdout", "f"),
        {"output_type": "error", "ename": "E", "evalue": "v"},
        stream("stdout", "g"),
    ]
    assert shown({"outputs": outputs}) == [
        ["stream", "stdout", "a\nb"],
        ["stream", "stderr", "c"],
        ["stream", "stdout", "d"],
        ["data", {"text/plain": "e"}],
        ["stream", "stdout", "f"],
        ["error", "E", "v"],
        ["stream", "stdout", "g"],
    ]
