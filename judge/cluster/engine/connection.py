"""The client's side of a Dask cluster: bytes out, bytes in."""

from __future__ import annotations

import contextlib
import pickle
import queue
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from distributed import Client, Future
from distributed.security import Security

from judge.cluster.contract import Answered, WorkerFacts
from judge.cluster.duties import answer
from judge.cluster.engine.plugin import NAME, JudgePlugin
from judge.cluster.engine.refusing import reading_plain_data, refusing_pickles
from judge.errors import ClusterError
from judge.grading.recipe import WorkerRecipe

_CONNECT_S = 15.0
_CALL_S = 30.0
_FETCH_S = 120.0
_CLOSE_S = 1.0
_NEWS_S = 1.0
_ENDED = frozenset({"erred", "memory"})
_PLAIN = ["msgpack"]


class Connection:
    """A connection to a scheduler; see :class:`judge.cluster.contract.Cluster`.

    Args:
        client: connected.
        address: of the scheduler, for messages.
        clock: seconds that never go back.
    """

    def __init__(
        self, client: Client, address: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._clock = clock
        self._address = address
        self._scheduler: Any = client.scheduler  # what the scheduler can be asked
        self._futures: dict[str, Future[Any]] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stranded: dict[str, float] = {}

    def prepare(self, recipe: WorkerRecipe) -> None:
        """Has every worker open sandbox and engines, those that come later as well."""
        with self._calling():
            self._client.register_plugin(JudgePlugin(pickle.dumps(recipe)), name=NAME)

    def release(self) -> None:
        """Has every worker close them, as far as they can be reached."""
        if self._client.status == "running":
            with contextlib.suppress(Exception):
                self._client.unregister_worker_plugin(NAME)

    def workers(self) -> Mapping[str, WorkerFacts]:
        """The workers that there are now, by address."""
        found = self._call(self._scheduler.ncores)
        self._find_stranded()
        return {address: WorkerFacts(int(threads)) for address, threads in found.items()}

    def send(self, address: str, key: str, request: bytes) -> None:
        """Gives a task to a worker."""
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
        future.add_done_callback(lambda _: self._ended.put(key))

    def wait(self, timeout_s: float) -> Sequence[Answered]:
        """Tasks that have ended, as soon as there is one."""
        keys = self._next(timeout_s)
        if self._client.status not in ("running", "connecting") or self._lost(keys):
            raise ClusterError(f"the connection to the scheduler {self._address} was lost")
        finished = [key for key in keys if self._futures[key].status == "finished"]
        data = self._fetch(finished)
        answered = [self._answered(key, data.get(key)) for key in keys]
        for key in keys:
            self._futures.pop(key).release()
        return answered

    def cancel(self, keys: Collection[str]) -> None:
        """Takes tasks back."""
        futures = [future for key in keys if (future := self._futures.pop(key, None)) is not None]
        if futures and self._client.status == "running":
            with contextlib.suppress(Exception):
                self._client.cancel(futures, force=True)

    def _find_stranded(self) -> None:
        """Ends tasks whose end the scheduler knows and never reported.

        That happens where a worker says of a failure what cannot be read here. That no worker has a
        task says nothing: one that has just come gets none before it has imported the judge.
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
            if now - since >= _NEWS_S:  # the news of the others may be on its way
                self._ended.put(key)

    def _next(self, timeout_s: float) -> list[str]:
        """Keys of the tasks that have ended since; waits for the first."""
        keys = []
        with contextlib.suppress(queue.Empty):
            keys.append(self._ended.get(timeout=timeout_s))
            while True:
                keys.append(self._ended.get_nowait())
        return [key for key in dict.fromkeys(keys) if key in self._futures]

    def _lost(self, keys: Sequence[str]) -> bool:
        """Whether tasks were cancelled that nobody here took back: the scheduler is another."""
        return any(self._futures[key].status == "cancelled" for key in keys)

    def _fetch(self, keys: Sequence[str]) -> dict[str, object]:
        """Answers by key; one that is not plain data must not keep the others from arriving."""
        if not keys:
            return {}
        try:
            reply = self._client.sync(
                self._scheduler.gather, keys=list(keys), callback_timeout=_FETCH_S
            )
            news = dict(reply)
        except TimeoutError:  # of a worker: the scheduler is asked for workers all the time
            return self._fetch_each(keys)
        except OSError as error:
            raise ClusterError(f"the scheduler {self._address} is gone: {error}") from error
        except Exception:  # noqa: BLE001  whatever it is, it is not an answer
            return self._fetch_each(keys)
        if news.get("status") == "OK":
            return dict(news["data"])
        missing = set(news.get("keys", keys))
        return self._fetch([key for key in keys if key not in missing])

    def _fetch_each(self, keys: Sequence[str]) -> dict[str, object]:
        """The same one by one, after they could not be had together."""
        if len(keys) == 1:
            return {}
        return {name: data for key in keys for name, data in self._fetch([key]).items()}

    def _answered(self, key: str, data: object) -> Answered:
        if isinstance(data, bytes):
            return Answered(key, data)
        if self._futures[key].status == "finished":
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
    """A connection to a running scheduler.

    Raises:
        ClusterError: it does not answer, or refuses this client.
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
        connection = Connection(client, address)
        try:
            yield connection
        finally:
            connection.release()
            with contextlib.suppress(Exception):
                client.close(timeout=_CLOSE_S)
            client.status = "closed"  # or it tries once more when it is destroyed, and says so
