"""Saves workbooks again with LibreOffice, isolated in the sandbox's office root."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Sequence

from judge.sandbox import open_sandbox

_PROGRAM = r"""
import io, os, struct, subprocess, sys, tempfile, zipfile
out = os.fdopen(os.dup(1), "wb"); os.dup2(2, 1)
home = tempfile.mkdtemp()
def frame(count):
    data = b""
    while len(data) < count:
        more = sys.stdin.buffer.read(count - len(data))
        if not more: sys.exit(0)
        data += more
    return data
number = 0
while True:
    batch = frame(struct.unpack(">I", frame(4))[0])
    number += 1
    source, target = os.path.join(home, "in%d" % number), os.path.join(home, "out%d" % number)
    with zipfile.ZipFile(io.BytesIO(batch)) as archive: archive.extractall(source)
    names = sorted(os.listdir(source))
    subprocess.run(
        ["/usr/lib/libreoffice/program/soffice", "--headless", "--norestore",
         "-env:UserInstallation=file://" + home + "/profile",
         "--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir", target,
         *(os.path.join(source, name) for name in names)],
        env=dict(os.environ, HOME=home), capture_output=True)
    answer = io.BytesIO()
    with zipfile.ZipFile(answer, "w") as archive:
        for name in names:
            path = os.path.join(target, name)
            if os.path.exists(path): archive.write(path, name)
    data = answer.getvalue()
    out.write(struct.pack(">I", len(data)) + data); out.flush()
"""

_BATCH = 25


def save_with_office(workbooks: Sequence[bytes]) -> list[bytes | None]:
    """Saves workbooks again; None for workbooks that LibreOffice cannot save."""
    saved: list[bytes | None] = []
    with contextlib.closing(open_sandbox("auto")) as sandbox:
        channel = sandbox.service(_PROGRAM, root="office", memory_bytes=3 * 1024**3)
        with contextlib.closing(channel):
            for first in range(0, len(workbooks), _BATCH):
                saved.extend(_batch(channel.call, workbooks[first : first + _BATCH]))
    return saved


def _batch(call: object, workbooks: Sequence[bytes]) -> list[bytes | None]:
    assert callable(call)
    request = io.BytesIO()
    with zipfile.ZipFile(request, "w") as archive:
        for index, data in enumerate(workbooks):
            archive.writestr(f"{index:04d}.xlsx", data)
    with zipfile.ZipFile(io.BytesIO(call(request.getvalue(), 600.0))) as archive:
        names = set(archive.namelist())
        return [
            archive.read(name) if (name := f"{index:04d}.xlsx") in names else None
            for index in range(len(workbooks))
        ]
