"""Checks that clicks on desktops hit and typed text arrives, and measures the cost of desktops.

``--clicks`` clicks twenty random cells on each of three workbooks, reading the tree again before
each click, and types four strings; ``--start ROUNDS`` measures starts, trees, screenshots and
memory; ``--episodes N`` opens, uses and closes N desktops one after the other, and then two at a
time, and searches for leftovers.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from openpyxl import Workbook, load_workbook
from openpyxl.worksheet.worksheet import Worksheet

from benchmarks.command_line import run_command
from judge.desktop.contract import HOME, Action, DesktopOptions, DesktopTask, Element
from judge.desktop.sandboxed import SandboxDesktop, SandboxDesktopHost
from judge.sandbox.contract import Sandbox
from judge.sandbox.select import open_sandbox

CLICKS = 20
TEXTS = ("a<b>c", "xéü中文€", '=IF(B2<C2,"<",">=")', "(1;2) [3] {4} ~ ^ \\ | @ # ? !")
PATH = f"{HOME}/Book.xlsx"


def plain() -> Workbook:
    """Makes a workbook with twelve rows of five columns."""
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    for row in range(1, 13):
        sheet.append([f"r{row}c{column}" for column in range(1, 6)])
    return book


def hidden_and_frozen() -> Workbook:
    """Makes a workbook with hidden and merged cells, frozen panes and a zoom of 130 %."""
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    for row in range(1, 81):
        sheet.append([row * column for column in range(1, 13)])
    for row in (3, 4, 5, 11, 20, 21):
        sheet.row_dimensions[row].hidden = True
    for column in ("C", "G"):
        sheet.column_dimensions[column].hidden = True
    sheet.column_dimensions["E"].width = 30
    sheet.row_dimensions[9].height = 40
    sheet.freeze_panes = "B3"
    sheet.sheet_view.zoomScale = 130
    sheet.merge_cells("D7:F8")
    sheet.merge_cells("B13:B15")
    return book


def large() -> Workbook:
    """Makes a workbook with 22,000 cells."""
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    for row in range(1, 2001):
        sheet.append([row + column / 100 for column in range(1, 12)])
    return book


WORKBOOKS = {
    "plain": plain,
    "hidden rows, frozen panes, zoom 130, merged": hidden_and_frozen,
    "22,000 cells": large,
}


def as_bytes(book: Workbook) -> bytes:
    """Returns the bytes of a workbook."""
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def opened(
    host: SandboxDesktopHost, data: bytes, options: DesktopOptions | None = None
) -> SandboxDesktop:
    """Opens a desktop with a workbook."""
    return host.open(DesktopTask({PATH: data}, PATH, PATH), options or DesktopOptions())


def name_box(elements: Sequence[Element]) -> str:
    """Returns the text in the name box."""
    texts = [element.text for element in elements if element.role == "text" and element.text]
    return texts[0] if texts else ""


def click_cells(desktop: SandboxDesktop, pick: random.Random) -> int:
    """Counts the clicks after which the cursor is on the clicked cell."""
    hit = 0
    for _ in range(CLICKS):
        elements = desktop.observe(screenshot=False).elements or ()
        cells = [element for element in elements if element.role == "table-cell" and element.centre]
        cell = pick.choice(cells)
        assert cell.centre is not None
        x, y = cell.centre
        desktop.perform(Action(call={"action_type": "CLICK", "x": x, "y": y}))
        address = name_box(desktop.observe(screenshot=False).elements or ())
        if address.partition(":")[0] == cell.name or within_merged(address, cell.name):
            hit += 1
        else:
            print(f"    {cell.name} at ({x}, {y}): the cursor is at {address}")
    return hit


def within_merged(shown: str, clicked: str) -> bool:
    """Returns whether a cell of the second workbook is merged, and so selected as a whole."""
    merged = {"D7": ("D7", "E7", "F7", "D8", "E8", "F8"), "B13": ("B13", "B14", "B15")}
    return clicked in merged.get(shown.partition(":")[0], ())


def clicks(host: SandboxDesktopHost) -> None:
    """Runs the clicks and the typing."""
    for title, make in WORKBOOKS.items():
        with opened(host, as_bytes(make())) as desktop:
            elements = desktop.observe(screenshot=False).elements or ()
            cells = sum(element.role == "table-cell" for element in elements)
            hit = click_cells(desktop, random.Random(20))
            print(f"{title}: {hit} of {CLICKS} cells clicked are selected ({cells} in the tree)")
    with opened(host, as_bytes(plain())) as desktop:
        code = ["import pyautogui", "pyautogui.hotkey('ctrl', 'home')", "pyautogui.press('right')"]
        code += [f"pyautogui.write({text!r})\npyautogui.press('enter')" for text in TEXTS]
        outcome = desktop.perform(Action(code="\n".join(code)))
        data = desktop.save().data
        assert data is not None, outcome
        sheet = load_workbook(io.BytesIO(data)).active
        assert isinstance(sheet, Worksheet)
        for row, text in enumerate(TEXTS, start=1):
            value = sheet.cell(row, 2).value
            print(f"typed {text!r}: {'unchanged' if value == text else f'became {value!r}'}")


def start(host: SandboxDesktopHost, rounds: int) -> None:
    """Measures starts and readings of desktops."""
    ready, trees, pictures, marks, steps, memory = [], [], [], [], [], []
    for data in [as_bytes(make()) for make in WORKBOOKS.values()] * rounds:
        with opened(host, data) as desktop:
            ready.append(desktop.info.ready_s)
            for _ in range(5):
                shown = desktop.observe()
                trees.append(shown.tree_s)
                pictures.append(shown.screenshot_s)
            marks.append(desktop.observe(marks=True).screenshot_s)
            typing = Action(code="pyautogui.write('1')\npyautogui.press('enter')")
            steps += [desktop.perform(typing).seconds for _ in range(5)]
            memory.append(desktop.memory_bytes() / 1e6)
    load = os.getloadavg()[0]
    print(f"load {load:.1f} on {os.cpu_count()} processors; {len(ready)} starts; medians (largest)")
    for title, values, unit in (
        ("stable after", ready, "s"), ("tree", trees, "s"), ("screenshot", pictures, "s"),
        ("screenshot with marks", marks, "s"), ("action until settled", steps, "s"),
        ("memory", memory, "MB"),
    ):  # fmt: skip
        digits = 0 if unit == "MB" else 2
        middle, largest = statistics.median(values), max(values)
        print(f"{title}: {middle:.{digits}f} {unit} ({largest:.{digits}f})")


def episode(host: SandboxDesktopHost, number: int) -> bool:
    """Works on one desktop; returns whether the file has the typed text."""
    with opened(host, as_bytes(plain())) as desktop:
        elements = desktop.observe().elements or ()
        cell = next(element for element in elements if element.name == "G2")
        assert cell.centre is not None
        x, y = cell.centre
        code = f"pyautogui.click({x}, {y})\npyautogui.write('n{number}')\npyautogui.press('enter')"
        desktop.perform(Action(code=code))
        data = desktop.save().data
        if data is None:
            return False
        sheet = load_workbook(io.BytesIO(data)).active
        assert isinstance(sheet, Worksheet)
        return bool(sheet["G2"].value == f"n{number}")


def left_behind() -> dict[str, int]:
    """Counts what desktops could leave behind: child processes, their files, open files."""
    gc.collect()  # connections that are no longer used
    children, mine = 0, os.getpid()
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    for pid in parents:
        above = pid
        while above in parents and above != mine:
            above = parents[above]
        children += above == mine and pid != mine
    return {
        "processes": children,
        "open files": len(list(Path("/proc/self/fd").iterdir())),
        "files in the temporary folder": len(list(Path(tempfile.gettempdir()).iterdir())),
        "sockets of X": len(list(Path("/tmp/.X11-unix").glob("*"))),
    }


def episodes(host: SandboxDesktopHost, count: int) -> None:
    """Runs episodes one after the other, then two at a time."""
    episode(host, 0)  # the first episode leaves modules and threads in memory
    before = left_behind()
    started = time.monotonic()
    right = sum(episode(host, number) for number in range(1, count + 1))
    seconds = (time.monotonic() - started) / count
    after = left_behind()
    print(f"{right} of {count} episodes right, {seconds:.1f} s each; before -> after:")
    for name, value in before.items():
        print(f"  {name}: {value} -> {after[name]}")
    outcomes: dict[int, bool] = {}

    def run(number: int) -> None:
        outcomes[number] = episode(host, number)

    threads = [threading.Thread(target=run, args=(number,)) for number in (101, 102)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"two at once: {sum(outcomes.values())} of 2 right")


def main() -> None:
    """Runs the requested measurements."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sandbox", default="auto", help="auto, bubblewrap or docker")
    parser.add_argument("--clicks", action="store_true")
    parser.add_argument("--start", type=int, metavar="ROUNDS", default=0)
    parser.add_argument("--episodes", type=int, metavar="N", default=0)
    options = parser.parse_args()
    if not (options.clicks or options.start or options.episodes):
        parser.error("one of --clicks, --start and --episodes is needed")
    sandbox: Sandbox = open_sandbox(options.sandbox, jobs=2)
    try:
        host = SandboxDesktopHost(sandbox)
        print(f"{sandbox.info.backend}", file=sys.stderr)
        if options.clicks:
            clicks(host)
        if options.start:
            start(host, options.start)
        if options.episodes:
            episodes(host, options.episodes)
    finally:
        sandbox.close()


if __name__ == "__main__":
    run_command(main)
