from __future__ import annotations

import os
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.sandbox.warden import frames

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(st.text().filter(lambda key: key != "blobs"), VALUES, max_size=4),
    st.lists(st.binary(max_size=200), max_size=4),
)
def test_round_trip(header: dict[str, object], blobs: list[bytes]) -> None:
    frame = frames.pack(header, blobs)
    assert frames.frame_length(frame[:4]) == len(frame) - 4
    assert frames.unpack(frame[4:]) == (header, blobs)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused_or_read(payload: bytes) -> None:
    try:
        header, _ = frames.unpack(payload)
    except frames.ProtocolError:
        return
    assert isinstance(header, dict)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0\0",
        b"\0\0\0\xff{}",
        struct.pack(">I", 2) + b"{}",
        struct.pack(">I", 2) + b"[]",
        struct.pack(">I", 13) + b'{"blobs":[5]}' + b"four",
        struct.pack(">I", 15) + b'{"blobs":[1.5]}' + b"x",
        struct.pack(">I", 15) + b'{"blobs":[-1 ]}',
        struct.pack(">I", 14) + b'{"blobs":null}',
    ],
)
def test_broken_messages(payload: bytes) -> None:
    with pytest.raises(frames.ProtocolError):
        frames.unpack(payload)


def test_a_frame_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(frames.ProtocolError):
        frames.frame_length(b"\xff\xff\xff\xff")


def test_frames_over_a_pipe_in_pieces() -> None:
    read_end, write_end = os.pipe()
    content = os.urandom(3_000_000)
    sender = threading.Thread(
        target=frames.write_all, args=(write_end, frames.pack({"a": 1}, [content]))
    )
    sender.start()
    assert frames.unpack(frames.read_frame(read_end)) == ({"a": 1}, [content])
    sender.join()
    os.write(write_end, b"\0\0")
    os.close(write_end)
    with pytest.raises(frames.ClosedError):
        frames.read_frame(read_end)
    os.close(read_end)
