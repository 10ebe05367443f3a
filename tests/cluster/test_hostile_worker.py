"""A worker that sends pickles: nothing of them is executed where the records are kept."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from judge import api
from judge.cluster import dispatch
from judge.cluster.engine.refusing import RefusedPickleError, refusing_pickles
from judge.core.verdict import Verdict
from tests.cluster import hostile
from tests.cluster.conftest import machine_in
from tests.cluster.test_cluster import SAMPLE, solutions


@pytest.mark.bubblewrap
def test_no_pickle_of_a_worker_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("judge.api.resources.print_label", lambda *text: told.append(text[2]))
    monkeypatch.setattr(dispatch, "DEATHS", 4)
    with machine_in(tmp_path) as machine:
        monkeypatch.setenv("JUDGE_CLUSTER_CERTIFICATES", str(machine.certificates))
        address = machine.scheduler()
        taken_over = {
            "DASK_DISTRIBUTED__WORKER__PRELOAD": hostile.__file__,
            hostile.MARK: str(tmp_path / "executed-"),
        }
        machine.workers(1, **taken_over)
        (run,) = api.score(
            solutions(tmp_path),
            api.ScoreOptions(
                dataset=str(SAMPLE), out=tmp_path / "run", sandbox="bubblewrap", cluster=address
            ),
        )
    assert {each.verdict for each in run.results} == {Verdict.JE}
    assert len(told) >= 4
    # The worker itself, and its scheduler, may unpickle what they like: they say who they are.
    assert not list(tmp_path.glob(f"executed-*-{os.getpid()}"))


def test_what_it_sends_is_executed_where_nothing_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(hostile.MARK, str(tmp_path / "executed-"))
    sent = pickle.dumps(hostile.Evil("result"))
    with refusing_pickles(), pytest.raises(RefusedPickleError):
        pickle.loads(sent)
    assert not list(tmp_path.iterdir())
    pickle.loads(sent)
    assert [each.name for each in tmp_path.iterdir()] == [f"executed-result-{os.getpid()}"]


def test_the_guard_lets_plain_data_pass_and_ends_with_the_connection() -> None:
    named, plain = pickle.dumps(Path("/")), pickle.dumps({"seconds": 1.0, "bytes": b"x"})
    with refusing_pickles():
        assert pickle.loads(plain) == {"seconds": 1.0, "bytes": b"x"}
        with pytest.raises(RefusedPickleError):
            pickle.loads(named)
        with pytest.raises(RefusedPickleError):
            pickle._loads(named)  # type: ignore[attr-defined]  # the one written in Python
    assert pickle.loads(named) == Path("/")
