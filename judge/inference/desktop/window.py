"""The conversation of an episode: all messages, and those that a request sends. Pure.

A request sends the first message, the last few turns, and what is shown now. Each message is the
same in every request that holds it, so a conversation keeps it once, and each request by the
numbers of its messages.
"""

from __future__ import annotations

from judge.core.conversation import Content
from judge.inference.chat import Message


class Window:
    """A conversation of which requests send the beginning and the end.

    Args:
        messages: where messages are kept; those of an earlier episode may be in it.
        first: the first message, with the task.
        history: earlier turns that a request sends.
    """

    def __init__(self, messages: list[Message], first: Content, history: int) -> None:
        self._messages = messages
        self._first = len(messages)
        self._history = history
        self._turns: list[tuple[int, int]] = []
        self._shown = -1
        messages.append({"role": "system", "content": first})

    def show(self, content: Content) -> list[int]:
        """Adds what is shown now.

        Args:
            content: the message.

        Returns:
            The numbers of the messages that the next request sends.
        """
        self._shown = self._add("user", content)
        kept = self._turns[-self._history :] if self._history else []
        return [self._first, *(number for turn in kept for number in turn), self._shown]

    def replied(self) -> None:
        """Takes the message that was added last for the reply to what was shown."""
        self._turns.append((self._shown, len(self._messages) - 1))

    def sent(self, numbers: list[int]) -> tuple[Message, ...]:
        """The messages with these numbers."""
        return tuple(self._messages[number] for number in numbers)

    def _add(self, role: str, content: Content) -> int:
        self._messages.append({"role": role, "content": content})
        return len(self._messages) - 1
