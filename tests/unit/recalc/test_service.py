"""Requests to an isolated service."""

from __future__ import annotations

import json
import os
import struct
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from judge.errors import RecalcError, SandboxError
from judge.recalc.contract import CrashedError, Dialect, EngineUnavailableError, OutOfTimeError
from judge.recalc.engines import ServiceEngine
from judge.recalc.service import ServicePool, read_answer
from judge.recalc.services import office
from judge.recalc.services.common import split_request
from judge.workbook.cell import CellRange, CellRef, ErrorValue

AREA = CellRange("S", 1, 1, 2, 2)
Answer = bytes | BaseException


class ScriptedChannel:
    def __init__(self, answers: list[Answer]) -> None:
        self.answers = answers
        self.payloads: list[bytes] = []
        self.closed = 0

    def call(self, payload: bytes, timeout_s: float) -> bytes:
        assert not self.closed
        self.payloads.append(payload)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1


def opener(*channels: ScriptedChannel) -> Callable[[], ScriptedChannel]:
    waiting = list(channels)
    return lambda: waiting.pop(0)


def said(*values: object) -> bytes:
    return json.dumps({"values": [list(values)], "seconds": 0.5}).encode()


def test_an_answer_becomes_cells() -> None:
    result = read_answer(
        {"values": [[1.0, 1.5, True, {"e": "#N/A"}], [{"x": "why"}]], "seconds": 2},
        [AREA, CellRange("T", 5, 5, 5, 5)],
        "engine",
    )
    assert dict(result.values) == {
        CellRef("S", 1, 1): 1,
        CellRef("S", 1, 2): 1.5,
        CellRef("S", 2, 1): True,
        CellRef("S", 2, 2): ErrorValue("#N/A"),
    }
    assert isinstance(result.values[CellRef("S", 1, 1)], int)
    assert dict(result.failed) == {CellRef("T", 5, 5): "why"}


@pytest.mark.parametrize(
    "answer", [{}, {"values": []}, {"values": [[1]]}, {"error": "no"}, {"values": 5}]
)
def test_an_answer_that_does_not_fit_is_refused(answer: dict[str, object]) -> None:
    with pytest.raises(RecalcError):
        read_answer(answer, [AREA], "engine")


def test_a_request_holds_all_that_the_service_needs() -> None:
    channel = ScriptedChannel([said(1, 2, 3, 4)])
    engine = ServiceEngine("ironcalc", ServicePool(opener(channel)))
    engine.compute(b"book", [AREA], timeout_s=7, dialect=Dialect({"A": "B"}, True))
    header, workbook = split_request(channel.payloads[0])
    assert workbook == b"book"
    assert header["ranges"] == [["S", 1, 1, 2, 2]]
    # It is ended a little later than at its limit; what it reports decides.
    assert (header["engine"], header["timeout_s"]) == ("ironcalc", pytest.approx(7.8))
    assert (header["names"], header["date_1904"]) == ({"A": "B"}, True)


UNAVAILABLE = json.dumps({"error": "no disk", "unavailable": True}).encode()


@pytest.mark.parametrize(
    "fault", [SandboxError("ended"), b"no json", b"\xff\xfe", UNAVAILABLE, b"[]"]
)
def test_a_service_that_ends_is_replaced_and_asked_again(fault: Answer) -> None:
    broken, fresh = ScriptedChannel([fault]), ScriptedChannel([said(1, 2, 3, 4)])
    engine = ServiceEngine("ironcalc", ServicePool(opener(broken, fresh)))
    assert len(engine.compute(b"", [AREA], timeout_s=1).values) == 4
    assert broken.closed == 1


def test_a_service_that_is_ended_twice_is_our_fault() -> None:
    ended = SandboxError("ended")
    channels = [ScriptedChannel([ended]), ScriptedChannel([ended])]
    fresh = ScriptedChannel([said(1, 2, 3, 4)])
    engine = ServiceEngine("ironcalc", ServicePool(opener(*channels, fresh)))
    with pytest.raises(EngineUnavailableError, match="ended from outside"):
        engine.compute(b"", [AREA], timeout_s=1)
    assert len(engine.compute(b"", [AREA], timeout_s=1).values) == 4


def test_one_event_that_ends_idle_services_as_well_uses_up_no_attempt() -> None:
    ended = SandboxError("ended")
    idle = ScriptedChannel([said(1, 2, 3, 4), ended])
    dying, fresh = ScriptedChannel([ended]), ScriptedChannel([said(5, 6, 7, 8)])
    engine = ServiceEngine("ironcalc", ServicePool(opener(idle, dying, fresh)))
    engine.compute(b"", [AREA], timeout_s=1)
    assert list(engine.compute(b"", [AREA], timeout_s=1).values.values()) == [5, 6, 7, 8]


