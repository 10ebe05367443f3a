#!/usr/bin/env python3
"""Sends generated requests to every route of `judge serve` with each role, and checks the answers.

    .venv/bin/python -m benchmarks.serve_fuzzing --examples 2000

Answers must be described by the OpenAPI document, and none may be a fault of the server. Prints the
number of answers by status code; exits with 1 at the first answer that is neither.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import CHECKS

from judge.serve.app import make_app
from tests.postgresql import new_database
from tests.unit.serve.spine.test_routes import FUZZED, objects
from tests.unit.serve.spine.world import ROLES, make_world


def fuzz(role: str, examples: int, number: int) -> Counter[int]:
    """The answers to generated requests of a role, by status code."""
    statuses: Counter[int] = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        new_database("sqlite", Path(folder), None) as database,
    ):
        world = make_world(database, Path(folder))
        objects(world)
        schema = schemathesis.openapi.from_asgi("/v1/openapi.json", make_app(world.server))
        chosen = [check for check in CHECKS.get_all() if check.__name__ in FUZZED]

        @seed(number)
        @given(case=schema.exclude(path_regex=r"/events$").as_strategy())
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def send(case: Any) -> None:
            answer = case.call(headers=world.headers(role))
            statuses[answer.status_code] += 1
            case.validate_response(answer, checks=chosen)

        send()
    return statuses


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--examples", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for role in ROLES:
        statuses = fuzz(role, options.examples, options.seed)
        print(f"{role}: {sum(statuses.values())} answers, {dict(sorted(statuses.items()))}")


if __name__ == "__main__":
    main()
