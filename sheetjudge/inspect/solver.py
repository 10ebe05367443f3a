"""The judge's own conversations as a solver: one round, several, or values for programs."""

from __future__ import annotations

import asyncio
from typing import Any

from inspect_ai.solver import Generate, Solver, TaskState, solver

from judge.inference.calls import CallContext, Journal, TaskClient
from judge.inference.conversation import Conversation
from judge.inference.pacing import Budget
from judge.inference.run_records import submission_of_conversation
from judge.inference.solver import prompt_paths
from sheetjudge.inspect.asking import Asking, asking_of
from sheetjudge.inspect.generating import GeneratingModel
from sheetjudge.inspect.records import keep_record


@solver
def judge_rounds(suite: str = "sample", mode: str = "single", **options: Any) -> Solver:
    """Asks as ``judge infer`` does, through Inspect's ``generate``.

    The program, or the typed answer, that is handed in is kept in the sample's
    store, where the scorer ``sheetjudge/judge_verdict`` finds it.

    Args:
        suite: the suite of the samples: a folder, an archive or a name.
        mode: ``single``, ``multi`` (or ``multi/row-exec``, ``multi/react-exec``,
            ``multi/row-react-exec``) or ``text``.
        **options: those of ``judge infer``, such as ``rounds``, ``stop`` and ``pictures``.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        asking = await asyncio.to_thread(asking_of, suite, mode, options)
        await _talk(asking, state, generate)
        return state

    return solve


async def _talk(asking: Asking, state: TaskState, generate: Generate) -> None:
    plan, assignment = asking.plan, asking.assignment(state.sample_id)
    room = await asyncio.to_thread(asking.room)
    model = GeneratingModel(state, generate, room.pictures)
    budget = Budget(None, None)  # Inspect has limits of its own
    context = CallContext(
        chat_model=model,
        model=str(state.model),
        params={},
        journal=Journal(None, budget),
        budget=budget,
        pictures=room.pictures,
    )
    sample = state.epoch - 1
    conversation, client = Conversation(), TaskClient(context, assignment.question.id, sample)
    typed = plan.typed_of(assignment.question) is not None
    paths = None if typed else prompt_paths(plan, assignment.question)
    is_finished = False
    try:
        await room.solver.solve(assignment, conversation, client)
        is_finished = True
    finally:
        # Also where a limit of Inspect ends the sample: it is scored with what there is.
        record = submission_of_conversation(
            plan, assignment, sample, conversation, _answered(client), "", paths
        )
        keep_record(state, record, conversation.rounds, is_finished=is_finished)
        if model.transcript:
            state.messages = model.transcript


def _answered(client: TaskClient) -> list[dict[str, Any]]:
    return [call for call in client.calls if "error" not in call]
