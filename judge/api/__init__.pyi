from judge.api.commands import run as run
from judge.api.commands import score as score
from judge.api.commands import verify as verify
from judge.api.options import JudgingOptions as JudgingOptions
from judge.api.options import ScoreOptions as ScoreOptions
from judge.api.reporting import Mismatch as Mismatch
from judge.api.reporting import ScoredRun as ScoredRun
from judge.api.reporting import check_complete as check_complete
from judge.api.reporting import check_expectations as check_expectations

_HOMES: dict[str, tuple[str, str]]
