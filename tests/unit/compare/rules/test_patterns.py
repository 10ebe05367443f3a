"""Patterns from a suite: the same results as Python's engine, with bounded work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judge
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules import methods, patterns
from judge.compare.rules.options import faults_of
from judge.compare.rules.patterns import PatternError, check_pattern, search

# Each of these takes Python's own engine longer than anybody waits.
ENDLESS = [
    (r"^(a+)+$", "a" * 40 + "!"),
    (r"^(a|a)*$", "a" * 40 + "!"),
    (r"^(\w+\s?)*$", "word " * 40 + "!"),
    (r"(.*,){12}P", "1," * 60),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 60),
    (r"(?=^(a+)+$)", "a" * 40 + "!"),
    (r"(x+x+)+y", "x" * 4096),
    (r"(a?){40}a{40}", "a" * 39),
]

_ATOMS = ["a", "b", "A", r"\d", r"\w", r"\s", ".", "[ab]", "[^a]", "[a-c1]", "", r"\.", "\n", "é"]
_PLACES = ["^", "$", r"\b", r"\B", r"\A", r"\Z"]


def _wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        inner.map(lambda one: f"({one})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{,2}"]))
        .map(lambda two: f"(?:{two[0]}){two[1]}"),
        st.tuples(st.sampled_from(["?=", "?!"]), inner).map(lambda two: f"({two[0]}{two[1]})"),
        st.tuples(st.sampled_from(["?i:", "?-i:", "?s:", "?m:", "?a:"]), inner)
        .map(lambda two: f"({two[0]}{two[1]})"),
        st.sampled_from(["(?<=a)", "(?<!ab)", r"(?<=\d\w)", "(?!)"]),
    )  # fmt: skip


PATTERNS = st.recursive(st.sampled_from(_ATOMS + _PLACES), _wider, max_leaves=8)


@settings(max_examples=600, deadline=None)
@given(
    PATTERNS,
    st.text(alphabet="aAbBc1_ .\né", max_size=8),
    st.sampled_from(
        [0, re.IGNORECASE, re.MULTILINE, re.DOTALL, re.ASCII, re.IGNORECASE | re.MULTILINE]
    ),
)
def test_it_says_what_pythons_engine_says(pattern: str, text: str, flags: int) -> None:
    try:
        wanted = re.search(pattern, text, flags) is not None
    except re.error:
        with pytest.raises(PatternError):
            search(pattern, text, flags)
        return
    assert search(pattern, text, flags) is wanted


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        (r"(ab)\1", "xababx", True),
        (r"(ab)\1", "abba", False),
        (r"(?P<n>a)(?P=n)", "aa", True),
        (r"(a)?(?(1)b|c)$", "ab", True),
        (r"(?>a*)a", "aaaa", False),
        (r"a*+a", "aaaa", False),
        (r"(?<=(a))b", "ab", True),
        ("\ud800", "x\ud800", True),
        ("(?i)STRASSE|\u017f", "s", True),
        (r"(?x) a  b # comment", "ab", True),
    ],
)
def test_so_it_does_where_groups_are_referred_to(pattern: str, text: str, wanted: bool) -> None:
    assert search(pattern, text) is wanted
    assert (re.search(pattern, text) is not None) is wanted


@pytest.mark.parametrize(("pattern", "text"), ENDLESS)
def test_what_would_never_end_is_counted(
    pattern: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each state is visited once for each character, which bounds the work."""
    program = patterns._program(pattern, 0)
    assert program is not None
    looked: list[int] = []
    reached = patterns._Search._reached

    def counted(self: patterns._Search, *given: object) -> set[int]:
        found = reached(self, *given)  # type: ignore[arg-type]
        looked.append(len(found))
        return found

    monkeypatch.setattr(patterns._Search, "_reached", counted)
    assert search(pattern, text) is False
    # A pattern that looks ahead is followed from each place once.
    assert sum(looked) <= (len(program.states) + 100) * (len(text) + 1) * 2


@pytest.mark.slow
def test_what_only_pythons_engine_can_search_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        patterns, "_ELSEWHERE", patterns._ELSEWHERE.replace(f"({patterns.CPU_SECONDS}, ", "(1, ")
    )
    with pytest.raises(PatternError, match="processor time"):
        search(r"^(a+)+\1b$", "a" * 60)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "missing \\)"),
        ("(" * 4000 + ")" * 4000, "nested too deeply"),
        ("a{99999999999}", "repetition number is too large"),
        ("a" * 10_001, "10000 are allowed"),
        ("((a{100}){100}){100}", "states"),
        ("(?<=a+)b", "fixed-width"),
    ],
)
def test_a_pattern_that_cannot_be_searched_is_the_rules_fault(pattern: str, said: str) -> None:
    with pytest.raises(PatternError, match=said):
        check_pattern(pattern)
    with pytest.raises(PublishedError) as raised:
        methods.matches("text", {"method": "re", "ref": pattern})
    assert raised.value.side is Side.RULES
    (fault,) = faults_of([{"type": "zoom", "sheet_idx": 0, "method": "re", "ref": pattern}])
    assert "is not a regular expression" in fault


def test_a_search_that_is_too_much_is_the_rules_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MAX_STEPS", 100_000)
    pattern = f"{'.?' * 300}b$"
    with pytest.raises(PublishedError, match="more than 100000 steps") as raised:
        methods.matches("a" * 5000, {"method": "re", "ref": pattern})
    assert raised.value.side is Side.RULES


def test_flags_that_exclude_each_other_are_the_rules_fault() -> None:
    with pytest.raises(PublishedError, match="incompatible") as raised:
        methods.matches("text", {"method": "re.A.U", "ref": "a"})
    assert raised.value.side is Side.RULES


def test_no_other_pattern_comes_from_outside() -> None:
    """All patterns that ``re`` searches for are written in the judge; anything else is escaped."""
    folder = Path(judge.__file__).parent
    call = re.compile(r"\bre\.(?:search|match|fullmatch|findall|finditer|sub|split)\(\s*([^\s,]*)")
    found = {
        (path.relative_to(folder).as_posix(), given[1])
        for path in folder.rglob("*.py")
        for given in call.finditer(path.read_text(encoding="utf-8"))
        if not re.match(r"[rbf]*[\"']", given[1])
    }
    assert found == {
        ("compare/published/ib_bench.py", "before"),  # escaped
        ("compare/published/officebench_items.py", "before"),  # escaped
        ("compare/published/opencomputer_items.py", "before"),  # escaped
        ("compare/rules/patterns.py", "pattern"),  # in a process of its own
        ("compare/values/agreement.py", "pattern"),  # escaped
        ("recalc/functions/texts.py", "pattern"),  # escaped
    }


@pytest.mark.parametrize(("value", "ref", "side"), [(10**400, 1, None), (1, 10**400, Side.RULES)])
def test_a_number_beyond_floating_point_gives_no_traceback(
    value: int, ref: int, side: Side | None
) -> None:
    with pytest.raises(PublishedError, match="OverflowError") as raised:
        methods.matches(value, {"method": "approx:0.1", "ref": ref})
    assert raised.value.side is side
