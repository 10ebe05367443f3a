"""The client of ``judge submit``: submits a file, waits for its result, and retries safely.

The idempotency key is computed from the content: if the connection is lost and the same command is
run again, it finds the submission that it has already made.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from judge.errors import JudgeError, SubmissionError, UsageError

TOKEN_VARIABLE = "JUDGE_TOKEN"  # noqa: S105  a name
_MAX_ATTEMPTS = 8  # of one request; with their pauses, they take about a minute
_TIMEOUT_S = 90.0  # longer than the server lets a request wait
_WAIT_S = 30  # how long the server may hold a request for a result
_MAX_PAUSE_S = 60.0  # between two attempts
_TYPES = {".jsonl": "application/x-ndjson", ".zip": "application/zip", ".py": "text/x-python"}
_FINISHED = frozenset({"done", "failed", "cancelled"})


class ServerAnswerError(JudgeError):
    """The server refused a request, or cannot be reached."""


@dataclass(frozen=True, slots=True)
class SubmissionContent:
    """A submission to be made.

    Attributes:
        solutions: a .jsonl, a .py, a .zip, or a folder of finished workbooks.
        phase: name or id of the phase.
        claims: what the submitter states about it: ``system``, ``model``, ``task``, ``team`` …
        again: whether to make a new submission even if the content is the same.
    """

    solutions: Path
    phase: str
    claims: Mapping[str, str]
    again: bool = False


def read_token(path: Path | None) -> str:
    """The token from the environment, or from a file that only its user can read.

    Raises:
        UsageError: there is no token, or other users can read the file.
    """
    if path is None:
        token = os.environ.get(TOKEN_VARIABLE, "").strip()
        if not token:
            raise UsageError("no token", hint=f"Set {TOKEN_VARIABLE}, or give --token-file.")
        return token
    try:
        status = path.stat()
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"{path}: others can read it", hint=f"chmod 600 {path}")
    return token


class Client:
    """Talks to one server.

    Args:
        url: the URL of the server, without ``/v1``.
        token: see :func:`read_token`.
        on_notice: called with a message about what the client waits for.
        transport: replaces the network in tests.
        sleep: replaces ``time.sleep`` in tests.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        on_notice: Callable[[str], None] = lambda _: None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"--to: {url!r} is not the URL of a server")
        self._url = url.rstrip("/")
        self._notice = on_notice
        self._sleep = sleep
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {token}", "User-Agent": "judge submit"},
            timeout=_TIMEOUT_S,
            transport=transport,
            follow_redirects=False,
        )

    def submit(self, submission: SubmissionContent) -> dict[str, Any]:
        """Submits a file.

        Returns:
            The server's answer: id, state, position in the queue.

        Raises:
            SubmissionError: the server does not accept it; the message is the server's.
            ServerAnswerError: the server cannot be reached.
        """
        content, kind = _content_of(submission.solutions)
        key = secrets.token_hex(16) if submission.again else _key(content, submission)
        answer = self._ask(
            "POST",
            "/v1/submissions",
            params={"phase": submission.phase, **submission.claims},
            content=content,
            headers={"Content-Type": kind, "Idempotency-Key": key},
        )
        created = dict(answer.json())
        if answer.headers.get("idempotency-replayed") == "true":
            return self.status(created["id"])
        return created

    def status(self, submission: str) -> dict[str, Any]:
        """The current state of a submission."""
        return dict(self._ask("GET", f"/v1/submissions/{submission}").json())

    def wait(
        self, submission: str, *, on_change: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        """Waits until a submission is judged."""
        tag = '"0"'
        while True:
            answer = self._ask(
                "GET",
                f"/v1/submissions/{submission}",
                params={"wait": str(_WAIT_S)},
                headers={"If-None-Match": tag},
            )
            if answer.status_code == httpx.codes.NOT_MODIFIED:
                continue
            tag = answer.headers["etag"]
            view = dict(answer.json())
            on_change(view)
            if view["state"] in _FINISHED:
                return view

    def cancel(self, submission: str) -> dict[str, Any]:
        """Ends the judging of a submission."""
        current = self._ask("GET", f"/v1/submissions/{submission}")
        answer = self._ask(
            "POST",
            f"/v1/submissions/{submission}:cancel",
            headers={"If-Match": current.headers["etag"]},
        )
        return dict(answer.json())

    def result(self, submission: str) -> bytes:
        """The signed result of a submission."""
        return self._ask("GET", f"/v1/submissions/{submission}/result").content

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()

    def _ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        for attempt in range(_MAX_ATTEMPTS):
            pause = min(_MAX_PAUSE_S, 0.5 * 2**attempt)
            try:
                answer = self._client.request(method, self._url + path, **request)
            except httpx.TransportError as error:
                if attempt == _MAX_ATTEMPTS - 1:
                    raise ServerAnswerError(
                        f"{self._url} cannot be reached: {error}",
                        hint="Repeating the same command does not make a second submission.",
                    ) from error
                self._notice(f"{self._url} does not answer; trying again")
                self._sleep(pause)
                continue
            after = answer.headers.get("retry-after", "")
            if answer.status_code not in {429, 503, 507} or attempt == _MAX_ATTEMPTS - 1:
                break
            problem = _problem(answer)
            if problem.get("type", "").endswith("/quota-exceeded"):
                break
            self._notice(problem.get("detail") or problem.get("title") or "the server is busy")
            self._sleep(min(_MAX_PAUSE_S, float(after)) if after.isdecimal() else pause)
        if answer.is_success or answer.status_code == httpx.codes.NOT_MODIFIED:
            return answer
        raise _refused(answer)


_HINTS = {
    401: "A token can be unknown, expired or revoked: make a new one on the page /me/tokens.",
}


def _refused(answer: httpx.Response) -> JudgeError:
    problem = _problem(answer)
    text = problem.get("title") or f"the server answered {answer.status_code}"
    detail = str(problem.get("detail") or "")
    faults = [str(fault.get("detail")) for fault in problem.get("errors", [])[:5]]
    details = [*([detail] if detail else []), *(fault for fault in faults if fault not in detail)]
    message = ": ".join([str(text), "; ".join(dict.fromkeys(details))] if details else [str(text)])
    kind = SubmissionError if answer.status_code in {400, 413, 415, 422} else ServerAnswerError
    return kind(message, hint=_HINTS.get(answer.status_code))


def _problem(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _content_of(path: Path) -> tuple[bytes, str]:
    """The request body for a file or a folder of finished workbooks, and its content type."""
    try:
        if path.is_dir():
            return _zipped(path), _TYPES[".zip"]
        kind = _TYPES.get(path.suffix.lower())
        if kind is None:
            raise UsageError(
                f"{path}: is neither solutions, a program nor an archive",
                hint="Give a .jsonl, a .py, a .zip, or a folder of finished workbooks.",
            )
        return path.read_bytes(), kind
    except OSError as error:
        raise SubmissionError(f"{path}: cannot be read: {error.strerror or error}") from error


def _zipped(folder: Path) -> bytes:
    """Packs the files of a folder into an archive; the same files always give the same bytes."""
    import io  # noqa: PLC0415  needed only for folders

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                name = path.relative_to(folder).as_posix()
                archive.writestr(zipfile.ZipInfo(name), path.read_bytes())
    return buffer.getvalue()


def _key(content: bytes, submission: SubmissionContent) -> str:
    digest = hashlib.sha256(content)
    for part in (submission.phase, repr(sorted(submission.claims.items()))):
        digest.update(b"\0" + part.encode())
    return digest.hexdigest()[:40]
