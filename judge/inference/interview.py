"""One task's conversation with everything that it needs: prompt, paths, workplace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import TypeVar

from judge.core.conversation import Content, content_of, plain_text
from judge.core.task import CaseInput, TaskQuestion
from judge.errors import SandboxError
from judge.inference.answers import writable
from judge.inference.asker import Asker, file_digest
from judge.inference.chat import ChatReply, Message
from judge.inference.content import rows_needed
from judge.inference.desktop.keeper import opening_message
from judge.inference.desktop.opening import desktop_task
from judge.inference.fitting import PictureFitter
from judge.inference.material import FOLDER, Shelf, keep_drawn, material_of
from judge.inference.pictures import PictureStore
from judge.inference.plan import Assignment, InferencePlan, TypedWay
from judge.inference.prompt import PromptFields, build_prompt
from judge.inference.sessions import Drawing, Interpreter, SessionWorkplace
from judge.inference.talk import RoundRules, Talk, talk_in_rounds, talk_once
from judge.inference.textanswers import Answer, answer_program, read_answers
from judge.inference.typedtalk import TypedRules, talk_to_answer
from judge.inference.workplace import FreshWorkplace, KeptPlaces, Workplace
from judge.sandbox.contract import Sandbox
from judge.suites.formats import DATA_FOLDER, format_named
from judge.workbook.preview import SheetPreview, read_preview

_T = TypeVar("_T")
_SANDBOX_ATTEMPTS = 3
_KEPT_PLACES = 16  # about 100 MB each


class Interviewer:
    """Talks about tasks in the way that a plan says.

    Args:
        plan: the run.
        sandbox: runs programs between rounds, and shrinks pictures; None where neither is needed.
        threads: runs what blocks.
        pictures: keeps the pictures of messages.
    """

    def __init__(
        self,
        plan: InferencePlan,
        sandbox: Sandbox | None,
        threads: Executor,
        pictures: PictureStore,
    ) -> None:
        self._plan = plan
        self._sandbox = sandbox
        self._threads = threads
        fitter = None
        if sandbox is not None and plan.fits_pictures:
            fitter = PictureFitter(sandbox, pictures)
        self._shelf = Shelf(pictures, fitter)
        self._kept = KeptPlaces(_KEPT_PLACES)
        self._previews: dict[tuple[str, int], tuple[SheetPreview, ...]] = {}

    async def talk(self, assignment: Assignment, talk: Talk, asker: Asker) -> None:
        """Holds the conversation about one task until it ends, with or without a solution.

        Args:
            assignment: the task.
            talk: filled as the conversation proceeds.
            asker: asks for this task and sample.

        Raises:
            CallError: no reply could be obtained.
            BudgetReachedError: the budget does not allow a call.
            SandboxError: the sandbox failed, several times.
            WorkbookError: the input workbook cannot be shown.
        """
        plan, question = self._plan, assignment.question
        if (way := plan.typed_of(question)) is not None:
            await self._talk_to_answer(way, assignment, talk, asker)
            return
        if plan.setting.name == "text":
            await self._talk_in_text(assignment, talk, asker)
            return
        prompt = self.prompt(assignment, question.inputs[0])
        if not plan.setting.executes:
            await talk_once(talk, prompt, asker.ask)
            return
        rules = RoundRules(
            rounds=plan.setting.rounds,
            explicit_stop=plan.explicit_stop,
            feedback=plan.feedback,
            output_path=prompt_paths(plan, question)[1],
            unseen=None if plan.execution_feedback else plan.background.words,
        )

        async def once() -> None:
            workplace = self._workplace(assignment)
            try:
                await talk_in_rounds(talk, prompt, asker.ask, rules, workplace, self._threads)
            finally:
                await self._blocking(workplace.close)

        await self._while_sandboxes_fail(once, talk, asker)

    async def _while_sandboxes_fail(
        self, once: Callable[[], Awaitable[None]], talk: Talk, asker: Asker
    ) -> None:
        """Holds a conversation again if the sandbox fails, a few times."""
        for attempt in range(1, _SANDBOX_ATTEMPTS + 1):
            try:
                await once()
            except SandboxError:
                if attempt == _SANDBOX_ATTEMPTS:
                    raise
            else:
                return
            # The replies are in the journal: the conversation is played again, nothing is asked.
            await asyncio.sleep(0.5 * attempt)
            talk.start_again()
            asker.calls.clear()

    async def _blocking(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Ends what was started for all tasks; safe to call twice."""
        if self._shelf.fitter is not None:
            self._shelf.fitter.close()

    async def _talk_to_answer(
        self, way: TypedWay, assignment: Assignment, talk: Talk, asker: Asker
    ) -> None:
        """Asks until the model gives a typed answer."""
        shelf, setting = self._shelf, way.setting
        rules = TypedRules(setting, way.feedback, lambda drawn: keep_drawn(drawn, setting, shelf))

        async def once() -> None:
            prompt, paths = await self._blocking(lambda: self._typed_prompt(way, assignment))
            if not way.setting.executes:
                await talk_to_answer(talk, prompt, asker.ask, rules, None, self._threads)
                return
            assert self._sandbox is not None
            interpreter = Interpreter(
                self._sandbox,
                paths,
                self._plan.limits,
                folders=(FOLDER,),
                work_in=FOLDER,
                chars=way.setting.printed_chars,
                drawing=Drawing(FOLDER, way.setting.plots) if way.setting.plots else None,
            )
            try:
                await talk_to_answer(talk, prompt, asker.ask, rules, interpreter, self._threads)
            finally:
                await self._blocking(interpreter.close)

        await self._while_sandboxes_fail(once, talk, asker)

    def _typed_prompt(
        self, way: TypedWay, assignment: Assignment
    ) -> tuple[Content, Mapping[str, Path]]:
        """The first message about a task with a typed answer, and where programs find its files."""
        question = assignment.question
        material = material_of(
            question.inputs[0], way.setting, way.content, way.feedback, self._shelf
        )
        stated = (f"{name}: {value}" for name, value in question.details.items())
        instruction = "\n".join([question.instruction, *stated])
        text = way.template.fill(
            {
                **self._plan.background.fields(way.template, question, instruction),
                "instruction_type": question.kind,
                "files": material.files,
                "tables": material.tables,
                "folder": FOLDER,
                "rounds": str(way.setting.rounds),
                "max_turn_num": str(way.setting.rounds),
                "printed_chars": f"{way.setting.printed_chars:,}",
                "answer_form": way.feedback.say("answer_form"),
            }
        )
        return content_of(writable(text), material.pictures), material.paths

    async def _talk_in_text(self, assignment: Assignment, talk: Talk, asker: Asker) -> None:
        """Asks once per distinct input workbook; what comes back becomes one program."""
        question = assignment.question
        answers: dict[str, tuple[Answer, ...]] = {}
        last_reply = ""
        for digest, case in _distinct(question):
            part = Talk()

            async def ask(
                messages: tuple[Message, ...], round_number: int, number: int = case.number
            ) -> ChatReply:
                return await asker.ask(messages, round_number, number)

            try:
                await talk_once(part, self.prompt(assignment, case), ask)
            finally:
                talk.messages += part.messages
                talk.rounds += [{"case": case.number, **each} for each in part.rounds]
            replied = part.ended == "replied"
            last_reply = plain_text(part.messages[-1]["content"]) if replied else ""
            answers[digest] = read_answers(last_reply, question.details.get("answer_position", ""))
            talk.truncated = talk.truncated or part.rounds[-1].get("truncated", False)
            talk.ended, talk.finish_reason = part.ended, part.finish_reason
        talk.reply = last_reply
        if any(answers.values()):
            input_path, output_path = prompt_paths(self._plan, question)
            talk.solution = answer_program(
                answers,
                input_path=input_path,
                output_path=output_path,
                sheet=question.details.get("answer_sheet"),
            )

    async def openings(self, assignment: Assignment) -> list[tuple[int, Content]]:
        """The first messages of all conversations about a task, each with the number of its case.

        In the settings of one round that is all that is asked. The number is 0 if the conversation
        is about no particular case.

        Args:
            assignment: the task.

        Raises:
            WorkbookError, SuiteError, SandboxError: as :meth:`prompt`.
        """
        plan, question = self._plan, assignment.question
        if (way := plan.typed_of(question)) is not None:
            content, _ = await self._blocking(lambda: self._typed_prompt(way, assignment))
            return [(0, content)]
        if plan.setting.name == "text":
            return [(x.number, self.prompt(assignment, x)) for _, x in _distinct(question)]
        return [(0, self.prompt(assignment, question.inputs[0]))]

    def prompt(self, assignment: Assignment, case: CaseInput) -> Content:
        """The first message about a task, with a preview of one case's input.

        Raises:
            WorkbookError: the input workbook cannot be shown.
            SuiteError: a file of a question is missing, or cannot be shown.
            SandboxError: pictures are to be shrunk, and the sandbox failed.
        """
        plan, question = self._plan, assignment.question
        if (way := plan.typed_of(question)) is not None:
            return self._typed_prompt(way, assignment)[0]
        if plan.desktop is not None:
            return opening_message(plan, question, desktop_task(question, case))
        key = (question.id, case.number)
        sheets: tuple[SheetPreview, ...] = ()
        if plan.template.wants("spreadsheet_content"):
            known = self._previews.get(key)
            rows = rows_needed(plan.setting.content, plan.content.rows)
            sheets = known if known is not None else read_preview(case.path, rows)
            if plan.samples > 1:
                self._previews[key] = sheets
        return build_prompt(plan.template, question, sheets, prompt_fields(plan, question))

    def _workplace(self, assignment: Assignment) -> Workplace:
        assert self._sandbox is not None
        question = assignment.question
        workbook = question.inputs[0].path
        paths = prompt_paths(self._plan, question)
        if self._plan.session:
            return SessionWorkplace(self._sandbox, workbook, *paths, self._plan.limits)
        return FreshWorkplace(self._sandbox, workbook, *paths, self._plan.limits, self._kept)


