"""Installs wheels inside a sandbox: a service without a network that only runs pip.

The judge never imports this: its source is sent into the root of solutions, with the wheels and a
copy of pip. No code of a wheel runs before the result has been read.
"""

from __future__ import annotations

import importlib.metadata
import io
import os
import platform
import subprocess
import sys
import tarfile
import zipfile
from typing import Any

from judge.sandbox.warden import frames

WORK = "/tmp/install"  # noqa: S108 - inside
SITE = f"{WORK}/out/site"
_CHUNK_BYTES = 32 * 1024 * 1024
_PIP_S, _IMPORT_S = 600, 120


def main() -> None:
    """Answers requests until there are no more of them."""
    requests, answers = sys.stdin.fileno(), sys.stdout.fileno()
    ops = {"facts": _facts, "put": _put, "install": _install, "read": _read, "try": _try}
    while True:
        try:
            header, blobs = frames.unpack(frames.read_frame(requests))
        except frames.ClosedError:
            return
        try:
            answer, data = ops[header["op"]](header, blobs)
        except Exception as error:  # noqa: BLE001 - the judge reports the problem
            answer, data = {"fault": f"{type(error).__name__}: {error}"[:2000]}, []
        frames.write_all(answers, frames.pack(answer, data))


def _facts(_header: dict[str, Any], _: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    return {"python": platform.python_version(), "machine": platform.machine()}, []


def _put(header: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    os.makedirs(f"{WORK}/wheels", exist_ok=True)  # noqa: PTH103
    if header["name"] == "pip":
        with zipfile.ZipFile(io.BytesIO(blobs[0])) as archive:
            archive.extractall(f"{WORK}/pip")  # noqa: S202 - the judge's own copy
    else:
        path = os.path.join(f"{WORK}/wheels", header["name"])  # noqa: PTH118
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(blobs[0])
    return {}, []


def _python(arguments: list[str], path: str, limit_s: float) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": path, "HOME": WORK, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-s", *arguments], env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=limit_s,
            cwd=WORK,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, f"no end in {limit_s:g} s"
    return done.returncode, done.stdout.decode("utf-8", "replace")[-20_000:]


def _install(header: dict[str, Any], _: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    wheels = sorted(f"{WORK}/wheels/{name}" for name in header["wheels"])
    code, printed = _python(
        ["-m", "pip", "install", "--no-index", "--no-deps", "--no-compile", "--no-input",
         "--disable-pip-version-check", "--no-cache-dir", "--quiet", "--target", SITE, *wheels],
        f"{WORK}/pip", _PIP_S,
    )  # fmt: skip
    if code != 0:
        return {"fault": printed}, []
    _code, missing = _python(
        ["-m", "pip", "check", "--disable-pip-version-check"], f"{SITE}:{WORK}/pip", _PIP_S
    )
    _python(
        ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", f"{WORK}/out",
         "-p", "/server", SITE],
        "", _PIP_S,
    )  # fmt: skip
    with tarfile.open(f"{WORK}/out.tar", "w") as archive:
        archive.add(f"{WORK}/out", ".")
    packages = {}
    for package in importlib.metadata.distributions(path=[SITE]):
        packages[package.metadata["Name"]] = [package.version, _licence(package.metadata)]
    size = os.path.getsize(f"{WORK}/out.tar")  # noqa: PTH202
    return {"packages": packages, "check": missing, "bytes": size}, []


def _licence(metadata: Any) -> str:
    for name in ("License-Expression", "License"):
        text = " ".join((metadata.get(name) or "").split())
        if text:
            return text[:80]
    classifiers = metadata.get_all("Classifier") or []
    named = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License")]
    return ", ".join(named)[:80]


def _read(header: dict[str, Any], _: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    with open(f"{WORK}/out.tar", "rb") as file:  # noqa: PTH123
        file.seek(header["offset"])
        return {}, [file.read(_CHUNK_BYTES)]


def _try(header: dict[str, Any], _: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Imports the entry point, to see whether the server could start."""
    code, printed = _python(["-c", header["program"]], SITE, _IMPORT_S)
    return {"code": code, "printed": printed[-3000:]}, []
