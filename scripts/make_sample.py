"""Makes the sample suite in ``dataset/sample``; the same bytes each time.

    python scripts/make_sample.py [--out FOLDER]

Golds are computed here, in plain Python, from the data that the inputs are made of. They do not
come from any of the solutions in ``submissions.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from sample.model import CASES
from sample.tasks import TASKS

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "dataset" / "sample")
    folder: Path = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    size = make(folder)
    print(f"{folder}: {len(TASKS)} tasks of {len(CASES)} cases, {size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
