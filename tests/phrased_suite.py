"""A small suite in the layout of Spider2-V: each task abstract and verbose, on data made here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "workbook_rules" / "corpus"
DATA = {"type": "sheet_data", "sheet_idx0": 0, "sheet_idx1": "EI0"}
CHART = {"type": "chart", "sheet_idx0": 0, "sheet_idx1": "EI0", "chart_props": ["type"]}
PIVOT = {"type": "pivot_table", "sheet_idx0": 0, "sheet_idx1": "EI0", "pivot_props": ["filter"]}


def write_phrased_suite(root: Path, rules: Mapping[str, Sequence[Mapping[str, Any]]]) -> Path:
    """Writes a suite.

    Args:
        root: the folder that becomes the suite.
        rules: id of the abstract task -> its rules; the verbose one is called ``{id}-verbose``.
    """
    for task_id, asked in rules.items():
        plan = f"Follow the steps of {task_id}:\n1. Open it;\n2. Change a cell."
        abstract = f"Do {task_id}."
        verbose = f"{abstract}\nHere is a tutorial:\n{plan}"
        for name, instruction, tag, other in (
            (task_id, abstract, "abstract", f"{task_id}-verbose"),
            (f"{task_id}-verbose", verbose, "verbose", task_id),
        ):
            folder = root / "evaluation_examples" / "examples" / "excel" / name
            folder.mkdir(parents=True)
            place = f"evaluation_examples/examples/excel/{name}"
            step = {"src": f"{place}/in.xlsx", "dest": "/home/user/in.xlsx"}
            record = {
                "id": name,
                "instruction": instruction,
                "config": [{"type": "copyfile_from_host_to_guest", "parameters": step}],
                "evaluator": {
                    "func": "compare_table",
                    "expected": {"type": "local_file", "path": f"{place}/gold.xlsx"},
                    "options": {"rules": list(asked)},
                },
                "tags": [tag],
                "counterpart": other,
            }
            (folder / f"{name}.json").write_text(json.dumps(record))
            (folder / "verbose_instruction.txt").write_text(plan + "\n")
            shutil.copy(CORPUS / "base.xlsx", folder / "in.xlsx")
            shutil.copy(CORPUS / "val5.xlsx", folder / "gold.xlsx")
    return root
