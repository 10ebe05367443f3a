"""``judge.compare`` is both a package and a function, whichever a program imports first."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import judge
from judge.suites import load_suite

CALL = "print(judge.compare(gold, output, position, recalc='never').differing_cells)\n"
ORDERS = {
    "the function first": f"import judge\n{CALL}import judge.compare.cells.value\n{CALL}",
    "the package first": f"import judge.compare.cells.value\n{CALL}import judge\n{CALL}",
    "from the package": f"from judge.compare.cells.value import comparator\nimport judge\n{CALL}"
    f"from judge import compare\nassert compare is judge.compare\n{CALL}",
}


@pytest.mark.parametrize("order", ORDERS)
def test_it_can_be_called_before_and_after_its_modules_are_imported(order: str) -> None:
    task = load_suite("sample").task("1001")
    gold, output = task.cases[0].gold_path, task.cases[0].input_path
    position = str(task.checker.options["answer_position"])
    names = f"gold, output, position = {str(gold)!r}, {str(output)!r}, {position!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", names + ORDERS[order]],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    expected = judge.compare_workbooks(gold, output, position, recalc="never").differing_cells
    assert expected > 0
    assert done.stdout.split() == [str(expected)] * 2


def test_it_shows_what_the_function_takes() -> None:
    assert inspect.signature(judge.compare) == inspect.signature(judge.compare_workbooks)


def test_it_refuses_what_the_function_refuses() -> None:
    with pytest.raises(TypeError, match="position"):
        judge.compare(b"", b"")  # type: ignore[call-arg]
