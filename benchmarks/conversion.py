"""The plain way as a baseline: one ``soffice --convert-to`` process for each workbook."""

from __future__ import annotations

import json

from judge.sandbox.contract import Sandbox

_PROGRAM = r"""
import json, os, struct, subprocess, sys, tempfile, time
out = os.fdopen(os.dup(1), "wb"); os.dup2(2, 1)
home = tempfile.mkdtemp()
def frame(count):
    data = b""
    while len(data) < count:
        more = sys.stdin.buffer.read(count - len(data))
        if not more: sys.exit(0)
        data += more
    return data
while True:
    book = frame(struct.unpack(">I", frame(4))[0])
    path = os.path.join(home, "book.xlsx")
    with open(path, "wb") as file: file.write(book)
    started = time.perf_counter()
    done = subprocess.run(
        ["/usr/lib/libreoffice/program/soffice", "--headless", "--norestore",
         "-env:UserInstallation=file://" + home + "/profile",
         "--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir", home + "/out", path],
        env=dict(os.environ, HOME=home), capture_output=True)
    seconds = time.perf_counter() - started
    answer = json.dumps({"seconds": seconds, "code": done.returncode}).encode()
    out.write(struct.pack(">I", len(answer)) + answer); out.flush()
"""


class Converter:
    """Converts workbooks inside the sandbox's office root, each in a separate process."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._channel = sandbox.service(_PROGRAM, root="office", memory_bytes=3 * 1024**3)
        # The first start makes the profile; later starts reuse it.
        self._channel.call(b"", 120.0)

    def convert(self, workbook: bytes) -> float:
        """Returns the seconds from the start of the process to its end."""
        answer = json.loads(self._channel.call(workbook, 300.0))
        return float(answer["seconds"])

    def close(self) -> None:
        """Ends the service."""
        self._channel.close()
