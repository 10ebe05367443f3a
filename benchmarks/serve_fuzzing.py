#!/usr/bin/env python3
"""Sends generated requests to every route of `judge serve` with each role, and checks the answers.

    .venv/bin/python -m benchmarks.serve_fuzzing --examples 2000

The OpenAPI document must describe every answer, and no answer may be a fault of the server. Prints
the number of answers by status code; exits with 1 at the first answer that breaks a rule.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.command_line import parser_of, run_command
from tests.postgresql import new_database
from tests.unit.serve.spine.test_routes import fuzz
from tests.unit.serve.spine.world import ROLES, make_world

REACHED = {200, 201, 202, 204, 304, 403, 409, 412, 428}
"""Status codes of answers that come from a found object, and not from a check of the request."""


def fuzz_once(role: str, examples: int, number: int) -> Counter[int]:
    """Counts the answers to generated requests of a role, by status code."""
    with (
        tempfile.TemporaryDirectory() as folder,
        new_database("sqlite", Path(folder), None) as database,
    ):
        return fuzz(make_world(database, Path(folder)), role, examples, number)


def main() -> None:
    """Runs the command."""
    parser = parser_of(__doc__)
    parser.add_argument("--examples", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for role in ROLES:
        statuses = fuzz_once(role, options.examples, options.seed)
        reached = sum(count for status, count in statuses.items() if status in REACHED)
        print(
            f"{role}: {sum(statuses.values())} answers, {reached} by an object, "
            f"{dict(sorted(statuses.items()))}"
        )


if __name__ == "__main__":
    run_command(main)
