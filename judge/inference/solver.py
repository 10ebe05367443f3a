"""Solves one task in the mode of the plan: prompt, conversation, and the program or answer.

:mod:`judge.inference.desktop.episode` does this on a desktop.

Models that cannot write programs answer in text, which is turned into a program. It contains the
answers to every case, under the hash of the case's input workbook, and writes them into a copy of
the workbook. So these answers are treated like any other solution: the program runs in the sandbox,
and its output is compared as usual.
"""

from __future__ import annotations

import asyncio
import pprint
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TypeVar

from judge.core.conversation import Content, content_of, plain_text
from judge.core.replies.extract import strip_reasoning
from judge.core.submission import AnswerForm
from judge.core.task import CaseInput, FileKind, TaskQuestion
from judge.inference.calls import TaskClient, file_digest
from judge.inference.chat import ChatReply, Message, writable
from judge.inference.content import rows_needed
from judge.inference.conversation import (
    AnswerEnvironment,
    Conversation,
    ProgramEnvironment,
    RoundRules,
    SingleReply,
    TypedRules,
    converse,
    try_sandboxes,
)
from judge.inference.desktop.episode import opening_message
from judge.inference.desktop.setting import desktop_task
from judge.inference.execution import (
    FreshProcessRunner,
    Interpreter,
    PictureCapture,
    SessionRunner,
    SessionSlots,
    WorkbookRunner,
)
from judge.inference.pictures import PictureFitter, PictureStore
from judge.inference.plan import Assignment, InferencePlan, TypedMode
from judge.inference.prompt import (
    FOLDER,
    PictureTools,
    PromptFields,
    build_prompt,
    keep_drawn,
    question_files,
)
from judge.inference.tools.solver import opening_messages
from judge.sandbox.contract import Sandbox
from judge.suites.formats import DATA_FOLDER, format_named
from judge.workbook.address import column_letters, column_number
from judge.workbook.preview import SheetPreview, read_preview

CellValue = str | int | float | bool | date | datetime

