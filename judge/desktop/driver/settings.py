"""How a desktop is started: the commands, the environment and the settings of the office."""

from __future__ import annotations

import os
import re
import subprocess
from xml.sax.saxutils import escape, quoteattr

HOME = "/home/user"
RUNTIME = "/tmp/desktop"  # noqa: S108 - inside the sandbox, on its own tmpfs
OFFICE = "/usr/lib/libreoffice/program/soffice.bin"
RESTART_EXIT_CODE = 81
"""Exit code by which the office asks to be restarted, as it may do once with a new profile."""

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
"""Possible column separators of text files, by the suffix of the file name."""
_VERSION = re.compile(r"\d+(\.\d+)+")
_SAYS_S = 20.0

_OFFICE = "/org.openoffice.Office"
_FAR_AHEAD = "4000000000"
_ALWAYS = (
    (f"{_OFFICE}.Recovery/AutoSave", "Enabled", "false"),
    (f"{_OFFICE}.Common/Misc", "UseSystemFileDialog", "false"),
    (f"{_OFFICE}.Calc/Formula/Load", "OOXMLRecalcMode", "0"),
)
"""Settings that always apply: nothing is saved automatically, and formulas are computed."""

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
"""Settings that suppress questions and announcements."""


def write_profile(*, dialogs: bool) -> None:
    """Writes the settings of a fresh profile.

    Args:
        dialogs: whether the office may show its questions and announcements, as it does by default.
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
    """Returns the command that starts the screen.

    Args:
        width: its width in pixels.
        height: its height in pixels.
        ready: descriptor to which it writes its number when it is ready.
        repeats: whether a held key repeats. On a busy machine, a key that is pressed and released
            may count as held for a second.
    """
    return [
        "Xvfb", "-displayfd", str(ready), "-screen", "0", f"{width}x{height}x24", "-dpi", "96",
        "-nolisten", "tcp", "-noreset", "-extension", "GLX", *(() if repeats else ("-r",)),
    ]  # fmt: skip


def office_command(path: str) -> list[str]:
    """Returns the command that starts the spreadsheet program with a file open."""
    return [OFFICE, "--norestore", "--nologo", "--nofirststartwizard", "--calc", path]


def as_table(path: str, content: bytes) -> list[str]:
    """Returns options for opening a text file without a dialog; none for other files.

    Args:
        path: the path of the file.
        content: the content of the file; its first line shows how columns are separated.
    """
    kind = os.path.splitext(path)[1].lower()
    if kind not in _TEXT_TABLES:
        return []
    first = content.partition(b"\n")[0]
    separator = max(_TEXT_TABLES[kind], key=first.count)  # the first of equal ones
    # Quotation mark, UTF-8, first row, column types, language, quotes only where needed.
    return [f"--infilter=CSV:{ord(separator)},34,76,1,,0,false"]


def office_version() -> str:
    """Returns the version that the office reports; empty if it reports none."""
    command = [OFFICE, "--version"]
    try:
        done = subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=_SAYS_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    version = _VERSION.search(done.stdout)
    return "" if version is None else version[0]
