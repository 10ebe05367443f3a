"""Documents that prompts quote: what is read, how it is cut, which parts are found."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import pytest

from judge.errors import UsageError, how_to_install
from judge.inference.documents import SHOWN_CHUNKS, DocumentFolder

PAGE = """<html><head><style>p {color: red}</style><script>var pivot = 1;</script></head>
<body><h1>Freeze panes</h1><p>Choose <b>View</b> &gt; Freeze.</p></body></html>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "chart.md").write_text("# Charts\n\nA line chart shows totals over months.")
    (tmp_path / "deep" / "panes.html").write_text(PAGE)
    (tmp_path / "sum.txt").write_text("SUM adds the values of a range.")
    (tmp_path / "picture.png").write_bytes(b"chart chart chart")
    return tmp_path


def test_texts_are_found_by_their_words(folder: Path) -> None:
    documents = DocumentFolder(folder)
    assert [chunk.file for chunk in documents.chunks] == ["chart.md", "deep/panes.html", "sum.txt"]
    (found,) = documents.find("Please create a LINE chart.")
    assert (found.chunk.file, found.chunk.part) == ("chart.md", 1)
    assert found.score > 0
    assert found.record == {
        "file": "chart.md",
        "part": 1,
        "sha256": found.chunk.sha256,
        "score": round(found.score, 4),
    }
    page = documents.chunks[1].text
    assert page == "# Freeze panes\n\nChoose **View** > Freeze."


@pytest.mark.parametrize("query", ["", "the of a", "nothing alike here", "\n?!"])
def test_what_shares_no_word_is_not_quoted(folder: Path, query: str) -> None:
    assert DocumentFolder(folder).find(query) == ()


def test_chunks_are_bounded_and_overlap(tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(1500)]
    (tmp_path / "long.txt").write_text(" ".join(words))
    chunks = DocumentFolder(tmp_path).chunks
    assert len(chunks) > 4
    assert [chunk.part for chunk in chunks] == list(range(1, len(chunks) + 1))
    # A token of this vocabulary has at most three digits, so that each word has two or three.
    assert all(512 / 3 - 1 < len(chunk.text.split()) <= 512 / 2 for chunk in chunks[:-1])
    for before, after in itertools.pairwise(chunks):
        shared = set(before.text.split()) & set(after.text.split())
        assert 0 < len(shared) <= 10
    assert {word for chunk in chunks for word in chunk.text.split()} == set(words)


def test_equal_scores_keep_the_order_of_the_folder(tmp_path: Path) -> None:
    for name in "dbacef":
        (tmp_path / f"{name}.txt").write_text("alike in every word")
    found = DocumentFolder(tmp_path).find("every word")
    assert [each.chunk.file for each in found] == ["a.txt", "b.txt", "c.txt", "d.txt"]
    assert len(found) == SHOWN_CHUNKS
    assert len({each.score for each in found}) == 1


def test_the_identity_follows_the_content(folder: Path) -> None:
    before = DocumentFolder(folder).identity
    (folder / "picture.png").write_bytes(b"another")
    assert DocumentFolder(folder).identity == before
    (folder / "sum.txt").write_text("SUM adds up the values of a range.")
    after = DocumentFolder(folder).identity
    assert after["documents_sha256"] != before["documents_sha256"]
    assert after["documents"] == before["documents"]
    assert after["documents"].startswith("3 chunks of 3 documents, 512 tokens with 20 overlap")


def test_folders_that_cannot_be_used(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        DocumentFolder(folder / "none")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with pytest.raises(UsageError, match="holds no text"):
        DocumentFolder(elsewhere)
    (elsewhere / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(elsewhere / "secret.txt")
    with pytest.raises(UsageError, match="leads out of"):
        DocumentFolder(folder)
    (folder / "link.txt").unlink()
    os.mkfifo(folder / "pipe.txt")
    with pytest.raises(UsageError, match=r"pipe\.txt"):
        DocumentFolder(folder)


def test_a_page_that_is_nested_too_deeply_is_named(tmp_path: Path) -> None:
    (tmp_path / "deep.html").write_text("<div>" * 2_000)
    with pytest.raises(UsageError, match=r"deep\.html: its elements are nested too deeply"):
        DocumentFolder(tmp_path)


@pytest.mark.parametrize("missing", ["bm25s", "markdownify", "semantic_text_splitter"])
def test_without_the_extra_the_user_learns_what_to_install(
    missing: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UsageError, match=missing) as found:
        DocumentFolder(folder)
    assert found.value.hint == how_to_install("documents")
