"""The key of a chat model, from the environment."""

from __future__ import annotations

import os

from judge.errors import InferenceError


def read_key(key_env: str | None) -> str | None:
    """The key that an environment variable holds.

    Args:
        key_env: name of the variable; None if the server does not require a key.

    Raises:
        InferenceError: the variable is not set.
    """
    if key_env is None:
        return None
    key = os.environ.get(key_env, "").strip()
    if not key:
        raise InferenceError(
            f"the key of the model is expected in the environment variable {key_env}, which is "
            "not set",
            hint=f"export {key_env}=…, or name another variable with --api-key-env, or another "
            "server with --base-url.",
        )
    return key
