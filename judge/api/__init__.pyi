from judge.api.commands import run as run
from judge.api.commands import score as score
from judge.api.commands import verify as verify
from judge.api.options import JudgingOptions as JudgingOptions
from judge.api.options import ScoreOptions as ScoreOptions
from judge.api.reporting import Mismatch as Mismatch
from judge.api.reporting import ScoredRun as ScoredRun
from judge.api.reporting import check_complete as check_complete
from judge.api.reporting import check_expectations as check_expectations
from judge.api.comparing import compare_at_position as compare_at_position
from judge.api.comparing import compare_by_board as compare_by_board
from judge.api.comparing import compare_by_rules as compare_by_rules
from judge.compare.cells.render import comparison_to_json as comparison_to_json
from judge.compare.cells.render import render_text as render_text

_HOMES: dict[str, tuple[str, str]]
