"""The client's side of a Dask cluster: connecting, sending requests and receiving answers as bytes.

This module also starts workers for one command, through :mod:`judge.grading.cluster.programs`, and
registers the plugin that opens the sandbox and the engines on each worker.

Messages from a cluster run no code, and their size is limited before they are read. ``distributed``
unpickles in many places: results, exceptions, the type of a result, warnings, events. Each of them
can come from a worker. A pickle can run code only through the classes and functions that it names,
and Python reports each of these names to its audit hooks first. While a cluster is in use, an audit
hook refuses all names except a few harmless ones.

A message of Dask begins with the number and the lengths of its parts. The first part describes the
structure in msgpack, where one byte may become an object of 64 bytes. Results and exceptions are
separate parts, which may be compressed, pickled, or msgpack again. The lengths are checked before
any part of a message is read, and the structure before it is unpacked. Of all other parts, only
plain bytes are used: workers answer in bytes, and nothing else from them is needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgpack
from distributed import Client, Future, protocol
from distributed.comm import tcp
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.protocol.serialize import msgpack_decode_default
from distributed.protocol.utils import msgpack_opts
from distributed.security import Security

from judge.errors import ClusterError, JudgeError
from judge.files.documents import MIB
from judge.grading.batch import WorkerRecipe
from judge.grading.cluster.config import ClusterSpec
from judge.grading.cluster.dispatch import Answered, WorkerFacts
from judge.grading.cluster.messages import MAX_ANSWER_BYTES
from judge.grading.cluster.programs import ROLES, security_of, settle
from judge.grading.cluster.worker import answer, worker_resources
from judge.version import __version__

_HARMLESS = frozenset({("builtins", "bytes")})
"""The only names that a pickle may contain: Dask writes them when a worker answers with bytes."""

MAX_MESSAGE_BYTES = MAX_ANSWER_BYTES + 16 * MIB
"""Longest message that is read; answers that would exceed it together are fetched one by one."""

MAX_STRUCTURE_BYTES = 8 * MIB
"""Longest description of a message's structure; with a thousand workers, a tenth of it is used."""

_MAX_PARTS = 100_000
_MAX_HEAD_BYTES = 64 * 1024
_NOT_READ = "not read: it is not plain bytes"
"""Stands for a part of a message that is not needed, so that the other parts can be read."""

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
    """Makes this process refuse long messages from clusters, and read only plain bytes from them.

    This applies to all threads. The process must be a client of Dask: schedulers and workers have
    to read other data as well.
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


NAME = "judge"
_CONNECT_S = 15.0
_CALL_S = 30.0
_FETCH_S = 120.0
_CLOSE_S = 1.0
_REPORT_S = 1.0
_IN_MEMORY = "memory"
_ENDED = frozenset({"erred", _IN_MEMORY})
_PLAIN = ["msgpack"]
_STOP_S = 2.0
_RELEASE_S = 30.0
_WATCH_S = 0.2
_RUNNING = frozenset({"executing", "long-running"})


class JudgePlugin(WorkerPlugin):
    """Opens sandbox and engines on a worker; ends tasks for which no client waits any more.

    A task that was cancelled, or whose client is gone, continues in its thread as if nothing had
    happened; only the worker's own record of the task shows that it is no longer wanted.

    Args:
        recipe: a pickled :class:`judge.grading.batch.WorkerRecipe`. If it is from another version
            of the judge, it is ignored, and the handshake refuses the worker.
    """

    name = NAME

    def __init__(self, recipe: bytes) -> None:
        self._version = __version__
        self._recipe = recipe

    def setup(self, worker: Any) -> None:
        """Starts threads that open the sandbox and the engines, and that watch tasks.

        Meanwhile, the worker can already introduce itself.
        """
        self._ended = threading.Event()
        if self._version == __version__:
            threading.Thread(target=self._open, daemon=True).start()
        threading.Thread(target=self._watch, args=(worker,), daemon=True).start()

    def teardown(self, worker: Any) -> None:
        """Ends everything that runs, and closes sandbox and engines."""
        del worker
        self._ended.set()
        resources = worker_resources()
        if (key := resources.current) is not None:
            resources.abandon(key)
        resources.close()

    def _open(self) -> None:
        recipe = pickle.loads(self._recipe)  # noqa: S301  from the client, whose code runs here anyway
        with contextlib.suppress(JudgeError):  # the handshake reports it
            worker_resources().open(recipe)

    def _watch(self, worker: Any) -> None:
        resources = worker_resources()
        while not self._ended.wait(_WATCH_S):
            key = resources.current
            if key is None:
                continue
            task = worker.state.tasks.get(key)
            if task is None or task.state not in _RUNNING:
                resources.abandon(key)


class WorkerTurns:
    """The tasks of each worker in order of arrival, for all runs that share a client.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[str, list[str]] = {}
        self._present: frozenset[str] = frozenset()
        self._left: set[str] = set()

    def add(self, address: str, key: str) -> None:
        """Notes that a task was sent to a worker."""
        with self._lock:
            self._keys.setdefault(address, []).append(key)

    def see(self, addresses: Collection[str]) -> None:
        """Notes which workers exist now."""
        with self._lock:
            self._present = frozenset(addresses)

    def is_first(self, address: str, key: str) -> bool:
        """Returns whether a worker has no task that is earlier than this one."""
        with self._lock:
            return self._keys.get(address, [key])[0] == key

    def end(self, key: str, *, answered: bool) -> None:
        """Notes that a task has ended or was cancelled.

        If the worker of the task is gone, its list of tasks is kept until every run has read it, so
        that all runs see the same first task.
        """
        with self._lock:
            for address, keys in list(self._keys.items()):
                if key not in keys:
                    continue
                if answered or address in self._present:
                    keys.remove(key)
                else:
                    self._left.add(key)
                if self._left.issuperset(keys):
                    self._left.difference_update(self._keys.pop(address))


