"""Downloads a published suite: resumes, checks, and unpacks completely or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import stat
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO, Any, Self

from judge.console import visible
from judge.errors import SuiteError, UsageError
from judge.files.documents import read_kept
from judge.files.paths import cache_folder
from judge.files.writing import FileLock, HeldError, open_to_write, take_lock, write_whole
from judge.suites.archive import unpack
from judge.suites.suite import PublishedSuite, fetched_folder
from judge.version import __version__

MAX_ARCHIVE_BYTES = 4 * 1024**3
"""Largest download if its size is not known (the largest published archive has 0.1 GB)."""

MIN_BYTES = 64 * 1024
"""Bytes that a server has to send in every :data:`PATIENCE_S`; slower servers are disconnected."""

PATIENCE_S = 120.0

_SILENT_S = 30.0
"""How long a server may be silent."""

_LOOK_S = 1.0
"""Seconds between two checks of how fast a server sends."""

_CHUNK_BYTES = 256 * 1024
_CHECKSUMS = "checksums.json"

OnProgress = Callable[[int, int | None], None]
"""Called with the number of bytes so far, and with the total size if it is known."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a fetch.

    Attributes:
        folder: where the suite is now.
        sha256: checksum of the archive; None if the suite already existed.
        checked: the checksum was compared with a known one; False if it was only recorded.
        fresh: False if the suite already existed and nothing was done.
    """

    folder: Path
    sha256: str | None
    checked: bool
    fresh: bool


class _AddressError(Exception):
    """An address did not deliver the whole archive; the received part is kept."""


class _TooSlowError(_AddressError):
    """The server at an address sends too slowly."""

    def __init__(self) -> None:
        super().__init__(f"it sends less than {MIN_BYTES:,} bytes in {PATIENCE_S:g} s")


class _TooMuchError(_AddressError):
    """The server sends more bytes than the archive has; nothing is kept."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, even to other hosts, but never from https to http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Returns the redirected request; raises an error if the new address is not allowed."""
        scheme = urllib.parse.urlsplit(newurl).scheme.lower()
        allowed = {"https"} if req.type == "https" else {"http", "https"}
        if scheme not in allowed:
            raise _AddressError(f"it redirects to {visible(newurl)[:200]}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch_suite(
    source: PublishedSuite,
    *,
    archive: Path | None = None,
    urls: Sequence[str] = (),
    again: bool = False,
    on_progress: OnProgress = lambda _done, _size: None,
) -> Fetched:
    """Fetches a suite into the cache folder, so that it can be loaded by its name.

    A download that was cut off is continued where the server allows it. An archive that was
    fetched by hand is checked like a downloaded one.

    Args:
        source: which suite.
        archive: the archive, fetched by hand; nothing is downloaded.
        urls: addresses instead of the published ones, such as a mirror.
        again: fetch the suite even if it already exists, and replace it.
        on_progress: called with the progress of the download.

    Raises:
        SuiteError: no address answers, or the archive is not the expected one.
        UsageError: an address is not http or https.
    """
    target = fetched_folder(source.name)
    if target.is_dir() and not again:
        return Fetched(target, None, checked=False, fresh=False)
    downloads = cache_folder() / "downloads"
    try:
        downloads.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SuiteError(
            f"{downloads} cannot be made: {error.strerror}",
            hint="name another cache folder with JUDGE_CACHE",
        ) from error
    try:
        return _fetch(source, target, downloads, archive, urls, on_progress)
    except OSError as error:
        raise SuiteError(
            f"{error.filename or downloads} cannot be written: {error.strerror or error}",
            hint="free some space, or name another cache folder with JUDGE_CACHE",
        ) from error


def _fetch(
    source: PublishedSuite,
    target: Path,
    downloads: Path,
    archive: Path | None,
    urls: Sequence[str],
    on_progress: OnProgress,
) -> Fetched:
    with _only_one(downloads / f"{source.name}.lock", source):
        if archive is not None:
            fetched, sha256 = archive, _sha256(archive)
        else:
            fetched = downloads / f"{source.archive}.part"
            _download(source, urls or source.urls, fetched, on_progress)
            sha256 = _sha256(fetched)
        try:
            checked = _check(source, fetched, sha256, downloads / _CHECKSUMS)
        except SuiteError:
            if archive is None:
                _forget(fetched)
            raise
        _unpack(fetched, target)
        if archive is None:
            _forget(fetched)
    return Fetched(target, sha256, checked=checked, fresh=True)


def _only_one(lock: Path, source: PublishedSuite) -> FileLock:
    """Prevents two fetches of the same suite from writing to the same file."""
    try:
        return take_lock(lock)
    except HeldError as error:
        raise SuiteError(
            f"the suite {source.name} is being fetched by another process",
            hint="wait for it, or end it",
        ) from error


