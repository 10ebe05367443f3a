"""Compares what LibreOffice, openpyxl and the judge read from workbooks in unusual forms.

    .venv/bin/python benchmarks/package_forms.py                  # writes docs/package-forms.md
    .venv/bin/python benchmarks/package_forms.py --record         # LibreOffice and openpyxl anew
    .venv/bin/python benchmarks/package_forms.py --record --before TREE   # and an older judge
    .venv/bin/python benchmarks/package_forms.py --record --new   # only forms not recorded yet

``--record`` needs LibreOffice in the sandbox (``judge sandbox build --office``); ``TREE`` is a
clone of an older version, whose reader runs in a separate process.
"""

from __future__ import annotations

import argparse
import base64
import datetime as dt
import io
import json
import re
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from benchmarks.command_line import existing, run_command

RECORD = Path(__file__).parents[1] / "tests/unit/workbook/package_forms.json"
PAGE = Path(__file__).parents[1] / "docs/package-forms.md"
UNREADABLE = "unreadable"

Reading = dict[str, dict[str, str]] | str
"""Sheet -> cell -> its formula, or its type and value; :data:`UNREADABLE` if there are none."""

_READ = """
import base64, importlib.util, json, sys
spec = importlib.util.spec_from_file_location("package_forms", {here!r})
forms = importlib.util.module_from_spec(spec)
spec.loader.exec_module(forms)
data = json.load(sys.stdin)
print(json.dumps({{name: forms.ours(base64.b64decode(text)) for name, text in data.items()}}))
"""


def said(value: object) -> str:
    """Formats type and value of a cell, so that equal values of two programs are equal."""
    if isinstance(value, bool):
        return f"truth {value}"
    if isinstance(value, int | float):
        return f"number {float(value)!r}"
    if isinstance(value, dt.datetime):
        return f"date {value.isoformat().removesuffix('T00:00:00')}"
    if isinstance(value, dt.date | dt.time):
        return f"date {value.isoformat()}"
    if isinstance(value, dt.timedelta):
        return f"duration {value.total_seconds()}"
    return f"text {value}"


def ours(data: bytes) -> Reading:
    """Reads a workbook with the judge."""
    from judge.errors import WorkbookError  # noqa: PLC0415 - maybe of another version
    from judge.workbook.address import cell_name  # noqa: PLC0415
    from judge.workbook.cell import CellRange, ErrorValue  # noqa: PLC0415
    from judge.workbook.reader import open_workbook  # noqa: PLC0415

    sheets: dict[str, dict[str, str]] = {}
    try:
        workbook = open_workbook(data)
        for sheet in workbook.sheet_names:
            cells = sheets[sheet] = {}
            for (row, column), cell in workbook.cells(CellRange(sheet, 1, 1, 50, 50)).items():
                if cell.formula is not None:
                    cells[cell_name(row, column)] = f"formula {cell.formula}"
                elif cell.value is not None:
                    value = cell.value
                    cells[cell_name(row, column)] = (
                        f"error {value.code}" if isinstance(value, ErrorValue) else said(value)
                    )
    except WorkbookError:
        return UNREADABLE
    except Exception as error:  # noqa: BLE001 - a fault of an older version
        return f"a crash: {type(error).__name__}"
    return sheets


def openpyxls(data: bytes | None) -> Reading:
    """Reads a workbook with openpyxl."""
    import openpyxl  # noqa: PLC0415

    if data is None:
        return UNREADABLE
    sheets: dict[str, dict[str, str]] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            workbook = openpyxl.load_workbook(io.BytesIO(data))
        for sheet in workbook.worksheets:
            cells = sheets[sheet.title] = {}
            # Only existing rows: openpyxl would create cells in a million rows above the last one.
            for row in sorted({row for row, _ in sheet._cells if row > 0}):  # noqa: SLF001
                for cell in next(sheet.iter_rows(min_row=row, max_row=row)):
                    if cell.value is None or cell.value == "":
                        continue
                    if cell.data_type == "f":
                        cells[cell.coordinate] = _formula(cell.value)
                    elif cell.data_type == "e":
                        cells[cell.coordinate] = f"error {cell.value}"
                    else:
                        cells[cell.coordinate] = said(cell.value)
    except Exception:  # noqa: BLE001 - it raises whatever its parser raises
        return UNREADABLE
    return sheets


def _formula(value: Any) -> str:
    text = value if isinstance(value, str) else str(getattr(value, "text", value))
    # LibreOffice writes truth values and errors as formulas when it saves them.
    if text in {"=TRUE()", "=FALSE()"}:
        return f"truth {text == '=TRUE()'}"
    return f"error {text[1:]}" if text.startswith("=#") else f"formula {text}"


def record(before: Path | None, recorded: Collection[str] = ()) -> dict[str, dict[str, Reading]]:
    """Reads every form with every program, except those already recorded."""
    from benchmarks.office_save import save_with_office  # noqa: PLC0415
    from tests.unit.workbook.package_forms import FORMS  # noqa: PLC0415

    packages = {name: build() for name, build in FORMS.items() if name not in recorded}
    saved = dict(zip(packages, save_with_office(list(packages.values())), strict=True))
    if not any(saved.values()):
        raise SystemExit("LibreOffice saved nothing: is it there? (judge sandbox build --office)")
    readings: dict[str, dict[str, Reading]] = {
        name: {"libreoffice": openpyxls(unescaped(saved[name])), "openpyxl": openpyxls(data)}
        for name, data in packages.items()
    }
    if before is not None:
        for name, reading in read_by(before, packages).items():
            readings[name]["before"] = reading
    return readings


