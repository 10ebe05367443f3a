"""A plain container without rights and without a network: engines run in it, solutions do not.

The judge of this checkout is brought into the image for solutions, which has the engines; the image
of verifiers has more, and takes minutes to build.
"""

from __future__ import annotations

import io
import json
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import openpyxl
import pytest

from judge.authoring.platforms import HarborImages, export_harbor
from judge.sandbox.backends.docker import python_tag
from tests.conformance.conftest import open_or_skip
from tests.conftest import REPOSITORY
from tests.unit.report.runs import TaskSpec, book, make_suite

pytestmark = pytest.mark.docker
SUM = (("Amount",), (2,), (3,))
JUDGE = "#!/bin/sh\nexec python3 -c 'from judge.cli.main import main; main()' \"$@\"\n"
SCRIPT = """
mkdir -p /app/output /logs/verifier && ln -s /given/tasks/1/tests /tests
judge sandbox info --json > /found/info.json
cp /given/answers/* /app/output/
sh /tests/test.sh > /found/test.txt 2>&1
echo $? > /found/code
cp /logs/verifier/reward.json /logs/verifier/judge/cases.jsonl /found/
judge run 1 /given/solution.py --dataset /tests/suite > /found/run.txt 2>&1
echo $? > /found/run_code
chmod -R a+rwX /found
"""


@dataclass(frozen=True)
class Found:
    """Returns the files that the container left."""

    folder: Path

    def json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()


def with_formula(formula: str) -> bytes:
    """A workbook whose sum was never calculated."""
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.title = "Sheet1"
    for row in SUM:
        sheet.append(row)
    sheet["B1"] = formula
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    open_or_skip("docker").close()
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the packages of this interpreter are not for that of the image")
    given, left = tmp_path_factory.mktemp("given"), tmp_path_factory.mktemp("found")
    gold = book((("Amount", 5), (2,), (3,)))
    suite = make_suite(
        given / "suite", [TaskSpec("1", cases=2, position="Sheet1!B1", input=book(SUM), gold=gold)]
    )
    export_harbor(suite, HarborImages("not built"), given / "tasks")
    (given / "answers").mkdir()
    for case, formula in ((1, "=SUM(A2:A3)"), (2, "=SUM(A2:A2)")):
        (given / f"answers/{case}_1_output.xlsx").write_bytes(with_formula(formula))
    (given / "solution.py").write_text("print('ran')")
    (given / "script.sh").write_text(SCRIPT)
    (given / "bin").mkdir()
    (given / "bin/judge").write_text(JUDGE)
    for each in given.rglob("*"):
        each.chmod(0o755)
    mounts = {
        given: "/given",
        REPOSITORY: "/repository",
        Path(sysconfig.get_path("purelib")): "/site",
    }
    volumes = {str(path): {"bind": place, "mode": "ro"} for path, place in mounts.items()}
    volumes[str(left)] = {"bind": "/found", "mode": "rw"}
    docker.from_env().containers.run(
        python_tag(),
        ["sh", "/given/script.sh"],
        remove=True,
        network_mode="none",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        volumes=volumes,
        environment={
            "PATH": "/given/bin:/usr/bin:/bin",
            "PYTHONPATH": "/repository:/site",
            "PYTHONDONTWRITEBYTECODE": "1",
            "JUDGE_CACHE": "/tmp/cache",
        },
    )
    return Found(left)


def test_a_verifier_computes_and_judges_without_any_rights(found: Found) -> None:
    assert found.text("code") == "0\n", found.text("test.txt")
    assert found.json("reward.json") == {
        "reward": 0.5,
        "soft": 0.5,
        "hard": 0.0,
        "case_1": 1.0,
        "case_2": 0.0,
    }
    cases = [json.loads(line) for line in found.text("cases.jsonl").splitlines()]
    assert [each["verdict"] for each in cases] == ["AC", "WA"]
    assert all(each["comparison"]["engines"] for each in cases)


def test_the_kind_of_sandbox_is_recorded(found: Found) -> None:
    info = found.json("info.json")
    assert info["backend"] == "sealed-container"
    assert info["services"] == ["python"]
    assert info["isolation"]["system call filter"] == "yes"
    assert info["isolation"]["network"] == "none"


def test_a_solution_is_refused(found: Found) -> None:
    assert found.text("run_code") == "5\n"
    assert "solutions do not run in a container" in found.text("run.txt")