def test_a_service_that_sends_invalid_answers_twice_gives_no_value() -> None:
    fault = b"no json"
    channels = [ScriptedChannel([fault]), ScriptedChannel([fault])]
    fresh = ScriptedChannel([said(1, 2, 3, 4)])
    engine = ServiceEngine("ironcalc", ServicePool(opener(*channels, fresh)))
    with pytest.raises(RecalcError) as caught:
        engine.compute(b"", [AREA], timeout_s=1)
    assert not isinstance(caught.value, EngineUnavailableError)
    assert len(engine.compute(b"", [AREA], timeout_s=1).values) == 4


def test_a_service_that_hangs_is_not_waited_for_twice() -> None:
    broken, fresh = ScriptedChannel([TimeoutError()]), ScriptedChannel([said(1, 2, 3, 4)])
    engine = ServiceEngine("ironcalc", ServicePool(opener(broken, fresh)))
    with pytest.raises(EngineUnavailableError, match="did not answer"):
        engine.compute(b"", [AREA], timeout_s=1)
    assert len(engine.compute(b"", [AREA], timeout_s=1).values) == 4


def test_an_engine_that_used_up_its_processor_time_says_so() -> None:
    answer = json.dumps({"error": "took longer", "timed_out": True}).encode()
    engine = ServiceEngine("ironcalc", ServicePool(opener(ScriptedChannel([answer]))))
    with pytest.raises(OutOfTimeError, match="ironcalc: took longer"):
        engine.compute(b"", [AREA], timeout_s=1)


def test_an_engine_that_does_not_start_is_our_fault() -> None:
    pool = ServicePool(opener(ScriptedChannel([UNAVAILABLE]), ScriptedChannel([UNAVAILABLE])))
    with pytest.raises(EngineUnavailableError, match="no disk"):
        pool.ask({}, b"", 1)


def test_a_service_that_does_not_start_is_our_fault() -> None:
    def refuse() -> ScriptedChannel:
        raise SandboxError("no daemon", hint="start it")

    with pytest.raises(EngineUnavailableError) as caught:
        ServicePool(refuse).ask({}, b"", 1)
    assert caught.value.hint == "start it"


def test_a_closed_pool_closes_its_channels_and_stays_closed() -> None:
    channel = ScriptedChannel([b"{}"])
    pool = ServicePool(opener(channel))
    pool.ask({}, b"", 1)
    pool.close()
    pool.close()
    assert channel.closed == 1
    with pytest.raises(EngineUnavailableError):
        pool.ask({}, b"", 1)


def test_versions_are_queried_once() -> None:
    answer = json.dumps({"versions": {"ironcalc": "0.9"}}).encode()
    channel = ScriptedChannel([answer, answer])
    pool = ServicePool(opener(channel))
    engine = ServiceEngine("ironcalc", pool)
    assert (engine.version, engine.version) == ("0.9", "0.9")
    assert len(channel.payloads) == 1
    with pytest.raises(RecalcError, match="formulas is not installed") as caught:
        _ = ServiceEngine("formulas", pool).version
    assert caught.value.hint


def test_frames_carry_the_header_before_the_workbook() -> None:
    header = json.dumps({"op": "describe"}).encode()
    assert split_request(struct.pack(">I", len(header)) + header + b"rest") == (
        {"op": "describe"},
        b"rest",
    )


def test_two_engines_of_a_service_are_asked_at_once() -> None:
    both = json.loads(said(1, 2, 3, 4)) | {"then": json.loads(said(5, 6, 7, 8))}
    channel = ScriptedChannel([json.dumps(both).encode()])
    pool = ServicePool(opener(channel))
    first, second = ServiceEngine("formualizer", pool), ServiceEngine("ironcalc", pool)
    assert first.is_teamed_with(second)
    assert not first.is_teamed_with(ServiceEngine("libreoffice", ServicePool(opener())))
    one, other = first.compute_both(second, b"book", [AREA], timeout_s=1)
    assert not isinstance(other, RecalcError)
    assert (list(one.values.values()), list(other.values.values())) == ([1, 2, 3, 4], [5, 6, 7, 8])
    header, _ = split_request(channel.payloads[0])
    assert header["then"] == "ironcalc"


@pytest.mark.parametrize("then", [{"error": "took longer"}, {"values": [[1]]}, None])
def test_a_second_engine_without_an_answer_leaves_that_of_the_first(then: object) -> None:
    both = json.loads(said(1, 2, 3, 4)) | {"then": then}
    pool = ServicePool(opener(ScriptedChannel([json.dumps(both).encode()])))
    engine = ServiceEngine("formualizer", pool)
    one, other = engine.compute_both(ServiceEngine("ironcalc", pool), b"", [AREA], timeout_s=1)
    assert len(one.values) == 4
    assert isinstance(other, RecalcError)


