"""LibreOffice as a service: runs inside the sandbox's office root.

This file is a program of its own: its text is handed to the sandbox, which runs it with
LibreOffice's own interpreter (standard library and ``uno`` only). One soffice process is kept
warm; it is started again after a crash, a time-out, and every so many workbooks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from typing import Any

from judge.recalc.services.common import Answer, CannotComputeError, Request, prepare, serve
from judge.recalc.services.dialect import TRIGGER, for_libreoffice
from judge.recalc.services.match_arrays import as_plain_formula

SOFFICE = "/usr/lib/libreoffice/program/soffice.bin"
FILTER = "Calc MS Excel 2007 XML"
START_TIMEOUT_S = 60.0
RESTART_EXIT_CODE = 81
"""soffice asks to be started again, as it may once with a new profile."""

WORKBOOKS_PER_PROCESS = 400
"""soffice grows with what it has opened; a fresh one costs a third of a second."""

CALC = "/org.openoffice.Office.Calc/Formula"
SCRIPTING = "/org.openoffice.Office.Common/Security/Scripting"
SETTINGS = (
    # Every formula is computed anew when a file is opened; a cached value is never kept.
    (CALC + "/Load", "OOXMLRecalcMode", "0"),
    (CALC + "/Load", "ODFRecalcMode", "0"),
    # Threaded formula groups computed wrong cells in real workbooks, in 7.4 to 26.8 alike.
    (CALC + "/Calculation", "UseThreadedCalculationForFormulaGroups", "false"),
    (CALC + "/Calculation", "UseOpenCL", "false"),
    (SCRIPTING, "MacroSecurityLevel", "3"),
    (SCRIPTING, "DisableMacrosExecution", "true"),
    (SCRIPTING, "DisableActiveContent", "true"),
    ("/org.openoffice.Office.Common/Java", "Enable", "false"),
    ("/org.openoffice.Office.Common/Misc", "FirstRun", "false"),
    ("/org.openoffice.Office.Recovery/AutoSave", "Enabled", "false"),
    ("/org.openoffice.Setup/L10N", "ooSetupSystemLocale", "en-US"),
    ("/org.openoffice.Setup/L10N", "ooLocale", "en-US"),
    # Excel reads 2011/02/23 as a date whatever the language.
    ("/org.openoffice.Setup/L10N", "DateAcceptancePatterns", "M/D/Y;M/D;M-D-Y;M-D;Y/M/D"),
)

EXCEL_ERRORS = {
    32767: "#N/A",
    502: "#NUM!",
    503: "#NUM!",
    504: "#REF!",
    519: "#VALUE!",
    521: "#NULL!",
    523: "#NUM!",
    524: "#REF!",
    525: "#NAME?",
    532: "#DIV/0!",
}
"""LibreOffice's error numbers -> what Excel shows. Others (parser, memory) mean: not computed."""

OTHER_ERRORS = {
    501: "a character that the formula parser does not take",
    508: "brackets that do not match",
    509: "an operator is missing",
    510: "a variable is missing",
    511: "a parameter is missing",
    512: "the formula is too long",
    513: "a text is too long",
    514: "the sort or stack is too deep",
    516: "an internal syntax error",
    517: "an internal syntax error",
    518: "an internal syntax error",
    522: "the formula refers to itself",
    527: "the formulas are nested too deep",
    540: "external content is not loaded",
}


