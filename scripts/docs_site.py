"""Hooks of MkDocs: add pages from outside of docs/, and adapt links that lead out of docs/.

Documents refer to each other by their paths in the repository, so that the links also work there.
The pages of ``OUTSIDE`` are added to the site under their own paths. A link to anything that is not
a page of the site (a module, a folder) becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "overview.md",  # as README.md it would be the start page
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "dataset/schema.md": "dataset/schema.md",
    "dataset/sample/README.md": "dataset/sample/README.md",
    "dataset/sample-rules/README.md": "dataset/sample-rules/README.md",
    "dataset/sample-checklist/README.md": "dataset/sample-checklist/README.md",
    "dataset/sample-typed/README.md": "dataset/sample-typed/README.md",
}
"""Documents outside of docs/ that are pages of the site: their path in the repository -> the path
in the site."""

_DOCUMENTS = {page: document for document, page in OUTSIDE.items()}
_LINK = re.compile(
    r"\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>(?!https?:|#|mailto:)[^)\s]+)\)"
)


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages from outside of docs/."""
    from mkdocs.structure.files import File  # noqa: PLC0415  only where the site is built

    for document, page in OUTSIDE.items():
        source = str(REPOSITORY / document)
        files.append(File.generated(config, page, abs_src_path=source))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrites the links of a page so that they lead to pages of the site."""
    del config
    here = page.file.src_uri

    def replace(link: re.Match[str]) -> str:
        target, hash_sign, anchor = link["target"].partition("#")
        found = site_path(here, target)
        if files.get_file_from_path(found) is None:
            return link["text"]
        relative = posixpath.relpath(found, posixpath.dirname(here))
        return f"[{link['text']}]({relative}{hash_sign}{anchor})"

    return "".join(
        part if part.startswith("```") else _LINK.sub(replace, part)
        for part in re.split(r"(^```.*?^```)", markdown, flags=re.MULTILINE | re.DOTALL)
    )


def site_path(page: str, target: str) -> str:
    """Returns the path in the site of the document to which a page links.

    Args:
        page: path of the page in the site.
        target: the link, relative to the document in the repository.
    """
    document = _DOCUMENTS.get(page, f"docs/{page}")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(document), target))
    return OUTSIDE.get(path, path.removeprefix("docs/"))
