"""The filters of the SpreadsheetBench paper, as rules over a post's words. Pure.

A rule answers if the post is clear, and says "unsure" otherwise: a chat model may then be asked,
and a person decides in any case.

Source: SpreadsheetBench, section on data sourcing and filtering: posts that are solved, that ask
about spreadsheets alone, that have a workbook, and that do not ask about parts of the software such
as buttons and forms.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

from judge.authoring.posts import Post


class Answer(enum.StrEnum):
    """What a filter says about a post."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"


class Proposal(enum.StrEnum):
    """What is proposed to the person who decides."""

    KEEP = "keep"
    DROP = "drop"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one filter says.

    Attributes:
        answer: yes favours the post, no excludes it.
        why: the words that it depends on.
        source: ``rules``, or the name of the chat model.
    """

    answer: Answer
    why: str
    source: str = "rules"


SOLVED = "solved"
SPREADSHEETS_ONLY = "spreadsheets_only"
ATTACHMENT = "attachment"
NO_SOFTWARE_PARTS = "no_software_parts"

QUESTIONS: Mapping[str, str] = {
    SOLVED: "Has the question been solved, as far as the post tells?",
    SPREADSHEETS_ONLY: (
        "Is it about spreadsheets alone? Say no where another program, a database, a website, "
        "printing or mail is part of the question."
    ),
    ATTACHMENT: "Does a workbook come with it, attached or linked?",
    NO_SOFTWARE_PARTS: (
        "Can it be answered by changing cells, formats or sheets of a workbook? Say no where it "
        "asks about parts of the software itself, such as buttons, forms, menus, add-ins, settings "
        "or crashes."
    ),
}
"""The filters, each as a question whose "yes" speaks for the post."""

_WORKBOOK_NAME = re.compile(r"\.(?:xlsx|xlsm|xlsb|xls|ods|csv)\b", re.IGNORECASE)
_ATTACHED = re.compile(r"\b(?:attach(?:ed|ment|ing)?|enclosed|uploaded|sample (?:file|workbook))\b",
                       re.IGNORECASE)  # fmt: skip
_SPREADSHEET_WORDS = re.compile(
    r"\b(?:excel|spreadsheets?|google sheets|libreoffice calc|work(?:book|sheet)s?|sheets?|cells?|"
    r"columns?|rows?|formulas?|formulae|pivot|v-?lookup|x-?lookup|sumifs?|countifs?|index|match|"
    r"vba|macros?|ranges?|tables?|conditional format\w*)\b",
    re.IGNORECASE,
)
_OTHER_PROGRAMS = re.compile(
    r"\b(?:microsoft access|ms[- ]?access|access (?:database|table|query|form)|"
    r"(?:microsoft|ms)[- ]?word|word (?:document|template|file)|mail merge|outlook|power ?point|"
    r"sql server|mysql|postgres\w*|odbc|share ?point|power ?bi|power ?automate|tableau|selenium|"
    r"web ?scrap\w*|internet explorer|chrome|whats ?app|gmail|sap gui|autocad)\b|"
    r"\.(?:accdb|mdb|docx?|pptx?)\b",
    re.IGNORECASE,
)
_OTHER_HINTS = re.compile(
    r"\b(?:e-?mails?|web ?sites?|web ?pages?|database|pdf|print(?:er|ing)?|sql|python|server|"
    r"api)\b",
    re.IGNORECASE,
)
_SOFTWARE_PARTS = re.compile(
    r"\b(?:user ?forms?|command ?buttons?|(?:option|toggle|spin|radio) ?buttons?|combo ?box(?:es)?|"
    r"list ?box(?:es)?|text ?box(?:es)?|check ?box(?:es)?|form controls?|active ?x|ribbon|"
    r"tool ?bars?|quick access|add-?ins?|msg ?box|splash screen|task pane|status bar|"
    r"product key|licen[sc]e key|re-?install\w*|excel (?:crashes|freezes|hangs|won'?t open))\b",
    re.IGNORECASE,
)
_SOFTWARE_HINTS = re.compile(
    r"\b(?:buttons?|forms?|menus?|dialog(?:ue)?s?|pop-?ups?|keyboard|shortcut|password|protect\w*|"
    r"install\w*|crash\w*|freez\w*|settings?|options? tab|windows? size|screen|drop-?downs?|"
    r"slicers?|charts?|shapes?|pictures?|images?)\b",
    re.IGNORECASE,
)
_ENOUGH_WORDS = 2


def apply_rules(post: Post) -> dict[str, Judgement]:
    """What the rules say about a post, for each of :data:`QUESTIONS`."""
    return {
        SOLVED: _solved(post),
        SPREADSHEETS_ONLY: _spreadsheets_only(post.text),
        ATTACHMENT: _attachment(post),
        NO_SOFTWARE_PARTS: _no_software_parts(post.text),
    }


def propose(judgements: Mapping[str, Judgement]) -> Proposal:
    """One filter that says no drops a post; all have to say yes to keep it."""
    answers = {judgement.answer for judgement in judgements.values()}
    if Answer.NO in answers:
        return Proposal.DROP
    return Proposal.UNSURE if Answer.UNSURE in answers else Proposal.KEEP


def open_questions(judgements: Mapping[str, Judgement]) -> tuple[str, ...]:
    """What is still worth asking a chat model: nothing if a filter has said no."""
    if propose(judgements) is not Proposal.UNSURE:
        return ()
    return tuple(name for name, each in judgements.items() if each.answer is Answer.UNSURE)


def _solved(post: Post) -> Judgement:
    if post.solved is None:
        return Judgement(Answer.UNSURE, "the record does not say")
    return Judgement(*((Answer.YES, "marked as solved") if post.solved
                       else (Answer.NO, "marked as not solved")))  # fmt: skip


def _attachment(post: Post) -> Judgement:
    named = [name for name in post.attachments or () if _WORKBOOK_NAME.search(name)]
    if named:
        return Judgement(Answer.YES, named[0])
    linked = _WORKBOOK_NAME.search(post.body)
    if linked:
        return Judgement(Answer.UNSURE, f"a file is named: {_around(post.body, linked)}")
    if post.attachments:
        return Judgement(Answer.NO, f"no workbook among: {', '.join(post.attachments)[:80]}")
    said = _ATTACHED.search(post.body)
    if said:
        return Judgement(Answer.UNSURE, f"only the text mentions it: {_around(post.body, said)}")
    if post.attachments is None:
        return Judgement(Answer.UNSURE, "the record does not say")
    return Judgement(Answer.NO, "none")


def _spreadsheets_only(text: str) -> Judgement:
    if other := _OTHER_PROGRAMS.search(text):
        return Judgement(Answer.NO, _around(text, other))
    if hint := _OTHER_HINTS.search(text):
        return Judgement(Answer.UNSURE, _around(text, hint))
    words = {match[0].lower() for match in _SPREADSHEET_WORDS.finditer(text)}
    if len(words) < _ENOUGH_WORDS:
        return Judgement(Answer.UNSURE, "few words of spreadsheets in it")
    return Judgement(Answer.YES, ", ".join(sorted(words)[:4]))


def _no_software_parts(text: str) -> Judgement:
    if part := _SOFTWARE_PARTS.search(text):
        return Judgement(Answer.NO, _around(text, part))
    if hint := _SOFTWARE_HINTS.search(text):
        return Judgement(Answer.UNSURE, _around(text, hint))
    return Judgement(Answer.YES, "no part of the software is named")


def _around(text: str, match: re.Match[str], width: int = 30) -> str:
    """The match with the words around it, on one line."""
    start, end = max(match.start() - width, 0), match.end() + width
    shown = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"
