"""Renders pages: templates, styles, scripts, coloured source code, content security policy."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined, TemplateNotFound
from markupsafe import Markup
from pygments.lexers import PythonLexer
from pygments.token import Token

from judge.console import counted
from judge.core.records.runs import served_model
from judge.core.verdict import Verdict
from judge.report.html.figures import lines, plain, visible
from judge.report.html.plots import interval_strip
from judge.version import __version__

VERDICT_WORDS = {verdict.value: verdict.description for verdict in Verdict}
"""Code of a verdict -> its meaning."""

LOOK = "look.css"
"""The style sheet of all pages: light and dark colours, fonts, controls."""


@dataclass(frozen=True, slots=True)
class Assets:
    """Scripts and style sheets of a page.

    Attributes:
        scripts: names of scripts of this package, in order; they are joined into one.
        styles: names of style sheets of this package, in order; they follow :data:`LOOK`.
    """

    scripts: tuple[str, ...] = ()
    styles: tuple[str, ...] = ("style.css",)

    @property
    def css(self) -> str:
        """The style sheets, joined into one."""
        return "\n".join(map(asset, (LOOK, *self.styles)))

    @property
    def js(self) -> str:
        """The scripts, joined into one; empty if there are none."""
        text = "\n".join(map(asset, self.scripts))
        return f"(() => {{\n{text}\n}})();" if text else ""


@cache
def asset(name: str, package: str = __package__) -> str:
    """Reads a template, style sheet or script of a package that has pages."""
    return (files(package) / "templates" / name).read_text(encoding="utf-8")


class _Templates(BaseLoader):
    """Loads a template from the first package that has it, however packages are installed."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages

    def get_source(self, environment: Environment, template: str) -> tuple[str, None, None]:
        """Reads a template."""
        del environment
        if "/" not in template and template.endswith(".html"):
            for package in self._packages:
                with contextlib.suppress(FileNotFoundError):
                    return asset(template, package), None, None
        raise TemplateNotFound(template)


@cache
def environment(package: str = __package__) -> Environment:
    """The environment of all pages: all text is escaped, and every unknown name is an error.

    Each package has one environment, which keeps its compiled templates, because compiling a
    template takes longer than filling it.

    Args:
        package: a package whose templates are used in addition to those of this package.
    """
    jinja = Environment(
        loader=_Templates(list(dict.fromkeys((package, __package__)))),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.filters.update(visible=visible, lines=lines, plain=plain, counted=counted)
    jinja.filters.update(percent=percent, served_model=served_model, heading_spans=_heading_spans)
    jinja.globals.update(verdict_words=VERDICT_WORDS, strip=interval_strip)
    return jinja


def render_page(
    template: str,
    context: Mapping[str, Any],
    assets: Assets,
    *,
    linked: str = "",
    connects: bool = False,
    pictures: bool = False,
) -> str:
    """Renders a page that contains its style and script, or has links to them.

    Args:
        template: name of a template that extends ``page.html``.
        context: the values for the template.
        assets: its style and script.
        linked: the address of both on the server, without ``.css`` and ``.js``, if the page has
            links; the server then sends the policy in a header.
        connects: whether the script may send requests to the page's own server.
        pictures: whether the page may show pictures that it contains.
    """
    page = environment().get_template(template)
    inside = {"css": "", "js": "", "policy": ""}
    if not linked:
        css, js = assets.css, assets.js
        inside = {
            "css": Markup(css),  # noqa: S704 - ours
            "js": Markup(js),  # noqa: S704 - ours
            "policy": policy(css, js, connects=connects, pictures=pictures),
        }
    return page.render({**context, **inside, "linked": linked, "judge_version": __version__})


def percent(share: float | None) -> str:
    """A share from 0 to 1 as a percentage with one decimal; a dash for None."""
    return "-" if share is None else f"{100 * share:.1f}"


def _heading_spans(columns: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """The headings above the columns of a table, each with the number of columns that it spans."""
    alike = itertools.groupby(columns, key=lambda column: str(column["heading"]))
    return [(heading, len(list(group))) for heading, group in alike]


def policy(css: str, js: str, *, connects: bool, pictures: bool = False) -> str:
    """The content security policy, which allows only this style and this script."""
    rules = {
        "default-src": "'none'",
        "script-src": _hash(js),
        "style-src": _hash(css),
        **({"img-src": "data:"} if pictures else {}),
        "connect-src": "'self'" if connects else "'none'",
        "base-uri": "'none'",
        "form-action": "'self'" if connects else "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def inline_json(value: Any) -> Markup:
    """JSON that is safe inside a script element, because nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - markup is escaped


_KINDS = (
    (Token.Comment, "c"),
    (Token.Keyword, "k"),
    (Token.Literal.String.Doc, "c"),
    (Token.Literal.String, "s"),
    (Token.Literal.Number, "m"),
    (Token.Name.Function, "f"),
    (Token.Name.Class, "f"),
    (Token.Name.Builtin, "b"),
    (Token.Name.Exception, "b"),
    (Token.Operator.Word, "k"),
)

_MAX_CODE_CHARS = 400_000


def highlight(code: str) -> list[tuple[str, str]]:
    """Splits Python source into pieces, each with a letter for its kind.

    Returns:
        ``(kind, text)``: comments ``c``, keywords ``k``, strings ``s``, numbers ``m``, names of
        functions and classes ``f``, built-in names ``b``, an empty string for anything else. Joined
        together, the pieces are the source.
    """
    if len(code) > _MAX_CODE_CHARS:
        return [("", code)]
    pieces: list[tuple[str, str]] = []
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    for _, token, text in lexer.get_tokens_unprocessed(code):
        kind = _kind(token)
        if pieces and (pieces[-1][0] == kind or not text.strip()):
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + text)
        else:
            pieces.append((kind, text))
    return pieces


def _kind(token: Any) -> str:
    return next((kind for parent, kind in _KINDS if token in parent), "")
