"""Replies made to keep an extractor busy."""

from __future__ import annotations

from collections.abc import Callable

from judge.core.replies.extract import MAX_REPLY_CHARS

Make = Callable[[int], str]
"""Makes a reply of about so many characters."""


def _full(piece: str, *, before: str = "", after: str = "") -> Make:
    """Repeats the pieces as often as a reply has space for."""

    def make(chars: int) -> str:
        room = chars - len(before) - len(after)
        return before + piece * (room // len(piece)) + after

    return make


def _nested_fences() -> str:
    """Nested fences, each one backtick shorter than the one around it."""
    lengths = range(880, 3, -1)
    opened = "".join("`" * length + "md\n" for length in lengths)
    return f"{opened}```python\nx = f()\n```\n"


def _json_in_json() -> str:
    """A list around a string that is JSON, and so on: each level can be read at five positions."""
    text = "{}"
    while True:
        inner = '[[[["' + text.replace("\\", "\\\\").replace('"', '\\"') + '"]]]]'
        inner = '{"a": ' + inner + "}"
        if len(inner) > MAX_REPLY_CHARS:
            return f"<tool_call>{text}</tool_call>"
        text = inner


_HEAD = "```python\nimport a\n"
_SAVED = "```python\nimport a\na.save()\n```\n```python\n"
_END = "\nf(b)\n```\n"

_MADE: dict[str, str | Make] = {
    # Strings
    "escaped quotes": _full('"\\"\\'),
    "escaped quotes in a block": _full('"\\"\\', before=_HEAD),
    "escaped quotes in a bare program": _full('"\\"\\', before="import a\nf(a)\nx = "),
    "escaped single quotes": _full("'\\'\\", before=_HEAD),
    "lone quotes by turns": _full("\"'", before=_HEAD + "x"),
    "strings that never end": _full("x = '", before=_HEAD),
    "strings that never end, on lines": _full("x = '\n", before=_HEAD),
    "triple quotes": _full('"""', before=_HEAD),
    "triple quotes that never end": _full('"""\n```\n', before=_HEAD),
    "escaped triple quotes in every block": _full("```python\n\\'''\n```\n"),
    "continued strings": _full('"\\\n', before=_HEAD),
    "f-strings": _full("{a}", before='x = f"', after='"\nf(x)\n'),
    "f-strings side by side": _full('f"{a}" ', before="x = ", after="\nf(x)\n"),
    # Fences
    "backticks": _full("`"),
    "tildes": _full("~"),
    "backticks before a letter": _full("`", after="a"),
    "backticks and a line": _full("`", after="\n"),
    "backticks by turns": _full("``` "),
    "fences": _full("```\n"),
    "fences of Python": _full("```python\n"),
    "fences in a line": _full("```python "),
    "fences behind a word": _full("a ```python\n"),
    "nested fences": _nested_fences(),
    "nested Markdown": _full("```md\n"),
    "nested Markdown, longer and longer": "".join("`" * n + "md\n" for n in range(3, 880)),
    "fences in a string": _full("```\n", before='```python\n"""\n'),
    "list marks before a fence": _full("1. ", after="```python\nf()\n```"),
    "quote marks": _full("> "),
    "quote marks before a fence": _full(">", after="```python\nf()\n```"),
    "blanks before a fence": _full(" ", after="```python\nf()\n```"),
    "blanks behind a word": _full(" ", before=_HEAD + "x", after="y"),
    "indented fences": _full(
        " ", before="```python\n" + " " * 190_000 + "x = f()\n", after="y = 1"
    ),
    "blocks": _full("```python\nx = 1\n```\n"),
    "blocks that need one another": _full("```python\nx = y\n```\n"),
    "blocks without a statement": _full("```python\nx\n```\n"),
    "blocks that give what the last one takes": (
        "".join(f"```python\nn{n}=1\n```\n" for n in range(12_000))
        + "```python\nf("
        + ",".join(f"n{n}" for n in range(12_000))
        + ")\n```"
    ),
    "empty blocks": _full("```python\n```\n"),
    # Reasoning
    "think": _full("<think>\n"),
    "think in a line": _full("<think>"),
    "think and its end": _full("<think></think>"),
    "think and its end, on lines": _full("<think>\n</think>\n"),
    "ends of think": _full("</think>"),
    "tags that never close": _full("<think "),
    "tags that never close, on lines": _full("<think \n"),
    "kinds of reasoning by turns": _full("<think>\n<reasoning>\n[THINK]\n"),
    "brackets of reasoning": _full("[THINK]"),
    "channels": _full("<|channel|>analysis<|message|>"),
    "channels by turns": _full("<|channel|>analysis<|message|>x<|channel|>final<|message|>"),
    "calls in channels": _full("<|channel|>commentary to=a <|constrain|>json<|message|>{"),
    "half a call in a channel": _full("a", before="<|channel|>commentary to="),
    "blanks in a channel": _full(" ", before="<|channel|>", after="x"),
    "blanks in a call": _full(" ", before="<|channel|>commentary to=a", after="x"),
    "special tokens": _full("<|im_end|>"),
    "ends of sentences": _full("</s> "),
    "bars": _full("<\uff5c"),
    # Wrappers
    "code tags": _full("<code>"),
    "code tags and their ends": _full("<code></code>"),
    "half a code tag": _full("<code "),
    "blanks in a code tag": _full(" ", before="<code"),
    "lines in a code tag": _full("\n", before="<code", after="<"),
    "parameters": _full('<parameter name="code">'),
    "half a parameter": _full("<parameter "),
    "blanks in a parameter": _full(" ", before="<parameter"),
    "argument pairs": _full("<arg_key>code</arg_key>"),
    "tool calls": _full("<tool_call>"),
    "tool calls, half open JSON": _full('<tool_call>{"code": '),
    "tool calls, half open text": _full('\\"', before='<tool_call>{"code": "'),
    "tool calls and braces": _full('{"a":1}', before="<tool_call>"),
    "JSON in JSON": _json_in_json(),
    "half open JSON": _full('{"code": '),
    "JSON and blanks": _full(" ", before="{}", after="x"),
    "JSON and blanks by turns": _full("} ", before="{", after="x"),
    "JSON texts": _full('"{",', before="[", after='"a"]'),
    "open brackets of JSON": _full("["),
    "a number of JSON": _full("1", before='{"code": ', after="}"),
    "Python tags": _full("<|python_tag|>"),
    "CDATA": _full("]]> ", before="<code><![CDATA["),
    "entities": _full("&lt;", before="<code>"),
    "angle brackets": _full("<"),
    # Lines
    "a letter": _full("a"),
    "assignments in a line": _full("a = "),
    "assignments, then no code": _full("a.", after="!"),
    "names with commas": _full("a, ", before="import "),
    "blanks": _full(" "),
    "lines": _full("\n"),
    "brackets": _full("("),
    "brackets on lines": _full("x = (\n", before="import a\n"),
    "closing brackets": _full(")"),
    "closing brackets, then no code": _full(")" * 1_900 + "!\n", before=_HEAD),
    "definitions": _full("def a(\n", before=_HEAD),
    "definitions with long names": _full("def " + "a" * 1_900 + "\n", before=_HEAD),
    "annotations and blanks": _full("a: " + " " * 1_900 + "!\n", before=_HEAD),
    "keys and tabs": _full("a:" + "\t" * 1_900 + "\n", before=_HEAD),
    "subscripts": _full("a[", before=_HEAD),
    "loops": _full("for ", before=_HEAD),
    "loops and blanks": _full("for " + " " * 480 + "\n", before=_HEAD),
    "lambdas": _full("lambda "),
    "lambdas in a block": _full("lambda ", before=_HEAD),
    "words and blanks": _full("a" + " " * 480 + "!\n", before=_HEAD),
    "words in a block": _full("a" * 499 + "\n", before=_HEAD),
    "walruses": _full("a :", before=_HEAD),
    "imports from": _full("from a ", before=_HEAD),
    "dots": _full("a.", before=_HEAD),
    "prose": _full("Word word word word word\n", before="import a\nf()\n"),
    "prose in a line": _full("Word ", before="import a\nf()\n", after="\\"),
    "prompts": _full(">>> "),
    "prompts on lines": _full(">>> f(x)\n"),
    "prompts in a block": _full(">>> f(x)\n", before="```python\n"),
    "cells of a notebook": _full("In [1]: "),
    "line numbers": _HEAD + "\n".join(f"{n} x = f({n})" for n in range(20_000)),
    "a line number of 5,000 digits": "```python\n" + ("1" * 5_000 + " x = f()\n") * 2 + "```",
    "digits on lines": _full("1" * 5_000 + "\n", before="```python\n"),
    "shell lines": _full("!a\n", before="```python\n"),
    "quotes for fences": _full("''' ", before="'''python\n"),
    "escaped lines": _full("\\n", before="```python\n"),
    "equals signs": _full("= ", before=_HEAD),
    "carriage returns": _full("\r"),
    "pipes": _full("|", after="\n=1"),
    "saves": _full(".save ", before=_HEAD),
    "no-break blanks": _full("\u00a0", before=_HEAD, after="x"),
    "null characters": _full("\0"),
    "lone surrogates": _full("\ud800", before=_HEAD),
    "decorators": _full("@a\n"),
    "statements": _full("a;"),
    "comparisons": _full("a<", after="a"),
    "calls of calls": _full("()", before="a"),
    "signs": _full("-", after="1"),
    "nothing but colons": _full(":"),
    # Lines of several blocks, of which names are compared, and lines without any mark
    "definitions without an end, by blocks": _full("def a\n", before=_SAVED, after=_END),
    "parameters without an end, by blocks": _full("def a (')'\n", before=_SAVED, after=_END),
    "long names, by blocks": _full("a" * 499 + "\n", before=_SAVED, after=_END),
    "loops, by blocks": _full("for " * 124 + "\n", before=_SAVED, after=_END),
    "loops and blanks, by blocks": _full("for" + " " * 490 + "\n", before=_SAVED, after=_END),
    "blanks, by blocks": _full("a" + " " * 490 + "!\n", before=_SAVED, after=_END),
    "lambdas, by blocks": _full("lambda " * 70 + "\n", before=_SAVED, after=_END),
    "lambdas and blanks, by blocks": _full("lambda" + " " * 490 + "!\n", before=_SAVED, after=_END),
    "lambdas and lines, by blocks": _full("lambda\n", before=_SAVED, after=_END),
    "lines between words, by blocks": _full("\n", before=_SAVED + "a", after=_END),
    "dotted names, by blocks": _full("a." * 240 + "\n", before=_SAVED, after=_END),
    "commas, by blocks": _full("a, " * 160 + "\n", before=_SAVED, after=_END),
    "annotations, by blocks": _full("a:" + " :" * 240 + "\n", before=_SAVED, after=_END),
    "imports, by blocks": _full("from from ", before=_SAVED, after=_END),
    "keywords, by blocks": _full("import as ", before=_SAVED, after=_END),
    "long names to define": _full("def " + "a" * 1_900 + "\n", before="import a\n"),
    "names and dots to assign": _full("a." * 950 + "!\n", before="import a\n"),
    "blanks after a colon": _full("a:" + " " * 1_900 + "!\n", before="import a\n"),
    "tabs after a colon": _full("a:" + "\t" * 1_900 + "\n", before="import a\n"),
    "brackets that close, and a mark": _full(")" * 1_900 + "!\n", before="import a\n"),
    "colons in a header": _full("if " + ": " * 950 + "!\n", before="import a\n"),
    "commas to assign": _full("a," * 950 + "!\n", before="import a\n"),
    "imports to read": _full("import " + "a," * 950 + "!\n", before="import a\n"),
    "calls to read": _full("f(" + ")" * 1_900 + "!\n", before="import a\n"),
    "sentences": _full("Word" + " word" * 380 + "!!\n", before="import a\nf()\n"),
    "half a sentence": _full("W" + "w" * 1_900 + "\n", before="import a\nf()\n"),
    "comments": _full("#\n", before=_HEAD),
}

HOSTILE = tuple(_MADE)
"""The pieces of which the replies are made."""

HURT = frozenset(
    {
        "escaped quotes in a block",
        "escaped quotes in a bare program",
        "escaped single quotes",
        "escaped triple quotes in every block",
        "backticks",
        "tildes",
        "backticks before a letter",
        "nested fences",
        "nested Markdown",
        "blocks without a statement",
        "blanks in a code tag",
        "JSON in JSON",
        "JSON and blanks",
        "a line number of 5,000 digits",
        "digits on lines",
        "loops and blanks, by blocks",
        "blanks, by blocks",
        "lambdas and blanks, by blocks",
        "long names to define",
        "blanks after a colon",
        "brackets that close, and a mark",
        "f-strings",
    }
)
"""Replies that took more than two seconds, or caused an error, before patterns were possessive."""


def hostile_reply(kind: str, chars: int = MAX_REPLY_CHARS) -> str:
    """Makes a reply of a kind, with about this many characters if the kind allows a choice."""
    made = _MADE[kind]
    return made if isinstance(made, str) else made(chars)
