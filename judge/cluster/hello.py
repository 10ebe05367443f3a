"""The handshake: whether a worker would judge as this client does.

A worker is asked who it is before it gets its first case. Its answer is compared field by field; a
worker that differs in what could change a verdict is refused by its name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from judge.errors import JudgeError
from judge.files.documents import MalformedError, as_object, parse_json
from judge.grading.batch import Settings
from judge.grading.keys import GRADER_VERSION
from judge.suites import load_suite
from judge.version import __version__

_MAX_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Identity:
    """What a verdict depends on besides the case.

    Attributes:
        judge: version of the judge.
        grader: version of its verdicts.
        image: what programs run in; empty if none do.
        engines: the calculation engines.
        suite: digest of the suite; empty if it is not compared.
    """

    judge: str = __version__
    grader: str = GRADER_VERSION
    image: str = ""
    engines: tuple[str, ...] = ()
    suite: str = ""

    @staticmethod
    def of(settings: Settings, suite: str) -> Identity:
        """That of this process.

        Args:
            settings: sandbox and engines, opened.
            suite: digest of the suite.
        """
        image = "" if settings.sandbox is None else settings.sandbox.info.image
        return Identity(image=image, engines=tuple(settings.rules.engines), suite=suite)

    def difference(self, other: Identity) -> str | None:
        """The first thing in which a worker differs, in words; None if it is the same."""
        for what, mine, its in (
            ("the judge", self.judge, other.judge),
            ("the grader", self.grader, other.grader),
            ("the sandbox image", self.image, other.image),
            ("the engines", ", ".join(self.engines), ", ".join(other.engines)),
            ("the suite", self.suite, other.suite),
        ):
            if mine != its:
                return f"{what} there is {its or 'missing'}, here it is {mine or 'missing'}"
        return None


@dataclass(frozen=True, slots=True)
class Question:
    """What a worker is asked first; plain JSON, so that any version can read it.

    Attributes:
        suite_root: where the suite is; None if it is not compared.
        probe: a file that is there if the worker sees the results folder; None without a folder.
        judge: version of the judge that asks.
    """

    suite_root: str | None = None
    probe: str | None = None
    judge: str = __version__

    def to_bytes(self) -> bytes:
        """As it is sent."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Question:
        """As it arrives."""
        fields = json.loads(data)
        return Question(fields["suite_root"], fields["probe"], fields["judge"])

    def suite_digest(self) -> str:
        """The digest of the suite as this machine has it; empty if it is not compared.

        Raises:
            SuiteError: it is not here.
        """
        return "" if self.suite_root is None else load_suite(Path(self.suite_root)).digest

    def sees_folder(self) -> bool:
        """Whether this machine sees the results folder."""
        return self.probe is not None and Path(self.probe).is_file()


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a worker says of itself.

    Attributes:
        identity: what its verdicts depend on.
        shares: whether it sees the results folder.
        problem: why it cannot work at all.
    """

    identity: Identity = field(default_factory=Identity)
    shares: bool = False
    problem: str = ""

    def to_bytes(self) -> bytes:
        """As it is sent."""
        mine = self.identity
        return json.dumps(
            {
                "judge": mine.judge,
                "grader": mine.grader,
                "image": mine.image,
                "engines": list(mine.engines),
                "suite": mine.suite,
                "shares": self.shares,
                "problem": self.problem,
            }
        ).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Introduction:
        """As it arrives; anything that is not an introduction is a problem of the worker."""
        if len(data) > _MAX_BYTES:
            return Introduction(problem=f"its introduction has {len(data):,} bytes")
        try:
            fields: Mapping[str, object] = as_object(parse_json(data))
        except MalformedError as error:
            return Introduction(problem=f"its introduction cannot be read: {error}")
        engines = fields.get("engines")
        identity = Identity(
            judge=str(fields.get("judge", "")),
            grader=str(fields.get("grader", "")),
            image=str(fields.get("image", "")),
            engines=tuple(str(engine) for engine in engines) if isinstance(engines, list) else (),
            suite=str(fields.get("suite", "")),
        )
        return Introduction(identity, fields.get("shares") is True, str(fields.get("problem", "")))


def introduce(question: Question, settings: Settings) -> Introduction:
    """What this worker says of itself; a missing suite is a problem, not an exception."""
    try:
        identity = Identity.of(settings, question.suite_digest())
    except JudgeError as error:
        return Introduction(problem=error.message)
    return Introduction(identity, question.sees_folder())