_LINE = re.compile(
    r"""[\s>*\-|`]*+
    (?:(?:'(?P<quoted>(?:[^']|'')++)'|(?P<plain>[^\s'!:|]++))!)?
    \$?(?P<column>[A-Za-z]{1,3})\$?(?P<row>[1-9]\d{0,6})
    [`*]*+\s*+(?::|=|\||->|→)(?P<value>.*)""",
    re.VERBOSE,
)
_RANGE = re.compile(
    r"(?:(?:'(?P<quoted>[^']+)'?|(?P<plain>[^\s'!,:]+))!'?)?\s*"
    r"\$?(?P<column>[A-Za-z]{1,3})\$?(?P<row>\d+)(?:\s*[:\uff1a]\s*\$?(?P<last>[A-Za-z]{1,3})\$?(?P<end>\d+))?"
)
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|-?\.\d+")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_RULE = re.compile(r"[\s|:+-]*+\Z")
_LEAD = re.compile(r"^(?:the\s+)?(?:final\s+)?answer(?:\s+is)?\s*[:=]\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """The value of one cell.

    Attributes:
        sheet: the sheet's name; None for the sheet of the answer position.
        address: the cell, such as ``B2``.
        value: the value to write into the cell.
    """

    sheet: str | None
    address: str
    value: CellValue


def read_answers(reply: str, position: str) -> tuple[Answer, ...]:
    """Reads the cell values in a reply.

    Lines such as ``B2: 17.5`` give values. If there are no such lines, the reply is read as a table
    that fills the answer position row by row.

    Args:
        reply: the message's text.
        position: the answer position as written in the suite.

    Returns:
        The values; if a cell has several, only the last one. Empty if the reply contains no values.
    """
    lines = [line for line in strip_reasoning(reply).splitlines() if not _FENCE.match(line)]
    answers: dict[tuple[str | None, str], Answer] = {}
    for line in lines:
        match = _LINE.match(line[:5000])
        value = match["value"].rstrip().removesuffix("|").strip() if match else ""
        if match and value:
            sheet = (match["quoted"] or "").replace("''", "'") or match["plain"]
            address = f"{match['column'].upper()}{match['row']}"
            answers[sheet, address] = Answer(sheet, address, read_value(value))
    if answers:
        return tuple(answers.values())
    return _read_table(lines, position)


def _read_table(lines: Sequence[str], position: str) -> tuple[Answer, ...]:
    target = _RANGE.search(position)
    rows = [_LEAD.sub("", line.strip()) for line in lines if line.strip()]
    rows = [row for row in rows if row and not ("-" in row and _RULE.match(row))]
    if target is None or not rows:
        return ()
    sheet = target["quoted"] or target["plain"]
    first_column, first_row = column_number(target["column"]), int(target["row"])
    last_column = column_number(target["last"]) if target["last"] else first_column
    last_row = int(target["end"]) if target["end"] else first_row
    cells = [_split_row(row, last_column - first_column + 1) for row in rows]
    # Prose around a table has too few or too many columns. With a single column, only the last
    # lines count, since prose comes before the values.
    width = last_column - first_column + 1
    fitting = [row for row in cells if len(row) == width] if width > 1 else cells
    height = last_row - first_row + 1
    chosen = fitting[-height:]
    return tuple(
        Answer(sheet, f"{column_letters(first_column + x)}{first_row + y}", read_value(text))
        for y, row in enumerate(chosen)
        for x, text in enumerate(row)
        if text
    )


def _split_row(row: str, width: int) -> list[str]:
    if width == 1:
        return [row.strip("| \t")]
    for separator in ("|", "\t", ",", ";"):
        parts = [part.strip() for part in row.strip("| \t").split(separator)]
        if len(parts) > 1:
            return parts
    return [row.strip()]


def read_value(text: str) -> CellValue:
    """Converts the text of a value to a number, a date, TRUE or FALSE, or text.

    Anything in double quotes is text, and so are numbers with leading zeros.
    """
    text = text.strip().strip("`").strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1]
    if text.upper() in {"TRUE", "FALSE"}:
        return text.upper() == "TRUE"
    plain = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
    if _NUMBER.fullmatch(plain):
        number = float(plain)
        return int(number) if number.is_integer() and abs(number) < 1e15 else number
    if plain.endswith("%") and _NUMBER.fullmatch(plain[:-1]):
        return float(plain[:-1]) / 100
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2})?)?", text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return text
    return text


_PROGRAM = '''\
"""Writes answers that a chat model gave as text, one set for each input workbook."""

import datetime
import hashlib

import openpyxl

INPUT_PATH = {input_path!r}
OUTPUT_PATH = {output_path!r}
DEFAULT_SHEET = {sheet!r}

# SHA-256 of an input workbook -> (sheet, cell, value)
ANSWERS = {answers}

with open(INPUT_PATH, "rb") as file:
    digest = hashlib.sha256(file.read()).hexdigest()
if digest not in ANSWERS:
    raise SystemExit("no answer was requested for this workbook: " + digest)
workbook = openpyxl.load_workbook(INPUT_PATH)
names = {{name.strip().lower(): name for name in workbook.sheetnames}}
for sheet, address, value in ANSWERS[digest]:
    name = names.get((sheet or DEFAULT_SHEET or "").strip().lower())
    worksheet = workbook[name] if name else workbook.worksheets[0]
    cell = worksheet[address]
    if type(cell).__name__ == "MergedCell":
        continue
    cell.value = value
    if isinstance(value, str) and value.startswith("="):
        cell.data_type = "s"
workbook.save(OUTPUT_PATH)
'''


def answer_program(
    answers: Mapping[str, Sequence[Answer]], *, input_path: str, output_path: str, sheet: str | None
) -> str:
    """Returns the program that writes the answers.

    Args:
        answers: the answers to each case, by the SHA-256 of its input workbook.
        input_path: the path of the program's input.
        output_path: the path of the program's output.
        sheet: the sheet of the answer position; None if the suite names no sheet.
    """
    cells = {
        digest: [(answer.sheet, answer.address, answer.value) for answer in values]
        for digest, values in answers.items()
    }
    return _PROGRAM.format(
        input_path=input_path,
        output_path=output_path,
        sheet=sheet,
        answers=pprint.pformat(cells, width=100, sort_dicts=False),
    )


_T = TypeVar("_T")
_SANDBOX_PAUSE_S = 0.5
_MAX_OPEN_SESSIONS = 16  # about 100 MB each


class Solver:
    """Lets a chat model solve tasks according to a plan.

    Args:
        plan: the plan of the run.
        sandbox: runs programs between rounds, and shrinks pictures; None if neither is needed.
        threads: threads for blocking work.
        pictures: the store for the pictures of messages.
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
        self._picture_tools = PictureTools(pictures, fitter)
        self._slots = SessionSlots(_MAX_OPEN_SESSIONS)
        self._previews: dict[tuple[str, int], tuple[SheetPreview, ...]] = {}

    async def solve(
        self, assignment: Assignment, conversation: Conversation, client: TaskClient
    ) -> None:
        """Carries on the conversation about one task, which may end without a solution.

        Args:
            assignment: the task.
            conversation: filled as the conversation proceeds.
            client: asks the model for this task and sample.

        Raises:
            CallError: no reply could be obtained.
            BudgetReachedError: the budget does not allow a call.
            SandboxError: the sandbox failed in every attempt.
            WorkbookError: the input workbook cannot be shown.
        """
        plan, question = self._plan, assignment.question
        if (mode := plan.typed_of(question)) is not None:
            await self._solve_typed(mode, assignment, conversation, client)
            return
        if plan.setting.name == "text":
            await self._solve_in_text(assignment, conversation, client)
            return
        prompt = self.prompt(assignment, question.inputs[0])
        if not plan.setting.executes:
            await converse(SingleReply(conversation, prompt), client.ask)
            return
        rules = RoundRules(
            rounds=plan.setting.rounds,
            explicit_stop=plan.explicit_stop,
            feedback=plan.feedback,
            output_path=prompt_paths(plan, question)[1],
            unseen=None if plan.execution_feedback else plan.background.words,
        )

        async def once() -> None:
            runner = self._runner(assignment)
            try:
                environment = ProgramEnvironment(conversation, prompt, rules, runner, self._threads)
                await converse(environment, client.ask)
            finally:
                await self._blocking(runner.close)

        await self._try_sandboxes(once, conversation, client)

    async def _try_sandboxes(
        self, once: Callable[[], Awaitable[None]], conversation: Conversation, client: TaskClient
    ) -> None:
        """Repeats a conversation from the beginning if the sandbox fails."""

        def undo() -> None:
            conversation.start_again()
            client.calls.clear()

        await try_sandboxes(lambda _: once(), undo, _SANDBOX_PAUSE_S)

    async def _blocking(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Ends the services that are shared by all tasks; safe to call twice."""
        if self._picture_tools.fitter is not None:
            self._picture_tools.fitter.close()

    async def _solve_typed(
        self,
        mode: TypedMode,
        assignment: Assignment,
        conversation: Conversation,
        client: TaskClient,
    ) -> None:
        """Carries on a conversation until the model gives a typed answer."""
        tools, setting = self._picture_tools, mode.setting
        rules = TypedRules(setting, mode.feedback, lambda drawn: keep_drawn(drawn, setting, tools))

        async def once() -> None:
            prompt, paths = await self._blocking(lambda: self._typed_prompt(mode, assignment))
            if not mode.setting.executes:
                environment = AnswerEnvironment(conversation, prompt, rules, None, self._threads)
                await converse(environment, client.ask)
                return
            assert self._sandbox is not None
            interpreter = Interpreter(
                self._sandbox,
                paths,
                self._plan.limits,
                folders=(FOLDER,),
                work_in=FOLDER,
                chars=mode.setting.printed_chars,
                capture=PictureCapture(FOLDER, mode.setting.plots) if mode.setting.plots else None,
            )
            try:
                environment = AnswerEnvironment(
                    conversation, prompt, rules, interpreter, self._threads
                )
                await converse(environment, client.ask)
            finally:
                await self._blocking(interpreter.close)

        await self._try_sandboxes(once, conversation, client)

    def _typed_prompt(
        self, mode: TypedMode, assignment: Assignment
    ) -> tuple[Content, Mapping[str, Path]]:
        """Returns the first message about a task with a typed answer, and paths of files inside."""
        question = assignment.question
        shown = question_files(
            question.inputs[0], mode.setting, mode.content, mode.feedback, self._picture_tools
        )
        details = (f"{name}: {value}" for name, value in question.details.items())
        instruction = "\n".join([question.instruction, *details])
        text = mode.template.fill(
            {
                **self._plan.background.fields(mode.template, question, instruction),
                "instruction_type": question.kind,
                "files": shown.files,
                "tables": shown.tables,
                "folder": FOLDER,
                "rounds": str(mode.setting.rounds),
                "max_turn_num": str(mode.setting.rounds),
                "printed_chars": f"{mode.setting.printed_chars:,}",
                "answer_form": mode.feedback.say("answer_form"),
            }
        )
        return content_of(writable(text), shown.pictures), shown.paths

    async def _solve_in_text(
        self, assignment: Assignment, conversation: Conversation, client: TaskClient
    ) -> None:
        """Asks the model once for each distinct input; combines the answers into one program."""
        question = assignment.question
        answers: dict[str, tuple[Answer, ...]] = {}
        last_reply = ""
        for digest, case in _distinct(question):
            part = Conversation()

            async def ask(
                messages: tuple[Message, ...], round_number: int, number: int = case.number
            ) -> ChatReply:
                return await client.ask(messages, round_number, number)

            try:
                await converse(SingleReply(part, self.prompt(assignment, case)), ask)
            finally:
                conversation.messages += part.messages
                conversation.rounds += [{"case": case.number, **record} for record in part.rounds]
            replied = part.ended == "replied"
            last_reply = plain_text(part.messages[-1]["content"]) if replied else ""
            answers[digest] = read_answers(last_reply, question.details.get("answer_position", ""))
            conversation.truncated = conversation.truncated or part.rounds[-1].get(
                "truncated", False
            )
            conversation.ended, conversation.finish_reason = part.ended, part.finish_reason
        conversation.reply = last_reply
        if any(answers.values()):
            input_path, output_path = prompt_paths(self._plan, question)
            conversation.solution = answer_program(
                answers,
                input_path=input_path,
                output_path=output_path,
                sheet=question.details.get("answer_sheet"),
            )

    async def openings(self, assignment: Assignment) -> list[tuple[int, Content]]:
        """Returns the first messages of the conversations about a task, with the case numbers.

        In settings of one round, there are no other requests. The number is 0 if the conversation
        is not about a particular case.

        Args:
            assignment: the task.

        Raises:
            WorkbookError, SuiteError, SandboxError: as in :meth:`prompt`.
        """
        plan, question = self._plan, assignment.question
        if (mode := plan.typed_of(question)) is not None:
            content, _ = await self._blocking(lambda: self._typed_prompt(mode, assignment))
            return [(0, content)]
        if plan.setting.name == "text":
            return [(x.number, self.prompt(assignment, x)) for _, x in _distinct(question)]
        return [(0, self.prompt(assignment, question.inputs[0]))]

    def prompt(self, assignment: Assignment, case: CaseInput) -> Content:
        """Returns the first message about a task, with a preview of one case's input.

        Raises:
            WorkbookError: the input workbook cannot be shown.
            SuiteError: a file of a question is missing, or cannot be shown.
            SandboxError: the sandbox failed while shrinking pictures.
        """
        plan, question = self._plan, assignment.question
        if (mode := plan.typed_of(question)) is not None:
            return self._typed_prompt(mode, assignment)[0]
        if plan.desktop is not None:
            return opening_message(plan, question, desktop_task(question, case))
        if plan.tools is not None:
            opening = opening_messages(plan, question, case)
            return "\n\n".join(plain_text(message["content"]) for message in opening)
        key = (question.id, case.number)
        sheets: tuple[SheetPreview, ...] = ()
        if plan.template.wants("spreadsheet_content") and _has_preview(question, case):
            rows = rows_needed(plan.setting.content, plan.content.rows)
            cached = self._previews.get(key)
            sheets = cached if cached is not None else read_preview(case.path, rows)
            if plan.samples > 1:
                self._previews[key] = sheets
        return build_prompt(plan.template, question, sheets, prompt_fields(plan, question))

    def _runner(self, assignment: Assignment) -> WorkbookRunner:
        assert self._sandbox is not None
        question = assignment.question
        workbook = question.inputs[0].path
        paths = prompt_paths(self._plan, question)
        if self._plan.session:
            return SessionRunner(self._sandbox, workbook, *paths, self._plan.limits)
        return FreshProcessRunner(self._sandbox, workbook, *paths, self._plan.limits, self._slots)


def _has_preview(question: TaskQuestion, case: CaseInput) -> bool:
    """Whether the first input can be previewed; some inputs of tasks over files cannot."""
    if question.answer is not AnswerForm.FILES:
        return True
    return bool(case.files) and case.files[0].kind is FileKind.WORKBOOK


def _distinct(question: TaskQuestion) -> Iterator[tuple[str, CaseInput]]:
    """Yields, for each distinct input workbook, its SHA-256 and the first case that has it."""
    digests: set[str] = set()
    for case in question.inputs:
        if (digest := file_digest(case.path)) not in digests:
            digests.add(digest)
            yield digest, case


def prompt_paths(plan: InferencePlan, question: TaskQuestion) -> tuple[str, str]:
    """Returns the input and output paths that a prompt names."""
    folder = FOLDER if plan.session else DATA_FOLDER
    paths = format_named(plan.suite.format).default_paths(question, folder)
    return paths.input_path, paths.output_path


def prompt_fields(plan: InferencePlan, question: TaskQuestion) -> PromptFields:
    """Returns the fields of a prompt other than the task and its workbook."""
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