class Office:
    """One warm soffice process and the bridge to it."""

    def __init__(self) -> None:
        self.home = tempfile.mkdtemp(prefix="office-")
        self.process: subprocess.Popen[bytes] | None = None
        self.desktop: Any = None
        self.version = ""
        self.opened = 0

    def start(self) -> None:
        """Starts soffice with a fresh profile and connects to it."""
        import uno  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

        self.stop()
        profile = os.path.join(self.home, "profile")  # noqa: PTH118 - UNO wants texts
        shutil.rmtree(profile, ignore_errors=True)
        write_settings(profile)
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
        manager = context.ServiceManager
        self.desktop = manager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
        self.version = product_version(manager, context)
        self.opened = 0

    def still_starting(self, command: list[str], deadline: float, error: Exception) -> None:
        """Starts soffice again where it asks for it; gives up where it ended or hangs."""
        assert self.process is not None
        ended = self.process.poll()
        if ended == RESTART_EXIT_CODE:
            self.launch(command)
        elif ended is not None:
            raise CannotComputeError(f"soffice ended at its start with {ended}") from error
        elif time.monotonic() > deadline:
            raise CannotComputeError("soffice does not answer") from error

    def launch(self, command: list[str]) -> None:
        """Starts the process itself."""
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ, HOME=self.home, SAL_USE_VCLPLUGIN="svp", LC_ALL="C.UTF-8"),
        )

    def kill(self) -> None:
        """Ends soffice at once, from any thread; the call that waits for it then fails."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()

    def stop(self) -> None:
        """Ends soffice and forgets the bridge."""
        self.kill()
        if self.process is not None:
            self.process.wait()
        self.process = None
        self.desktop = None

    def ready(self) -> None:
        """Makes sure that a process is there that has not opened too many workbooks."""
        alive = self.process is not None and self.process.poll() is None
        if not alive or self.desktop is None or self.opened >= WORKBOOKS_PER_PROCESS:
            self.start()


def write_settings(profile: str) -> None:
    """Writes the settings into a new profile, where soffice reads them at its start."""
    folder = os.path.join(profile, "user")  # noqa: PTH118
    os.makedirs(folder)  # noqa: PTH103
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
    """Opens a workbook: by one filter only, without macros, without updating links."""
    document = office.desktop.loadComponentFromURL(
        f"file://{path}",
        "_blank",
        0,
        (
            property_value("Hidden", True),
            property_value("ReadOnly", False),
            property_value("FilterName", FILTER),
            property_value("MacroExecutionMode", 0),
            property_value("UpdateDocMode", 0),
        ),
    )
    office.opened += 1
    if document is None:
        raise CannotComputeError("LibreOffice cannot open the workbook")
    return document


def column_name(column: int) -> str:
    """Letters of a 1-based column."""
    name = ""
    while column:
        column, digit = divmod(column - 1, 26)
        name = chr(65 + digit) + name
    return name


Place = tuple[int, int]
"""Number of a range, and of a cell in it, row by row."""


class Reading:
    """Reads values out of an open document."""

    def __init__(self, document: Any, ranges: list[tuple[str, int, int, int, int]]) -> None:
        self.sheets = document.Sheets
        self.ranges = ranges
        self.helper: Any = None

    def values(self) -> list[list[object]]:
        """The values of each range, row by row."""
        lists = [self.raw(*asked) for asked in self.ranges]
        empty = [
            (index, position)
            for index, flat in enumerate(lists)
            for position, value in enumerate(flat)
            if value is None
        ]
        for place, number in zip(empty, self.ask("ERRORTYPE", empty), strict=True):
            lists[place[0]][place[1]] = error_of(number)
        ones = [
            (index, position)
            for index, flat in enumerate(lists)
            for position, value in enumerate(flat)
            if isinstance(value, float) and value in (0.0, 1.0)
        ]
        for place, logical in zip(ones, self.ask("ISLOGICAL", ones), strict=True):
            if logical == 1.0:
                lists[place[0]][place[1]] = bool(lists[place[0]][place[1]])
        return lists

    def raw(self, name: str, top: int, left: int, bottom: int, right: int) -> list[object]:
        """What LibreOffice gives in one call: numbers and texts, None for an error."""
        if not self.sheets.hasByName(name):
            raise CannotComputeError(f"LibreOffice finds no sheet {name!r}")
        cells = self.sheets.getByName(name).getCellRangeByPosition(
            left - 1, top - 1, right - 1, bottom - 1
        )
        return [value for row in cells.getDataArray() for value in row]

    def ask(self, function: str, places: list[Place]) -> list[object]:
        """What a function says of each of some cells, by formulas on a sheet of our own.

        Asking the cells one by one takes a round trip each; this takes three in all.
        """
        if not places:
            return []
        if self.helper is None:
            free = "judge"
            while self.sheets.hasByName(free):
                free += "_"
            self.sheets.insertNewByName(free, self.sheets.getCount())
            self.helper = self.sheets.getByName(free)
        formulas = tuple((f"={function}({self.address(place)})",) for place in places)
        said: list[object] = []
        for start in range(0, len(formulas), ROWS_AT_ONCE):
            part = formulas[start : start + ROWS_AT_ONCE]
            target = self.helper.getCellRangeByPosition(0, 0, 0, len(part) - 1)
            target.setFormulaArray(part)
            said.extend(row[0] for row in target.getDataArray())
        return said

    def address(self, place: Place) -> str:
        """A cell as it stands in a formula that is set over UNO."""
        name, top, left, _, right = self.ranges[place[0]]
        row, column = divmod(place[1], right - left + 1)
        sheet = "$'" + name.replace("'", "''") + "'"
        return f"{sheet}.{column_name(left + column)}{top + row}"


ROWS_AT_ONCE = 100_000


def error_of(number: object) -> dict[str, str]:
    """An error number of LibreOffice as it goes into an answer."""
    if not isinstance(number, float):
        return {"x": "LibreOffice gives no value"}
    code = int(number)
    if code in EXCEL_ERRORS:
        return {"e": EXCEL_ERRORS[code]}
    return {"x": f"LibreOffice cannot compute it (Err:{code}, {OTHER_ERRORS.get(code, 'other')})"}


def compute(
    office: Office, workbook: bytes, ranges: list[tuple[str, int, int, int, int]]
) -> list[list[object]]:
    """Opens, computes, reads and closes one workbook."""
    path = os.path.join(office.home, "book.xlsx")  # noqa: PTH118
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(workbook)
    document = load(office, path)
    try:
        return Reading(document, ranges).values()
    finally:
        document.close(True)
        os.remove(path)  # noqa: PTH107


def compute_in_time(office: Office, request: dict[str, Any], workbook: bytes) -> Answer:
    """Computes within the time asked for; soffice is killed where it takes longer."""
    names = request.get("names") or {}
    date_1904 = bool(request.get("date_1904"))

    def rewrite(formula: str, is_array: bool) -> str:
        plain = as_plain_formula(formula, is_array=is_array)
        return for_libreoffice(plain, date_1904=date_1904)

    ready = prepare(workbook, names, rewrite=rewrite, trigger=TRIGGER)
    ranges = [tuple(asked) for asked in request["ranges"]]
    timeout_s = float(request["timeout_s"])
    office.ready()
    late = threading.Event()

    def end() -> None:
        late.set()
        office.kill()

    timer = threading.Timer(timeout_s, end)
    timer.start()
    started = time.perf_counter()
    try:
        values = compute(office, ready, ranges)
    except CannotComputeError:
        raise
    except Exception as error:
        office.stop()
        if late.is_set():
            return {"error": f"took longer than {timeout_s:g} s", "timed_out": True}
        raise CannotComputeError(f"LibreOffice fell over ({type(error).__name__})") from error
    finally:
        timer.cancel()
    return {"values": values, "seconds": time.perf_counter() - started}


def main() -> None:
    """Serves until the sandbox closes standard input."""
    office = Office()

    def handle(request: Request, workbook: bytes) -> Answer:
        if request["op"] == "describe":
            office.ready()
            return {"versions": {"libreoffice": office.version}}
        return compute_in_time(office, request, workbook)

    try:
        serve(handle)
    finally:
        office.stop()


if __name__ == "__main__":
    main()
