from judge.annotate.annotator import Annotator as Annotator
from judge.annotate.annotator import record_facts as record_facts
from judge.annotate.annotator import refusals as refusals
from judge.annotate.casebook import Casebook as Casebook
from judge.annotate.edit import losses as losses
from judge.annotate.edits import DeleteRows as DeleteRows
from judge.annotate.edits import InsertRows as InsertRows
from judge.annotate.edits import address as address
from judge.annotate.edits import content_text as content_text
from judge.annotate.edits import content_to_json as content_to_json
from judge.annotate.edits import describe as describe
from judge.annotate.edits import edit_to_json as edit_to_json
from judge.annotate.edits import parse_assignment as parse_assignment
from judge.annotate.hack import accepted_solutions as accepted_solutions
from judge.annotate.hack import save_hack as save_hack
from judge.annotate.hack import try_hack as try_hack
from judge.annotate.model_ideas import ModelAsked as ModelAsked
from judge.annotate.model_ideas import ask_for_ideas as ask_for_ideas
from judge.annotate.mutants import NAMES as NAMES
from judge.annotate.rules import RULES as RULES
from judge.annotate.strength import measure as measure
from judge.annotate.web.server import Page as Page
from judge.annotate.web.server import check_grid as check_grid
from judge.annotate.web.session import AnnotationSession as AnnotationSession

_HOMES: dict[str, tuple[str, str]]
