"""Code inside the XML or JSON of a tool call that the model wrote into its text. Pure."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass

from judge.replies.fences import outside_fences

_CODE_TAGS = (
    "execute_python|execute|execute_code|run_python|python_code|python|code|code_block|pycode"
    "|solution_code|final_code|tool_code|code_interpreter|ipython|script"
)
_LOOSE_TAGS = "solution|answer|final_answer|final|output|response|result"
_CODE_ARGUMENT = re.compile(
    r"<(?:parameter|arg|argument)\s*+(?:=\s*+|name\s*+=\s*+)[\"']?"
    r"(?:code|python|source|script|program|python_code|cmd)[\"']?\s*+>"
    r"(?P<body>.*?)(?P<end></(?:parameter|arg|argument)>|</invoke>|</function>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_ARGUMENT_PAIR = re.compile(
    r"<arg_key>\s*+code\s*+</arg_key>\s*+<arg_value>(?P<body>.*?)(?P<end></arg_value>|\Z)",
    re.DOTALL,
)
_TOOL_CALL = re.compile(
    r"(?:<tool_call>|<function_call>|<tool_use>|\[TOOL_CALLS\]|<\|tool_call\|>|<\|tool_calls_section_begin\|>)"
    r"(?P<body>.*?)(?P<end></tool_call>|</function_call>|</tool_use>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_PYTHON_TAG = re.compile(r"<\|python_tag\|>(?P<body>.*?)(?P<end><\|\w{1,40}+\|>|\Z)", re.DOTALL)
_CODE_ELEMENT = re.compile(
    rf"(?<!['\"=(\w])<(?P<tag>{_CODE_TAGS})(?:\s++(?:[^<>\s][^<>\n]*+)?+)?+>"
    r"(?P<body>.*?)(?P<end></(?P=tag)>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_LOOSE_ELEMENT = re.compile(
    rf"(?<!['\"=(\w])<(?P<tag>{_LOOSE_TAGS})>(?P<body>.*?)(?P<end></(?P=tag)>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_CDATA_START, _CDATA_END = "<![CDATA[", "]]>"
_JSON_KEYS = ("code", "python", "python_code", "solution", "program", "script", "source", "input")
_JSON_FENCE = re.compile(r"```(?:json)?\s*+")
_JSON_START = re.compile(r"[\[{]")
_MAX_JSON_STARTS = 20
_MAX_JSON_DEPTH = 40
_WITHOUT_TAGS = str.maketrans("<>[", "   ")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#39);")
_ABOUT_HTML = re.compile(r"html|unescape")


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What a wrapper holds.

    Attributes:
        text: the content, unescaped.
        closed: whether the wrapper's end was found.
        is_code: whether the wrapper's name says that its content is code.
    """

    text: str
    closed: bool
    is_code: bool


def unwrap(text: str) -> Wrapped | None:
    """The content of the last wrapper in a reply; None if there is none.

    A wrapper inside a fenced block belongs to the program and is left alone.
    """
    outside = _blank_fences(text)
    for pattern, is_code in (
        (_CODE_ARGUMENT, True),
        (_ARGUMENT_PAIR, True),
        (_PYTHON_TAG, True),
        (_TOOL_CALL, True),
        (_CODE_ELEMENT, True),
        (_LOOSE_ELEMENT, False),
    ):
        matches = [match for match in pattern.finditer(outside) if match["body"].strip()]
        if not matches:
            continue
        match = matches[-1]
        body = text[match.start("body") : match.end("body")]
        closed = bool(match["end"]) or pattern is _PYTHON_TAG
        if pattern is _TOOL_CALL:
            argument = _json_code(body)
            if argument is None:
                continue
            return Wrapped(argument, closed=True, is_code=True)
        return Wrapped(_unescape(body), closed, is_code)
    if (whole := _json_body(text)) is not None and (argument := _json_code(whole)) is not None:
        return Wrapped(argument, closed=True, is_code=True)
    return None


def _blank_fences(text: str) -> str:
    """The text with the inside of fenced blocks blanked, character for character."""
    return "".join(
        line if outside else line.translate(_WITHOUT_TAGS) for line, outside in outside_fences(text)
    )


def _json_body(text: str) -> str | None:
    """A reply that is nothing but a JSON object or list, in a fence or not."""
    body = text.strip()
    if fence := _JSON_FENCE.match(body):
        body = body[fence.end() :]
    body = body.removesuffix("```").rstrip()
    return body if body[:1] + body[-1:] in {"{}", "[]"} else None


def _json_code(text: str, depth: int = 0) -> str | None:
    """The code argument of a tool call in JSON, wherever it is nested."""
    decoder = json.JSONDecoder(strict=False)
    position = 0
    for _ in range(_MAX_JSON_STARTS):
        start = _JSON_START.search(text, position)
        if start is None:
            return None
        try:
            document, position = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            position = start.end()
            continue
        # What was read is not read again from its middle: JSON within JSON would be read again at
        # every bracket of every level.
        if (found := _find_code(document, depth)) is not None:
            return found
    return None


def _find_code(document: object, depth: int) -> str | None:
    if depth > _MAX_JSON_DEPTH:
        return None
    if isinstance(document, str):
        # Arguments are often JSON within JSON.
        return _json_code(document, depth + 1) if document.lstrip().startswith("{") else None
    if isinstance(document, list):
        for item in reversed(document):
            if (found := _find_code(item, depth + 1)) is not None:
                return found
    if isinstance(document, dict):
        for key in _JSON_KEYS:
            value = document.get(key)
            if isinstance(value, str) and value.strip() and not value.lstrip().startswith("{"):
                return value
        for value in document.values():
            if (found := _find_code(value, depth + 1)) is not None:
                return found
    return None


def _unescape(body: str) -> str:
    inner = body.lstrip()
    if inner.startswith(_CDATA_START):
        return inner.removeprefix(_CDATA_START).rstrip().removesuffix(_CDATA_END)
    if _ENTITY.search(body) and not _ABOUT_HTML.search(body):
        return html.unescape(body)
    return body
