"""What to ask a chat model for, and how; and what each of these options may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from judge.api.options import check_at_least
from judge.core.limits import Limits
from judge.desktop.contract import CORRECTIONS, ActionSpace, ObservationForm
from judge.errors import UsageError
from judge.files.paths import GivenPath, hold_paths
from judge.inference.config import MODES, PICTURE_TYPES
from judge.sandbox import check_sandbox_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class InferOptions:
    """What to ask and how.

    None (or an empty tuple) means that an option is not given. A run remembers what makes it what
    it is, from ``model`` to ``batch`` below: where ``out`` holds a part of a run, those that are
    not given are the run's own. Otherwise they are those of ``judge infer``, in brackets.

    Attributes:
        model: alias from models.yaml, or a raw name.
        mode: ``single`` (one round), ``multi`` (several), ``text`` (values for programs) or
            ``desktop`` (mouse and keyboard, in LibreOffice Calc) [single].
        feedback: what a round of ``multi`` gets: ``row-exec``, ``react-exec`` or
            ``row-react-exec`` [row-react-exec].
        dataset: the suite (folder, archive or name) [sample].
        ids: task ids to ask about [all].
        limit: ask about only that many tasks, in suite order [all].
        instruction: ask only in one phrasing, where the suite has several, such as ``abstract`` or
            ``verbose``; ``both`` for all of them [both].
        samples: solutions of each task, 1 to 1000 [1].
        base_url: OpenAI-compatible endpoint, up to ``/v1`` [that of the model].
        api_key_env: name of the environment variable that holds the key [that of the model].
        rounds: most rounds of ``multi`` [5; 10 for typed answers], most turns of ``desktop`` [15].
        rows: rows of each sheet in the prompt [5; 100 for typed answers in ``single``].
        content: how they are written: ``pandas``, ``markdown``, ``csv`` or ``addresses``; or
            ``info``, a description of the columns [pandas; info for typed answers in ``multi``].
        notes: whether the prompt says what of it was cut [True].
        prompt: a prompt template of your own.
        stop: whether ``multi`` ends with the ``output`` workbook, or when the model is
            ``explicit`` about it [output].
        session: whether all rounds of a task share one interpreter [False; always with typed
            answers].
        execution_feedback: whether ``multi`` tells the model how its programs ran, and ``desktop``
            what became of its actions [True].
        oracle_plan: whether the prompt gives the steps of an expert, if the suite has them [False].
        documents: a folder of documents; the prompt quotes the parts that fit the instruction best.
        pictures: how the pictures of a question are shown: ``each``, ``stitched`` (as one) or
            ``none`` (only by name) [each].
        max_pictures: most pictures of a message; those beyond are named [20].
        picture_side: longest side of a picture in pixels; larger ones are shrunk [no bound].
        picture_bytes: most bytes of a picture; likewise [no bound].
        picture_types: types that the server takes, of ``png``, ``jpeg``, ``webp`` and ``gif``;
            others become PNG [all of them].
        observation: what ``desktop`` shows: ``screenshot``, ``tree`` (the accessibility tree),
            ``screenshot+tree`` or ``som`` (elements are numbered) [screenshot].
        action_space: the language of actions: ``pyautogui`` or ``computer_13`` [pyautogui].
        history: earlier turns that a request of ``desktop`` shows [3].
        minutes: of an episode; no turn begins after them [30].
        tree_tokens: about how many tokens of the tree's table are shown [10000].
        gui_only: whether actions may do nothing but use mouse and keyboard [False].
        as_published: names of corrections of the published desktops that are left out
            (:data:`judge.desktop.contract.CORRECTIONS`) [none].
        window: where the window is, as ``X,Y,WxH`` in pixels, such as ``100,50,1280x720``
            [the whole screen].
        screen: width and height of the screen, as ``WxH`` [1920x1080].
        clutter: other windows that are open [0].
        temperature: temperature of a request [1; 0.7 for typed answers; 0.5 for Spider2-V on a
            desktop].
        top_p: nucleus of a request [1; 0.9 for typed answers and on a desktop].
        max_tokens: most tokens of a reply.
        seed: seed of sample 0; sample k gets seed + k.
        param: other request parameters, each as ``NAME=JSON``.
        price: US dollars per million tokens as ``IN/OUT``, such as ``2.5/10``.
        models: a file such as models.yaml, with more aliases.
        batch: whether requests are sent together to the server's batch endpoints, at half the price
            and answered within a day; not in ``multi`` [False].
        batch_file: write the requests that are not answered yet to this file, for offline
            inference, and ask nothing.
        batch_results: take the replies from this file, and ask nothing.
        out: results directory [``results/<model>-<mode>-<time>``].
        concurrency: tasks to ask about at a time.
        jobs: programs to run at a time; None for one on each core.
        rpm: most requests per minute; None for no bound, as in the four after ``max_wait``.
        tpm: most tokens per minute.
        timeout: seconds for one call.
        retries: attempts beyond the first of a call.
        max_wait: longest Retry-After in seconds that is waited for.
        max_cost: stop before this many US dollars are spent.
        max_tokens_total: stop before this many tokens are used.
        cache: whether replies to equal requests with a seed or temperature 0 are used again.
        sandbox: ``auto``, ``docker`` or ``bubblewrap``, for programs between rounds.
        limits: bounds of these programs.
        trust_folder: whether a run that this user did not start on this machine continues as its
            folder says; decision 0035 says what that means.

    Raises:
        UsageError: an option holds a value that it cannot have.
    """

    model: str | None = None
    mode: Literal["single", "multi", "text", "desktop"] | None = None
    feedback: Literal["row-exec", "react-exec", "row-react-exec"] | None = None
    dataset: str | Path | None = None
    ids: tuple[str, ...] = ()
    limit: int | None = None
    instruction: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    rounds: int | None = None
    rows: int | None = None
    content: Literal["pandas", "markdown", "csv", "addresses", "info"] | None = None
    notes: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    param: tuple[str, ...] = ()
    samples: int | None = None
    prompt: GivenPath | None = None
    stop: Literal["output", "explicit"] | None = None
    session: bool | None = None
    execution_feedback: bool | None = None
    oracle_plan: bool | None = None
    documents: GivenPath | None = None
    pictures: Literal["each", "stitched", "none"] | None = None
    max_pictures: int | None = None
    picture_side: int | None = None
    picture_bytes: int | None = None
    picture_types: tuple[str, ...] = ()
    observation: Literal["screenshot", "tree", "screenshot+tree", "som"] | None = None
    action_space: Literal["pyautogui", "computer_13"] | None = None
    history: int | None = None
    minutes: float | None = None
    tree_tokens: int | None = None
    gui_only: bool | None = None
    as_published: tuple[str, ...] = ()
    window: str | None = None
    screen: str | None = None
    clutter: int | None = None
    price: str | None = None
    models: GivenPath | None = None
    batch: bool | None = None
    batch_file: GivenPath | None = None
    batch_results: GivenPath | None = None
    out: GivenPath | None = None
    concurrency: int = 8
    jobs: int | None = None
    rpm: int | None = None
    tpm: int | None = None
    timeout: float = 600.0
    retries: int = 5
    max_wait: float = 900.0
    max_cost: float | None = None
    max_tokens_total: int | None = None
    cache: bool = True
    sandbox: str = "auto"
    limits: Limits = field(default_factory=Limits)
    trust_folder: bool = False

    def __post_init__(self) -> None:
        hold_paths(self)
        for name in REMEMBERED:
            try:
                value = check_remembered(name, getattr(self, name))
                object.__setattr__(self, name, value)  # a path as a path, a list as a tuple
            except (TypeError, ValueError) as error:
                raise UsageError(f"{name} is {str(getattr(self, name))[:80]!r}: {error}") from error
        for name in ("concurrency", "jobs", "rpm", "tpm", "max_tokens_total"):
            check_at_least(name, getattr(self, name), 1)
        for name in ("retries", "max_wait", "max_cost"):
            check_at_least(name, getattr(self, name), 0)
        check_at_least("timeout", self.timeout, 0.1)
        check_sandbox_kind(self.sandbox)

    def given(self) -> dict[str, Any]:
        """Those of the remembered options that are given, by name."""
        values = {name: getattr(self, name) for name in REMEMBERED}
        return {name: value for name, value in values.items() if value is not None and value != ()}

    def filled(self, remembered: Mapping[str, Any]) -> InferOptions:
        """The options, in which those that are not given are a run's own, or the usual ones."""
        return replace(self, **{**USUAL, **remembered, **self.given()})


