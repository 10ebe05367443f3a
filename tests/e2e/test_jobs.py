"""A job is complete: another process performs it from bytes alone, with the same result."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import pickle
from dataclasses import replace
from typing import cast

import pytest

from judge.core.limits import Limits
from judge.core.records.cases import CaseRun
from judge.core.verdict import Verdict
from judge.grading.batch import WorkerRecipe
from judge.grading.jobs import CaseJob, Job, JudgedCase, ThreadExecutor
from judge.grading.keys import CaseKeys
from judge.suites import load_suite
from judge.suites.submissions import load_submissions
from tests.conftest import REPOSITORY
from tests.e2e.conftest import require_backend

RECIPE = WorkerRecipe(sandbox="bubblewrap", limits=Limits(cpu_s=5, wall_s=20))


def _do(given: bytes) -> bytes:
    """Does what a worker on another machine would do with a recipe and a job."""
    recipe, job = pickle.loads(given)
    judged: list[JudgedCase] = []
    with contextlib.ExitStack() as stack:
        recipe.open(stack).worker().run(job, judged.append)
    return pickle.dumps(judged)


def _without_times(judged: JudgedCase) -> JudgedCase:
    """Returns a case without measurements, and without the workbook, which contains a date."""
    result = judged.result
    changing = {"cpu_s", "wall_s", "peak_memory_bytes", "output_bytes", "output_sha256"}
    run = {name: value for name, value in result.run.items() if name not in changing}
    unmeasured = replace(result, run=cast("CaseRun", run), timings_s={})
    return replace(judged, output=None, result=unmeasured)


@pytest.mark.bubblewrap
def test_a_job_gives_the_same_result_in_another_process() -> None:
    require_backend("bubblewrap")
    suite = load_suite("sample")
    solutions = load_submissions(REPOSITORY / "dataset/sample/submissions.jsonl", suite)
    # Which engines compute a formula, and so its last digits, depends on how busy the machine is.
    chosen = [each for each in solutions if each.label == "values"][:2]
    jobs = [
        Job(
            task := suite.task(each.task_id),
            each,
            tuple(CaseJob(case, CaseKeys("run", f"{case.number}")) for case in task.cases),
            RECIPE.limits,
        )
        for each in chosen
    ]
    with contextlib.ExitStack() as stack:
        executor = ThreadExecutor(RECIPE.open(stack).worker(), 1)
        here = list(executor.judge(jobs))
    assert {each.result.verdict for each in here} == {Verdict.AC}
    with multiprocessing.get_context("spawn").Pool(1) as elsewhere:
        answers = [
            pickle.loads(elsewhere.apply(_do, (pickle.dumps((RECIPE, job)),))) for job in jobs
        ]
    there = [each for judged in answers for each in judged]
    assert list(map(_without_times, there)) == list(map(_without_times, here))
    for each in there:
        assert each.output is not None
        assert hashlib.sha256(each.output).hexdigest() == each.result.run["output_sha256"]
