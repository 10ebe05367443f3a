"""Searches with the regular expressions of a suite, within a fixed bound on the work.

Python's own engine backtracks: ``^(a+)+$`` practically never ends on 40 characters, the engine
cannot be interrupted, and the time depends on the machine. Here a pattern is read by Python's own
parser and simulated as a set of parallel states (K. Thompson, CACM 11 (1968), 419-422). That takes
states times characters. The steps are counted, so whether a pattern is too expensive depends only
on the pattern and the text. Python's engine still decides whether a single character or position
matches, so that case, categories and line ends have the same meaning as there.

Patterns that a set of states cannot simulate (references to groups, atomic groups, possessive
repeats) are searched by Python's engine in a separate process with a limit on processor time.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from re import _compiler, _parser  # type: ignore[attr-defined] # no other way to the parser
from typing import Any

MAX_STEPS = 10_000_000
"""Largest number of states that one search visits."""

MAX_STATES = 20_000
"""Largest number of states of a pattern; ``(ab){1,500}`` has about 1,500."""

MAX_PATTERN_CHARS = 10_000  # patterns of published suites are far shorter
CPU_SECONDS = 10
"""Limit on the processor time of a search by Python's own engine, in seconds."""

_MEMORY_BYTES = 1 << 30  # of the process that searches with Python's engine
_ELSEWHERE = f"""
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY_BYTES}, {_MEMORY_BYTES}))
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS}, {CPU_SECONDS}))
pattern, flags, text = json.load(sys.stdin)
print(re.search(pattern, text, flags) is not None)
"""


class PatternError(Exception):
    """A pattern cannot be searched; the message says why."""


class _NotRegularError(Exception):
    """A set of states cannot simulate the pattern."""


def check_pattern(pattern: str) -> None:
    """Checks that a pattern is valid.

    Raises:
        PatternError: the pattern is not valid.
    """
    _program(pattern, 0)


class Steps:
    """Counts the steps of several searches, which share one limit.

    Args:
        max_steps: how many states the searches may visit in total.
    """

    def __init__(self, max_steps: int) -> None:
        self.max_steps = self.left = max_steps

    def take(self, count: int = 1) -> None:
        """Counts visited states.

        Raises:
            PatternError: the limit is exceeded.
        """
        self.left -= count
        if self.left < 0:
            raise PatternError(f"searching takes more than {self.max_steps} steps")


def search(pattern: str, text: str, flags: int = 0, steps: Steps | None = None) -> bool:
    """Whether ``re.search(pattern, text, flags)`` finds something.

    Args:
        pattern: the regular expression.
        text: the text; the caller limits its length.
        flags: flags of :mod:`re`.
        steps: counts the steps of this and other searches; with None, this search alone may take
            :data:`MAX_STEPS`. A search by Python's own engine counts as :data:`MAX_STEPS` steps.

    Raises:
        PatternError: the pattern is not a regular expression, or the search takes too many steps.
    """
    program = _program(pattern, flags)
    if program is None:
        if steps is not None:
            steps.take(MAX_STEPS)
        return _search_elsewhere(pattern, text, flags)
    return _Search(program, text, steps or Steps(MAX_STEPS)).finds()


@dataclass(slots=True)
class _State:
    """A state of a pattern's automaton.

    Attributes:
        successors: numbers of the states that can follow it.
        character: pattern that the next character has to match; None if the state reads nothing.
        condition: whether a position is allowed; None if every position is.
    """

    successors: list[int]
    character: re.Pattern[str] | None = None
    condition: Callable[[_Search, int], bool] | None = None


@dataclass(slots=True)
class _Program:
    """A pattern as states; reaching state 0 is a match.

    Attributes:
        states: all of them.
        start: the state in which a search begins.
    """

    states: list[_State] = field(default_factory=lambda: [_State([])])
    start: int = 0


