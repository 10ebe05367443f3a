"""The judge as a library: score runs, run one program, and what both need to be opened.

The command line is a thin layer over this package.
"""

from judge.api.checks import Mismatch, check_complete, check_expectations
from judge.api.commands import run_program, score, verify
from judge.api.options import ScoredRun, ScoreOptions

__all__ = [
    "Mismatch",
    "ScoreOptions",
    "ScoredRun",
    "check_complete",
    "check_expectations",
    "run_program",
    "score",
    "verify",
]
