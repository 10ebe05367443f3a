"""The judge as a library: score runs, run one program, check a suite, ask a chat model.

The command line is a thin layer over this package.
"""

from judge.api.checks import Mismatch, check_complete, check_expectations
from judge.api.commands import run, score, verify
from judge.api.options import JudgingOptions, ScoredRun, ScoreOptions

__all__ = [
    "JudgingOptions",
    "Mismatch",
    "ScoreOptions",
    "ScoredRun",
    "check_complete",
    "check_expectations",
    "run",
    "score",
    "verify",
]