class Connection:
    """A connection to a scheduler; see :class:`judge.grading.cluster.dispatch.Cluster`.

    Args:
        client: a connected client.
        address: the address of the scheduler, for messages.
        clock: a monotonic clock, in seconds.
        turns: the tasks of all runs that share the client.
    """

    def __init__(
        self,
        client: Client,
        address: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        turns: WorkerTurns | None = None,
    ) -> None:
        self._turns = turns or WorkerTurns()
        self._client = client
        self._clock = clock
        self._address = address
        self._scheduler: Any = client.scheduler  # the interface for requests to the scheduler
        self._futures: dict[str, Future[Any]] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stranded: dict[str, float] = {}
        self._unreported: set[str] = set()

    def for_run(self) -> Connection:
        """Returns the same connection for one run, which only gets the answers to its own tasks."""
        return Connection(self._client, self._address, clock=self._clock, turns=self._turns)

    def prepare(self, recipe: WorkerRecipe) -> None:
        """Makes all workers open the sandbox and the engines, including workers that join later."""
        with self._calling():
            self._client.register_plugin(JudgePlugin(pickle.dumps(recipe)), name=NAME)

    def release(self) -> None:
        """Makes every worker that can be reached close sandbox and engines."""
        if self._client.status == "running":
            with contextlib.suppress(Exception):
                self._client.unregister_worker_plugin(NAME)

    def workers(self) -> Mapping[str, WorkerFacts]:
        """Returns the current workers, by address."""
        threads_of = self._call(self._scheduler.ncores)
        self._find_stranded()
        self._turns.see(threads_of)
        return {address: WorkerFacts(int(threads)) for address, threads in threads_of.items()}

    def send(self, address: str, key: str, request: bytes) -> None:
        """Sends a task to a worker."""
        with self._calling():
            future: Future[Any] = self._client.submit(
                answer,
                request,
                key=key,
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )
        self._futures[key] = future
        self._turns.add(address, key)
        future.add_done_callback(lambda _: self._ended.put(key))

    def wait(self, timeout_s: float) -> Sequence[Answered]:
        """Waits until a task has ended; returns all ended tasks."""
        keys = self._next(timeout_s)
        if self._client.status not in ("running", "connecting") or self._lost(keys):
            raise ClusterError(f"the connection to the scheduler {self._address} was lost")
        data = self._fetch([key for key in keys if self._is_finished(key)])
        answered = [self._answered(key, data.get(key)) for key in keys]
        self._unreported.difference_update(keys)
        for key in keys:
            self._futures.pop(key).release()
            self._turns.end(key, answered=True)
        return answered

    def cancel(self, keys: Collection[str]) -> None:
        """Cancels tasks."""
        for key in keys:
            self._turns.end(key, answered=False)
        futures = [future for key in keys if (future := self._futures.pop(key, None)) is not None]
        if futures and self._client.status == "running":
            with contextlib.suppress(Exception):
                self._client.cancel(futures, force=True)

    def is_next(self, address: str, key: str) -> bool:
        """Returns whether this worker has no earlier task of another run."""
        return self._turns.is_first(address, key)

    def _find_stranded(self) -> None:
        """Finds tasks that have ended without a report from the scheduler.

        The scheduler packs several reports into one message. If one worker makes a message too long
        or unreadable, the client drops it together with the reports on other workers, whose answers
        are then fetched without a report. A task that no worker has may still be waiting: a new
        worker gets no tasks until it has imported the judge.
        """
        pending = [key for key, future in self._futures.items() if future.status == "pending"]
        if not pending:
            return
        states = self._call(self._scheduler.get_task_status, keys=pending)
        now = self._clock()
        self._stranded = {
            key: self._stranded.get(key, now) for key in pending if states.get(key) in _ENDED
        }
        for key, since in self._stranded.items():
            if now - since >= _REPORT_S:  # reports about more recent ones may still arrive
                if states[key] == _IN_MEMORY:
                    self._unreported.add(key)
                self._ended.put(key)

    def _next(self, timeout_s: float) -> list[str]:
        """Waits for a task to end; returns the keys of all tasks that have ended."""
        keys = []
        with contextlib.suppress(queue.Empty):
            keys.append(self._ended.get(timeout=timeout_s))
            while True:
                keys.append(self._ended.get_nowait())
        return [key for key in dict.fromkeys(keys) if key in self._futures]

    def _lost(self, keys: Sequence[str]) -> bool:
        """Returns whether tasks were cancelled, although this client did not cancel them.

        If so, a new scheduler has replaced the one that had them.
        """
        return any(self._futures[key].status == "cancelled" for key in keys)

    def _fetch(self, keys: Sequence[str]) -> dict[str, object]:
        """Fetches answers by key; an answer that is not plain data does not affect the others."""
        if not keys:
            return {}
        try:
            reply = self._client.sync(
                self._scheduler.gather, keys=list(keys), callback_timeout=_FETCH_S
            )
            report = dict(reply)
        except TimeoutError:  # a worker was lost; `workers` notices a lost scheduler
            return self._fetch_each(keys)
        except OSError as error:
            raise ClusterError(f"the scheduler {self._address} is gone: {error}") from error
        except Exception:  # noqa: BLE001  any error means that there is no answer
            return self._fetch_each(keys)
        if report.get("status") == "OK":
            return dict(report["data"])
        missing = set(report.get("keys", keys))
        return self._fetch([key for key in keys if key not in missing])

    def _fetch_each(self, keys: Sequence[str]) -> dict[str, object]:
        """Fetches answers one by one, after fetching them together failed."""
        if len(keys) == 1:
            return {}
        return {name: data for key in keys for name, data in self._fetch([key]).items()}

    def _is_finished(self, key: str) -> bool:
        """Returns whether a worker holds an answer to the task."""
        return key in self._unreported or self._futures[key].status == "finished"

    def _answered(self, key: str, data: object) -> Answered:
        if isinstance(data, bytes):
            return Answered(key, data)
        if self._is_finished(key):
            return Answered(key, None, "its answer is not plain data, or was lost")
        return Answered(key, None, "it could not finish the task")

    def _call(self, function: Any, **arguments: object) -> Any:
        with self._calling():
            return self._client.sync(function, callback_timeout=_CALL_S, **arguments)

    @contextlib.contextmanager
    def _calling(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise ClusterError(
                f"the scheduler {self._address} cannot be reached: {error or type(error).__name__}"
            ) from error


@contextlib.contextmanager
def connected(address: str, security: Security | None) -> Iterator[Connection]:
    """Connects to a running scheduler.

    Raises:
        ClusterError: the scheduler does not answer, or refuses this client.
    """
    with refusing_pickles(), reading_plain_data():
        try:
            client = Client(
                address,
                security=security,
                timeout=_CONNECT_S,
                serializers=_PLAIN,
                deserializers=_PLAIN,
                set_as_default=False,
                direct_to_workers=False,
            )
        except (OSError, RuntimeError, ValueError, TypeError) as error:
            raise ClusterError(
                f"{address}: no scheduler can be reached there: {error}",
                hint="Start one (`judge cluster scheduler`), with the same certificates as here.",
            ) from error
        for topic in ("print", "warn"):  # a worker could fill them, and nobody here reads them
            client.unsubscribe_topic(topic)
        connection = Connection(client, address)
        try:
            yield connection
        finally:
            connection.release()
            with contextlib.suppress(Exception):
                client.close(timeout=_CLOSE_S)
            client.status = "closed"  # otherwise its destructor tries again and reports that


@contextlib.contextmanager
def reached(cluster_spec: ClusterSpec) -> Iterator[Connection]:
    """Connects to a cluster, which is started first if necessary.

    Raises:
        ClusterError: the cluster cannot be started or reached.
    """
    settle()
    if cluster_spec.kind == "address":
        with connected(cluster_spec.address, security_of(cluster_spec.certificates)) as connection:
            yield connection
        return
    with _host(cluster_spec) as answer:
        security = None
        if answer["tls"] is not None:
            fields = {f"tls_{name}": answer["tls"][name] for name in ROLES}
            security = Security(require_encryption=True, **fields)
        with connected(answer["address"], security) as connection:
            yield connection


@contextlib.contextmanager
def _host(cluster_spec: ClusterSpec) -> Iterator[dict[str, Any]]:
    """Runs the process that starts the workers; yields the document in which it describes them."""
    files = cluster_spec.certificates
    plan = {
        "kind": cluster_spec.kind,
        "workers": cluster_spec.workers,
        "options": dict(cluster_spec.options),
        "certificates": files and {name: str(path) for name, path in asdict(files).items()},
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "judge.grading.cluster.programs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # It ends immediately; warnings about semaphores of its processes are no use to a user.
        env={**os.environ, "PYTHONWARNINGS": "ignore:resource_tracker"},
        start_new_session=True,  # the client handles an interrupt at the terminal
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(plan) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise ClusterError(
                f"{cluster_spec.name}: the workers could not be started",
                hint="The output of the program that starts them is above.",
            )
        yield json.loads(line)
    finally:
        process.stdin.close()
        wait_s = _STOP_S if cluster_spec.kind == "local" else _RELEASE_S
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
