"""Documents that prompts quote; they are cut into chunks, and BM25 finds the chunks that fit.

This is the only module that imports ``bm25s``, ``markdownify`` and ``semantic_text_splitter``,
which the extra ``documents`` installs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.errors import UsageError, how_to_install
from judge.files.documents import MIB, read_text

if TYPE_CHECKING:
    import bm25s

CHUNK_TOKENS = 512
OVERLAP_TOKENS = 20
SHOWN_CHUNKS = 4
TOKENIZER_OF = "gpt-3.5-turbo"
"""The model whose tokenizer counts tokens. Model and sizes are those of Spider2-V's retrieval."""

_TEXTS = (".txt", ".md")
_PAGES = (".html", ".htm")
_MAX_FILES = 10_000
_MAX_FILE_BYTES = 8 * MIB
_MAX_BYTES = 256 * MIB


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document.

    Attributes:
        file: path of the document within its folder, with forward slashes.
        part: 1-based number of the chunk in the document.
        text: the text of the chunk.
    """

    file: str
    part: int
    text: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the text, in hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A chunk that fits a query.

    Attributes:
        chunk: the chunk.
        score: its BM25 score, above 0; higher is better.
    """

    chunk: Chunk
    score: float

    @property
    def record(self) -> dict[str, object]:
        """Returns the record of the excerpt, without its text, which is in the conversation."""
        chunk = self.chunk
        return {
            "file": chunk.file,
            "part": chunk.part,
            "sha256": chunk.sha256,
            "score": round(self.score, 4),
        }


class DocumentFolder:
    """The documents of a folder, ready to be searched.

    Args:
        path: a folder with ``.txt``, ``.md`` and ``.html`` files; other files are not read. HTML is
            converted to Markdown.

    Raises:
        UsageError: the folder contains no text, a file cannot be read or is a link out of the
            folder, or the libraries are not installed.
    """

    def __init__(self, path: Path) -> None:
        _check_installed()
        self.path = path
        self.chunks = tuple(_chunks(path))
        if not self.chunks:
            raise UsageError(
                f"{path}: holds no text to quote from",
                hint=f"Files that are read: {', '.join((*_TEXTS, *_PAGES))}.",
            )
        self._index = _index(self.chunks)

    @property
    def identity(self) -> Mapping[str, str]:
        """The folder's contents and the method of search, for ``run.json``."""
        digest = hashlib.sha256()
        for chunk in self.chunks:
            digest.update(f"{chunk.file}\0{chunk.part}\0{chunk.sha256}\n".encode())
        files = len({chunk.file for chunk in self.chunks})
        return {
            "documents": f"{len(self.chunks)} chunks of {files} documents, {CHUNK_TOKENS} tokens "
            f"with {OVERLAP_TOKENS} overlap, the first {SHOWN_CHUNKS} by bm25s {version('bm25s')}",
            "documents_sha256": digest.hexdigest(),
        }

    def find(self, query: str) -> tuple[Excerpt, ...]:
        """Returns the chunks that fit a query best, the best one first.

        Chunks that share no word with the query are left out. Chunks with equal scores keep their
        order in the folder.
        """
        words = _words([query])[0]
        if not words:
            return ()
        scores = self._index.get_scores(words)
        best = (-scores).argsort(kind="stable")[:SHOWN_CHUNKS]
        return tuple(
            Excerpt(self.chunks[index], float(scores[index]))
            for index in map(int, best)
            if scores[index] > 0
        )


def _check_installed() -> None:
    try:
        import bm25s  # noqa: F401, PLC0415  loaded where documents are used
        import markdownify  # noqa: F401, PLC0415
        import semantic_text_splitter  # noqa: F401, PLC0415
    except ImportError as error:
        raise UsageError(
            f"--documents needs libraries that are not installed: {error}",
            hint=how_to_install("documents"),
        ) from error


def _chunks(folder: Path) -> Iterator[Chunk]:
    from semantic_text_splitter import TextSplitter  # noqa: PLC0415

    splitter = TextSplitter.from_tiktoken_model(TOKENIZER_OF, CHUNK_TOKENS, OVERLAP_TOKENS)
    read = 0
    for path in _files(folder):
        text = read_text(path, UsageError, max_bytes=_MAX_FILE_BYTES)
        read += len(text)
        if read > _MAX_BYTES:
            raise UsageError(f"{folder}: the documents have more than {_MAX_BYTES // MIB} MiB")
        if path.suffix.lower() in _PAGES:
            text = _text_of_page(path, text)
        name = path.relative_to(folder).as_posix()
        for part, piece in enumerate(splitter.chunks(text), start=1):
            yield Chunk(name, part, piece)


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UsageError(
            f"{folder}: no such folder", hint="--documents takes a folder with documents."
        )
    root = folder.resolve()
    files: list[Path] = []
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        if path.suffix.lower() not in {*_TEXTS, *_PAGES} or path.is_dir():
            continue
        if not path.resolve().is_relative_to(root):
            raise UsageError(f"{path}: leads out of {folder}", hint="Copy the file there.")
        files.append(path)
        if len(files) > _MAX_FILES:
            raise UsageError(f"{folder}: holds more than {_MAX_FILES:,} documents")
    return files


def _text_of_page(path: Path, page: str) -> str:
    from markdownify import markdownify  # noqa: PLC0415

    try:
        return str(markdownify(page, strip=["a", "img"], heading_style="ATX"))
    except RecursionError as error:
        raise UsageError(f"{path}: its elements are nested too deeply to be read") from error


def _words(texts: list[str]) -> list[list[str]]:
    import bm25s  # noqa: PLC0415

    words: list[list[str]] = bm25s.tokenize(texts, return_ids=False, show_progress=False)
    return words


def _index(chunks: tuple[Chunk, ...]) -> bm25s.BM25[Any]:
    import bm25s  # noqa: PLC0415

    index = bm25s.BM25()
    index.index(_words([chunk.text for chunk in chunks]), show_progress=False)
    return index
