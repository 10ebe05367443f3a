"""LibreOffice as a service: runs inside the sandbox's office root.

This file is a separate program: its text is passed to the sandbox, which runs it with
LibreOffice's own interpreter (standard library and ``uno`` only). One soffice process is kept
warm; it is restarted after a crash, a time-out, and a fixed number of workbooks.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from typing import Any

from judge.recalc.services.common import (
    LOOKED_EVERY_S,
    Answer,
    CannotComputeError,
    CannotStartError,
    Request,
    Stopwatch,
    serve,
)
from judge.recalc.services.dialect import TRIGGER, for_libreoffice
from judge.recalc.services.folders import Folder, TemporaryFolder, write_book
from judge.recalc.services.match_arrays import as_plain_formula
from judge.recalc.services.package import Step, prepare
from judge.recalc.services.reading import Area, read_values
from judge.recalc.services.slim import without_the_unseen

PROGRAM = "/usr/lib/libreoffice/program"
SOFFICE = f"{PROGRAM}/soffice.bin"
FILTER = "Calc MS Excel 2007 XML"
START_TIMEOUT_S = 60.0
RESTART_EXIT_CODE = 81
"""Exit status with which soffice asks to be restarted, as it does once with a profile that no
process of the same build has used (:func:`write_settings`)."""

WORKBOOKS_PER_PROCESS = 400
"""After how many workbooks soffice is restarted: it grows with each workbook that it opens, and a
restart takes a third of a second."""

LEFT_LIMIT_BYTES = 4 * 1024 * 1024
"""How many bytes soffice may leave in the temporary folder, over all workbooks, before it is
restarted; its own certificates take a hundred kilobytes."""

PRINT_LIMIT_BYTES = 32 * 1024 * 1024
"""Longest text of a printed sheet; in the published tasks it has a few kilobytes."""

CALC = "/org.openoffice.Office.Calc/Formula"
SCRIPTING = "/org.openoffice.Office.Common/Security/Scripting"
SETTINGS = (
    # Every formula is recomputed when a file is opened; a cached value is never kept.
    (CALC + "/Load", "OOXMLRecalcMode", "0"),
    (CALC + "/Load", "ODFRecalcMode", "0"),
    # Threaded formula groups gave wrong values in real workbooks, in all versions from 7.4 to 26.8.
    (CALC + "/Calculation", "UseThreadedCalculationForFormulaGroups", "false"),
    (CALC + "/Calculation", "UseOpenCL", "false"),
    (SCRIPTING, "MacroSecurityLevel", "3"),
    (SCRIPTING, "DisableMacrosExecution", "true"),
    (SCRIPTING, "DisableActiveContent", "true"),
    ("/org.openoffice.Office.Common/Java", "Enable", "false"),
    ("/org.openoffice.Office.Common/Misc", "FirstRun", "false"),
    ("/org.openoffice.Office.Recovery/AutoSave", "Enabled", "false"),
    # Otherwise soffice fills a new profile with texts, galleries and a bibliography.
    ("/org.openoffice.Setup/Office", "ooSetupInstCompleted", "true"),
    ("/org.openoffice.Setup/L10N", "ooSetupSystemLocale", "en-US"),
    ("/org.openoffice.Setup/L10N", "ooLocale", "en-US"),
    # Excel reads 2011/02/23 as a date in every language.
    ("/org.openoffice.Setup/L10N", "DateAcceptancePatterns", "M/D/Y;M/D;M-D-Y;M-D;Y/M/D"),
)


class Office:
    """One warm soffice process, the bridge to it, and its folder, which is removed when it ends."""

    def __init__(self) -> None:
        self.temporary = TemporaryFolder()
        self.folder: Folder | None = None
        self.free_at_start = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.context: Any = None
        self.version = ""
        self.opened = 0

    def start(self) -> None:
        """Starts soffice with a fresh folder and profile, and connects to it.

        Raises:
            CannotStartError: soffice does not start, or there is no space for it.
        """
        import uno  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

        self.stop()
        self.temporary.check()
        self.folder = Folder("office-")
        profile = os.path.join(self.folder.path, "profile")  # noqa: PTH118 - UNO takes strings
        try:
            write_settings(profile)
        except OSError as error:
            raise CannotStartError(f"no profile can be written for soffice: {error}") from error
        pipe = f"judge{os.getpid()}"
        command = [
            SOFFICE,
            "--headless",
            "--invisible",
            "--nologo",
            "--nodefault",
            "--norestore",
            "--nofirststartwizard",
            "--nolockcheck",
            f"-env:UserInstallation=file://{profile}",
            f"--accept=pipe,name={pipe};urp;",
        ]
        self.launch(command)
        local = uno.getComponentContext()
        resolver = local.ServiceManager.createInstanceWithContext(
            "com.sun.star.bridge.UnoUrlResolver", local
        )
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                address = f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext"
                context = resolver.resolve(address)
                break
            except Exception as error:  # noqa: BLE001 - UNO's own exception, not there yet
                self.still_starting(command, deadline, error)
                time.sleep(0.02)
        self.version = product_version(context.ServiceManager, context)
        self.context = context
        self.opened = 0
        self.free_at_start = self.temporary.free_bytes()

    def still_starting(self, command: list[str], deadline: float, error: Exception) -> None:
        """Restarts soffice if it asks for a restart; gives up if it ended or hangs."""
        assert self.process is not None
        ended = self.process.poll()
        if ended == RESTART_EXIT_CODE:
            self.launch(command)
        elif ended is not None:
            raise CannotStartError(f"soffice ended at its start with {ended}") from error
        elif time.monotonic() > deadline:
            raise CannotStartError("soffice does not answer") from error

    def launch(self, command: list[str]) -> None:
        """Starts the process itself."""
        assert self.folder is not None
        home = self.folder.path
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(
                os.environ,
                HOME=home,
                TMPDIR=home,
                PATH=PROGRAM,  # GnuPG is elsewhere: soffice would start it for signatures
                SAL_USE_VCLPLUGIN="svp",
                LC_ALL="C.UTF-8",
            ),
        )

    def kill(self) -> None:
        """Ends soffice immediately, from any thread; the call that waits for it then fails."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()

    def stop(self) -> None:
        """Ends soffice, forgets the bridge, and removes everything that soffice wrote."""
        self.kill()
        if self.process is not None:
            self.process.wait()
        self.process = None
        self.context = None
        if self.folder is not None:
            self.folder.remove()
        self.folder = None

    def tidy(self) -> None:
        """Ends a soffice that left too much in the temporary folder, and removes what it left.

        What it still needs there cannot be distinguished from what it left behind, so nothing is
        removed while the process runs.
        """
        if self.free_at_start - self.temporary.free_bytes() > LEFT_LIMIT_BYTES:
            self.stop()

    def ready(self) -> None:
        """Makes sure that a soffice process is running that has not opened too many workbooks."""
        alive = self.process is not None and self.process.poll() is None
        if not alive or self.context is None or self.opened >= WORKBOOKS_PER_PROCESS:
            self.start()


