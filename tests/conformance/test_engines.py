"""The calculation of one workbook leaves nothing for the next one, on every backend."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from judge.core.limits import MIB
from judge.errors import RecalcError
from judge.recalc.contract import Dialect, EngineUnavailableError
from judge.recalc.engines import ServiceEngine
from judge.recalc.names import FORMUALIZER, IRONCALC
from judge.recalc.service import ServicePool
from judge.recalc.services import program_text
from judge.sandbox.contract import Sandbox, ServiceChannel
from tests.conformance.ways import SERVICES, run_in
from tests.unit.recalc.fakes import ALL, package, ref

SERVICE_BYTES = 256 * MIB
"""Half of this is the size of the temporary folder."""

BOMB_BYTES = 45 * MIB
BOMBS = 3
"""One more service than fit at a time."""
assert (BOMBS - 1) * BOMB_BYTES < SERVICE_BYTES // 2 < BOMBS * BOMB_BYTES

GOOD = package({"A1": "=SUM(B1:B2)", "B1": 1, "B2": 2})

# An engine gets the package unpacked where formulas are to be rewritten.
DIALECT = Dialect({"XLOOKUP": "_xlfn.XLOOKUP"})

FULL = """
import os
with open("/tmp/ballast", "wb", buffering=0) as ballast:
    try:
        while ballast.write(bytes(1 << 16)):
            pass
    except OSError:
        pass
"""

MISSING = """
import tempfile
tempfile.tempdir = "/tmp/nowhere"
"""


def crashing() -> bytes:
    """A small file, 45 megabytes when unpacked, that makes IronCalc crash."""
    book = package({"A1": "=" + "IF(1," * 3000 + "1" + ")" * 3000})
    source, target = zipfile.ZipFile(io.BytesIO(book)), io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for part in source.namelist():
            copy.writestr(part, source.read(part))
        copy.writestr("xl/more.xml", b"<more/>" + b" " * BOMB_BYTES)
    return target.getvalue()


ROOM = """
import os, struct, sys
while (head := sys.stdin.buffer.read(4)):
    folder = sys.stdin.buffer.read(struct.unpack(">I", head)[0]).decode()
    facts = os.statvfs(folder) if os.path.isdir(folder) else None
    said = str(facts.f_blocks * facts.f_frsize if facts else 0).encode()
    sys.stdout.buffer.write(struct.pack(">I", len(said)) + said)
    sys.stdout.buffer.flush()
"""


@run_in(SERVICES)
def test_a_service_has_bounded_space_wherever_it_can_write(sandbox: Sandbox) -> None:
    channel = sandbox.service(ROOM, memory_bytes=SERVICE_BYTES)
    with contextlib.closing(channel):
        assert int(channel.call(b"/tmp", 60)) == SERVICE_BYTES // 2
        assert int(channel.call(b"/dev/shm", 60)) <= 64 * MIB


class Opener:
    """Opens services, one after the other, whose interpreter first does something else."""

    def __init__(self, sandbox: Sandbox, *before: str) -> None:
        self._sandbox = sandbox
        self._before = list(before)
        self.opened = 0

    def __call__(self) -> ServiceChannel:
        self.opened += 1
        before = self._before.pop(0) if self._before else ""
        return self._sandbox.service(
            before + program_text("embedded"), root="python", memory_bytes=SERVICE_BYTES
        )


@contextlib.contextmanager
def serving(opener: Opener, *, size: int = 1) -> Iterator[ServicePool]:
    pool = ServicePool(opener, size=size)
    with contextlib.closing(pool):
        yield pool


def value(pool: ServicePool, name: str) -> object:
    result = ServiceEngine(name, pool).compute(GOOD, [ALL], timeout_s=120, dialect=DIALECT)
    return result.values[ref(1)]


@pytest.mark.timeout(900)  # a hang guard
@run_in(SERVICES)
def test_workbooks_that_crash_an_engine_leave_space_for_the_next_one(sandbox: Sandbox) -> None:
    bomb = crashing()
    opener = Opener(sandbox)

    def attack(pool: ServicePool) -> object:
        engine = ServiceEngine(IRONCALC, pool)
        for _ in range(BOMBS):
            with pytest.raises(RecalcError, match="crashed") as caught:
                engine.compute(bomb, [ALL], timeout_s=120, dialect=DIALECT)
            assert not isinstance(caught.value, EngineUnavailableError)
        return value(pool, IRONCALC)

    with serving(opener, size=2) as pool, ThreadPoolExecutor(2) as jobs:
        assert list(jobs.map(attack, [pool, pool])) == [3, 3]
        assert value(pool, FORMUALIZER) == 3
    assert opener.opened in {1, 2}  # two only if one of the jobs waited long for the other


@pytest.mark.parametrize("fault", [FULL, MISSING], ids=["full", "missing"])
@run_in(SERVICES)
def test_a_temporary_folder_that_cannot_be_used_is_our_fault(sandbox: Sandbox, fault: str) -> None:
    opener = Opener(sandbox, fault)
    with serving(opener) as pool:
        assert value(pool, IRONCALC) == 3
    assert opener.opened == 2
    opener = Opener(sandbox, fault, fault)
    with serving(opener) as pool:
        with pytest.raises(EngineUnavailableError, match="temporary folder"):
            value(pool, IRONCALC)
        assert value(pool, IRONCALC) == 3
    assert opener.opened == 3