def _download(
    source: PublishedSuite,
    urls: Sequence[str],
    part: Path,
    on_progress: OnProgress,
) -> None:
    """Tries the addresses in order."""
    problems = []
    for url in urls:
        if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
            raise UsageError(f"{url} is not an http or https address")
        try:
            _download_from(url, part, source.size_bytes, on_progress)
        except _TooMuchError as problem:
            _forget(part)
            problems.append(f"{url}: {problem}")
        except _AddressError as problem:
            problems.append(f"{url}: {problem}")
        except OSError as error:
            raise SuiteError(
                f"{part} cannot be written: {error.strerror or error}",
                hint="free some space, or name another cache folder with JUDGE_CACHE; "
                "the same command continues the download",
            ) from error
        else:
            return
    raise SuiteError(
        f"the suite {source.name} could not be downloaded",
        faults=tuple(problems),
        hint=f"if this machine has no network: fetch {urls[0]} on another one, copy "
        f"{source.archive} here, and run "
        f"`judge dataset fetch {source.name} --from {source.archive}`; "
        "a download that was cut off is continued by the same command",
    )


def _download_from(
    url: str, part: Path, expected_bytes: int | None, on_progress: OnProgress
) -> None:
    """Downloads one address into a file, continuing what already exists of the same content.

    Args:
        url: the address.
        part: the file.
        expected_bytes: size of the archive, if it is known; a larger download is refused.
        on_progress: called with the progress of the download.

    Raises:
        _AddressError: there was no connection, it was cut off, or the reply is not the archive.
        OSError: the file cannot be written.
    """
    note = part.with_name(f"{part.name}.json")
    received_bytes, tag = _resumable(url, part, note)
    request = urllib.request.Request(url, headers={"User-Agent": f"sheetjudge/{__version__}"})  # noqa: S310 - the scheme is checked by the caller
    if received_bytes:
        request.add_header("Range", f"bytes={received_bytes}-")
        request.add_header("If-Range", tag)
    with _Pace() as pace, _opened(request, part, pace) as response:
        if response.status != HTTPStatus.PARTIAL_CONTENT:
            received_bytes = 0
        elif not _continues(response, received_bytes):
            _forget(part)  # the next try starts from the beginning
            raise _AddressError("it continues from a position other than the requested one")
        length = response.headers.get("Content-Length")
        size = (
            received_bytes + int(length)
            if length and length.isdigit() and len(length) < 20
            else None
        )
        most = expected_bytes or MAX_ARCHIVE_BYTES
        if size is not None and size > most:
            raise _TooMuchError(f"it has {size:,} bytes, but the archive has at most {most:,}")
        fresh_tag = response.headers.get("ETag")
        write_whole(note, json.dumps({"url": url, "etag": fresh_tag}).encode())
        how = os.O_APPEND if received_bytes else os.O_TRUNC
        into = open_to_write(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | how)
        with os.fdopen(into, "wb") as file:
            while chunk := _next_chunk(response, pace):
                received_bytes += len(chunk)
                if received_bytes > most:
                    raise _TooMuchError(f"it sends more than the {most:,} bytes of the archive")
                pace.received(len(chunk))
                file.write(chunk)
                on_progress(received_bytes, size)
    if size is not None and received_bytes < size:
        raise _AddressError(f"cut off after {received_bytes} of {size} bytes")


