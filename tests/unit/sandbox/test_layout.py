from __future__ import annotations

import pytest

from judge.core.limits import MIB, Limits
from judge.errors import SandboxError
from judge.sandbox import layout
from judge.sandbox.contract import RunRequest


def request(path: str, collect: str | None = None) -> RunRequest:
    return RunRequest("pass", {path: b""}, collect)


def test_top_folders_of_a_run() -> None:
    found = layout.folders_of(request("/data/in.xlsx", "/workspace/out/o.xlsx"))
    assert found == {"/data", "/workspace", "/mnt"}  # /mnt: where the program itself is


@pytest.mark.parametrize(
    "path",
    ["in.xlsx", "", "/", "/in.xlsx", "/mnt/", "/mnt//in", "/mnt/../in", "/mnt/./in", "/mnt/\0",
     "/usr/in", "/etc/in", "/proc/1", "/dev/shm", "/opt/judge/site/x.py", "/run/x", "/lib/x"],
)  # fmt: skip
def test_impossible_paths(path: str) -> None:
    with pytest.raises(SandboxError):
        layout.folders_of(request(path))
    with pytest.raises(SandboxError):
        layout.folders_of(request("/mnt/in", path))


def test_modules_named_in_the_text_are_warmed() -> None:
    common = ["openpyxl", "openpyxl.packaging.extended", "encodings.cp437", "numpy"]
    assert layout.modules_to_warm("import pandas as pd") == [*common, "pandas"]
    assert layout.modules_to_warm("import openpyxl") == common
    assert layout.modules_to_warm("import os, csv") == []


def test_disk_follows_the_output() -> None:
    assert layout.disk_bytes(Limits(output_bytes=64 * MIB)) == 256 * MIB