def write_settings(profile: str) -> None:
    """Writes the settings into a new profile, where soffice reads them at its start.

    The profile also names this build as the one that used it last. Otherwise soffice would clear
    its cache of extensions and end with :data:`RESTART_EXIT_CODE`, which takes a tenth of a second.
    """
    folder = os.path.join(profile, "user")  # noqa: PTH118
    extensions = os.path.join(folder, "extensions")  # noqa: PTH118
    os.makedirs(extensions)  # noqa: PTH103
    with open(os.path.join(extensions, "buildid"), "w", encoding="utf-8") as file:  # noqa: PTH118, PTH123
        file.write(build_id())
    items = "".join(
        f'<item oor:path="{path}"><prop oor:name="{name}" oor:op="fuse">'
        f"<value>{value}</value></prop></item>"
        for path, name, value in SETTINGS
    )
    path = os.path.join(folder, "registrymodifications.xcu")  # noqa: PTH118
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<oor:items xmlns:oor="http://openoffice.org/2001/registry" '
            'xmlns:xs="http://www.w3.org/2001/XMLSchema" '
            f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">{items}</oor:items>'
        )


def build_id() -> str:
    """The build of the installed LibreOffice; empty if its file of versions does not name it."""
    try:
        with open(f"{PROGRAM}/versionrc", encoding="utf-8") as file:  # noqa: PTH123
            lines = file.read().splitlines()
    except OSError:
        return ""
    return next((line[8:].strip() for line in lines if line.startswith("buildid=")), "")


def product_version(manager: Any, context: Any) -> str:
    """LibreOffice's own version, such as ``26.8.3.1``."""
    provider = manager.createInstanceWithContext(
        "com.sun.star.configuration.ConfigurationProvider", context
    )
    path = property_value("nodepath", "/org.openoffice.Setup/Product")
    access = provider.createInstanceWithArguments(
        "com.sun.star.configuration.ConfigurationAccess", (path,)
    )
    return str(access.getByName("ooSetupVersionAboutBox"))


def property_value(name: str, value: object) -> Any:
    """One of UNO's named arguments."""
    from com.sun.star.beans import (  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
        PropertyValue,
    )

    argument = PropertyValue()
    argument.Name = name
    argument.Value = value
    return argument


def load(office: Office, path: str) -> Any:
    """Opens a workbook: by one filter only, without macros, without updating links.

    The document gets no window, not even a hidden one, which costs as much as a small workbook.
    """
    document = office.context.ServiceManager.createInstanceWithContext(
        "com.sun.star.sheet.SpreadsheetDocument", office.context
    )
    document.load(
        (
            property_value("URL", f"file://{path}"),
            property_value("Hidden", True),
            property_value("ReadOnly", False),
            property_value("FilterName", FILTER),
            property_value("MacroExecutionMode", 0),
            property_value("UpdateDocMode", 0),
        )
    )
    office.opened += 1
    return document


