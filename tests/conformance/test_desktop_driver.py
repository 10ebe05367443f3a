"""Attacks on the driver of a running desktop, by actions and by the file that is opened."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.utils import kwargs_from_env
from openpyxl import Workbook
from openpyxl.worksheet.worksheet import Worksheet

from judge.desktop.contract import HOME, Action, DesktopOptions, DesktopTask
from judge.desktop.sandboxed import SandboxDesktop, SandboxDesktopHost
from judge.errors import SandboxError
from judge.sandbox.contract import Sandbox
from tests.conformance import ways
from tests.conformance.conftest import open_or_skip
from tests.conformance.leftovers import containers_of, descendants
from tests.conformance.test_desktop import HOSTILE

PROBE = Path(__file__).resolve().parent.parent / "submissions/desktop/probe.py"
PROGRAM = Path(__file__).resolve().parent.parent / "submissions/desktop/take_over_the_driver.py"
PATH = f"{HOME}/Book.xlsx"
OPTIONS = DesktopOptions(width=800, height=600)
LOOKING = """
import os
print(sorted(os.listdir("/home/user")))
for process in filter(str.isdigit, os.listdir("/proc")):
    print(open(f"/proc/{process}/comm").read().strip())
"""
OWN = {
    *("Xvfb", "dbus-daemon", "openbox", "soffice.bin", "python3"),
    *("at-spi-bus-laun", "at-spi2-registr"),
}
"""Names of the processes of a desktop, cut off as the kernel cuts them."""


PROGRAMS = "/usr/lib/libreoffice/program"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
FLAT = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:script="urn:oasis:names:tc:opendocument:xmlns:script:1.0"
 xmlns:ooo="http://openoffice.org/2004/office" xmlns:xlink="http://www.w3.org/1999/xlink"
 xmlns:dom="http://www.w3.org/2001/xml-events" office:version="1.3"
 office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:scripts>
<office:event-listeners><script:event-listener script:language="ooo:script"
 script:event-name="dom:load" xlink:type="simple"
 xlink:href="vnd.sun.star.script:run.py$run?language=Python&amp;location=document"/>
</office:event-listeners></office:scripts><office:body><office:spreadsheet>
<table:table table:name="Sheet1"><table:table-row><table:table-cell/></table:table-row>
</table:table></office:spreadsheet></office:body></office:document>"""
MANIFEST = (
    '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" '
    'manifest:version="1.3">{}</manifest:manifest>'
)


