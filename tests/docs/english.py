"""Words and phrases that read as translated, and where they occur.

``python -m tests.docs.english`` prints every hit in the documents and in ``judge/``, and then the
number of hits for each file of ``judge/``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
UNUSED_WORDS_HEADING = "## Words that we do not use"
_A = r"(?:[\w'`.-]+ )"
_IS = r"(?:is|are|was|were|be|been|being)"


@dataclass(frozen=True, slots=True)
class Turn:
    """A word or turn of phrase to avoid.

    Attributes:
        name: how the glossary lists it.
        instead: what to write.
        pattern: a regular expression; a space matches any white space, and case is ignored.
    """

    name: str
    instead: str
    pattern: str

    def hits(self, text: str) -> Iterator[re.Match[str]]:
        """Yields every occurrence of the phrase in a text."""
        return re.finditer(self.pattern.replace(" ", r"\s+"), text, re.IGNORECASE)


TURNS = (
    Turn(
        "held against",
        "compared with, checked against, withstood",
        rf"\bh(?:eld|olds?|olding) {_A}{{0,6}}?against\b",
    ),
    Turn(
        "is no (noun)",
        "is not a; does not exist",
        r"(?<!there\s)\bis (?-i:no)\b(?! (?:longer|more|less|different|better|worse)\b)",
    ),
    Turn("is none, are none", "is not one", r"(?<!there\s)\b(?:is|are) none\b(?! of\b)"),
    Turn("to be had, can be had", "available", r"\b(?:to|can|could) be had\b"),
    Turn("told (given, informed)", "given, notified", r"\btold\b(?! apart\b)"),
    Turn("borne, does not bear", "handled, copes with", r"\bborne\b|\bnot bear\b"),
    Turn("at hand", "available, current", r"\bat hand\b"),
    Turn("sealed off", "isolated", r"\bseal(?:s|ed|ing)? (?:\w+ )?off\b"),
    Turn(
        "lies (in, at)",
        "is",
        r"\blies\b|\blie (?:in|at|on|below|beside|under|outside|behind|there)\b",
    ),
    Turn(
        "stands (in, at, there)",
        "is",
        r"\bstand(?:s|ing)? (?:in|at|on|before|beside|behind|between|outside|there|above|below"
        r"|around|twice|otherwise|where|whole|against)\b|\bit stands\b|\bstood\b",
    ),
    Turn("whoever", "anyone who, the caller", r"\bwhoever\b"),
    Turn("nobody can say", "cannot be determined", r"\bnobody can (?:say|tell)\b|\bto nobody\b"),
    Turn("of ours", "our own, the judge's", r"\bof ours\b"),
    Turn("gives itself out as", "claims to be", r"\bg(?:ave|ives?) (?:itself|themselves) out\b"),
    Turn(
        "what it is worth",
        "how strong it is, what it adds",
        r"\bwhat (?:\w+ ){1,3}(?:is|are) worth\b|\bworth nothing\b",
    ),
    Turn("takes up again", "resumes", rf"\btak(?:es?|en|ing) {_A}{{0,4}}?up again\b"),
    Turn("mend", "fix, repair", r"\bmend(?:s|ed|ing)?\b"),
    Turn("anew", "again", r"\banew\b"),
    Turn("rests on", "depends on", r"(?<!the\s)\brest(?:s|ed|ing)? on\b"),
    Turn("beside", "next to, in addition to, with", r"\bbeside\b"),
    Turn("otherwise than", "differently from", r"\botherwise than\b"),
    Turn(
        "else than, another than",
        "other than",
        r"\belse than\b|\banother \w+ than\b|\bno other \w+ than\b",
    ),
    Turn("let pass", "accepted, allowed", r"\blet pass\b"),
    Turn(
        "speaks of, speaks against",
        "refers to, favours",
        r"\bspeaks? (?:of|against)\b|\bdifference speaks\b",
    ),
    Turn("else (before a clause)", "otherwise", r"[.;] else [a-z]"),
    Turn(
        "a text",
        "text, a string",
        r"\ba text\b(?! (?:file|format|node|cell|editor|value|date|block|field|box|part|rule"
        r"|column|encoding)s?\b)",
    ),
    Turn("texts", "text values, strings", r"\btexts\b"),
    Turn(
        "goes on (continues)",
        "continues",
        r"\bgo(?:es|ing)? on (?:where|with|without|from)\b|\b(?:run|command|judge) goes on\b",
    ),
    Turn(
        "wants (of a thing)",
        "requires, expects",
        r"\b(?:server|format|root|standard|page|comparison|checker|position|engine|command)"
        r" wants\b",
    ),
    Turn(
        "its word, whose word",
        "which is believed, without asking",
        r"\b(?:whose|its) word\b|\bwithout a word\b|\bword (?:is|was) taken\b|\bword holds\b",
    ),
    Turn("is said (reported)", "is reported, is shown", rf"\b{_IS} said\b"),
    Turn("is asked for (required)", "is required, is requested", rf"\b{_IS} asked for\b"),
    Turn("hands over, hands on", "passes", r"\bhand(?:s|ed|ing)? (?:over|on|out)\b"),
    Turn("is looked at, is looked for", "is checked, is searched", rf"\b{_IS} looked (?:at|for|t)"),
    Turn("broken off", "interrupted", r"\bbr(?:oken|eaks?|oke) off\b"),
    Turn("at one time", "at a time, at once", r"\bat one time\b"),
    Turn("what came of it", "the outcome", r"\bc(?:ame|omes?) of (?:it|them|that|each|this)\b"),
    Turn("is there already", "already exists", r"\b(?:is|are) (?:there|here) already\b"),
    Turn("counts no longer", "no longer counts", r"\bcounts? no longer\b"),
    Turn("knows no", "does not know, does not support", r"\bknows? no\b"),
    Turn("a talk", "a conversation", r"\b(?:a|the) talk\b"),
    Turn("exits with 3 where", "exits with 3 if", r"\bexits with [\w ]{1,30}?where\b"),
    Turn("went away", "disappeared, was lost", r"\b(?:went|gone) away\b"),
    Turn("in the place of", "in place of, instead of", r"\bin the place of\b"),
    Turn("spelt", "written", r"\bspelt\b"),
    Turn(
        "counted apart, read apart",
        "separately",
        r"\b(?:counted|read|set|pinned|measured|shown) apart\b",
    ),
)


@dataclass(frozen=True, slots=True)
class Hit:
    """An occurrence of a phrase in a file.

    Attributes:
        path: the file, relative to the repository.
        line: the line on which it begins, counted from 1.
        found: the words as they are there.
        turn: which turn it is.
    """

    path: str
    line: int
    found: str
    turn: Turn

    def __str__(self) -> str:
        found = " ".join(self.found.split())
        return f"{self.path}:{self.line}: {found!r}: write instead: {self.turn.instead}"


def documents() -> list[Path]:
    """Returns every document of the repository."""
    folders = ("docs", "dataset", "inference")
    below = [path for folder in folders for path in (REPOSITORY / folder).rglob("*.md")]
    return sorted([*REPOSITORY.glob("*.md"), *below])


def modules() -> list[Path]:
    """Returns every module of both packages."""
    packages = (REPOSITORY / "judge", REPOSITORY / "sheetjudge")
    return sorted(path for package in packages for path in package.rglob("*.py"))


def hits_of_document(path: Path) -> list[Hit]:
    """Yields the phrases in a document, without program text and the glossary's own list."""
    return _hits(path, 1, _prose(path.read_text(encoding="utf-8")))


