"""Sends queries to accessible programs, many at a time.

Reading a tree takes thousands of small queries. If they were sent one by one, each would wait for
two processes to be scheduled. So all queries of a level are sent before the first answer is read.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gi.repository import Gio, GLib

from judge.desktop.driver.processes import BrokenError

ANSWER_MS = 20_000
ROOT = ("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
NOTHING = "/org/a11y/atspi/null"
_CONNECT_MS = 20_000
_AT_ONCE = 2_000

Ref = tuple[str, str]
"""An accessible object: the bus name of its program, and its path."""

_REF = "(so)"
_TYPES = {
    "GetAccessibleAtPoint": _REF, "GetAttributes": "a{ss}", "GetChildAtIndex": _REF,
    "GetChildren": f"a{_REF}", "GetExtents": "(iiii)", "GetIndexInParent": "i",
    "GetInterfaces": "as", "GetRoleName": "s", "GetState": "au", "GetText": "s",
    "ChildCount": "i", "CurrentValue": "d", "Description": "s", "Name": "s", "NColumns": "i",
}  # fmt: skip
"""The D-Bus types of the methods' answers and of the properties."""


@dataclass(frozen=True, slots=True)
class Question:
    """One call of a method.

    Attributes:
        ref: the object.
        interface: its interface, such as ``Accessible``.
        method: the method of the interface.
        kinds: D-Bus types of the arguments, such as ``ii``.
        arguments: the arguments of the call.
    """

    ref: Ref
    interface: str
    method: str
    kinds: str = ""
    arguments: tuple[Any, ...] = ()

    @classmethod
    def about(cls, ref: Ref, interface: str, name: str) -> Question:
        """Makes a query for a property."""
        return cls(ref, "", "Get", "ss", (f"org.a11y.atspi.{interface}", name))

    @property
    def answer_type(self) -> str:
        """The D-Bus type of a valid answer. A compromised program may answer with anything."""
        return _TYPES[self.arguments[1] if self.method == "Get" else self.method]


class Bus:
    """The accessibility bus.

    Args:
        session: address of the session's bus.

    Raises:
        BrokenError: there is no accessibility bus.
    """

    def __init__(self, session: str) -> None:
        try:
            address = self._connect(session).call_sync(
                "org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress",
                None, None, Gio.DBusCallFlags.NONE, _CONNECT_MS, None,
            )  # fmt: skip
            self._bus = self._connect(address.unpack()[0])
        except GLib.Error as error:
            raise BrokenError(f"the accessibility bus does not answer: {error.message}") from None
        self._context = GLib.MainContext.default()

    @staticmethod
    def _connect(address: str) -> Any:
        flags = Gio.DBusConnectionFlags
        return Gio.DBusConnection.new_for_address_sync(
            address, flags.AUTHENTICATION_CLIENT | flags.MESSAGE_BUS_CONNECTION, None, None
        )

    def ask(self, questions: Iterable[Question]) -> list[Any]:
        """Sends queries; returns the single value of each answer, None if the answer is not valid.

        Raises:
            BrokenError: the bus is gone, or no program answers at all.
        """
        waiting = list(questions)
        answers: list[Any] = []
        for start in range(0, len(waiting), _AT_ONCE):
            answers += self._ask_some(waiting[start : start + _AT_ONCE])
        return answers

    def _ask_some(self, questions: Sequence[Question]) -> list[Any]:
        answers: list[Any] = [None] * len(questions)
        open_questions = len(questions)
        late = 0

        def take(bus: Any, result: Any, number: int) -> None:
            nonlocal open_questions, late
            open_questions -= 1
            try:
                answers[number] = _value(bus.call_finish(result), questions[number].answer_type)
            except GLib.Error as error:
                late += error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.TIMED_OUT)

        for number, each in enumerate(questions):
            name = each.interface and f"org.a11y.atspi.{each.interface}"
            given = _given(each.kinds, each.arguments) if each.kinds else None
            self._bus.call(
                *each.ref, name or "org.freedesktop.DBus.Properties", each.method, given,
                None, Gio.DBusCallFlags.NO_AUTO_START, ANSWER_MS, None, take, number,
            )  # fmt: skip
        while open_questions:
            self._context.iteration(True)
        if self._bus.is_closed():
            raise BrokenError("the accessibility bus is gone")
        if late and late == len(questions):
            raise BrokenError(f"a program does not answer for {ANSWER_MS / 1000:g} s")
        return answers


@functools.lru_cache(maxsize=50_000)
def _given(kinds: str, arguments: tuple[Any, ...]) -> Any:
    """Encodes the arguments of a call; cached, since most calls have the same ones."""
    return GLib.Variant(f"({kinds})", arguments)


def _value(answer: Any, expected: str) -> Any:
    """Decodes the single value of an answer; None if it has a different type."""
    if answer.n_children() != 1:
        return None
    only = answer.get_child_value(0)
    if only.get_type_string() == "v":
        only = only.get_variant()
    if only.get_type_string() != expected:
        return None
    if expected == "s":
        return only.get_string()
    if expected == _REF:
        return only.get_child_value(0).get_string(), only.get_child_value(1).get_string()
    return only.unpack()