@lru_cache(maxsize=256)
def _program(pattern: str, flags: int) -> _Program | None:
    """Converts a pattern to states; None if states cannot simulate it.

    Raises:
        PatternError: the pattern is not valid, or has too many states.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternError(f"it has {len(pattern)} characters; {MAX_PATTERN_CHARS} are allowed")
    try:
        parsed = _parser.parse(pattern, flags)
        # The compiler rejects some patterns that the parser accepts.
        _compiler.compile(pattern, flags)
        builder = _Builder(_Program())
        builder.program.start = builder.chain(parsed, 0, parsed.state.flags)
    except _NotRegularError:
        return None
    except RecursionError as error:
        raise PatternError("it is nested too deeply") from error
    except (re.error, OverflowError, ValueError) as error:
        raise PatternError(str(error)) from error
    return builder.program


class _Builder:
    """Builds states from the result of Python's parser, from the end to the beginning."""

    def __init__(self, program: _Program) -> None:
        self.program = program

    def chain(self, items: Iterable[tuple[Any, Any]], then: int, flags: int) -> int:
        """Adds states for a sequence of items, and returns the first of them."""
        for name, value in reversed(list(items)):
            then = self._item(str(name), (name, value), then, flags)
        return then

    def _state(self, state: _State) -> int:
        if len(self.program.states) >= MAX_STATES:
            raise PatternError(f"it takes more than {MAX_STATES} states")
        self.program.states.append(state)
        return len(self.program.states) - 1

    def _item(self, name: str, item: tuple[Any, Any], then: int, flags: int) -> int:
        value = item[1]
        match name:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                return self._state(_State([then], character=_alone(item, flags)))
            case "AT":
                anchor = _alone(item, flags)
                return self._state(_State([then], condition=lambda s, at: s.is_at(anchor, at)))
            case "BRANCH":
                return self._state(_State([self.chain(branch, then, flags) for branch in value[1]]))
            case "SUBPATTERN":
                _, added, removed, inside = value
                combined = _combined(flags, added, removed)
                return self.chain(inside, then, combined)
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, inside = value
                return self._repeat(least, most, inside, then, flags)
            case "ASSERT" | "ASSERT_NOT":
                direction, inside = value
                return self._look(direction, inside, then, flags, expected=name == "ASSERT")
            case "FAILURE":
                return self._state(_State([]))
        raise _NotRegularError

    def _repeat(self, least: int, most: Any, inside: Any, then: int, flags: int) -> int:
        if most == _parser.MAXREPEAT:
            loop = self._state(_State([]))
            self.program.states[loop].successors = [self.chain(inside, loop, flags), then]
            then = loop
        else:
            end = then
            for _ in range(int(most) - least):
                then = self._state(_State([self.chain(inside, then, flags), end]))
        for _ in range(least):
            then = self.chain(inside, then, flags)
            if len(inside) == 0:
                break
        return then

    def _look(self, direction: int, inside: Any, then: int, flags: int, *, expected: bool) -> int:
        """Adds a state for a lookahead or lookbehind, and returns it."""
        builder = _Builder(_Program())
        builder.program.start = builder.chain(inside, 0, flags)
        self._state(_State([]))  # counts towards the limit on states
        width = inside.getwidth()[0] if direction < 0 else 0

        def holds(search: _Search, at: int) -> bool:
            matches = at >= width and search.follows(builder.program, at - width)
            return matches is expected

        return self._state(_State([then], condition=holds))


def _combined(flags: int, added: int, removed: int) -> int:
    """Returns the flags inside a group that adds or removes flags."""
    combined: int = _compiler._combine_flags(flags, added, removed)  # noqa: SLF001  as above
    return combined


def _alone(item: tuple[Any, Any], flags: int) -> re.Pattern[str]:
    """Returns a single item of a pattern as a separate pattern."""
    state = _parser.State()
    state.flags = flags
    pattern: re.Pattern[str] = _compiler.compile(_parser.SubPattern(state, [item]))
    return pattern


class _Search:
    """One search of a pattern in some text."""

    def __init__(self, program: _Program, text: str, steps: Steps) -> None:
        self._program = program
        self._text = text
        self._steps = steps
        self._fits: dict[tuple[int, str], bool] = {}
        self._followed: dict[tuple[int, int], bool] = {}

    def finds(self) -> bool:
        """Whether the pattern matches anywhere."""
        return self._runs(self._program, 0, anywhere=True)

    def follows(self, program: _Program, at: int) -> bool:
        """Whether a pattern matches at a position."""
        key = (id(program), at)
        if key not in self._followed:
            self._followed[key] = self._runs(program, at, anywhere=False)
        return self._followed[key]

    def is_at(self, anchor: re.Pattern[str], at: int) -> bool:
        """Whether an anchor, a pattern without width, matches at a position."""
        return anchor.match(self._text, at) is not None

    def _runs(self, program: _Program, start: int, *, anywhere: bool) -> bool:
        begun: list[int] = [program.start]
        for at in range(start, len(self._text) + 1):
            reached = self._reached(program, begun, at)
            if 0 in reached:
                return True
            begun = [program.start] if anywhere else []
            if at < len(self._text):
                begun += self._read(program, reached, self._text[at])
            if not begun:
                return False
        return False

    def _reached(self, program: _Program, begun: Iterable[int], at: int) -> set[int]:
        """Returns all states that are reached without reading another character."""
        reached: set[int] = set()
        ahead = list(begun)
        while ahead:
            number = ahead.pop()
            if number in reached:
                continue
            reached.add(number)
            self._steps.take()
            state = program.states[number]
            if state.character is None and (state.condition is None or state.condition(self, at)):
                ahead += state.successors
        return reached

    def _read(self, program: _Program, reached: Iterable[int], char: str) -> Iterator[int]:
        for number in reached:
            pattern = program.states[number].character
            if pattern is None:
                continue
            key = (id(pattern), char)
            if key not in self._fits:
                self._fits[key] = pattern.match(char) is not None
            if self._fits[key]:
                yield program.states[number].successors[0]


def _search_elsewhere(pattern: str, text: str, flags: int) -> bool:
    """Searches by Python's own engine, in a process with a limit on processor time.

    Raises:
        PatternError: the search exceeded the limit, or ran out of memory.
    """
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _ELSEWHERE],
        input=json.dumps([pattern, int(flags), text]),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode in {-signal.SIGXCPU, -signal.SIGKILL}:
        raise PatternError(f"searching it takes more than {CPU_SECONDS} s of processor time")
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise PatternError(f"the search failed: {last or done.returncode}")
    return done.stdout.strip() == "True"
