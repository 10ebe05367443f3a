"""Attacks on a running desktop from inside: what they must not reach, what must survive them.

The programs are in ``tests/submissions/desktop``. All share one desktop of each backend, beside
which a neighbour runs; the one that ends it comes last.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from judge.sandbox.contract import Sandbox
from tests.conformance import ways
from tests.conformance.conftest import open_or_skip
from tests.conformance.desktop_place import Place, Ran, opened_place
from tests.conformance.leftovers import wait_until

FOLDER = Path(__file__).resolve().parent.parent / "submissions" / "desktop"
BOOK = "/home/user/book.xlsx"
HOSTILE = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:script="urn:oasis:names:tc:opendocument:xmlns:script:1.0"
 xmlns:ooo="http://openoffice.org/2004/office" xmlns:xlink="http://www.w3.org/1999/xlink"
 xmlns:dom="http://www.w3.org/2001/xml-events"
 xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2" office:version="1.3"
 office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:scripts>
<office:script script:language="ooo:Basic"><ooo:libraries><ooo:library-embedded ooo:name="Standard">
<ooo:module ooo:name="Module1"><ooo:source-code>Sub Run
Shell("/usr/bin/python3", 2, "/home/user/probe.py", True)
End Sub</ooo:source-code></ooo:module></ooo:library-embedded></ooo:libraries></office:script>
<office:event-listeners><script:event-listener script:language="ooo:script"
 script:event-name="dom:load" xlink:type="simple"
 xlink:href="vnd.sun.star.script:Standard.Module1.Run?language=Basic&amp;location=document"/>
</office:event-listeners></office:scripts><office:body><office:spreadsheet>
<table:table table:name="Sheet1"><table:table-row>
<table:table-cell table:formula="of:=WEBSERVICE(&quot;http://127.0.0.1:8000/&quot;)"/>
<table:table-cell table:formula="of:='file:///etc/passwd'#$Sheet1.A1"/>
</table:table-row></table:table></office:spreadsheet></office:body></office:document>
"""


@dataclass
class Desktops:
    """A desktop with LibreOffice that is attacked, and another desktop next to it."""

    attacked: Place
    neighbour: Place
    sandbox: Sandbox


@pytest.fixture(
    scope="module", params=[pytest.param(way, marks=ways.marks(way)) for way in ways.USUAL]
)
def desktops(request: pytest.FixtureRequest) -> Iterator[Desktops]:
    with (
        contextlib.closing(open_or_skip(request.param)) as sandbox,
        opened_place(sandbox) as attacked,
        opened_place(sandbox) as neighbour,
    ):
        attacked.place("/home/user/hostile.fods", HOSTILE.encode())
        attacked.place("/home/user/probe.py", (FOLDER / "probe.py").read_bytes())
        started = attacked.ask("start", open="/home/user/hostile.fods", title="hostile.fods")
        assert started["open"], started
        assert neighbour.ask("start")["open"]
        yield Desktops(attacked, neighbour, sandbox)


def attack(place: Place, name: str, **filled: object) -> Ran:
    """Runs an attack as an action on a desktop's screen, and checks that it reached nothing."""
    program = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    for mark, value in filled.items():
        program = program.replace(f"__{mark.upper()}__", repr(value))
    ran = place.run(program, 200, screen=True)
    assert "REACHED" not in ran.said, ran.said
    assert "END" in ran.said, ran.said
    assert place.ask("look")["pid"] == 1
    return ran


def test_opening_a_hostile_workbook_runs_nothing(desktops: Desktops) -> None:
    assert desktops.attacked.collect("/home/user/probed")[0] == "missing"


def test_a_macro_that_is_run_has_no_more_rights_than_an_action(desktops: Desktops) -> None:
    assert "the macro ran" in attack(desktops.attacked, "macro").said


def test_a_desktop_cannot_see_the_content_of_another(desktops: Desktops) -> None:
    attack(desktops.attacked, "leave_everything")
    looked = desktops.attacked.run((FOLDER / "look_around.py").read_text(), 200, screen=True)
    for what in ("CLIPBOARD", "a property", "a window", "/tmp", "a socket", "on the bus", "/run"):
        assert what in looked.said, looked.said  # where it was left it is found
    attack(desktops.neighbour, "look_around")


