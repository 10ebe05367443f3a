"""A fake sandbox that follows a script, for tests of code that uses a sandbox."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from judge.closable import Closable
from judge.sandbox.contract import RunRequest, RunResult, SandboxInfo, ServiceChannel

Step = RunResult | BaseException | Callable[[RunRequest], RunResult]
Answer = bytes | BaseException | Callable[[bytes], bytes]


class ScriptedSandbox:
    """Answers each run with the next step of a script; running past its end is an error.

    Args:
        script: results to return, exceptions to raise, or functions of the request.
        answers: the answers of services, one for each call, whichever service is called.
        roots: the roots for which services are available.

    Attributes:
        requests: every request so far, in order.
        calls: every payload sent to a service.
        opened: how many sessions were opened.
        closed: whether the sandbox was closed.
    """

    def __init__(
        self,
        script: Iterable[Step] = (),
        *,
        answers: Iterable[Answer] = (),
        roots: Iterable[str] = ("python", "office"),
    ) -> None:
        self._script = iter(script)
        self._answers = iter(answers)
        self._roots = frozenset(roots)
        self._lock = threading.Lock()
        self.requests: list[RunRequest] = []
        self.calls: list[bytes] = []
        self.opened = 0
        self.closed = False

    @property
    def info(self) -> SandboxInfo:
        """Description of this backend, which isolates nothing."""
        return SandboxInfo(backend="scripted", image="none", python="none")

    def session(self) -> _ScriptedSession:
        """Opens a session."""
        with self._lock:
            self.opened += 1
        return _ScriptedSession(self)

    def has_root(self, root: str) -> bool:
        """Whether the root was given."""
        return root in self._roots

    def root_digest(self, root: str) -> str | None:
        """The root's name."""
        return root if root in self._roots else None

    def service(
        self, program: str, *, root: str = "python", memory_bytes: int | None = None
    ) -> ServiceChannel:
        """A fake service, which gives the answers of the script."""
        del program, memory_bytes
        assert root in self._roots, f"no root {root!r} in this script"
        return _ScriptedService(self)

    def close(self) -> None:
        """Notes that the sandbox was closed."""
        self.closed = True

    def play(self, request: RunRequest) -> RunResult:
        """Plays the next step of the script."""
        with self._lock:
            self.requests.append(request)
            step = next(self._script, None)
        if step is None:
            raise AssertionError(f"run {len(self.requests)} is past the end of the script")
        if isinstance(step, BaseException):
            raise step
        return step if isinstance(step, RunResult) else step(request)

    def answer(self, payload: bytes) -> bytes:
        """The next answer of a service."""
        with self._lock:
            self.calls.append(payload)
            answer = next(self._answers, None)
        if answer is None:
            raise AssertionError(f"call {len(self.calls)} is past the end of the script")
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, bytes) else answer(payload)


class _ScriptedSession(Closable):
    def __init__(self, sandbox: ScriptedSandbox) -> None:
        self._sandbox = sandbox
        self._closed = False

    def run(self, request: RunRequest) -> RunResult:
        assert not self._closed, "run on a closed session"
        return self._sandbox.play(request)

    def close(self) -> None:
        self._closed = True


class _ScriptedService:
    def __init__(self, sandbox: ScriptedSandbox) -> None:
        self._sandbox = sandbox
        self._closed = False

    def call(self, payload: bytes, timeout_s: float) -> bytes:
        del timeout_s
        assert not self._closed, "call of a closed service"
        return self._sandbox.answer(payload)

    def close(self) -> None:
        self._closed = True
