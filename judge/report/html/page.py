"""Pages as text: templates, style, script, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined, TemplateNotFound
from markupsafe import Markup

from judge.core.records.runs import served_model
from judge.report.html.figures import plain, visible
from judge.version import __version__

TEMPLATES = frozenset(
    {"page.html", "macros.html", "report.html", "summary.html", "tasks.html"}
    | {"runs.html", "compare.html", "review.html", "live.html"}
)


class _Templates(BaseLoader):
    """The templates of this package, wherever it is installed."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, None, None]:
        """The text of a template."""
        del environment
        if template not in TEMPLATES:
            raise TemplateNotFound(template)
        return asset(template), None, None


LOOK = "look.css"
"""The style sheet of all pages: colours in light and dark, letters, controls."""


@cache
def asset(name: str) -> str:
    """The text of a template, a style sheet or a script of this package."""
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def escaping_environment(loader: BaseLoader) -> Environment:
    """An environment in which all text is escaped and every unknown name is an error."""
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["visible"] = visible
    made.filters["plain"] = plain
    return made


@cache
def environment() -> Environment:
    """The environment of all pages: all text is escaped, every unknown name is an error.

    There is one, which keeps the templates that it has compiled: compiling them takes longer
    than filling them.
    """
    made = escaping_environment(_Templates())
    made.filters["served_model"] = served_model
    made.filters["heading_spans"] = _heading_spans
    return made


def render_page(
    template: str,
    context: Mapping[str, Any],
    *,
    scripts: tuple[str, ...],
    styles: tuple[str, ...] = ("style.css",),
    connects: bool = False,
    pictures: bool = False,
) -> str:
    """One page with its style and its script inside.

    Args:
        template: name of a template that extends ``page.html``.
        context: what it is filled with.
        scripts: scripts of this package, in order; they become one.
        styles: style sheets of this package, in order; they follow :data:`LOOK`.
        connects: whether the script may ask the server that the page came from.
        pictures: whether pictures may be shown that are inside the page.
    """
    css = "\n".join(map(asset, (LOOK, *styles)))
    js = "(() => {\n" + "\n".join(asset(name) for name in scripts) + "\n})();" if scripts else ""
    page = environment().get_template(template)
    return page.render(
        {
            **context,
            "css": Markup(css),  # noqa: S704 - ours
            "js": Markup(js),  # noqa: S704 - ours
            "policy": policy(css, js, connects=connects, pictures=pictures),
            "judge_version": __version__,
        }
    )


def _heading_spans(columns: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """The headings over the columns of a table, each with how many of them it is over."""
    alike = itertools.groupby(columns, key=lambda column: str(column["heading"]))
    return [(heading, len(list(group))) for heading, group in alike]


def policy(css: str, js: str, *, connects: bool, pictures: bool = False) -> str:
    """The content security policy: this style, this script, and nothing from anywhere."""
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
    """JSON that is safe inside a script element: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - no markup is left in it
