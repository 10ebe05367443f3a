"""The recipes for trainers run unchanged, called as the trainers call them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY


@pytest.mark.bubblewrap
def test_the_recipes_for_rewards(capsys: pytest.CaptureFixture[str]) -> None:
    page = (REPOSITORY / "docs" / "rewards.md").read_text(encoding="utf-8")
    plain, *recipes = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(plain, {})
    assert capsys.readouterr().out.splitlines()[:2] == ["0.0", "[0.0, 0.0]"]
    trl: dict[str, Any] = {}
    verl: dict[str, Any] = {}
    for names, recipe in zip((trl, verl), recipes, strict=True):
        exec(recipe, names)
    reply = [{"role": "assistant", "content": "I cannot."}]
    found = trl["spreadsheet_reward"](
        prompts=["?"] * 2, completions=["print(", reply], completion_ids=[[1]] * 2,
        task=["1001", "1002"], trainer_state=None, log_extra=None, log_metric=None,
    )  # fmt: skip
    assert found == [0.0, 0.0]
    asked = {"data_source": "sample", "solution_str": "I cannot.", "ground_truth": ""}
    assert verl["compute_score"](**asked, extra_info={"task": "1001", "num_turns": None}) == 0.0
    for names in (trl, verl):
        names["judged"].close()


def test_the_prompts_on_the_page_about_training(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "start" / "train.md").read_text(encoding="utf-8")
    (recipe,) = [
        block for block in re.findall(r"```\n(.*?)```", page, flags=re.DOTALL) if "prompts" in block
    ]
    folder = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-ec", recipe],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "14 prompts\n"
