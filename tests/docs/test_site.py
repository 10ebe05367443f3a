"""The documentation site: every page is in its navigation, and its links lead to pages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "scripts"))
import docs_site

DOCS = REPOSITORY / "docs"


class Names(yaml.SafeLoader):
    """Reads YAML with tags as plain values."""


Names.add_multi_constructor("!", lambda loader, _, node: loader.construct_scalar(node))
Names.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def pages(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        values = entry.values() if isinstance(entry, dict) else [entry]
        for value in values:
            yield from pages(value) if isinstance(value, list) else [value]


def named() -> list[str]:
    settings = yaml.load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"), Names)
    return list(pages(settings["nav"]))


def test_the_navigation_names_every_page_once() -> None:
    own = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(named()) == sorted(own | set(docs_site.OUTSIDE.values()))
    assert all((REPOSITORY / document).is_file() for document in docs_site.OUTSIDE)


class Files:
    """Returns the pages of the site."""

    def get_file_from_path(self, path: str) -> str | None:
        return path if path in named() else None


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("suites.md", "[x](../dataset/schema.md#ids)", "[x](dataset/schema.md#ids)"),
        ("overview.md", "[x](docs/rules.md)", "[x](rules.md)"),
        ("overview.md", "[x](docs/decisions)", "x"),
        ("glossary.md", "[x](../README.md#verdicts)", "[x](overview.md#verdicts)"),
        ("dataset/schema.md", "[x](../docs/suites.md)", "[x](../suites.md)"),
        ("decisions/0018-published-and-standard.md", "[`x`](../../judge/boards/x.py)", "`x`"),
        ("suites.md", "[x](https://example.org) [y](#z)", "[x](https://example.org) [y](#z)"),
        ("suites.md", "```\n[x](../README.md)\n```", "```\n[x](../README.md)\n```"),
    ],
)
def test_links_lead_to_pages_of_the_site(page: str, link: str, expected: str) -> None:
    class Page:
        class file:  # noqa: N801
            src_uri = page

    assert docs_site.on_page_markdown(link, Page, None, Files()) == expected


def test_start_pages_run_only_commands_that_exist() -> None:
    from judge.cli.main import COMMANDS  # noqa: PLC0415

    for path in [DOCS / "index.md", *sorted((DOCS / "start").glob("*.md"))]:
        fenced = path.read_text(encoding="utf-8").split("```")[1::2]
        lines = [line for block in fenced for line in block.splitlines()]
        used = {line.split()[1] for line in lines if line.startswith("judge ")}
        assert used <= set(COMMANDS), path