def test_a_desktop_reaches_only_its_own_bus(desktops: Desktops) -> None:
    said = attack(desktops.attacked, "buses").said
    assert "started 0" not in said, said


def test_a_desktop_reaches_only_its_own_display(desktops: Desktops) -> None:
    attack(desktops.attacked, "displays")


def test_no_descriptor_leads_to_the_judge(desktops: Desktops) -> None:
    inodes = desktops.attacked.ask("descriptors")["inodes"]
    said = attack(desktops.attacked, "descriptors_of_the_driver", inodes=inodes).said
    assert int(said.split("looked at ")[1].split()[0]) > 20, said


def test_no_socket_leads_out(desktops: Desktops) -> None:
    lists = "for line in open('/proc/net/unix').read().splitlines()[1:]: print(line)"
    door = "import os, socket, time\nend = socket.socket(socket.AF_UNIX)\nend.bind('\\0a-door')\n"
    door += "end.listen()\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)\n"
    said = desktops.neighbour.run(door + lists, 200, screen=True).said
    names = [line.split()[7] for line in said.splitlines() if len(line.split()) > 7]
    assert "@a-door" in names, said
    tried = attack(desktops.attacked, "sockets", names=names).said
    assert "tried 0" not in tried, tried


def test_everything_that_it_can_fill_is_bounded(desktops: Desktops) -> None:
    said = attack(desktops.neighbour, "fill_everything").said
    assert "full: 3" in said or "full: 4" in said or "full: 5" in said, said
    desktops.neighbour.run("import os\nfor f in ('/tmp','/home/user','/run','/dev/shm'):\n"
                           "    os.path.exists(f) and os.unlink(f + '/ballast')")  # fmt: skip


def test_memory_of_the_display_server_counts(desktops: Desktops) -> None:
    assert "ended by" in attack(desktops.neighbour, "fill_the_server").said


_REAL, _WAY = "os.mkdir('/home/user/real')", "os.symlink('/home/user/real', '/home/user/way')"
LEFT = {
    "link": ("os.symlink('/etc/passwd', path)", "link"),
    "link to a process": ("os.symlink('/proc/1/environ', path)", "link"),
    "FIFO": ("os.mkfifo(path)", "special"),
    "socket": ("socket.socket(socket.AF_UNIX).bind(path)", "special"),
    "folder": ("os.mkdir(path)", "not_a_file"),
    "hole": ("open(path, 'wb').truncate(10 * 2**30)", "too_large"),
    "hard link": ("open(path, 'w').close(); os.link(path, path + '.other')", "link"),
    "folder by link": (f"{_REAL}; {_WAY}; open('/home/user/way/book.xlsx', 'w').close()", "link"),
}


def test_nothing_but_a_plain_file_is_collected(desktops: Desktops) -> None:
    for name, (making, status) in LEFT.items():
        path = "/home/user/way/book.xlsx" if "folder by" in name else BOOK
        desktops.attacked.run(f"import os, socket\npath = {BOOK!r}\n{making}")
        assert desktops.attacked.collect(path) == (status, b""), name
        desktops.attacked.run(f"import os, shutil\nfor p in ({BOOK!r}, {BOOK + '.other'!r}):\n"
                              "    if os.path.isdir(p): os.rmdir(p)\n"
                              "    elif os.path.lexists(p): os.unlink(p)\n")  # fmt: skip


def test_the_workbook_cannot_be_swapped_while_it_is_collected(desktops: Desktops) -> None:
    attack(desktops.attacked, "swap_the_workbook")
    seen = [desktops.attacked.collect(BOOK) for _ in range(200)]

    def is_met() -> bool:  # who swaps may have to wait for a processor
        seen.append(desktops.attacked.collect(BOOK))
        return bool({status for status, _ in seen} & {"link", "special"})

    assert wait_until(is_met)
    assert {status for status, _ in seen} <= {"collected", "link", "special", "missing"}
    assert {content for status, content in seen} <= {b"own", b""}


def test_the_driver_survives_every_signal(desktops: Desktops) -> None:
    attack(desktops.attacked, "end_everything")
    desktops.attacked.sweep()
    assert desktops.attacked.ask("look") == {"pid": 1, "others": 0}
    assert desktops.neighbour.ask("look")["pid"] == 1