def print_sheet(document: Any, folder: str, number: int) -> list[str]:
    """The lines of a sheet as LibreOffice writes them to a text file: cells as displayed."""
    # Comma, quotes, UTF-8; only what needs it is quoted; values as shown; which sheet.
    options = f"44,34,UTF-8,,,,false,true,true,false,false,{number}"
    place = os.path.join(folder, "print")  # noqa: PTH118 - UNO takes strings
    os.makedirs(place, exist_ok=True)  # noqa: PTH103
    try:
        document.storeToURL(
            f"file://{place}/book.csv",
            (
                property_value("FilterName", "Text - txt - csv (StarCalc)"),
                property_value("FilterOptions", options),
            ),
        )
        for name in sorted(os.listdir(place)):  # noqa: PTH208
            path = os.path.join(place, name)  # noqa: PTH118
            if os.path.getsize(path) > PRINT_LIMIT_BYTES:  # noqa: PTH202
                raise CannotComputeError("the text of the sheet is too long")
            with open(path, encoding="utf-8") as file:  # noqa: PTH123
                return file.read().splitlines()
        raise CannotComputeError("LibreOffice wrote no text for the sheet")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def compute(
    office: Office, workbook: bytes, ranges: list[Area], print_number: int = 0
) -> list[list[object]]:
    """Opens, computes, reads and closes one workbook; or prints one of its sheets."""
    assert office.folder is not None
    path = write_book(office.folder.path, workbook)
    try:
        document = load(office, path)
        try:
            if print_number:
                return [list(print_sheet(document, office.folder.path, print_number))]
            return read_values(document, ranges)
        finally:
            document.close(True)
    finally:
        # It is gone already where soffice ended, and its folder with it.
        with contextlib.suppress(OSError):
            os.remove(path)  # noqa: PTH107


def compute_in_time(office: Office, request: dict[str, Any], workbook: bytes) -> Answer:
    """Computes within the requested processor time."""
    names = request.get("names") or {}
    date_1904 = bool(request.get("date_1904"))

    def rewrite(formula: str, is_array: bool) -> str:
        plain = as_plain_formula(formula, is_array=is_array)
        return for_libreoffice(plain, date_1904=date_1904)

    # Not reduced: formats and conditional formats do not affect values, but they affect the text.
    slim = None if request.get("print") else without_the_unseen
    ready = prepare(workbook, names, step=Step(TRIGGER, rewrite), slim=slim)
    ranges = [tuple(asked) for asked in request["ranges"]]
    printed = int(request.get("print") or 0)
    limit_s = float(request["timeout_s"])
    for attempt in range(ATTEMPTS):
        office.ready()
        office.temporary.check()
        try:
            return compute_until(office, ready, ranges, limit_s, printed)
        except FellOverError as error:
            # soffice may have been ended from outside. If the workbook makes it crash, it crashes
            # again.
            if attempt + 1 == ATTEMPTS:
                raise CannotComputeError(str(error)) from error
    raise AssertionError("every attempt returns or raises")


ATTEMPTS = 2


class FellOverError(Exception):
    """soffice ended while it computed a workbook."""


def compute_until(
    office: Office, workbook: bytes, ranges: list[Area], limit_s: float, printed: int = 0
) -> Answer:
    """Computes one workbook; soffice is killed if it uses more processor time, or hangs.

    Raises:
        FellOverError: soffice ended.
        CannotStartError: the temporary folder was full by then.
    """
    assert office.process is not None
    watch = Stopwatch(office.process.pid, limit_s)
    late: list[Answer] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(LOOKED_EVERY_S):
            if watch.is_up or watch.hangs:
                late.append(watch.verdict())
                office.kill()
                return

    looking = threading.Thread(target=look)
    looking.start()
    try:
        values = compute(office, workbook, ranges, printed)
    except (CannotComputeError, CannotStartError):
        raise
    except Exception as error:
        full = office.temporary.is_full()
        done.set()
        looking.join()
        office.stop()
        if late:
            return late[0]
        if full:
            raise CannotStartError(f"no space was left ({type(error).__name__})") from error
        raise FellOverError(f"LibreOffice crashed ({type(error).__name__})") from error
    else:
        return {"values": values, "seconds": watch.seconds}
    finally:
        done.set()
        looking.join()


def main() -> None:
    """Serves until the sandbox closes standard input."""
    office = Office()

    def handle(request: Request, workbook: bytes) -> Answer:
        if request["op"] == "describe":
            office.ready()
            return {"versions": {"libreoffice": office.version}}
        return compute_in_time(office, request, workbook)

    def get_ready() -> None:
        # So that the next request need not wait. A failure here would also occur there.
        with contextlib.suppress(CannotStartError):
            office.tidy()
            office.ready()

    try:
        serve(handle, after=get_ready)
    finally:
        office.stop()


if __name__ == "__main__":
    main()
