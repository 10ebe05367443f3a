from __future__ import annotations

import pytest

from judge.errors import UsageError
from judge.suites.file_pattern import FilePattern, PathFields


def place(pattern: str, path: str, tasks: tuple[str, ...] = ()) -> PathFields | None:
    return FilePattern(pattern, tasks).match(path)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("{task}/{case}/*.xlsx", "59196/2/answer.xlsx", ("59196", 2, None)),
        ("{task}/{case}/*.xlsx", "59196/2/deep/answer.xlsx", None),
        ("{task}/{case}/*.xlsx", "59196/two/answer.xlsx", None),
        ("**/{task}_{case}.xlsx", "a/b/7_01.xlsx", ("7", 1, None)),
        ("**/{task}_{case}.xlsx", "7_1.xlsx", ("7", 1, None)),
        ("run{sample}/{case}_{task}.xls?", "run4/1_x.xlsm", ("x", 1, 4)),
        ("{task}/{task}_out[123].xlsx", "a/a_out2.xlsx", ("a", None, None)),
        ("{task}/{task}_out[123].xlsx", "a/b_out2.xlsx", None),
        ("{task}/[!.]*", "a/.hidden", None),
        ("{task}/a+b(c).xlsx", "t/a+b(c).xlsx", ("t", None, None)),
        ("{task}/x[", "t/x[", ("t", None, None)),
        ("out/**", "out/a/b.xlsx", (None, None, None)),
    ],
)
def test_what_a_path_says(
    pattern: str, path: str, expected: tuple[str | None, int | None, int | None] | None
) -> None:
    wanted = None if expected is None else PathFields(*expected)
    assert place(pattern, path) == wanted


def test_ids_are_found_where_a_separator_is_part_of_them() -> None:
    tasks = ("13", "13-1", "a_b")
    assert place("{task}-{case}.xlsx", "13-1-2.xlsx", tasks) == PathFields("13-1", 2, None)
    assert place("{case}_{task}_output.xlsx", "1_a_b_output.xlsx", tasks) == PathFields(
        "a_b", 1, None
    )
    assert place("{task}/*.xlsx", "other/1.xlsx", tasks) == PathFields("other", None, None)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", "not a pattern"),
        ("/{task}.xlsx", "not a pattern"),
        ("../{task}.xlsx", "not a pattern"),
        ("a//{task}.xlsx", "not a pattern"),
        ("{tasks}.xlsx", "has the unknown field {tasks}"),
        ("x" * 2000, "at most"),
        ("[z-a]", "cannot be read"),
    ],
)
def test_patterns_that_are_refused(pattern: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        FilePattern(pattern)
