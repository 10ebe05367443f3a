"""Digests in reuse keys: if one of them changes, every stored run is judged again."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator

import pytest

from judge.compare.profiles import PROFILES
from judge.core.limits import Limits
from judge.desktop.driver import driver_digest
from judge.grading.case import GradingRules
from judge.grading.keys import GRADER_VERSION, FileDigests, comparison_key, run_key
from judge.recalc.policy import RULES
from judge.recalc.services import services_digest
from judge.recalc.trust import table_digest
from judge.sandbox import roots
from judge.sandbox.roots import ROOTS
from judge.suites import load_suite
from judge.suites.submissions import load_submissions
from tests.conftest import REPOSITORY, Snapshot

SAMPLES = {
    "sample": "submissions.jsonl",
    "sample-typed": "answers.jsonl",
    "sample-rules": "submissions.jsonl",
}
IMAGE = "an image"


def of_sandbox() -> Iterator[tuple[str, object]]:
    """Yields the recipes of roots of Debian packages, and of an interpreter that is named here."""
    for root in ROOTS.values():
        yield f"root {root.name}", root.recipe.digest if root.recipe else roots._digest("Python")


def of_keys(suite_name: str) -> str:
    """Hashes all keys of a sample's cases, under each profile, on a machine that is named here."""
    suite, whole, digests = load_suite(suite_name), hashlib.sha256(), FileDigests()
    path = REPOSITORY / "dataset" / suite_name / SAMPLES[suite_name]
    for submission in load_submissions(path, suite):
        task = suite.task(submission.task_id)
        for case in task.cases:
            inputs = digests.of_inputs(case.question) if task.answer.is_file else ""
            run = run_key(submission, inputs, Limits(), IMAGE)
            whole.update(run.encode())
            for profile in PROFILES.values():
                rules = GradingRules(profile)
                whole.update(comparison_key(run, task, case, rules, digests).encode())
    return whole.hexdigest()


def test_digests_are_as_recorded(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "a machine")
    digests: dict[str, object] = {
        "services": services_digest(),
        "trust table": table_digest(),
        "desktop driver": driver_digest(),
        "rules of recalculation": RULES,
        "grader": GRADER_VERSION,
        **dict(of_sandbox()),
        **{f"profile {name}": profile.identity for name, profile in PROFILES.items()},
        **{f"keys of {name}": of_keys(name) for name in SAMPLES},
    }
    snapshot("digests.txt", "".join(f"{name}: {value}\n" for name, value in digests.items()))
