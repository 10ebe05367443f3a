"""Makes the sample suites in ``dataset``, with the same bytes each time.

    python scripts/make_sample.py [--out FOLDER]

Golds are computed here, in plain Python, from the same data as the inputs. They do not come from
the solutions in ``submissions.jsonl`` or the replies in ``answers.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from sample.model import CASES
from sample.tasks import TASKS
from sample_checklist import budget
from sample_desktop.tasks import TASKS as DESKTOP_TASKS
from sample_rules import chart, pivot, style
from sample_typed.questions import QUESTIONS, TABLE

RULE_TASKS = (chart.TASK, style.TASK, pivot.TASK)
REPOSITORY = Path(__file__).resolve().parent.parent


def make(folder: Path) -> int:
    """Writes the suite and returns how many bytes it has."""
    workbooks = folder / "spreadsheet"
    if workbooks.exists():
        shutil.rmtree(workbooks)
    size = 0
    for task in TASKS:
        place = workbooks / str(task.id)
        place.mkdir(parents=True)
        for case in CASES:
            for role, book in zip(("input", "answer"), task.build(case), strict=True):
                size += (place / f"{case}_{task.id}_{role}.xlsx").write_bytes(book.to_bytes())
    records = json.dumps([task.record() for task in TASKS], indent=2, ensure_ascii=False)
    size += (folder / "dataset.json").write_bytes(f"{records}\n".encode())
    lines = [
        json.dumps(record, ensure_ascii=False) for task in TASKS for record in task.submissions()
    ]
    size += (folder / "submissions.jsonl").write_bytes("".join(f"{x}\n" for x in lines).encode())
    return size


def make_typed(folder: Path) -> int:
    """Writes the suite of typed answers and returns how many bytes it has."""
    files = folder / "files"
    if files.exists():
        shutil.rmtree(files)
    size = 0
    for question in QUESTIONS:
        place = files / question.id
        place.mkdir(parents=True)
        for name, data in question.files.items():
            size += (place / name).write_bytes(data)
    document = {
        "format": "sheetjudge",
        "version": 1,
        "tables": [TABLE],
        "tasks": [each.record() for each in QUESTIONS],
    }
    text = json.dumps(document, indent=2, ensure_ascii=False)
    size += (folder / "suite.json").write_bytes(f"{text}\n".encode())
    lines = [json.dumps(line, ensure_ascii=False) for each in QUESTIONS for line in each.lines()]
    size += (folder / "answers.jsonl").write_bytes("".join(f"{x}\n" for x in lines).encode())
    return size


def make_rules(folder: Path) -> int:
    """Writes the suite that is judged by rules and returns how many bytes it has."""
    for name in ("files", "finished"):
        if (folder / name).exists():
            shutil.rmtree(folder / name)
    finished = folder / "finished"
    finished.mkdir(parents=True)
    size, expected = 0, {}
    for task in RULE_TASKS:
        place = folder / "files" / task.id
        place.mkdir(parents=True)
        for name, data in task.files().items():
            size += (place / name).write_bytes(data)
        made = {case: task.finish(case) for case in CASES}
        for case, each in made.items():
            size += (finished / f"{case}_{task.id}_output.xlsx").write_bytes(each.data)
        expected[task.id] = [each.expected for each in made.values()]
    document = {
        "format": "sheetjudge",
        "version": 1,
        "tasks": [task.record() for task in RULE_TASKS],
    }
    for name, content in (("suite.json", document), ("finished.json", expected)):
        text = json.dumps(content, indent=2, ensure_ascii=False)
        size += (folder / name).write_bytes(f"{text}\n".encode())
    lines = [json.dumps(line, ensure_ascii=False) for task in RULE_TASKS for line in task.lines()]
    size += (folder / "submissions.jsonl").write_bytes("".join(f"{x}\n" for x in lines).encode())
    return size


def make_checklist(folder: Path) -> int:
    """Writes the suite that is judged by a checklist and returns how many bytes it has."""
    place = folder / "files" / budget.ID
    if place.exists():
        shutil.rmtree(place)
    place.mkdir(parents=True)
    size = 0
    for role, finished in (("input", False), ("answer", True)):
        data = budget.book(finished=finished)
        size += (place / f"1_{budget.ID}_{role}.xlsx").write_bytes(data)
    document = {"format": "sheetjudge", "version": 1, "tasks": [budget.record()]}
    text = json.dumps(document, indent=2, ensure_ascii=False)
    size += (folder / "suite.json").write_bytes(f"{text}\n".encode())
    lines = "".join(f"{line}\n" for line in budget.lines())
    return size + (folder / "submissions.jsonl").write_bytes(lines.encode())


def make_desktop(folder: Path) -> int:
    """Writes the suite for desktops and returns how many bytes it has.

    Its step lists are written by hand and are not changed.
    """
    if (folder / "files").exists():
        shutil.rmtree(folder / "files")
    size = 0
    for task in DESKTOP_TASKS:
        place = folder / "files" / task.id
        place.mkdir(parents=True)
        for name, data in task.files().items():
            size += (place / name).write_bytes(data)
    document = {
        "format": "sheetjudge",
        "version": 1,
        "tasks": [task.record() for task in DESKTOP_TASKS],
    }
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return size + (folder / "suite.json").write_bytes(f"{text}\n".encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "dataset")
    out: Path = parser.parse_args().out
    made = {
        "sample": make,
        "sample-typed": make_typed,
        "sample-rules": make_rules,
        "sample-checklist": make_checklist,
        "sample-desktop": make_desktop,
    }
    for name, write in made.items():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{folder}: {write(folder) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
