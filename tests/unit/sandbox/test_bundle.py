"""The frame that boots a sandbox: source text, and byte code for the same interpreter."""

from __future__ import annotations

import base64
import json
import marshal
import struct
import subprocess
import sys
import zlib
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import Any

import pytest

from judge.sandbox.bundle import BOOT, boot_frame
from tests.conftest import REPOSITORY


def packed(code: CodeType) -> str:
    return base64.b64encode(zlib.compress(marshal.dumps(code))).decode()


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


@pytest.mark.parametrize("entry", ["zygote", "service", "direct"])
def test_byte_code_is_that_of_the_source_and_names_no_folder(entry: str) -> None:
    frame: dict[str, Any] = json.loads(boot_frame(entry, {})[4:])
    ready = frame["compiled"][MAGIC_NUMBER.hex()]
    assert ready.keys() == frame["modules"].keys()
    for name, text in frame["modules"].items():
        data = unpacked(ready[name])
        assert marshal.loads(data) == compile(text, name, "exec", dont_inherit=True)
        assert str(REPOSITORY).encode() not in data


@pytest.mark.parametrize(
    ("version", "expected"), [(MAGIC_NUMBER.hex(), "byte code"), ("00000000", "source text")]
)
def test_an_interpreter_of_another_version_compiles_the_source(version: str, expected: str) -> None:
    def source(what: str) -> str:
        return f"def main(config): print({what!r}, config)"

    bundle = {
        "packages": ["toy"],
        "modules": {"toy.one": source("source text")},
        "compiled": {version: {"toy.one": packed(compile(source("byte code"), "toy.one", "exec"))}},
        "entry": "toy.one",
        "config": 5,
    }
    payload = json.dumps(bundle).encode()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", BOOT],
        input=struct.pack(">I", len(payload)) + payload,
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().strip() == f"{expected} 5"