@pytest.fixture(
    scope="module", params=[pytest.param(way, marks=ways.marks(way)) for way in ways.USUAL]
)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with contextlib.closing(open_or_skip(request.param)) as opened:
        if not opened.has_root("desktop"):
            pytest.skip("no desktop root: judge sandbox build --desktop")
        yield opened


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    """Accepts and records connections to this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture(scope="module")
def book(listener: socket.socket) -> bytes:
    """A workbook whose formulas start programs, and access files and the network."""
    made = Workbook()
    sheet = made.active
    assert isinstance(sheet, Worksheet)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    for row, formula in enumerate(
        (
            f'=_xlfn.WEBSERVICE("{address}")',
            '=DDE("soffice","/etc/passwd","A1")',
            f"=cmd|'/C touch {HOME}/started'!A0",
        ),
        start=1,
    ):
        sheet.cell(row, 1, formula)
    sheet["B1"] = "own"
    data = io.BytesIO()
    made.save(data)
    return data.getvalue()


def opened(sandbox: Sandbox, book: bytes) -> SandboxDesktop:
    return SandboxDesktopHost(sandbox).open(DesktopTask({PATH: book}, PATH, PATH), OPTIONS)


def test_the_driver_survives_attacks_and_the_next_desktop_is_clean(
    sandbox: Sandbox, book: bytes, listener: socket.socket
) -> None:
    with opened(sandbox, book) as desktop:
        reached_nothing(desktop, listener)
        tried = desktop.perform(Action(code=PROGRAM.read_text(encoding="utf-8")))
        assert (tried.error, tried.printed) == ("", "END\n")
        assert "planted-ran" not in desktop.perform(Action(code=LOOKING)).printed
        assert "Book.xlsx - LibreOffice Calc" in desktop.observe().windows
        collected = desktop.collect()
        assert (collected.data, collected.changed) == (book, False)
        os.kill(driver_of(sandbox), signal.SIGKILL)
        with pytest.raises(SandboxError, match="the desktop broke"):
            desktop.observe()
    with opened(sandbox, book) as desktop:
        seen = desktop.perform(Action(code=LOOKING)).printed
        assert "usercustomize" not in seen
        assert desktop.collect().data == book


def python_macro(text: str) -> bytes:
    """A workbook with a Python macro that runs when the workbook is opened."""
    content = FLAT.replace("office:document ", "office:document-content ")
    content = content.replace("</office:document>", "</office:document-content>")
    entries = "".join(
        f'<manifest:file-entry manifest:full-path="{path}" manifest:media-type="{kind}"/>'
        for path, kind in (("/", ODS), ("content.xml", "text/xml"), ("Scripts/python/run.py", ""))
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as package:
        package.writestr("mimetype", ODS)
        package.writestr("content.xml", content)
        package.writestr("Scripts/python/run.py", text)
        package.writestr("META-INF/manifest.xml", MANIFEST.format(entries))
    return data.getvalue()


PYTHON = f"def run(*_):\n    open('{HOME}/probed', 'w').close()\n"


@pytest.mark.parametrize("name", ["basic.fods", "python.ods"])
def test_a_macro_that_opens_with_its_workbook_does_not_run(sandbox: Sandbox, name: str) -> None:
    # That the one in Basic runs where all are allowed is in test_desktop.py.
    book = HOSTILE.encode() if name == "basic.fods" else python_macro(PYTHON)
    path = f"{HOME}/{name}"
    task = DesktopTask({path: book, f"{HOME}/probe.py": PROBE.read_bytes()}, path, path)
    with SandboxDesktopHost(sandbox).open(task, OPTIONS) as desktop:
        observed = desktop.observe()
        assert any(name in window for window in observed.windows)
        assert not [
            element
            for element in observed.elements or ()
            if element.role.endswith("button") and element.name.startswith("Enable")
        ]
        names = desktop.perform(Action(code=LOOKING)).printed.splitlines()[0]
        assert name in names
        assert "probed" not in names
        # Nothing could run the one in Python: the root holds no provider of such scripts.
        seen = desktop.perform(Action(code=f"import os\nprint(os.listdir({PROGRAMS!r}))")).printed
        assert "libscriptframe.so" in seen
        assert "pythonscript.py" not in seen


def reached_nothing(desktop: SandboxDesktop, listener: socket.socket) -> None:
    """Checks that the workbook's formulas had no effect, even with everything permitted."""
    for name in ("Allow", "Yes", "OK"):
        for each in desktop.observe(screenshot=False).elements or ():
            if each.role.endswith("button") and each.name.startswith(name) and each.centre:
                desktop.perform(Action(code=f"pyautogui.click{each.centre}"))
    desktop.perform(Action(code="pyautogui.hotkey('ctrl', 'shift', 'f9')"))
    elements = desktop.observe(screenshot=False).elements or ()
    shown = {each.name: each.text for each in elements if each.role == "table-cell"}
    assert shown["B1"] == "own"
    assert not any("root:" in text for text in shown.values())
    with pytest.raises(BlockingIOError):
        listener.accept()
    names, *processes = desktop.perform(Action(code=LOOKING)).printed.splitlines()
    assert "started" not in names
    assert set(processes) <= OWN


def driver_of(sandbox: Sandbox) -> int:
    """The process of the driver, as seen from this machine."""
    below = {process.pid for process in descendants(os.getpid())}
    if sandbox.info.backend == "docker":
        with contextlib.closing(docker.APIClient(**kwargs_from_env())) as client:
            for identity in containers_of(os.getpid()):
                first = int(client.inspect_container(identity)["State"]["Pid"])
                below |= (
                    {first, *(process.pid for process in descendants(first))} if first else set()
                )
    (found,) = [pid for pid in below if _is_driver(pid)]
    return found


def _is_driver(pid: int) -> bool:
    """Whether a process is the first of its namespace, with the workbook in its home."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:") and line.split()[-1] == "1":
                return Path(f"/proc/{pid}/root{PATH}").exists()
    return False
