"""Runs the attack corpus inside a desktop, as actions.

The place has nothing in it but the program that runs actions, so that every other process that an
attack meets is that one: what it must not reach.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from judge.core.limits import MIB
from judge.core.verdict import Verdict
from judge.errors import SandboxError
from judge.sandbox.contract import Sandbox
from tests.conformance import ways
from tests.conformance.attack_corpus import Attack, load_attacks
from tests.conformance.conftest import open_or_skip
from tests.conformance.desktop_place import Place

MEMORY_BYTES = 320 * MIB
_TAIL = """
import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
"""
_INPUT, _OUTPUT = "/home/user/data/input/1_1_input.xlsx", "/home/user/data/output/1_1_output.xlsx"
_ADAPTED = (
    (_TAIL, f"\nopen({_OUTPUT!r}, 'w').write('42')\nprint('END', flush=True)\n"),
    ("/mnt/data", "/home/user/data"),
    ("/home/solution", "/home/user"),
    (
        'OWN = ("/tmp", "/mnt", "/home", "/data", "/dev/shm")',
        'OWN = ("/tmp", "/home", "/run", "/dev/shm", "/dev/mqueue")',
    ),
)
ELSEWHERE = (
    "leave_secret", "locks", "patch_collection", "poison_interpreter", "poison_modules",
    "poison_packages", "shadow_stdlib",
)  # fmt: skip
"""Attacks on what one interpreter leaves to the next, through a package that is not installed here.
They make no sense for actions, each of which has its own interpreter."""
LEFT_OUT = ("workbook_", "look_for_")
"""What the reading of a workbook meets, and the counterparts of others, which test_desktop has."""
ON_PROCESS_1 = (
    "fork_bomb", "forged_frame_descriptors", "forged_frame_proc", "kill_everybody", "kill_parent",
    "signal_by_descriptor", "stop_parent", "thread_bomb", "throttle_warden", "trace_warden",
)  # fmt: skip
"""What attacks the program that runs actions: without control groups it watches its own memory, and
as an ordinary user it has nothing but namespaces to keep it apart."""
ENDS_S, LATE_S = 200, 0.4
"""Time for those that end by themselves, and for those that a judge has to end."""


def adapted(attack: Attack) -> str:
    """An attack's program as an action, which says END in place of writing a workbook."""
    program = attack.program
    for old, new in _ADAPTED:
        program = program.replace(old, new)
    return program


ATTACKS = [
    attack
    for attack in load_attacks()
    if not attack.name.startswith(LEFT_OUT) and attack.name not in ELSEWHERE
]


class Reopened:
    """A desktop for one attack after the other, opened again if an attack succeeded."""

    def __init__(self, way: str) -> None:
        self.way = way
        self._sandbox: Sandbox = open_or_skip(way)
        self._place: Place | None = None
        self.opened = 0

    def get(self) -> Place:
        if not self._sandbox.has_root("desktop"):
            pytest.skip("no desktop root: judge sandbox build --desktop")
        if self._place is None:
            self._place = Place(self._sandbox, MEMORY_BYTES)
            self.opened += 1
        return self._place

    @contextlib.contextmanager
    def emptied(self) -> Iterator[Place]:
        """The desktop, without processes or files from the attack before."""
        place = self.get()
        try:
            yield place
            place.sweep()
            assert place.ask("look") == {"pid": 1, "others": 0}
        except BaseException:
            self._close_place()
            raise

    def _close_place(self) -> None:
        if self._place is not None:
            self._place.close()
        self._place = None

    def close(self) -> None:
        self._close_place()
        self._sandbox.close()


@pytest.fixture(scope="module")
def one_open() -> Iterator[list[Reopened]]:
    """The one that the test before used, if any."""
    last: list[Reopened] = []
    yield last
    for each in last:
        each.close()


@pytest.fixture
def reopened(request: pytest.FixtureRequest, one_open: list[Reopened]) -> Reopened:
    """A desktop of one way.

    Not of the module itself: pytest makes such a fixture again for each set of parameters.
    """
    if not one_open or one_open[0].way != request.param:
        while one_open:
            one_open.pop().close()
        one_open.append(Reopened(request.param))
    return one_open[0]


def test_the_attacks_left_out_need_a_package() -> None:
    assert len(ATTACKS) >= 75
    assert {attack.name for attack in ATTACKS if "openpyxl" in adapted(attack)} == set()


def runs() -> list[tuple[str, Attack]]:
    """Yields which attack is run in which way: all in the usual one, those on process 1 in each."""
    usual = [(way, attack) for way in ways.USUAL for attack in ATTACKS]
    return usual + [
        (way, attack)
        for way in (ways.SAMPLED, ways.ORDINARY_USER)
        for attack in ATTACKS
        if attack.name in ON_PROCESS_1
    ]


@pytest.mark.parametrize(
    ("reopened", "attack"),
    [
        pytest.param(way, attack, id=f"{way}-{attack.name}", marks=ways.marks(way))
        for way, attack in runs()
    ],
    indirect=["reopened"],
)
def test_attack_from_within(reopened: Reopened, attack: Attack) -> None:
    ends = attack.verdict is Verdict.AC
    with reopened.emptied() as place:
        place.place(_INPUT, b"input")
        place.place(f"{_OUTPUT}.beside", b"")
        ran = place.run(adapted(attack), ENDS_S if ends else LATE_S)
        assert "REACHED" not in ran.said, ran
        assert not ends or "END" in ran.said, ran


@pytest.mark.parametrize(
    "reopened",
    [pytest.param(way, marks=ways.marks(way)) for way in (ways.SAMPLED, ways.ORDINARY_USER)],
    indirect=True,
)
def test_memory_is_bounded_without_control_groups(reopened: Reopened) -> None:
    hog = "kept = []\nwhile True:\n    kept.append(b'x' * 2**20)"
    with pytest.raises(SandboxError), reopened.emptied() as place:
        place.run(hog, ENDS_S)