@pytest.mark.parametrize(("seconds", "in_time"), [(0.999, True), (1.0, True), (1.001, False)])
def test_the_processor_time_that_is_reported_decides(seconds: float, *, in_time: bool) -> None:
    """It does not matter whether the service happened to check the engine in between."""
    values = {"values": [[1, 2, 3, 4]], "seconds": seconds}
    for answer in (values, {"values": [[1, 2, 3, 4]], "seconds": 0.1, "then": values}):
        channel = ScriptedChannel([json.dumps(answer).encode()])
        engine = ServiceEngine("formualizer", ServicePool(opener(channel)))
        outcome: object
        try:
            if "then" in answer:
                second = ServiceEngine("ironcalc", engine.pool)
                _, outcome = engine.compute_both(second, b"", [AREA], timeout_s=1)
            else:
                outcome = engine.compute(b"", [AREA], timeout_s=1)
        except OutOfTimeError as error:
            outcome = error
        assert isinstance(outcome, OutOfTimeError) is not in_time
        assert in_time or "took longer than 1 s of processor time" in str(outcome)


def test_the_way_in_which_an_engine_ended_is_known() -> None:
    for answer in (
        {"error": "the engine crashed (wait status 134)"},
        {"error": "the engine crashed (wait status 9)", "killed": True},
    ):
        with pytest.raises(CrashedError):
            read_answer(answer, [AREA], "ironcalc")
    with pytest.raises(RecalcError) as caught:
        read_answer({"error": "PanicException: the engine crashed"}, [AREA], "ironcalc")
    assert not isinstance(caught.value, CrashedError)


def test_the_end_of_soffice_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object) -> list[list[object]]:
        raise RuntimeError("the bridge is gone")

    monkeypatch.setattr(office, "compute", end)
    running = Mock(process=Mock(pid=os.getpid()), temporary=Mock(is_full=lambda: False))
    with pytest.raises(office.FellOverError) as caught:
        office.compute_until(running, b"", [], 10.0)
    with pytest.raises(CrashedError):
        read_answer({"error": str(caught.value)}, [AREA], "libreoffice")


class GatedChannel(ScriptedChannel):
    """Answers when its gate opens; reports when a request has arrived."""

    def __init__(self) -> None:
        super().__init__([said(1, 2, 3, 4)] * 2)
        self.gate = threading.Event()
        self.arrived = threading.Event()

    def call(self, payload: bytes, timeout_s: float) -> bytes:
        self.arrived.set()
        assert self.gate.wait(60)
        return super().call(payload, timeout_s)


def test_a_request_waits_for_a_running_service_rather_than_start_another_one() -> None:
    channel = GatedChannel()
    pool = ServicePool(opener(channel), size=2, waited_for_s=60)
    with ThreadPoolExecutor(2) as jobs:
        first = jobs.submit(pool.ask, {}, b"", 1)
        assert channel.arrived.wait(60)
        second = jobs.submit(pool.ask, {}, b"", 1)
        channel.gate.set()
        assert first.result() == second.result()
    assert len(channel.payloads) == 2


def test_another_service_starts_if_the_running_one_stays_busy() -> None:
    busy, other = GatedChannel(), ScriptedChannel([said(1, 2, 3, 4)])
    pool = ServicePool(opener(busy, other), size=2, waited_for_s=0.01)
    with ThreadPoolExecutor(2) as jobs:
        first = jobs.submit(pool.ask, {}, b"", 1)
        assert busy.arrived.wait(60)
        assert pool.ask({}, b"", 1) == json.loads(said(1, 2, 3, 4))
        busy.gate.set()
        assert first.result()
    assert len(other.payloads) == 1


def test_a_request_starts_a_service_itself_if_the_one_it_waited_for_is_lost() -> None:
    lost, fresh = GatedChannel(), ScriptedChannel([said(1, 2, 3, 4)] * 2)
    lost.answers = [TimeoutError()]
    pool = ServicePool(opener(lost, fresh), size=2, waited_for_s=60)
    with ThreadPoolExecutor(2) as jobs:
        first = jobs.submit(pool.ask, {}, b"", 1)
        assert lost.arrived.wait(60)
        second = jobs.submit(pool.ask, {}, b"", 1)
        lost.gate.set()
        with pytest.raises(RecalcError):
            first.result()
        assert second.result() == json.loads(said(1, 2, 3, 4))
