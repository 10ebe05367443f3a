"""A chat model for a single question, opened as ``judge infer`` opens it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from judge.api.infer_options import InferOptions
from judge.api.inferring import find_spec
from judge.api.model_key import read_key
from judge.api.planning import request_params

if TYPE_CHECKING:
    from judge.inference.chat import ChatModel

_Answer = TypeVar("_Answer")


def ask_model(
    options: InferOptions,
    question: Callable[[ChatModel, str, Mapping[str, Any]], Awaitable[_Answer]],
) -> _Answer:
    """Opens a chat model, asks it, and closes it.

    Args:
        options: whom to ask and how; a model has to be named.
        question: is given the model, its name on the server, and the request parameters.

    Raises:
        UsageError: an option cannot be read, or a key would go to a server that it does not
            belong to.
        InferenceError: the key is not set, or the models file is broken.
    """
    from judge.inference.client import OpenAIChatModel, RetryPolicy  # noqa: PLC0415

    spec = find_spec(options, key_said=bool(options.base_url and options.api_key_env))
    params = {**spec.params, **request_params(options)}
    for name in ("temperature", "top_p"):
        if (value := getattr(options, name)) is not None:
            params[name] = value
    key = read_key(spec.key_env)
    policy = RetryPolicy(attempts=options.retries + 1, call_timeout_s=options.timeout)

    async def run() -> _Answer:
        chat_model = OpenAIChatModel(spec.base_url, key, policy=policy)
        try:
            name = spec.model or await chat_model.only_model()
            return await question(chat_model, name, params)
        finally:
            await chat_model.close()

    return asyncio.run(run())
