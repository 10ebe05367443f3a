from __future__ import annotations

import pytest

from tests import distribution
from tests.conftest import REPOSITORY

ATTACKS = [f"tests/conformance/test_attacks.py::test_attack[{name}]" for name in "ab"]
SCORE = "tests/e2e/test_dev100.py::test_the_expected_score"
PAGES = "tests/browser/test_view.py"
VALUES = "tests/unit/compare/cells/test_value.py"


@pytest.mark.parametrize(
    "start", [*distribution.ONE_BY_ONE, *distribution.WAITING, *distribution.LONGEST]
)
def test_named_tests_exist(start: str) -> None:
    path, _, name = start.partition("::")
    files = list(REPOSITORY.glob(f"{path}*"))
    assert files
    assert not name or all(f"def {name}" in file.read_text(encoding="utf-8") for file in files)


def test_a_file_goes_to_one_worker_but_long_files_test_by_test() -> None:
    assert distribution.unit_of(f"{VALUES}::test_numbers[1]") == VALUES
    assert distribution.unit_of(ATTACKS[0]) == ATTACKS[0]
    assert distribution.unit_of(SCORE) == SCORE


def test_workers_take_the_longest_unit_of_their_kind_first() -> None:
    left = [VALUES, *ATTACKS, PAGES, SCORE]
    taken = []
    for _ in range(len(left)):
        taken.append(distribution.choose(left, computes=True))
        left.remove(taken[-1])
    assert taken == [SCORE, PAGES, VALUES, *ATTACKS]
    assert distribution.choose([VALUES, SCORE, *ATTACKS], computes=False) == ATTACKS[0]
    assert distribution.choose([VALUES, SCORE], computes=False) == SCORE


def test_there_are_more_workers_than_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    for processors, workers in ((1, 2), (2, 4), (64, distribution.MAX_WORKERS)):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, count=processors: set(range(count)))
        assert distribution.workers() == workers