def _opened(request: urllib.request.Request, part: Path, pace: _Pace) -> HTTPResponse:
    """The response to a request, with its headers read.

    Raises:
        _AddressError: there is no response, or it has no archive.
    """
    try:
        response: HTTPResponse = urllib.request.build_opener(
            _Redirects, _Http(pace), _Https(pace)
        ).open(request, timeout=_SILENT_S)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            _forget(part)  # no bytes follow ours: the next try starts from the beginning
        raise _AddressError(f"HTTP {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:
        pace.check()
        raise _AddressError(str(getattr(error, "reason", error)) or type(error).__name__) from error
    return response


def _continues(response: HTTPResponse, done: int) -> bool:
    """Whether a partial response begins where the existing file ends."""
    unit, _, span = response.headers.get("Content-Range", "").partition(" ")
    return unit.strip().lower() == "bytes" and span.strip().startswith(f"{done}-")


class _Pace:
    """Disconnects a server that only sends a byte now and then; time on standby counts, too.

    Headers, chunk sizes and the TLS handshake are read in many small steps, and the socket's
    timeout applies to every step separately. So a thread watches how much arrives in total, and
    shuts the connection down if that is too little.
    """

    def __init__(self) -> None:
        self._since_s = time.monotonic()
        self._bytes = 0
        self._connections: list[socket.socket] = []
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._expired = False
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        for connection in self._connections:
            connection.close()

    def connect(self, *arguments: Any, **named: Any) -> socket.socket:
        """Opens a connection that is shut down if its server is too slow."""
        connection = socket.create_connection(*arguments, **named)
        with self._lock:
            self._connections.append(connection.dup())  # TLS takes over the original
        return connection

    def received(self, count: int) -> None:
        """Counts received bytes of the archive.

        Raises:
            _TooSlowError: too few bytes were received for too long.
        """
        self._bytes += count
        if self._bytes >= MIN_BYTES:
            self._since_s, self._bytes = time.monotonic(), 0
        elif self._is_late():
            raise _TooSlowError

    def check(self) -> None:
        """Raises an error if this class shut down the connection that failed.

        Raises:
            _TooSlowError: it did, because the server is too slow.
        """
        if self._expired:
            raise _TooSlowError

    def _is_late(self) -> bool:
        return time.monotonic() - self._since_s > PATIENCE_S

    def _watch(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            if self._is_late():
                self._expired = True
                with self._lock:
                    for connection in self._connections:
                        with contextlib.suppress(OSError):
                            connection.shutdown(socket.SHUT_RDWR)


class _Watched(urllib.request.AbstractHTTPHandler):
    """Opens connections that a :class:`_Pace` watches."""

    def __init__(self, pace: _Pace) -> None:
        super().__init__()
        self._pace = pace

    def do_open(self, http_class: Any, req: Any, **http_conn_args: Any) -> Any:
        """Sends a request over a connection that is watched."""

        def connection(*arguments: Any, **named: Any) -> Any:
            connection = http_class(*arguments, **named)
            connection._create_connection = self._pace.connect  # noqa: SLF001  no other way to the socket
            return connection

        return super().do_open(connection, req, **http_conn_args)


class _Http(_Watched, urllib.request.HTTPHandler):
    """Opens http addresses."""


class _Https(_Watched, urllib.request.HTTPSHandler):
    """Opens https addresses."""


def _next_chunk(response: HTTPResponse, pace: _Pace) -> bytes:
    try:
        # read1 returns what has arrived; waiting for a full chunk could take forever.
        chunk = response.read1(_CHUNK_BYTES)
    except (OSError, HTTPException) as error:
        pace.check()
        raise _AddressError(f"cut off: {error or type(error).__name__}") from error
    pace.check()
    return chunk


def _resumable(url: str, part: Path, note: Path) -> tuple[int, str]:
    """How many bytes exist already, and the ETag that shows whether the file is still the same."""
    try:
        recorded = read_kept(note)
        facts = part.lstat()
    except OSError:
        return 0, ""
    if not stat.S_ISREG(facts.st_mode):
        _forget(part)  # a link must not be written through
        return 0, ""
    if not isinstance(recorded, dict) or recorded.get("url") != url:
        return 0, ""
    tag = recorded.get("etag")
    # A weak ETag does not guarantee the same bytes.
    if not isinstance(tag, str) or tag.startswith("W/"):
        return 0, ""
    return facts.st_size, tag


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    part.with_name(f"{part.name}.json").unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SuiteError(f"{path} cannot be read: {error.strerror}") from error


def _check(source: PublishedSuite, archive: Path, sha256: str, record: Path) -> bool:
    """Checks an archive against its known size and checksum; records an unpublished checksum.

    Returns:
        Whether there was a checksum to compare it with.

    Raises:
        SuiteError: it is not the expected archive.
    """
    recorded = _recorded(record)
    size = archive.stat().st_size
    checksum = source.sha256 or recorded.get(source.name)
    if checksum is None and source.size_bytes in {None, size}:
        recorded[source.name] = sha256
        text = json.dumps(recorded, indent=2, sort_keys=True)
        write_whole(record, f"{text}\n".encode())
        return False
    if checksum == sha256:
        return True
    expected = f"sha256 {checksum}" if checksum else "sha256 not known"
    if source.size_bytes is not None:
        expected += f", {source.size_bytes} bytes"
    where = str(record) if checksum and source.sha256 is None else "sources.yaml"
    raise SuiteError(
        f"the archive of {source.name} is not the expected one",
        faults=(
            f"found: sha256 {sha256}, {size} bytes",
            f"expected: {expected} ({where})",
        ),
        hint="fetch it again; if the checksum is the same, the publisher has changed it",
    )


def _recorded(record: Path) -> dict[str, str]:
    """Checksums of archives that were fetched here, by suite."""
    document = read_kept(record)
    if not isinstance(document, dict):
        return {}
    return {name: sha256 for name, sha256 in document.items() if isinstance(sha256, str)}


def _unpack(archive: Path, target: Path) -> None:
    """Unpacks next to the old suite, then puts the new one in its place."""
    fresh = target.with_name(f".{target.name}.fresh")
    old = target.with_name(f".{target.name}.old")
    if old.is_dir() and not target.is_dir():
        old.rename(target)  # the last run was interrupted between the two moves below
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    unpack(archive, fresh)
    if target.is_dir():
        target.rename(old)
    fresh.rename(target)
    shutil.rmtree(old, ignore_errors=True)
