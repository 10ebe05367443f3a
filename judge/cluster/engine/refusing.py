"""Ensures that messages from a cluster cannot run code, and limits their size before reading.

``distributed`` unpickles in many places: results, exceptions, the type of a result, warnings,
events. Each of them can come from a worker. A pickle can run code only through the classes and
functions that it names, and Python reports each of these names to its audit hooks first. While a
cluster is in use, an audit hook refuses all names except a few harmless ones.

A message of Dask begins with the number and the lengths of its parts. The first part describes the
structure in msgpack, where one byte may become an object of 64 bytes. Results and exceptions are
separate parts, which may be compressed, pickled, or msgpack again. The lengths are checked before
any part of a message is read, and the structure before it is unpacked. Of all other parts, only
plain bytes are used: workers answer in bytes, and nothing else from them is needed.
"""

from __future__ import annotations

import contextlib
import pickle
import struct
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgpack
from distributed import protocol
from distributed.comm import tcp
from distributed.protocol.serialize import msgpack_decode_default
from distributed.protocol.utils import msgpack_opts

from judge.cluster.messages import MAX_ANSWER_BYTES
from judge.files.documents import MIB

_HARMLESS = frozenset({("builtins", "bytes")})
"""The only names that a pickle may contain: Dask writes them when a worker answers with bytes."""

MAX_MESSAGE_BYTES = MAX_ANSWER_BYTES + 16 * MIB
"""Longest message that is read; answers that would exceed it together are fetched one by one."""

MAX_STRUCTURE_BYTES = 8 * MIB
"""Longest description of a message's structure; with a thousand workers, a tenth of it is used."""

_MAX_PARTS = 100_000
_MAX_HEAD_BYTES = 64 * 1024
_NOT_READ = "not read: it is not plain bytes"
"""Replaces a part that is not needed, so that the rest of its message can be read."""

_BIN = {b"\xc4": 1, b"\xc5": 2, b"\xc6": 4}
"""First byte of a byte string in msgpack -> number of bytes of the length that follows."""

_lock = threading.Lock()
_state = {"hooked": False, "users": 0, "readers": 0}


class RefusedPickleError(pickle.UnpicklingError):
    """A pickle names something other than plain data."""


@contextlib.contextmanager
def refusing_pickles() -> Iterator[None]:
    """Refuses pickles that name classes or functions, in all threads of this process."""
    with _lock:
        if not _state["hooked"]:
            sys.addaudithook(_check)  # cannot be removed; otherwise the hook does nothing
            _state["hooked"] = True
        _state["users"] += 1
    try:
        yield
    finally:
        with _lock:
            _state["users"] -= 1


class TooLargeError(Exception):
    """A message from the cluster is longer than any honest one."""


@contextlib.contextmanager
def reading_plain_data() -> Iterator[None]:
    """Limits the size of messages from clusters, and reads only plain bytes from them.

    This applies to all threads of this process, which must be a client: schedulers and workers of
    Dask need more than that.
    """
    with _lock:
        _state["readers"] += 1
        if _state["readers"] == 1:
            for (module, name), replacement in _REPLACED.items():
                setattr(module, name, replacement)
    try:
        yield
    finally:
        with _lock:
            _state["readers"] -= 1
            if _state["readers"] == 0:
                for (module, name), original in _ORIGINALS.items():
                    setattr(module, name, original)


async def _read_bytes(stream: Any, size: int) -> Any:
    if size > MAX_MESSAGE_BYTES:
        raise TooLargeError(f"a message of {size:,} bytes")
    read: Callable[[Any, int], Awaitable[Any]] = _ORIGINALS[tcp, "read_bytes_rw"]
    return await read(stream, size)


def _unpack_parts(data: Any, **options: Any) -> Any:
    (count,) = struct.unpack_from("Q", data)
    if count > _MAX_PARTS:
        raise TooLargeError(f"a message of {count:,} parts")
    frames = _ORIGINALS[tcp, "unpack_frames"](data, **options)
    if options.get("partial") and sum(frames[1]) > MAX_MESSAGE_BYTES:
        raise TooLargeError(f"a message of {sum(frames[1]):,} bytes")
    return frames


def _loads(parts: Sequence[Any], deserialize: bool = True, deserializers: Any = None) -> Any:
    """Reads a message as ``distributed.protocol.loads`` does, but only plain data."""
    del deserialize, deserializers
    structure = memoryview(parts[0])
    if structure.nbytes > MAX_STRUCTURE_BYTES:
        return ()  # dropped: after an error, the client would receive nothing more

    def decoded(value: dict[Any, Any]) -> Any:
        at = value.get("__Serialized__", 0)
        if type(at) is int and at > 0:
            return _bytes_of(parts, at)
        return _NOT_READ if "__Pickled__" in value else msgpack_decode_default(value)

    return msgpack.loads(structure, object_hook=decoded, use_list=False, **msgpack_opts)


def _bytes_of(parts: Sequence[Any], at: int) -> object:
    """Returns the bytes in a part, if it holds bytes."""
    if not at < len(parts) or memoryview(parts[at]).nbytes > _MAX_HEAD_BYTES:
        return _NOT_READ
    head = msgpack.loads(parts[at], use_list=False, **msgpack_opts)
    if head.get("serializer") != "msgpack" or any(head.get("compression") or ()):
        return _NOT_READ
    data = b"".join(parts[at + 1 : at + 1 + head["num-sub-frames"]])
    size = _BIN.get(data[:1])
    if size is None or data[1 : 1 + size] != (len(data) - 1 - size).to_bytes(size, "big"):
        return _NOT_READ
    return data[1 + size :]


_REPLACED: dict[tuple[Any, str], Any] = {
    (tcp, "read_bytes_rw"): _read_bytes,
    (tcp, "unpack_frames"): _unpack_parts,
    (protocol, "loads"): _loads,
}
_ORIGINALS: dict[tuple[Any, str], Any] = {
    (module, name): getattr(module, name) for module, name in _REPLACED
}


def _check(event: str, arguments: tuple[object, ...]) -> None:
    if event == "pickle.find_class" and _state["users"] and arguments not in _HARMLESS:
        module, name = arguments
        raise RefusedPickleError(f"a pickle from the cluster names {module}.{name}")
