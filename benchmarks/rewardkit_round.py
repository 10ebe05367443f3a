"""Exports checklists to Harbor's rewardkit and imports them again: equal rewards, equal items.

    python -m benchmarks.rewardkit_round PYTHON

PYTHON is an interpreter (3.12 or newer) with the packages harbor-rewardkit 0.2.3 and openpyxl. Two
folders of criteria are used to judge twenty workspaces each, by rewardkit itself and by the judge:
one folder that the judge wrote from a checklist, and one written by hand with rewardkit's own
criteria. No model is used.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openpyxl import Workbook

from benchmarks.command_line import existing, run_command
from judge.api.comparing import compare_by_checklist
from judge.authoring.rewardkit import read_rewardkit, rewardkit_files

CHECKLIST: dict[str, Any] = {
    "groups": {"values": {"weight": 3}, "files": {"weight": 1}},
    "items": [
        {
            "id": "total",
            "group": "values",
            "points": 20,
            "kind": "cell",
            "file": "out.xlsx",
            "cell": "B2",
            "expected": 42,
            "tolerance": 0.5,
        },
        {
            "id": "table",
            "group": "values",
            "points": 10,
            "kind": "range",
            "file": "out.xlsx",
            "range": "A1:B2",
            "expected": [["name", "amount"], ["total", 42]],
        },
        {"id": "notes", "group": "files", "points": 2, "kind": "file", "file": "notes.txt"},
        {"id": "words", "group": "files", "kind": "text", "file": "notes.txt", "number": 42},
        {"id": "no-log", "group": "files", "kind": "file", "file": "log.txt", "exists": False},
    ],
}

BY_HAND = {
    "checks.py": """\
from rewardkit import criteria

criteria.xlsx_cell_equals("out.xlsx", "B2", 42, weight=3.0, name="total")
criteria.xlsx_cell_equals("out.xlsx", "A1", "name", sheet="Data")
criteria.file_contains("notes.txt", "total")
criteria.file_contains_regex("notes.txt", r"\\b42\\b", weight=2.0)
criteria.diff_ratio("notes.txt", "the total is 42")
""",
    "tables.py": """\
import rewardkit as rk

rk.csv_cell_equals("rows.csv", 1, 1, "42")
rk.csv_cell_equals("rows.csv", 0, "amount", "42", name="by-heading")
rk.json_path_equals("data.json", "a.0.b", 7)
rk.json_key_equals("data.json", "c", True)
rk.file_not_exists("log.txt")
rk.files_equal("notes.txt", "copy.txt")
""",
    "reward.toml": '[[reward]]\nname = "reward"\nweights = { checks = 2.0, tables = 1.0 }\n',
}


def workspace(number: int) -> dict[str, bytes]:
    """Makes the output folder of an answer; every number gives a different one."""
    book = Workbook()
    sheet: Any = book.active
    sheet.title = "Data" if number % 5 else "Sheet"
    sheet.append(["name", "amount"])
    sheet.append(["total" if number % 7 else "sum", 42 + (number % 4) * 0.3])
    written = io.BytesIO()
    book.save(written)
    notes = f"the total is {42 if number % 3 else 420}\n".encode()
    files = {"out.xlsx": written.getvalue(), "notes.txt": notes}
    files["rows.csv"] = f"name,amount\ntotal,{42 + number % 2}\n".encode()
    files["data.json"] = json.dumps({"a": [{"b": 6 + number % 2}], "c": True}).encode()
    if number % 6 == 0:
        files["log.txt"] = b"log"
    if number % 4 == 0:
        files["copy.txt"] = notes
    if number % 9 == 0:
        del files["notes.txt"]
    if number % 10 == 0:
        del files["out.xlsx"]
    return files


def place(folder: Path, files: Mapping[str, bytes | str]) -> Path:
    """Writes files below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


_RUN = """
import json, sys
from rewardkit.runner import run
pairs = json.load(sys.stdin)
print(json.dumps([run(tests, workspace=answer, output=out) for tests, answer, out in pairs]))
"""


def rewards_of(
    python: Path, tests: Path, answers: Sequence[Path], out: Path
) -> list[Mapping[str, float]]:
    """Returns rewardkit's own reward for each workspace."""
    judge = Path(sys.executable).with_name("judge")
    environment = {**os.environ, "JUDGE": str(judge), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [str(python), "-c", _RUN],
        input=json.dumps([[str(tests), str(answer), str(out)] for answer in answers]),
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    rewards: list[Mapping[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return rewards


def share_of(answer: Path, checklist: Path, profile: str) -> float:
    """Returns the share of points that the judge gives."""
    options = {
        "profile": profile,
        "recalc": "never",
        "engine": None,
        "lenient_names": False,
        "sandbox": None,
    }
    outcome = compare_by_checklist(answer, checklist, (), options)
    return outcome.record["checklist"]["share_of_all"]


def main() -> int:
    """Makes both rounds; 0 if all rewards and items are the same."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("python", type=existing)
    parser.add_argument("--workspaces", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        exported = place(home / "ours", rewardkit_files(CHECKLIST))
        by_hand = place(home / "theirs", BY_HAND)
        same_items = read_rewardkit(exported).options == CHECKLIST
        read = read_rewardkit(by_hand)
        lists = {"ours": CHECKLIST, "theirs": read.options}
        for name, options in lists.items():
            (home / f"{name}.json").write_text(json.dumps(options), encoding="utf-8")
        agreeing = {"ours": 0, "theirs": 0}
        values = set()
        answers = [
            place(home / f"answer {number}", workspace(number))
            for number in range(1, arguments.workspaces + 1)
        ]
        for name, tests, key, profile in (
            ("ours", exported, "total", "standard"),
            ("theirs", by_hand, "reward", "official"),
        ):
            rewards = rewards_of(arguments.python, tests, answers, home / "reward.json")
            for answer, named in zip(answers, rewards, strict=True):
                share = share_of(answer, home / f"{name}.json", profile)
                values.add(round(named[key], 4))
                # rewardkit rounds to four decimals.
                agrees = abs(named[key] - share) < 1e-4
                agreeing[name] += agrees
                if not agrees:
                    print(f"{name}, {answer.name}: rewardkit {named[key]}, judge {share}")
    print(f"written by the judge: {agreeing['ours']} of {arguments.workspaces} rewards agree")
    print(f"written by hand: {agreeing['theirs']} of {arguments.workspaces} rewards agree")
    print(f"{len(values)} different rewards; items read again: {'same' if same_items else 'other'}")
    print(f"{len(read.options['items'])} criteria read, {len(read.notes)} notes")
    return 0 if same_items and set(agreeing.values()) == {arguments.workspaces} else 1


if __name__ == "__main__":
    run_command(main)