USUAL: Mapping[str, Any] = MappingProxyType(
    {
        "mode": "single",
        "notes": True,
        "samples": 1,
        "instruction": "both",
        "stop": "output",
        "session": False,
        "execution_feedback": True,
        "oracle_plan": False,
        "gui_only": False,
        "batch": False,
    }
)
"""The options that are never without a value, and what they are if none is given."""


def check_remembered(name: str, value: object) -> Any:
    """A value of an option that runs remember, as :class:`InferOptions` holds it.

    Args:
        name: one of :data:`REMEMBERED`.
        value: the value; it may come from an untrusted record. None for "not given".

    Raises:
        TypeError: it is not of the option's type.
        ValueError: it has that type, but the option cannot have this value.
    """
    if value is None:
        return () if name in {"ids", "param", "picture_types", "as_published"} else None
    return _READERS[name](value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value


def _path(value: object) -> Path:
    if not isinstance(value, str | Path):
        raise TypeError("not a path")
    return Path(value)


def _suite(value: object) -> str:
    return str(value) if isinstance(value, Path) else _text(value)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError("not a list of strings")
    return tuple(_text(each) for each in value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("not true or false")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("not a number")
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return float(value)


def _whole(least: float = -math.inf, most: float = math.inf) -> Callable[[object], int]:
    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError("not a whole number")
        if not least <= value <= most:
            raise ValueError(f"not from {least} to {most}" if most < math.inf else f"below {least}")
        return value

    return read


def _above(least: float) -> Callable[[object], float]:
    def read(value: object) -> float:
        number = _number(value)
        if number <= least:
            raise ValueError(f"not above {least:g}")
        return number

    return read


def _one_of(*names: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in names:
            raise ValueError(f"not one of {', '.join(names)}")
        return _text(value)

    return read


def _some_of(*names: str) -> Callable[[object], tuple[str, ...]]:
    one = _one_of(*names)

    def read(value: object) -> tuple[str, ...]:
        return tuple(map(one, _texts(value)))

    return read


_READERS: Mapping[str, Callable[[object], object]] = MappingProxyType(
    {
        "model": _text,
        "mode": _one_of(*MODES),
        "feedback": _one_of("row-exec", "react-exec", "row-react-exec"),
        "dataset": _suite,
        "ids": _texts,
        "limit": _whole(1),
        "instruction": _text,
        "base_url": _text,
        "api_key_env": _text,
        "rounds": _whole(1),
        "rows": _whole(0),
        "content": _one_of("pandas", "markdown", "csv", "addresses", "info"),
        "notes": _flag,
        "temperature": _number,
        "top_p": _number,
        "max_tokens": _whole(1),
        "seed": _whole(),
        "param": _texts,
        "samples": _whole(1, 1000),
        "prompt": _path,
        "stop": _one_of("output", "explicit"),
        "session": _flag,
        "execution_feedback": _flag,
        "oracle_plan": _flag,
        "documents": _path,
        "pictures": _one_of("each", "stitched", "none"),
        "max_pictures": _whole(0),
        "picture_side": _whole(16),
        "picture_bytes": _whole(1024),
        "picture_types": _some_of(*PICTURE_TYPES),
        "observation": _one_of(*ObservationForm),
        "action_space": _one_of(*ActionSpace),
        "history": _whole(0),
        "minutes": _above(0),
        "tree_tokens": _whole(100),
        "gui_only": _flag,
        "as_published": _some_of(*CORRECTIONS),
        "window": _text,
        "screen": _text,
        "clutter": _whole(0, 20),
        "price": _text,
        "models": _path,
        "batch": _flag,
    }
)

REMEMBERED = tuple(_READERS)
"""Options that make a run what it is; they need not be given again to continue it."""
