"""The plan of a run: its tasks, its chat model, and how it is asked. Part of ``run.json``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, cast

from judge.core.conversation import estimate_tokens
from judge.core.limits import Limits
from judge.core.records.runs import InferenceIdentity, PromptContent, RunDocument
from judge.core.task import TaskQuestion
from judge.errors import StoreError
from judge.files.documents import dump_json
from judge.inference.config import ModelSpec, Setting, TypedSetting, public_url
from judge.inference.content import ContentLimits
from judge.inference.desktop.setting import DesktopMode
from judge.inference.documents import DocumentFolder, Excerpt
from judge.inference.prompt import Feedback, Template, load_feedback
from judge.inference.tools.setting import ToolMode


@dataclass(frozen=True, slots=True)
class Background:
    """Additions to a question in prompts: an expert's plan, and quotations from documents.

    Attributes:
        oracle_plan: whether prompts give the steps of an expert, if the suite has them.
        documents: the documents that prompts quote; None for none.
        words: the wording of these additions.
    """

    oracle_plan: bool = False
    documents: DocumentFolder | None = None
    words: Feedback = field(default_factory=lambda: load_feedback("background"))

    def identity(self, questions: Iterable[TaskQuestion]) -> dict[str, object]:
        """Settings that must not change when a run is continued."""
        identity: dict[str, object] = {}
        if self.oracle_plan:
            digest = hashlib.sha256()
            for question in questions:
                digest.update(f"{question.id}\0{question.plan}\0".encode("utf-8", "replace"))
            identity |= {"oracle_plan": True, "plans_sha256": digest.hexdigest()}
        if self.documents is not None:
            identity |= self.documents.identity
        return identity | {"background_sha256": self.words.digest} if identity else {}

    def excerpts(self, question: TaskQuestion) -> tuple[Excerpt, ...]:
        """Returns the quotations that fit the instruction of a question."""
        return () if self.documents is None else self.documents.find(question.instruction)

    def record(self, question: TaskQuestion) -> dict[str, object]:
        """Returns the fields for the records of a task: which documents were quoted."""
        if self.documents is None:
            return {}
        return {"documents": [excerpt.record for excerpt in self.excerpts(question)]}

    def fields(
        self, template: Template, question: TaskQuestion, instruction: str
    ) -> Mapping[str, str]:
        """Returns the prompt's fields ``instruction``, ``plan`` and ``documents``.

        If a template has no field for the plan or the documents, they are added to the instruction.

        Args:
            template: the template of the prompt.
            question: the task.
            instruction: the text of the task.
        """
        texts = {"plan": self._plan(question), "documents": self._documents(question)}
        beside = [text for name, text in texts.items() if text and not template.wants(name)]
        return {**texts, "instruction": "\n\n".join([instruction, *beside])}

    def _plan(self, question: TaskQuestion) -> str:
        # The instructions of some tasks already contain the steps.
        if not self.oracle_plan or not question.plan or question.plan in question.instruction:
            return ""
        return self.words.say("plan", plan=question.plan)

    def _documents(self, question: TaskQuestion) -> str:
        excerpts = [
            self.words.say(
                "excerpt",
                number=str(number),
                file=excerpt.chunk.file,
                part=str(excerpt.chunk.part),
                text=excerpt.chunk.text,
            )
            for number, excerpt in enumerate(self.excerpts(question), start=1)
        ]
        if not excerpts:
            return ""
        return self.words.say("documents", excerpts="\n\n".join(excerpts))


@dataclass(frozen=True, slots=True)
class Assignment:
    """A task of the run, as the chat model may see it.

    Attributes:
        question: the task without its golds.
        raw_id: its id in the suite, which may be a number.
    """

    question: TaskQuestion
    raw_id: int | str


@dataclass(frozen=True, slots=True)
class SuiteReference:
    """The suite that the tasks belong to, for grading.

    Attributes:
        name: the name of the suite.
        source: the folder, archive or name that it is loaded from.
        digest: hash of its content.
        format: the name of its format.
    """

    name: str
    source: str
    digest: str
    format: str


@dataclass(frozen=True, slots=True)
class TypedMode:
    """How the model is asked about tasks with a typed answer.

    Attributes:
        setting: the setting of the mode, with the options applied.
        template: the prompt.
        feedback: the wording between rounds, and about files.
        content: limits on the tables in the prompt.
    """

    setting: TypedSetting
    template: Template
    feedback: Feedback
    content: ContentLimits

    @property
    def identity(self) -> dict[str, object]:
        """Settings that must not change when a run is continued."""
        setting = {name: _plain(value) for name, value in asdict(self.setting).items()}
        return {
            "setting": setting,
            "content": asdict(self.content),
            "prompt": {"name": self.template.name, "sha256": self.template.digest},
            "feedback_sha256": self.feedback.digest,
        }


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


_SOMETIMES = (
    *("typed", "desktop", "tools", "execution_feedback", "oracle_plan", "plans_sha256"),
    *("documents", "documents_sha256", "background_sha256"),
)
"""Fields of the identity that are optional; a run with such a field differs from a run without
it."""


@dataclass(frozen=True, slots=True)
class InferencePlan:
    """Everything that determines the requests of a run.

    Attributes:
        suite: the suite of the tasks.
        assignments: the tasks, in the order of the suite.
        model: the chat model.
        model_name: the server's name for it.
        setting: the setting of the mode, with the options applied; the one for typed answers if
            all tasks ask for typed answers.
        template: the prompt; the one for typed answers if all tasks ask for typed answers.
        feedback: the wording between rounds.
        content: limits on what the prompt shows of a workbook.
        typed: how the model is asked about tasks with a typed answer; None if there are none.
        desktop: how the model works on a desktop; None in other modes.
        tools: how the model works with tools; None in other modes.
        params: request parameters other than temperature and top_p.
        samples: how many solutions each task gets.
        session: whether a task has one interpreter, rather than a fresh process in each round.
        explicit_stop: whether the conversation ends when the model says so; otherwise, it ends
            with the first workbook.
        execution_feedback: whether the model is shown how its programs ran.
        background: additions to the question.
        limits: limits of the programs between rounds.
        options: the options of the user, with which the run is continued.
    """

    suite: SuiteReference
    assignments: tuple[Assignment, ...]
    model: ModelSpec
    model_name: str
    setting: Setting
    template: Template
    feedback: Feedback
    content: ContentLimits
    typed: TypedMode | None = None
    desktop: DesktopMode | None = None
    tools: ToolMode | None = None
    params: Mapping[str, Any] = field(default_factory=_nothing)
    samples: int = 1
    session: bool = False
    explicit_stop: bool = False
    execution_feedback: bool = True
    background: Background = field(default_factory=Background)
    limits: Limits = field(default_factory=Limits)
    options: Mapping[str, Any] = field(default_factory=_nothing)

    @property
    def request_params(self) -> dict[str, Any]:
        """Request parameters; those of the plan override those configured for the model."""
        return self._params_in(self.setting)

    def _params_in(self, setting: Setting) -> dict[str, Any]:
        mode = self.desktop or self.tools
        bound = None if mode is None else mode.setting.reply_tokens
        return {
            "temperature": setting.temperature,
            "top_p": setting.top_p,
            **({} if bound is None else {"max_tokens": bound}),
            **self.model.params,
            **self.params,
            **({"tools": definitions} if (definitions := self.tool_definitions) else {}),
        }

    @property
    def tool_definitions(self) -> list[dict[str, Any]]:
        """The tools that every request offers; empty in modes other than ``tools``."""
        return [] if self.tools is None else self.tools.tools.definitions

    @property
    def tool_tokens(self) -> int:
        """Estimated tokens that the definitions of tools take in every request."""
        tools = self.tool_definitions
        return estimate_tokens(dump_json(tools)) if tools else 0

    @staticmethod
    def tokens_of(definition: Mapping[str, Any]) -> int:
        """Estimates the tokens that one definition takes in every request."""
        return estimate_tokens(dump_json(definition))

    def params_of(self, question: TaskQuestion) -> dict[str, Any]:
        """Returns the request parameters for a task."""
        return self._params_in(self.setting_of(question))

    def setting_of(self, question: TaskQuestion) -> Setting:
        """Returns the setting in which the model is asked about a task."""
        typed = self.typed_of(question)
        return self.setting if typed is None else typed.setting

    def typed_of(self, question: TaskQuestion) -> TypedMode | None:
        """Returns how the model is asked about a task with a typed answer; None for other tasks."""
        episodes = self.desktop is not None or self.tools is not None
        return None if question.answer.is_file or episodes else self.typed

    @property
    def executes(self) -> bool:
        """Whether programs are run between rounds for any of the tasks; False on a desktop."""
        return self.desktop is None and any(
            self.setting_of(assignment.question).executes for assignment in self.assignments
        )

    @property
    def fits_pictures(self) -> bool:
        """Whether a sandbox may have to change pictures before they are shown."""
        return self.typed is not None and self.typed.setting.fits_pictures

    @property
    def identity(self) -> InferenceIdentity:
        """Settings that must not change when a run is continued."""
        return {
            "model": self.model.name,
            "model_name": self.model_name,
            "setting": self.setting.name,
            "rounds": self.setting.rounds,
            "content": cast(
                "PromptContent", {"form": self.setting.content, **asdict(self.content)}
            ),
            "params": self.request_params,
            "prompt": {"name": self.template.name, "sha256": self.template.digest},
            "feedback_sha256": self.feedback.digest,
            "session": self.session,
            "stop": "explicit" if self.explicit_stop else "output",
            **({} if self.typed is None else {"typed": self.typed.identity}),
            **({} if self.desktop is None else {"desktop": self.desktop.identity}),
            **({} if self.tools is None else {"tools": self.tools.identity}),
            **({} if self.execution_feedback else {"execution_feedback": False}),
            **cast(
                "InferenceIdentity",
                self.background.identity(assignment.question for assignment in self.assignments),
            ),
        }

    def run_document(self) -> RunDocument:
        """Returns the parts of run.json that inference writes."""
        price = self.model.price
        return {
            "suite": {
                "name": self.suite.name,
                "source": self.suite.source,
                "digest": self.suite.digest,
                "format": self.suite.format,
            },
            "model": self.model.name,
            "setting": self.setting.name,
            "inference": {
                **self.identity,
                "endpoint": public_url(self.model.base_url),
                "samples": self.samples,
                "tasks": len(self.assignments),
                "price": asdict(price) if price else None,
                "options": dict(self.options),
                **self._left_out(),
            },
        }

    def _left_out(self) -> InferenceIdentity:
        if self.desktop is None or not self.desktop.left_out:
            return {}
        return {"left_out": dict(self.desktop.left_out)}

    def check_continues(self, run: RunDocument, path: str) -> None:
        """Checks that a results directory holds a part of the same run.

        Args:
            run: the run.json of the directory.
            path: the directory, for messages.

        Raises:
            StoreError: the directory holds another run; the message lists the differences.
        """
        remembered = run.get("suite")
        if remembered is not None and remembered.get("digest") != self.suite.digest:
            raise StoreError(
                f"{path}: belongs to the suite {remembered.get('source')}, whose content is not "
                f"that of {self.suite.source}",
                hint="Give another --out, or the suite that the run was made with.",
            )
        before = run.get("inference")
        if before is None:
            return
        now = self.identity
        names = [*now, *(name for name in _SOMETIMES if name in before and name not in now)]
        different = [
            difference
            for name in names
            for difference in _differences(name, before.get(name), now.get(name))
        ]
        if different:
            raise StoreError(
                f"{path}: holds a run with other settings ({'; '.join(different)})",
                hint="Give another --out, or leave out those options: a run remembers them.",
            )


def _differences(name: str, before: object, now: object) -> Iterator[str]:
    """Returns the differences between two values, field by field."""
    if before == now:
        return
    if isinstance(before, Mapping) and isinstance(now, Mapping) and before.keys() == now.keys():
        for key, value in before.items():
            yield from _differences(f"{name}.{key}", value, now[key])
    else:
        yield f"{name}: {_shown(before)} before, {_shown(now)} now"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
