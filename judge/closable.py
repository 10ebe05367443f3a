"""Objects that are closed at the end of a ``with`` statement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closable(ABC):
    """An object with a ``close`` method, which is called at the end of a ``with`` statement."""

    @abstractmethod
    def close(self) -> None:
        """Releases its resources; safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClosable(Closable):
    """Also supports ``async with``, which calls ``close`` in another thread."""

    async def aclose(self) -> None:
        """Closes the object without blocking the event loop."""
        import asyncio  # noqa: PLC0415 - who awaits this has imported it; others need not

        await asyncio.to_thread(self.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
