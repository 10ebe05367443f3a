"""Every way that the judge itself can fail, with one exit code per class.

A mistake in a *solution* is never an exception: it is data, a
:class:`judge.sandbox.contract.RunResult` or a verdict. Exceptions are for
mistakes of the judge, the machine or the user.

```
JudgeError               1  any of the failures below
├── UsageError           2  contradictory options, unknown names
├── SuiteError           3  a suite that is missing, empty or broken
│   └── GoldFaultError   1  a task whose gold or rules cannot be used to judge
├── SubmissionError      4  a solutions file that cannot be used
├── SandboxError         5  no sandbox, or the one in use was lost
├── WorkbookError        6  a workbook that cannot be read
├── PositionError        7  an answer position without a matching sheet or range
├── RecalcError          8  an engine that is missing or crashed
├── StoreError           9  a results directory: not a run, another schema, disk full
├── InferenceError      10  a problem with endpoint, model alias or budget
├── IncompleteRunError  11  the run ended with judge errors (JE) and can be continued
└── ClusterError        12  no worker of a cluster can be used
```

An interrupted command (Ctrl-C) exits with 130, a command ended by SIGTERM or SIGHUP with
143 or 129, a command whose reader closed the pipe with 141. The command line catches
:class:`JudgeError` once, prints the message and its hint, and exits with the
class's code.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice


class JudgeError(Exception):
    """A failure of the judge or of the machine, with a message for the user.

    Args:
        message: what happened, and in which file, field or cell.
        hint: what to do about it, or None if the message is enough.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(JudgeError):
    """Options that contradict each other or name something that does not exist."""

    exit_code = 2


class SuiteError(JudgeError):
    """A suite that is missing, empty or broken.

    Args:
        faults: one line for each fault, with the name of the file.
    """

    exit_code = 3

    def __init__(
        self, message: str, *, faults: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.faults = faults


class GoldFaultError(SuiteError):
    """A task, its gold or its input is at fault; its cases are bad tests (BT)."""

    exit_code = 1


class SubmissionError(JudgeError):
    """A solutions file that cannot be used."""

    exit_code = 4


class SandboxError(JudgeError):
    """No sandbox is available, or the sandbox in use was lost."""

    exit_code = 5


class WorkbookError(JudgeError):
    """A workbook that cannot be read: it is not a package, has broken XML or exceeds a limit.

    Attributes:
        culprit: if two archives are read together, the one that could not be read, as the object
            that the caller opened.
    """

    exit_code = 6
    culprit: object | None = None


class PositionError(JudgeError):
    """An answer position that cannot be read, or that matches no sheet of the workbook."""

    exit_code = 7


class RecalcError(JudgeError):
    """A calculation engine that is missing or crashed."""

    exit_code = 8


class StoreError(JudgeError):
    """A results directory that is not a run, has another schema version, or cannot be written."""

    exit_code = 9


class InferenceError(JudgeError):
    """Inference that cannot continue, because of the endpoint, the model alias or the budget."""

    exit_code = 10


class IncompleteRunError(JudgeError):
    """The run ended, but some cases have judge errors (JE); the same command continues it."""

    exit_code = 11


class ClusterError(JudgeError):
    """A cluster that cannot be used: unreachable, without workers, or of a mismatched version."""

    exit_code = 12


INTERRUPTED_EXIT_CODE = 130
"""Exit code of a command that the user interrupted (128 + SIGINT)."""

BROKEN_PIPE_EXIT_CODE = 141
"""Exit code of a command whose output is no longer read, as in ``judge … | head -1``
(128 + SIGPIPE, as for any program that SIGPIPE ends)."""


def how_to_install(extra: str) -> str:
    """Returns the hint of an error about packages that an extra installs.

    Args:
        extra: the name of the extra in ``pyproject.toml``.
    """
    return (
        f'pip install "WHEEL[{extra}]", where WHEEL is the path of the wheel that judge was '
        "installed from (docs/index.md, Installation)"
    )


_MAX_KNOWN = 10_000


def did_you_mean(name: str, names: Iterable[str], *, before: str = "") -> str:
    """Returns a "Did you mean" question with similar names, or "" if no name is similar.

    Args:
        name: the name that the user wrote.
        names: the names that exist; only the first ten thousand are compared.
        before: prefix of the question.
    """
    from difflib import get_close_matches  # noqa: PLC0415  only needed after a mistake

    by_lower = {candidate.lower(): candidate for candidate in islice(names, _MAX_KNOWN)}
    near = get_close_matches(name[:200].lower(), by_lower, n=3, cutoff=0.7)
    return (
        f"{before}Did you mean {' or '.join(by_lower[candidate] for candidate in near)}?"
        if near
        else ""
    )
