"""Workers that are submitted as jobs; ``sbatch`` is a script that starts them immediately."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from judge import api
from judge.grading.cluster.certificates import make_certificates
from tests.cluster.conftest import wait_until
from tests.cluster.test_cluster import SAMPLE, solutions

# Not imported here: it would change what Ctrl-C does in this process.
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("dask_jobqueue") is None, reason="the extra `slurm` is not installed"
)

SBATCH = """#!/bin/sh
echo "$1" >> {folder}/submitted
cp "$1" {folder}/job.sh
setsid sh {folder}/job.sh > {folder}/job.log 2>&1 &
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
echo "$1" >> {folder}/cancelled
kill -- -"$1"
"""


@pytest.mark.bubblewrap
def test_workers_are_submitted_and_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        script = tmp_path / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(text.format(folder=tmp_path))
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    make_certificates(tmp_path / "keys", days=1)
    described = tmp_path / "slurm.yaml"
    described.write_text(
        "certificates: keys\n"
        "slurm: {cores: 1, memory: 2GB, walltime: '00:10:00', interface: lo, "
        f"local_directory: {tmp_path / 'scratch'}}}\n"
    )
    (run,) = api.score(
        solutions(tmp_path),
        api.ScoreOptions(
            dataset=str(SAMPLE), out=tmp_path / "run", sandbox="bubblewrap", cluster=str(described)
        ),
    )
    assert run.problem is None, (tmp_path / "job.log").read_text()
    assert [each.verdict.value for each in run.results] == ["AC"] * 3
    assert len((tmp_path / "submitted").read_text().split()) == 1
    cancelled = tmp_path / "cancelled"
    wait_until(lambda: cancelled.exists() and cancelled.read_text(), "taking the job back")
    (job,) = cancelled.read_text().split()
    wait_until(lambda: not Path(f"/proc/{job}").exists(), "the end of the job")