def _distinct(question: TaskQuestion) -> Iterator[tuple[str, CaseInput]]:
    """The cases of a task whose input workbook no earlier case has, with its SHA-256."""
    seen: set[str] = set()
    for case in question.inputs:
        if (digest := file_digest(case.path)) not in seen:
            seen.add(digest)
            yield digest, case


def prompt_paths(plan: InferencePlan, question: TaskQuestion) -> tuple[str, str]:
    """Where a prompt asks solutions to find their input and to leave their output."""
    folder = FOLDER if plan.session else DATA_FOLDER
    paths = format_named(plan.suite.format).default_paths(question, folder)
    return paths.input_path, paths.output_path


def prompt_fields(plan: InferencePlan, question: TaskQuestion) -> PromptFields:
    """What a task's prompt is filled with in addition to the task and its workbook."""
    input_path, output_path = prompt_paths(plan, question)
    say = plan.feedback.say
    return PromptFields(
        input_path=input_path,
        output_path=output_path,
        rounds=plan.setting.rounds,
        content=plan.setting.content,
        limits=plan.content,
        state=say("state_session" if plan.session else "state_fresh"),
        stop=say("stop_explicit" if plan.explicit_stop else "stop_output"),
        background=plan.background.fields(plan.template, question, question.instruction),
    )