def hits_of_module(path: Path) -> list[Hit]:
    """Yields the phrases in a module's docstrings and messages: all strings with a space."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = _strings(tree)
    hits = {hit for line, text in texts if " " in text for hit in _hits(path, line, text)}
    return sorted(hits, key=lambda hit: (hit.line, hit.found))


def _hits(path: Path, first_line: int, text: str) -> list[Hit]:
    name = path.relative_to(REPOSITORY).as_posix()
    text = re.sub(r"``?[^`]*``?", lambda code: re.sub(r"[^\n]", "_", code[0]), text)
    return [
        Hit(name, first_line + text.count("\n", 0, hit.start()), hit[0], turn)
        for turn in TURNS
        for hit in turn.hits(text)
    ]


def _prose(text: str) -> str:
    """Returns a document without program text, link targets and the list of unused words."""
    lines = []
    fenced = listed = False
    for line in text.splitlines():
        if line.startswith("#") and not fenced:
            listed = line == UNUSED_WORDS_HEADING
        if line.lstrip().startswith("```"):
            fenced = not fenced
            lines.append("")
        elif listed:
            lines.append("")
        elif fenced:
            lines.append(line.partition("# ")[2])
        else:
            lines.append(re.sub(r"\]\([^)]*\)", "]", line))
    return "\n".join(lines)


def _strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yields line and text of every string; ``{}`` stands for the values in an f-string."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in node.values)
            parts = (
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
            yield node.lineno, "".join(parts)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inside
        ):
            yield node.lineno, node.value


def main() -> None:
    """Prints the occurrences, and how many each module has."""
    found = [hit for path in documents() for hit in hits_of_document(path)]
    counts: Counter[str] = Counter()
    for path in modules():
        hits = hits_of_module(path)
        counts.update(hit.path for hit in hits)
        found += hits
    sys.stdout.writelines(f"{hit}\n" for hit in found)
    sys.stdout.writelines(f"{count:4} {name}\n" for name, count in sorted(counts.items()))


if __name__ == "__main__":
    main()
