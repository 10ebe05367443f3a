"""Options of ``judge infer``, with their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from judge.core.limits import Limits
from judge.core.option import Option, Section, check_bounds, options_in
from judge.errors import UsageError
from judge.files.paths import GivenPath, hold_paths
from judge.grading.options import SandboxName
from judge.inference.choices import PICTURE_TYPES, ContentForm, Feedback, Mode, PictureForm


class Remembered(Option):
    """An option that defines a run: it need not be given again to continue the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferOptions:
    """Options of ``judge infer``.

    None (or an empty tuple) means that an option is not given. A run remembers the options that
    define it (:data:`REMEMBERED`): if ``out`` contains an unfinished run, options that are not
    given are those of the run. Otherwise they are the defaults of ``judge infer``, in brackets.

    Attributes:
        model: alias from models.yaml, or a raw name.
        base_url: OpenAI-compatible endpoint, up to ``/v1`` [the model's].
        api_key_env: name of the environment variable with the key [the model's].
        models: a file such as models.yaml, with more aliases.
        dataset: the suite (folder, archive or name) [sample].
        out: results directory [``results/<model>-<mode>-<time>``].
        ids: task ids to ask about [all].
        limit: ask about only that many tasks, in suite order [all].
        mode: ``single`` (one round), ``multi`` (several), ``text`` (values for programs),
            ``tools`` (calls of tools) or ``desktop`` (mouse and keyboard, in LibreOffice Calc)
            [single].
        feedback: what a round of ``multi`` shows: ``row-exec``, ``react-exec`` or
            ``row-react-exec`` [row-react-exec].
        rounds: maximum number of rounds of ``multi`` [5; 10 for typed answers], or of turns of
            ``desktop`` [15].
        samples: solutions of each task, 1 to 1000 [1].
        instruction: ask only in one phrasing, if the suite has several, such as ``abstract`` or
            ``verbose``; ``both`` for all of them [both].
        stop: whether ``multi`` ends with the ``output`` workbook, or when the model is
            ``explicit`` about it [output].
        execution_feedback: whether ``multi`` shows the model how its programs ran, and ``desktop``
            the outcome of its actions [True].
        session: whether all rounds of a task share one interpreter [False; always with typed
            answers].
        oracle_plan: whether the prompt gives the steps of an expert, if the suite has them [False].
        documents: a folder of documents; the prompt quotes the parts that fit the instruction best.
        temperature: temperature of a request [1; 0.7 for typed answers; 0.5 for Spider2-V on a
            desktop].
        top_p: probability mass of nucleus sampling [1; 0.9 for typed answers and on a desktop].
        max_tokens: longest reply, in tokens.
        seed: seed of sample 0; sample k gets seed + k.
        param: other request parameters, each as ``NAME=JSON``.
        timeout: seconds for one call.
        retries: how many times a failed call is tried again.
        rows: how many rows of each sheet the prompt shows [5; 100 for typed answers in ``single``].
        content: how the rows are written: ``pandas``, ``markdown``, ``csv`` or ``addresses``; or
            ``info``, a description of the columns [pandas; info for typed answers in ``multi``].
        notes: whether the prompt says which parts were cut [True].
        prompt: your own prompt template.
        pictures: how the pictures of a question are shown: ``each``, ``stitched`` (as one) or
            ``none`` (only by name) [each].
        max_pictures: maximum number of pictures in a message; further pictures are only named [20].
        picture_side: longest side of a picture in pixels; larger pictures are shrunk [no bound].
        picture_bytes: largest picture in bytes; larger pictures are shrunk [no bound].
        picture_types: types that the server accepts, of ``png``, ``jpeg``, ``webp`` and ``gif``;
            others become PNG [all of them].
        observation: what ``desktop`` shows: ``screenshot``, ``tree`` (the accessibility tree),
            ``screenshot+tree`` or ``som`` (elements are numbered) [screenshot].
        action_space: the language of actions: ``pyautogui`` or ``computer_13`` [pyautogui].
        history: how many earlier turns a request of ``desktop`` shows [3].
        minutes: no turn of an episode starts after this many minutes [30].
        tree_tokens: about how many tokens of the tree's table are shown [10000].
        gui_only: whether actions may only use mouse and keyboard [False].
        as_published: names of corrections that are left out: of the published desktops
            (:data:`judge.desktop.contract.CORRECTIONS`), or of ``--tools ssb2``
            (:data:`judge.inference.tools.setting.AGENT_DEPARTURES`) [none].
        window: position and size of the window, as ``X,Y,WxH`` in pixels, such as
            ``100,50,1280x720`` [the whole screen].
        screen: width and height of the screen, as ``WxH`` [1920x1080].
        clutter: number of other open windows [0].
        tools: the tools of the mode ``tools``: names separated by commas, ``native``, ``ssb2``
            (the published setting of SpreadsheetBench 2) or ``mcp:NAME`` [native].
        answer: what a model with tools submits: ``workbook`` or ``program`` [workbook].
        tool_pictures: where the model sees pictures of results: ``after`` all results of a turn,
            ``in-result`` or ``none`` [after].
        result_chars: how many characters of a result the model sees, from its beginning and its end
            [10000].
        context_tokens: about how many tokens a request may have; beyond that, the oldest results
            are replaced by one line [no bound].
        episode_tokens: no reply of an episode is requested after this many tokens [no bound].
        episode_cost: no reply of an episode is requested after this many US dollars [no bound].
        text_calls: whether calls that the server leaves in the text of a reply are read [False].
        instructions: whether the prompt has the instructions of the MCP servers [True].
        corrected: departures of the ``ssb2`` agent from its description to correct; by default,
            all are kept.
        concurrency: tasks to ask about at a time.
        rpm: maximum number of requests per minute; None for no bound, also for ``tpm``,
            ``max_cost`` and ``max_tokens_total``.
        tpm: maximum number of tokens per minute.
        max_wait: longest accepted Retry-After, in seconds.
        max_cost: stop before this many US dollars are spent.
        max_tokens_total: stop before this many tokens are used.
        price: US dollars per million tokens as ``IN/OUT``, such as ``2.5/10``.
        cache: whether replies to equal requests with a seed or temperature 0 are used again.
        batch: whether requests are sent together to the server's batch endpoints, at half the price
            and answered within a day; not in ``multi`` [False].
        batch_file: write the requests that are not answered yet to this file, for offline
            inference, and send nothing.
        batch_results: take the replies from this file, and send nothing.
        trust_folder: whether a run that this user did not start on this machine continues with the
            options in its folder; decision 0035 explains what that means.
        sandbox: ``auto``, ``docker`` or ``bubblewrap``, for programs between rounds.
        jobs: programs to run at a time; None for one per core.
        limits: limits of these programs.

    Raises:
        UsageError: an option has a value that is not valid.
    """

    model: Annotated[
        str | None,
        Remembered(
            "Alias from models.yaml, or a raw name.", Section.MODEL, short="-m", metavar="NAME"
        ),
    ] = None
    base_url: Annotated[
        str | None,
        Remembered("OpenAI-compatible endpoint, up to /v1.", Section.MODEL, metavar="URL"),
    ] = None
    api_key_env: Annotated[
        str | None,
        Remembered("Environment variable that holds the key.", Section.MODEL, metavar="NAME"),
    ] = None
    models: Annotated[
        GivenPath | None, Remembered("More aliases: a file such as models.yaml.", Section.MODEL)
    ] = None
    dataset: Annotated[
        str | Path | None, Remembered("Suite [the sample suite].", Section.JUDGED, metavar="SUITE")
    ] = None
    out: Annotated[
        GivenPath | None,
        Option("Results directory; an incomplete run in it is continued.", Section.JUDGED),
    ] = None
    ids: Annotated[
        tuple[str, ...],
        Remembered("Only these tasks; may be repeated.", Section.JUDGED, metavar="ID,…"),
    ] = ()
    limit: Annotated[int | None, Remembered("Only the first N tasks.", Section.JUDGED, least=1)] = (
        None
    )
    mode: Annotated[
        Mode | None,
        Remembered(
            "One round, several rounds, values instead of programs, tools, or a desktop.",
            Section.ASKING,
            usual="single",
        ),
    ] = None
    feedback: Annotated[
        Feedback | None,
        Remembered(
            "What the model sees between rounds in multi mode [row-react-exec].", Section.ASKING
        ),
    ] = None
    rounds: Annotated[
        int | None,
        Remembered(
            "Rounds in multi mode [5; 10 for typed answers], turns in desktop mode [15] and "
            "tools mode [50].",
            Section.ASKING,
            least=1,
        ),
    ] = None
    samples: Annotated[
        int | None,
        Remembered("Solutions of each task.", Section.ASKING, least=1, most=1000, usual=1),
    ] = None
    instruction: Annotated[
        str | None,
        Remembered(
            "Ask in one phrasing only: abstract or verbose, if tasks have both.",
            Section.ASKING,
            metavar="NAME",
            usual="both",
        ),
    ] = None
    stop: Annotated[
        Literal["output", "explicit"] | None,
        Remembered(
            "multi ends with the output workbook, or when the model says so.",
            Section.ASKING,
            usual="output",
        ),
    ] = None
    execution_feedback: Annotated[
        bool | None,
        Remembered(
            "Whether multi shows printouts and errors between rounds.",
            Section.ASKING,
            negatable=True,
            usual=True,
        ),
    ] = None
    session: Annotated[
        bool | None,
        Remembered("One interpreter per task for all its rounds.", Section.ASKING, usual=False),
    ] = None
    oracle_plan: Annotated[
        bool | None,
        Remembered("Add the steps of an expert to the instruction.", Section.ASKING, usual=False),
    ] = None
    documents: Annotated[
        GivenPath | None,
        Remembered(
            "Quote the parts of these documents that fit the instruction best.",
            Section.ASKING,
            metavar="FOLDER",
        ),
    ] = None
    temperature: Annotated[
        float | None,
        Remembered(
            "Temperature [1; typed answers 0.7; Spider2-V's desktop 0.5].",
            Section.MODEL,
        ),
    ] = None
    top_p: Annotated[
        float | None,
        Remembered(
            "Nucleus sampling of requests [1; 0.9 for typed answers and on a desktop].",
            Section.MODEL,
        ),
    ] = None
    max_tokens: Annotated[
        int | None, Remembered("Longest reply, in tokens.", Section.MODEL, least=1)
    ] = None
    seed: Annotated[
        int | None, Remembered("Seed of sample 0; sample k gets seed + k.", Section.MODEL)
    ] = None
    param: Annotated[
        tuple[str, ...],
        Remembered("Any other request parameter.", Section.MODEL, metavar="NAME=JSON"),
    ] = ()
    timeout: Annotated[float, Option("Seconds for one call.", Section.MODEL, least=0.1)] = 600.0
    retries: Annotated[
        int, Option("How many times a failed call is tried again.", Section.MODEL, least=0)
    ] = 5
    rows: Annotated[
        int | None, Remembered("Rows of each sheet in the prompt [5].", Section.PROMPT, least=0)
    ] = None
    content: Annotated[
        ContentForm | None,
        Remembered("How rows are written [pandas]; info describes the columns.", Section.PROMPT),
    ] = None
    notes: Annotated[
        bool | None,
        Remembered(
            "Say in the prompt which parts were cut.", Section.PROMPT, negatable=True, usual=True
        ),
    ] = None
    prompt: Annotated[GivenPath | None, Remembered("Your own prompt template.", Section.PROMPT)] = (
        None
    )
    pictures: Annotated[
        PictureForm | None,
        Remembered(
            "Send a question's pictures singly, as one, or only named [each].", Section.PICTURES
        ),
    ] = None
    max_pictures: Annotated[
        int | None,
        Remembered("Pictures in a message, at most [20].", Section.PICTURES, least=0),
    ] = None
    picture_side: Annotated[
        int | None,
        Remembered(
            "Shrink pictures with a longer side.", Section.PICTURES, least=16, metavar="PIXELS"
        ),
    ] = None
    picture_bytes: Annotated[
        int | None,
        Remembered(
            "Shrink larger pictures, such as 1MiB.", Section.PICTURES, least=1024, size=True
        ),
    ] = None
    picture_types: Annotated[
        tuple[str, ...],
        Remembered(
            "Picture types to send [png,jpeg,webp,gif]; others become PNG.",
            Section.PICTURES,
            choices=PICTURE_TYPES,
            commas=True,
            metavar="TYPE,…",
        ),
    ] = ()
    observation: Annotated[
        str | None,
        Remembered(
            "What desktop mode shows: screen, tree, both, marks [screenshot].",
            Section.DESKTOP,
            choices="judge.desktop.choices:OBSERVATION_FORMS",
        ),
    ] = None
    action_space: Annotated[
        Literal["pyautogui", "computer_13"] | None,
        Remembered("The language of actions on a desktop [pyautogui].", Section.DESKTOP),
    ] = None
    history: Annotated[
        int | None,
        Remembered(
            "Earlier turns that each request in desktop mode shows [3].", Section.DESKTOP, least=0
        ),
    ] = None
    minutes: Annotated[
        float | None,
        Remembered(
            "Minutes after which no turn starts [30; 60 with tools].",
            Section.DESKTOP,
            least=0,
            above=True,
        ),
    ] = None
    tree_tokens: Annotated[
        int | None,
        Remembered(
            "Longest tree that desktop mode shows, in tokens [10000].", Section.DESKTOP, least=100
        ),
    ] = None
    gui_only: Annotated[
        bool | None,
        Remembered("Actions may only use mouse and keyboard.", Section.DESKTOP, usual=False),
    ] = None
    as_published: Annotated[
        tuple[str, ...],
        Remembered(
            "Leave out a correction of desktops, or of --tools ssb2; may be repeated.",
            Section.DESKTOP,
            choices="judge.inference.tools.setting:AS_PUBLISHED",
            metavar="NAME",
        ),
    ] = ()
    window: Annotated[
        str | None,
        Remembered(
            "Position and size of the window [whole screen].", Section.DESKTOP, metavar="X,Y,WxH"
        ),
    ] = None
    screen: Annotated[
        str | None, Remembered("Size of the screen [1920x1080].", Section.DESKTOP, metavar="WxH")
    ] = None
    clutter: Annotated[
        int | None,
        Remembered("Number of other open windows [0].", Section.DESKTOP, least=0, most=20),
    ] = None
    tools: Annotated[
        str | None,
        Remembered(
            "Tools: names, native, ssb2 or mcp:NAME, separated by commas [native].",
            Section.TOOLS,
            metavar="NAME,…",
        ),
    ] = None
    answer: Annotated[
        Literal["workbook", "program"] | None,
        Remembered(
            "What a model with tools submits: a workbook for each case, or a program [workbook].",
            Section.TOOLS,
        ),
    ] = None
    tool_pictures: Annotated[
        Literal["after", "in-result", "none"] | None,
        Remembered(
            "Where pictures of results go: after all results of a turn [after].", Section.TOOLS
        ),
    ] = None
    result_chars: Annotated[
        int | None,
        Remembered("Longest result shown, in characters [10000].", Section.TOOLS, least=100),
    ] = None
    context_tokens: Annotated[
        int | None,
        Remembered(
            "Drop the oldest results beyond about this many tokens.",
            Section.TOOLS,
            least=1000,
        ),
    ] = None
    episode_tokens: Annotated[
        int | None, Remembered("End an episode after this many tokens.", Section.TOOLS, least=1)
    ] = None
    episode_cost: Annotated[
        float | None,
        Remembered("End an episode after this many dollars.", Section.TOOLS, least=0, above=True),
    ] = None
    text_calls: Annotated[
        bool | None,
        Remembered("Read calls that a server leaves in the text.", Section.TOOLS, usual=False),
    ] = None
    instructions: Annotated[
        bool | None,
        Remembered(
            "Give the model the instructions of the servers.",
            Section.TOOLS,
            negatable=True,
            usual=True,
        ),
    ] = None
    corrected: Annotated[
        tuple[str, ...],
        Remembered(
            "Correct a departure of --tools ssb2 that is kept as published; may be repeated.",
            Section.TOOLS,
            choices="judge.inference.tools.setting:AGENT_DEPARTURES",
            metavar="NAME",
        ),
    ] = ()
    concurrency: Annotated[int, Option("Tasks at a time.", Section.COST, short="-c", least=1)] = 8
    rpm: Annotated[int | None, Option("Requests per minute at most.", Section.COST, least=1)] = None
    tpm: Annotated[int | None, Option("Tokens per minute at most.", Section.COST, least=1)] = None
    max_wait: Annotated[
        float, Option("Longest accepted Retry-After, in seconds.", Section.COST, least=0)
    ] = 900.0
    max_cost: Annotated[
        float | None, Option("Stop before this many dollars.", Section.COST, least=0)
    ] = None
    max_tokens_total: Annotated[
        int | None, Option("Stop before this many tokens.", Section.COST, least=1)
    ] = None
    price: Annotated[
        str | None,
        Remembered("Dollars per million tokens, such as 2.5/10.", Section.COST, metavar="IN/OUT"),
    ] = None
    cache: Annotated[
        bool,
        Option(
            "Reuse replies to equal requests with a seed or temperature 0.",
            Section.COST,
            negatable=True,
        ),
    ] = True
    batch: Annotated[
        bool | None,
        Remembered(
            "Send all requests together to the server's batch endpoints.",
            Section.BATCHES,
            negatable=True,
            usual=False,
        ),
    ] = None
    batch_file: Annotated[
        GivenPath | None,
        Option("Write the requests to a file, for vllm run-batch; send none.", Section.BATCHES),
    ] = None
    batch_results: Annotated[
        GivenPath | None,
        Option("Take the replies from a file of results; send no requests.", Section.BATCHES),
    ] = None
    trust_folder: Annotated[
        bool,
        Option("Resume a run not started here, with the options in its folder.", Section.ELSEWHERE),
    ] = False
    sandbox: SandboxName = "auto"
    jobs: Annotated[
        int | None, Option("Programs at a time [cores].", Section.ISOLATION, short="-j", least=1)
    ] = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        from judge.sandbox import check_sandbox_kind  # noqa: PLC0415  help declares options without

        hold_paths(self)
        for name in REMEMBERED:
            try:
                value = check_remembered(name, getattr(self, name))
                object.__setattr__(
                    self, name, value
                )  # converts strings to paths and lists to tuples
            except (TypeError, ValueError) as error:
                raise UsageError(f"{name} is {str(getattr(self, name))[:80]!r}: {error}") from error
        check_bounds(self)
        check_sandbox_kind(self.sandbox)

    def given(self) -> dict[str, Any]:
        """The remembered options that are given, by name."""
        values = {name: getattr(self, name) for name in REMEMBERED}
        return {name: value for name, value in values.items() if value is not None and value != ()}

    def filled(self, remembered: Mapping[str, Any]) -> InferOptions:
        """The options, with those that are not given filled in from a run or the defaults."""
        return replace(self, **{**DEFAULTS, **remembered, **self.given()})


_OPTIONS = options_in(InferOptions)

REMEMBERED = tuple(
    name for name, declared in _OPTIONS.items() if isinstance(declared.option, Remembered)
)
"""Options that define a run; they need not be given again to continue it."""

DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {name: _OPTIONS[name].usual for name in REMEMBERED if _OPTIONS[name].option.usual is not None}
)
"""The options that always have a value, and their defaults."""


def check_remembered(name: str, value: object) -> Any:
    """Converts a value of an option that runs remember to the form in :class:`InferOptions`.

    Args:
        name: one of :data:`REMEMBERED`.
        value: the value, possibly from an untrusted record; None if the option is not given.

    Raises:
        TypeError: it is not of the option's type.
        ValueError: it has that type, but is not valid for the option.
    """
    return _OPTIONS[name].read(value)