def unescaped(data: bytes | None) -> bytes | None:
    """Changes a saved workbook so that openpyxl reads the same strings as the program has.

    openpyxl does not decode ``_x0042_``, and removes every ``x005F_``. Without this change,
    characters that LibreOffice escaped when it saved would look like characters that it read.
    """
    if data is None:
        return None
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "xl/sharedStrings.xml":
                text = _ESCAPE.sub(r"&#x\1;", content.decode())
                content = text.replace("x005F_", "x005x005F_F_").encode()
            new.writestr(name, content)
    return target.getvalue()


_ESCAPE = re.compile("_x((?!00[01](?![9aAdD])|[dD][89a-fA-F]|[fF]{3}[eEfF])[0-9A-Fa-f]{4})_")
"""Decodes an escaped character that XML can contain."""


def read_by(tree: Path, packages: Mapping[str, bytes]) -> dict[str, Reading]:
    """Reads a workbook with the reader of another version."""
    program = _READ.format(here=str(Path(__file__).resolve()))
    request = json.dumps({name: base64.b64encode(data).decode() for name, data in packages.items()})
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=request, capture_output=True, text=True, check=True, cwd=tree,
    )  # fmt: skip
    answer: dict[str, Reading] = json.loads(done.stdout)
    return answer


def main() -> None:
    """Writes the page with the table of all forms."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--before", type=existing)
    parser.add_argument("--new", action="store_true")
    options = parser.parse_args()
    if options.record:
        recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        readings = record(options.before, recorded if options.new else ())
        for name, reading in readings.items():
            if "before" not in reading and "before" in recorded.get(name, {}):
                reading["before"] = recorded[name]["before"]
        if options.new:
            readings |= recorded
        RECORD.write_text(json.dumps(readings, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    PAGE.write_text(page(json.loads(RECORD.read_text())))


_HEAD = """# Workbooks in unusual forms

How LibreOffice, openpyxl and the judge read {count} workbooks, each of which is the plain
workbook with a single change. "As plain" means that the change has no effect; other entries say
which cells and sheets are read differently. "Before" is the judge at c3621a1, which read XML by
local names. The reasons are in [decision 0033](decisions/0033-namespaces-and-forms.md).

If both programs read a form alike, the judge reads it in the same way, or the workbook is
unreadable (IW). If they differ, it is unreadable, with these exceptions:

| form | read as by | reason |
|---|---|---|
{exceptions}

Pivot tables are not in this table: LibreOffice computes every pivot table when it opens a file.
Excel does so only if the cache says `refreshOnLoad`, and otherwise shows the stored cells. The
judge follows Excel: cells of an output are not calculated (NC) in a table that Excel refreshes;
in any other table the stored values count, although LibreOffice may show different ones.

Written by `.venv/bin/python benchmarks/package_forms.py`. With `--record`, LibreOffice (from
the sandbox, `judge sandbox build --office`) and openpyxl read all forms again; an older judge
does so as well with `--record --before TREE`. `--record --new` skips recorded forms.

"""


def page(readings: Mapping[str, Mapping[str, Reading]]) -> str:
    """Makes the page of the documents."""
    from tests.unit.workbook.package_forms import (  # noqa: PLC0415
        AS_EXCEL,
        AS_LIBREOFFICE,
        AS_OPENPYXL,
        WITHOUT_THE_SHEET,
    )

    exceptions = [
        f"| {name} | {program} | {reason} |"
        for program, names in (
            ("LibreOffice", AS_LIBREOFFICE),
            ("openpyxl", AS_OPENPYXL),
            ("Excel", {name: reason for name, (*_, reason) in AS_EXCEL.items()}),
            ("LibreOffice, without the sheet", WITHOUT_THE_SHEET),
        )
        for name, reason in names.items()
    ]
    head = _HEAD.format(count=len(readings), exceptions="\n".join(exceptions))
    return head + table(readings) + "\n"


def table(readings: Mapping[str, Mapping[str, Reading]]) -> str:
    """Makes the rows of the table: form, LibreOffice, openpyxl, before, after."""
    from tests.unit.workbook.package_forms import FORMS  # noqa: PLC0415

    plain = readings["plain"]["openpyxl"]
    lines = ["| form | LibreOffice | openpyxl | before | now |", "|---|---|---|---|---|"]
    for name, reading in readings.items():
        now = ours(FORMS[name]())
        columns = [reading[who] for who in ("libreoffice", "openpyxl", "before")]
        lines.append(
            "| "
            + " | ".join([name, *(shown(reading, plain) for reading in (*columns, now))])
            + " |"
        )
    return "\n".join(lines)


def shown(reading: Reading, plain: Reading) -> str:
    """Returns what a reading has in addition to the reading of the plain workbook."""
    if isinstance(reading, str) or isinstance(plain, str):
        return str(reading)
    changes = []
    for sheet in plain.keys() | reading.keys():
        expected, cells = plain.get(sheet), reading.get(sheet)
        if cells is None or expected is None:
            changes.append(f"{'no' if cells is None else 'a'} sheet {sheet}")
            if cells is None:
                continue
        for cell in (expected or {}).keys() | cells.keys():
            if (expected or {}).get(cell) != cells.get(cell):
                address = cell if sheet == "Data" else f"{sheet}!{cell}"
                changes.append(f"{address} {cells.get(cell, 'blank').partition(' ')[2] or 'blank'}")
    changes.sort()
    text = ", ".join(changes[:3]) + (" …" if len(changes) > 3 else "")
    return (text.replace("|", "\\|").replace("\n", "↵").replace("\r", "↤") or "as plain")[:80]


if __name__ == "__main__":
    run_command(main)
