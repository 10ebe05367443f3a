"""What a prompt adds to the question in some settings: an expert's plan, quoted documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from judge.core.task import TaskQuestion
from judge.inference.documents import DocumentFolder, Excerpt
from judge.inference.prompt import Feedback, Template, load_feedback


@dataclass(frozen=True, slots=True)
class Background:
    """What prompts add to the question.

    Attributes:
        oracle_plan: whether they give the steps of an expert, where the suite has them.
        documents: what they quote from; None for nothing.
        words: in which they do so.
    """

    oracle_plan: bool = False
    documents: DocumentFolder | None = None
    words: Feedback = field(default_factory=lambda: load_feedback("background"))

    def identity(self, questions: Iterable[TaskQuestion]) -> dict[str, object]:
        """What may not change between two halves of a run; empty where nothing is added."""
        said: dict[str, object] = {}
        if self.oracle_plan:
            digest = hashlib.sha256()
            for question in questions:
                digest.update(f"{question.id}\0{question.plan}\0".encode("utf-8", "replace"))
            said |= {"oracle_plan": True, "plans_sha256": digest.hexdigest()}
        if self.documents is not None:
            said |= self.documents.identity
        return said | {"background_sha256": self.words.digest} if said else {}

    def excerpts(self, question: TaskQuestion) -> tuple[Excerpt, ...]:
        """What is quoted with a question: found by its instruction."""
        return () if self.documents is None else self.documents.find(question.instruction)

    def record(self, question: TaskQuestion) -> dict[str, object]:
        """What the records of a run keep of it."""
        if self.documents is None:
            return {}
        return {"documents": [excerpt.record for excerpt in self.excerpts(question)]}

    def fields(
        self, template: Template, question: TaskQuestion, instruction: str
    ) -> Mapping[str, str]:
        """The fields of a prompt: ``instruction``, ``plan`` and ``documents``.

        What a template has no field for follows the instruction.

        Args:
            template: of the prompt.
            question: the task.
            instruction: what the prompt says of the task by itself.
        """
        texts = {"plan": self._plan(question), "documents": self._documents(question)}
        beside = [text for name, text in texts.items() if text and not template.wants(name)]
        return {**texts, "instruction": "\n\n".join([instruction, *beside])}

    def _plan(self, question: TaskQuestion) -> str:
        # A phrasing may hold the steps already.
        if not self.oracle_plan or not question.plan or question.plan in question.instruction:
            return ""
        return self.words.say("plan", plan=question.plan)

    def _documents(self, question: TaskQuestion) -> str:
        excerpts = [
            self.words.say(
                "excerpt",
                number=str(number),
                file=each.chunk.file,
                part=str(each.chunk.part),
                text=each.chunk.text,
            )
            for number, each in enumerate(self.excerpts(question), start=1)
        ]
        if not excerpts:
            return ""
        return self.words.say("documents", excerpts="\n\n".join(excerpts))
