from typing import TypeAlias

from judge.api.commands import score as score
from judge.api.comparing import compare_workbooks as compare_workbooks
from judge.api.infer_options import InferOptions as InferOptions
from judge.api.inferring import infer as infer
from judge.api.judging import Judge as Judge
from judge.api.judging import JudgedSubmission as JudgedSubmission
from judge.api.judging import run as run
from judge.api.options import JudgingOptions as JudgingOptions
from judge.api.options import ScoreOptions as ScoreOptions
from judge.api.rejudging import change_verdict as change_verdict
from judge.api.rejudging import rejudge as rejudge
from judge.api.reporting import ScoredRun as ScoredRun
from judge.api.rewards import Rewards as Rewards
from judge.api.runs import compare_runs as compare_runs
from judge.api.runs import make_audit as make_audit
from judge.api.runs import read_audit as read_audit
from judge.api.verifying import verify as verify
from judge.core.submission import Submission as Submission
from judge.recalc import recalculate as recalculate
from judge.recalc.library import Recalculating as Recalculating
from judge.report.html import report_html as report_html
from judge.report.report import Report as Report
from judge.report.report import report_data as report_data
from judge.suites import load_suite as load_suite
from judge.version import __version__ as __version__

compare = compare_workbooks

_Homes: TypeAlias = dict[str, tuple[str, str]]
_HOMES: _Homes
__all__: list[str]  # noqa: PYI035  made from the lines above

def attach_stub(package: str, file: str) -> tuple[_Homes, object, object]: ...
