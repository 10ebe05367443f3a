from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import itertools
import os
import tarfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from pathlib import Path

import pytest

from judge.errors import SuiteError, UsageError
from judge.suites import fetch, load_suite
from judge.suites.fetch import fetch_suite
from judge.suites.formats import suite_formats
from judge.suites.suite import PublishedSuite, data_folder, load_sources
from tests.unit.suites.conftest import WriteSuite


@dataclass
class Server:
    """A small file server whose behaviour a test can change."""

    content: bytes
    etag: str | None = '"v1"'
    ranges: bool = True
    cut_after: int | None = None
    """Closes the connection after this many bytes of the body."""
    status: int | None = None
    leads_to: str | None = None
    """Redirects to another address."""
    claims_range: str | None = None
    """The range that a partial answer claims to be, instead of its own."""
    drips: str = ""
    """Where it sends without end: in its ``headers``, or in the ``sizes`` of chunks."""
    endless: bool = False
    """Sends without end after the content, without announcing how much."""
    requests: list[str | None] = field(default_factory=list)
    """The Range header of each request."""
    url: str = ""


_STARTS = {
    "headers": b"HTTP/1.1 200 OK\r\nX-Long: ",
    "sizes": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
}


def drip(file: BufferedIOBase, where: str) -> None:
    with contextlib.suppress(OSError):
        file.write(_STARTS[where])
        while True:  # until nobody listens any more
            file.write(b"x")
            time.sleep(0.02)


def handler_of(server: Server) -> type[BaseHTTPRequestHandler]:  # noqa: C901  many ways to err
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            server.requests.append(wanted)
            if server.status is not None:
                self.send_error(server.status)
                return
            if server.leads_to is not None:
                self.send_response(302)
                self.send_header("Location", server.leads_to)
                self.end_headers()
                return
            start = 0
            if wanted and server.ranges and self.headers.get("If-Range") == server.etag:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(server.content):
                    self.send_error(416)
                    return
            body = server.content[start:]
            self.send_response(206 if start else 200)
            if server.etag is not None:
                self.send_header("ETag", server.etag)
            if start:
                span = f"bytes {start}-{len(server.content) - 1}/{len(server.content)}"
                self.send_header("Content-Range", server.claims_range or span)
            if server.endless:
                self._send_on_and_on(body)
                return
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if server.cut_after is None else body[: server.cut_after])

        def _send_on_and_on(self, body: bytes) -> None:
            self.end_headers()
            self.wfile.write(body)
            with contextlib.suppress(OSError):  # until nobody listens any more
                while True:
                    self.wfile.write(bytes(65_536))

        def parse_request(self) -> bool:
            parsed = super().parse_request()
            if server.drips:
                server.requests.append(None)
                drip(self.wfile, server.drips)
            return parsed and not server.drips

        def log_message(self, *args: object) -> None:
            del args

    return Handler


@pytest.fixture
def archive(write_suite: WriteSuite, tmp_path: Path) -> Path:
    folder = write_suite()
    # Not compressible, so that an archive has something to be cut off from.
    noise = b"".join(hashlib.sha256(bytes([n, m])).digest() for n in range(99) for m in range(99))
    (folder / "spreadsheet/101/1_101_input.xlsx").write_bytes(noise)
    path = tmp_path / "suite.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, "all_data")
    return path


@pytest.fixture
def server(archive: Path) -> Iterator[Server]:
    state = Server(archive.read_bytes())
    with ThreadingHTTPServer(("127.0.0.1", 0), handler_of(state)) as httpd:
        state.url = f"http://127.0.0.1:{httpd.server_port}/suite.tar.gz"
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield state
        finally:
            httpd.shutdown()
            thread.join()


@pytest.fixture
def source(server: Server) -> PublishedSuite:
    return PublishedSuite(
        name="tiny",
        title="A tiny suite",
        format="spreadsheetbench-v0.1",
        tasks=1,
        licence="none",
        homepage="",
        archive="suite.tar.gz",
        size_bytes=len(server.content),
        sha256=hashlib.sha256(server.content).hexdigest(),
        urls=(server.url,),
    )


def error_of(fetch: Callable[[], object]) -> SuiteError:
    with pytest.raises(SuiteError) as caught:
        fetch()
    return caught.value


