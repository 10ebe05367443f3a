"""What a desktop is started with: commands, environment, and the office's settings."""

from __future__ import annotations

import os
import re
import subprocess
from xml.sax.saxutils import escape, quoteattr

HOME = "/home/user"
RUNTIME = "/tmp/desktop"  # noqa: S108 - inside, on a tmpfs of its own
OFFICE = "/usr/lib/libreoffice/program/soffice.bin"
RESTART_EXIT_CODE = 81
"""The office asks to be started again, as it may once with a new profile."""

ENVIRONMENT = {
    "GDK_BACKEND": "x11",
    "GIO_USE_VFS": "local",
    "GSETTINGS_BACKEND": "memory",
    "GTK_OVERLAY_SCROLLING": "0",
    "GTK_THEME": "Adwaita",
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "NO_AT_BRIDGE": "0",
    "PATH": "/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "SAL_DISABLE_OPENCL": "1",
    "SAL_ENABLE_FILE_LOCKING": "1",
    "SAL_USE_VCLPLUGIN": "gtk3",
    "TZ": "UTC",
    "USER": "user",
    "XDG_RUNTIME_DIR": RUNTIME,
}

_TEXT_TABLES = {".csv": (b",", b";", b"\t"), ".tsv": (b"\t",), ".tab": (b"\t",)}
"""What may separate the columns of files of text, by the ending of their names."""
_VERSION = re.compile(r"\d+(\.\d+)+")
_SAYS_S = 20.0

_OFFICE = "/org.openoffice.Office"
_FAR_AHEAD = "4000000000"
_ALWAYS = (
    (f"{_OFFICE}.Recovery/AutoSave", "Enabled", "false"),
    (f"{_OFFICE}.Common/Misc", "UseSystemFileDialog", "false"),
    (f"{_OFFICE}.Calc/Formula/Load", "OOXMLRecalcMode", "0"),
)
"""Whatever is corrected: only those who work there save anything, and formulas are computed."""

_WITHOUT_DIALOGS = (
    (f"{_OFFICE}.Common/Misc", "FirstRun", "false"),
    (f"{_OFFICE}.Common/Misc", "ShowTipOfTheDay", "false"),
    (f"{_OFFICE}.Common/Misc", "CrashReport", "false"),
    (f"{_OFFICE}.Common/Misc", "CollectUsageInformation", "false"),
    (f"{_OFFICE}.Common/Save/Document", "WarnAlienFormat", "false"),
    (f"{_OFFICE}.Common/Save/Document", "AutoSave", "false"),
    (f"{_OFFICE}.Recovery/RecoveryInfo", "SessionData", "false"),
    ("/org.openoffice.Setup/Office", "ooSetupInstCompleted", "true"),
    ("/org.openoffice.Setup/Product", "ooSetupLastVersion", "99.9"),
    ("/org.openoffice.Setup/Product", "LastTimeGetInvolvedShown", _FAR_AHEAD),
    ("/org.openoffice.Setup/Product", "LastTimeDonateShown", _FAR_AHEAD),
    ("/org.openoffice.Setup/Product", "WhatsNew", "false"),
    (
        f"{_OFFICE}.Jobs/Jobs/org.openoffice.Office.Jobs:Job['UpdateCheck']/Arguments",
        "AutoCheckEnabled",
        "false",
    ),
)
"""So that nothing is asked or announced."""


def write_profile(*, dialogs: bool) -> None:
    """Writes the settings of a fresh profile.

    Args:
        dialogs: whether the office may ask and announce what it wants, as it does by itself.
    """
    folder = f"{HOME}/.config/libreoffice/4/user"
    os.makedirs(folder, exist_ok=True)
    items = "".join(
        f"<item oor:path={quoteattr(path)}>"
        f'<prop oor:name={quoteattr(name)} oor:op="fuse"><value>{escape(value)}</value></prop>'
        "</item>\n"
        for path, name, value in (*_ALWAYS, *(() if dialogs else _WITHOUT_DIALOGS))
    )
    with open(f"{folder}/registrymodifications.xcu", "w", encoding="utf-8") as file:
        file.write(
            '<?xml version="1.0" encoding="UTF-8"?>\n<oor:items '
            'xmlns:oor="http://openoffice.org/2001/registry" '
            'xmlns:xs="http://www.w3.org/2001/XMLSchema" '
            'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n'
            f"{items}</oor:items>\n"
        )


def screen_command(width: int, height: int, ready: int, *, repeats: bool) -> list[str]:
    """Starts the screen.

    Args:
        width: pixels.
        height: pixels.
        ready: descriptor to which it writes its number once it answers.
        repeats: whether a key that is held repeats. On a busy machine, a key that is pressed and
            released may be held for a second.
    """
    return [
        "Xvfb", "-displayfd", str(ready), "-screen", "0", f"{width}x{height}x24", "-dpi", "96",
        "-nolisten", "tcp", "-noreset", "-extension", "GLX", *(() if repeats else ("-r",)),
    ]  # fmt: skip


def office_command(path: str) -> list[str]:
    """Starts the spreadsheet program with a file open."""
    return [OFFICE, "--norestore", "--nologo", "--nofirststartwizard", "--calc", path]


def as_table(path: str, content: bytes) -> list[str]:
    """Options for opening a file of text, so that the office does not ask; none for other files.

    Args:
        path: of the file.
        content: of the file, of which the first line says what separates columns.
    """
    kind = os.path.splitext(path)[1].lower()
    if kind not in _TEXT_TABLES:
        return []
    first = content.partition(b"\n")[0]
    separator = max(_TEXT_TABLES[kind], key=first.count)  # of equal ones, the first
    # Quotation mark, UTF-8, first row, kinds of columns, language, no quotes but where needed.
    return [f"--infilter=CSV:{ord(separator)},34,76,1,,0,false"]


def office_version() -> str:
    """The office's version, as it says; empty if it says none."""
    command = [OFFICE, "--version"]
    try:
        done = subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=_SAYS_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _VERSION.search(done.stdout)
    return "" if found is None else found[0]
