"""Schedulers and workers as programs of their own, for a cluster that outlives a command."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from urllib.parse import urlsplit

from distributed import Nanny, Scheduler

from judge.cluster.engine.security import NO_PAGES, security_of, settle
from judge.cluster.place import Place
from judge.errors import ClusterError

_WAIT_S = 60


async def serve_scheduler(place: Place, on_ready: Callable[[str], None]) -> None:
    """Runs a scheduler until it is cancelled.

    Args:
        place: where it listens, and with which certificates.
        on_ready: called with its address.

    Raises:
        ClusterError: it cannot listen there.
    """
    settle(logging.WARNING)
    parts = urlsplit(place.address)
    try:
        async with Scheduler(
            host=parts.hostname,
            port=parts.port or 0,
            protocol=f"{parts.scheme}://",
            security=security_of(place.certificates),
            dashboard_address=NO_PAGES,
        ) as scheduler:
            on_ready(str(scheduler.address))
            await scheduler.finished()
    except OSError as error:
        raise ClusterError(f"{place.address}: {error.strerror or error}") from error


async def serve_workers(place: Place, on_ready: Callable[[str], None]) -> None:
    """Runs workers until they are cancelled, or their scheduler is gone.

    Each is a process with one thread, so that what kills it takes nothing else along; one that
    died is started again.

    Args:
        place: the scheduler, the certificates, and how many workers.
        on_ready: called with the address of each.

    Raises:
        ClusterError: there is no scheduler, or it refuses these workers.
    """
    settle(logging.WARNING)
    nannies = [
        Nanny(
            place.address,
            nthreads=1,
            memory_limit=0,
            security=security_of(place.certificates),
            death_timeout=_WAIT_S,
            dashboard_address=NO_PAGES,
        )
        for _ in range(place.workers)
    ]
    try:
        await asyncio.gather(*nannies)
        for nanny in nannies:
            on_ready(str(nanny.worker_address))
        await asyncio.gather(*(nanny.finished() for nanny in nannies))
    except (OSError, TimeoutError, RuntimeError) as error:
        raise ClusterError(
            f"{place.address}: no scheduler can be reached there: {error.__cause__ or error}",
            hint="Start one (`judge cluster scheduler`), with the same certificates as here.",
        ) from error
    finally:
        await asyncio.gather(*(nanny.close(timeout=1) for nanny in nannies), return_exceptions=True)