def test_a_suite_is_fetched_and_loads_by_its_name(source: PublishedSuite, cache: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    fetched = fetch_suite(source, on_progress=lambda done, size: seen.append((done, size)))
    assert fetched.fresh
    assert fetched.checked
    assert fetched.sha256 == source.sha256
    assert seen[-1] == (source.size_bytes, source.size_bytes)
    suite = load_suite("tiny")
    assert suite.name == "tiny"
    assert suite.root.is_relative_to(cache)
    # Nothing is left of the download.
    assert [path.name for path in (cache / "downloads").iterdir()] == ["tiny.lock"]


def test_what_is_there_is_not_fetched_again(source: PublishedSuite, server: Server) -> None:
    fetch_suite(source)
    again = fetch_suite(source)
    assert not again.fresh
    assert len(server.requests) == 1
    (again.folder / "all_data" / "mark").touch()
    fresh = fetch_suite(source, again=True)
    assert fresh.fresh
    assert len(server.requests) == 2
    assert not (fresh.folder / "all_data" / "mark").exists()
    assert len(list(fresh.folder.parent.iterdir())) == 1


def test_a_download_that_was_cut_off_is_continued(source: PublishedSuite, server: Server) -> None:
    server.cut_after = 100_000
    error = error_of(lambda: fetch_suite(source))
    assert "cut off" in error.faults[0]
    server.cut_after = None
    fetch_suite(source)
    assert server.requests == [None, "bytes=100000-"]
    assert load_suite("tiny").case_count == 2


@pytest.mark.parametrize(
    ("etag", "ranges", "asked"),
    [('"v2"', True, "bytes=100000-"), ('"v1"', False, "bytes=100000-")],
)
def test_a_changed_archive_or_a_plain_server_starts_again(
    source: PublishedSuite, server: Server, etag: str, ranges: bool, asked: str
) -> None:
    server.cut_after = 100_000
    error_of(lambda: fetch_suite(source))
    server.cut_after, server.etag, server.ranges = None, etag, ranges
    assert fetch_suite(source).checked
    assert server.requests == [None, asked]


@pytest.mark.parametrize("etag", [None, 'W/"v1"'])
def test_without_a_strong_tag_nothing_is_continued(
    source: PublishedSuite, server: Server, etag: str | None
) -> None:
    server.etag, server.cut_after = etag, 100_000
    error_of(lambda: fetch_suite(source))
    server.cut_after = None
    assert fetch_suite(source).checked
    assert server.requests == [None, None]


def test_a_part_that_is_too_long_is_forgotten(
    source: PublishedSuite, server: Server, cache: Path
) -> None:
    server.cut_after = 100_000
    error_of(lambda: fetch_suite(source))
    with (cache / "downloads" / "suite.tar.gz.part").open("ab") as part:
        part.write(bytes(len(server.content)))
    server.cut_after = None
    assert "HTTP 416" in error_of(lambda: fetch_suite(source)).faults[0]
    assert fetch_suite(source).checked


def test_the_next_address_is_tried(source: PublishedSuite, server: Server) -> None:
    nobody = "http://127.0.0.1:9/suite.tar.gz"
    assert fetch_suite(replace(source, urls=(nobody, server.url))).fresh


def test_a_mirror_instead_of_the_published_address(source: PublishedSuite, server: Server) -> None:
    unreachable = replace(source, urls=("http://127.0.0.1:9/suite.tar.gz",))
    assert fetch_suite(unreachable, urls=[server.url]).checked


def test_without_a_network_it_says_what_to_do(source: PublishedSuite) -> None:
    unreachable = replace(source, urls=("http://127.0.0.1:9/suite.tar.gz",))
    error = error_of(lambda: fetch_suite(unreachable))
    assert error.faults[0].startswith("http://127.0.0.1:9/suite.tar.gz: ")
    assert error.hint is not None
    assert "judge dataset fetch tiny --from suite.tar.gz" in error.hint
    assert unreachable.urls[0] in error.hint


def test_a_server_that_refuses(source: PublishedSuite, server: Server) -> None:
    server.status = 404
    assert "HTTP 404" in error_of(lambda: fetch_suite(source)).faults[0]


def test_another_archive_than_the_published_one(source: PublishedSuite, cache: Path) -> None:
    error = error_of(lambda: fetch_suite(replace(source, sha256="0" * 64)))
    assert source.sha256 is not None
    assert source.sha256 in error.faults[0]
    assert "0" * 64 in error.faults[1]
    assert "sources.yaml" in error.faults[1]
    assert not (cache / "suites").exists()
    # The bad download is not continued from.
    assert [path.name for path in (cache / "downloads").iterdir()] == ["tiny.lock"]


def test_an_unknown_checksum_is_recorded_and_checked_later(
    source: PublishedSuite, server: Server, cache: Path
) -> None:
    unknown = replace(source, sha256=None)
    first = fetch_suite(unknown)
    assert not first.checked
    assert fetch_suite(unknown, again=True).checked
    server.content = server.content[:-1] + b"!"
    error = error_of(lambda: fetch_suite(unknown, again=True))
    assert str(cache / "downloads" / "checksums.json") in error.faults[1]
    assert load_suite("tiny").case_count == 2  # what was there is still there


def test_a_known_size_is_checked_where_no_checksum_is_known(
    source: PublishedSuite, archive: Path
) -> None:
    unknown = replace(source, sha256=None, size_bytes=5)
    error = error_of(lambda: fetch_suite(unknown, archive=archive))
    assert "5 bytes" in error.faults[1]


def test_an_archive_that_was_fetched_by_hand(
    source: PublishedSuite, server: Server, archive: Path
) -> None:
    fetched = fetch_suite(source, archive=archive)
    assert fetched.checked
    assert archive.exists()
    assert not server.requests
    assert load_suite("tiny").case_count == 2


def test_a_wrong_archive_by_hand_is_left_where_it_is(
    source: PublishedSuite, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.tar.gz"
    wrong.write_bytes(b"nonsense")
    error_of(lambda: fetch_suite(source, archive=wrong))
    assert wrong.exists()


def test_an_answer_without_end_is_given_up(
    source: PublishedSuite, server: Server, cache: Path
) -> None:
    server.endless = True
    error = error_of(lambda: fetch_suite(source))
    assert f"sends more than the {len(server.content):,} bytes of the archive" in error.faults[0]
    assert not [*(cache / "downloads").glob("*.part*")]


def test_an_unknown_size_is_bounded_too(
    source: PublishedSuite, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.endless = True
    monkeypatch.setattr(fetch, "MAX_ARCHIVE_BYTES", 10_000_000)
    error = error_of(lambda: fetch_suite(replace(source, size_bytes=None)))
    assert "more than the 10,000,000 bytes" in error.faults[0]


def test_an_archive_that_says_it_is_larger_is_not_begun(
    source: PublishedSuite, server: Server
) -> None:
    small = replace(source, size_bytes=100)
    assert f"it has {len(server.content):,} bytes" in error_of(lambda: fetch_suite(small)).faults[0]


def test_another_host_is_followed(source: PublishedSuite, server: Server, archive: Path) -> None:
    other = Server(archive.read_bytes())
    with ThreadingHTTPServer(("127.0.0.2", 0), handler_of(other)) as httpd:
        server.leads_to = f"http://127.0.0.2:{httpd.server_port}/elsewhere"
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        try:
            assert fetch_suite(source).fresh
        finally:
            httpd.shutdown()
            thread.join()


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x/"])
def test_no_other_scheme_is_followed(source: PublishedSuite, server: Server, address: str) -> None:
    server.leads_to = address
    error = error_of(lambda: fetch_suite(source))
    assert address in error.faults[0]
    assert "not followed" in error.faults[0] or "not allowed" in error.faults[0]
    assert len(server.requests) == 1


def test_https_never_leads_to_http() -> None:
    request = urllib.request.Request("https://127.0.0.1/suite.tar.gz")
    follow = fetch._Redirects().redirect_request
    for address in ("http://127.0.0.1/x", "file:///x"):
        with pytest.raises(fetch._AddressError, match="not followed"):
            follow(request, io.BytesIO(), 302, "Found", HTTPMessage(), address)
    onward = follow(request, io.BytesIO(), 302, "Found", HTTPMessage(), "https://other.invalid/x")
    assert onward is not None
    assert onward.full_url == "https://other.invalid/x"


def test_addresses_that_lead_round_in_a_circle(source: PublishedSuite, server: Server) -> None:
    server.leads_to = server.url
    assert "HTTP 302" in error_of(lambda: fetch_suite(source)).faults[0]


@pytest.mark.parametrize("claim", ["bytes 0-9/10", "pages 1-2/3", "nonsense"])
def test_a_part_of_something_else_is_not_added(
    source: PublishedSuite, server: Server, claim: str
) -> None:
    server.cut_after = 5000
    error_of(lambda: fetch_suite(source))
    server.cut_after, server.claims_range = None, claim
    assert "continues from a position other" in error_of(lambda: fetch_suite(source)).faults[0]
    server.claims_range = None
    assert fetch_suite(source).fresh
    assert server.requests[-1] is None


def test_a_server_that_drips_is_given_up(
    source: PublishedSuite, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test's own clock: an hour passes between any two readings."""
    seconds = itertools.count(0, 3600)
    monkeypatch.setattr("judge.suites.fetch.time.monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr(fetch, "_CHUNK_BYTES", 1000)
    error = error_of(lambda: fetch_suite(source))
    assert "it sends less than 65,536 bytes in 120 s" in error.faults[0]
    assert len(server.requests) == 1


@pytest.mark.parametrize("where", ["headers", "sizes"])
def test_so_is_one_that_drips_where_no_byte_of_the_archive_is(
    where: str, source: PublishedSuite, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte arrives in time; without a limit for all of them, this test would not end."""
    monkeypatch.setattr(fetch, "PATIENCE_S", 0.5)
    monkeypatch.setattr(fetch, "_LOOK_S", 0.05)
    server.drips = where
    error = error_of(lambda: fetch_suite(source))
    assert "it sends less than 65,536 bytes in 0.5 s" in error.faults[0]
    assert len(server.requests) == 1


def test_nothing_is_written_through_a_link(
    source: PublishedSuite, cache: Path, tmp_path: Path
) -> None:
    """The folder of downloads may be shared."""
    mine = tmp_path / "mine"
    mine.write_text("mine")
    downloads = cache / "downloads"
    downloads.mkdir(parents=True)
    for name in ("suite.tar.gz.part", "suite.tar.gz.part.json", "checksums.json"):
        (downloads / name).symlink_to(mine)
    with contextlib.suppress(SuiteError):
        fetch_suite(source)
    assert mine.read_text() == "mine"


def test_a_download_that_was_interrupted_is_continued(
    source: PublishedSuite, server: Server
) -> None:
    def interrupted(done: int, _: int | None) -> None:
        if done > 1000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_suite(source, on_progress=interrupted)
    assert fetch_suite(source).fresh
    assert server.requests[-1] is not None


def test_a_full_disk_is_reported(
    source: PublishedSuite, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(fetch, "write_whole", full)
    error = error_of(lambda: fetch_suite(replace(source, sha256=None)))
    assert "No space left on device" in error.message
    assert str(cache) in error.message
    assert "JUDGE_CACHE" in (error.hint or "")


def test_a_suite_is_not_lost_between_two_moves(source: PublishedSuite) -> None:
    folder = fetch_suite(source).folder
    folder.rename(folder.with_name(f".{folder.name}.old"))
    wrong = replace(source, sha256="0" * 64)
    error_of(lambda: fetch_suite(wrong))
    assert fetch_suite(source, again=True).folder.is_dir()


def test_something_else_than_http(source: PublishedSuite) -> None:
    with pytest.raises(UsageError, match="not an http or https address"):
        fetch_suite(source, urls=["file:///etc/passwd"])


def test_the_published_sources_are_well_formed() -> None:
    sources = {source.name: source for source in load_sources(data_folder())}
    assert {"spreadsheetbench-912", "spreadsheetbench-verified-400"} <= sources.keys()
    for source in sources.values():
        assert all(url.startswith("https://") for url in source.urls)
        assert all(url.endswith(f"/{source.archive}") for url in source.urls)
        assert source.format in {name for each in suite_formats() for name in each.names}
        assert source.licence
    tried = {name for name, source in sources.items() if source.sha256 is not None}
    assert tried == {"spreadsheetbench-912", "spreadsheetbench-verified-400"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("suites: [", "not YAML"),
        ("[]", "field 'suites' must be a list"),
        ("suites: [3]", "each suite must be an object"),
        ("suites: [{name: x, urls: []}]", "field 'urls' must be a list of addresses"),
        ("suites: [{name: x, urls: [a]}]", "must hold only http and https addresses, not 'a'"),
        (
            "suites: [{name: x, urls: ['http://a'], title: 5}]",
            "field 'title' must be text",
        ),
        ("suites: [{name: ../x, urls: ['http://a']}]", "field 'name' must be letters, digits"),
        pytest.param(
            "suites: [{name: x, title: t, format: f, tasks: 1, licence: l, homepage: h, archive: "
            "../../x, urls: ['http://a']}]",
            "field 'archive' must be letters, digits",
        ),
        ("suites: [{name: x, urls: ['file:///etc/passwd']}]", "not 'file:///etc/passwd'"),
        ("a: &a [*a]", "aliases are not supported"),
    ],
)
def test_broken_sources(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "sources.yaml").write_text(text)
    with pytest.raises(SuiteError, match=r"sources\.yaml") as caught:
        load_sources(tmp_path)
    assert problem in caught.value.message
