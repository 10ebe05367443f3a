"""Metrics for PDF files: the number of pages, and their text.

Sources, read and not run: ``compare_pdfs`` (xlang-ai/Spider2-V, chrome.py at 34684a67) and
``check_pdf_pages`` (a public copy of OSWorld's pdf.py). The published functions extract the text
with PyMuPDF. Here pypdf does that, inside the sandbox, so a score below 1 may differ from the
published one.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import py_compile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.compare.files.metric import (
    MISSING,
    Metric,
    MetricInput,
    Mismatch,
    UnreadableAnswerError,
    first_difference,
)
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules.methods import matches, ratio
from judge.compare.sealed import SealedFiles, UnreadableFileError
from judge.errors import RecalcError, how_to_install

_MAX_UNEQUAL_SCORE = 1 - 1 / 32_768  # texts that differ never get the score 1


@functools.cache
def _library() -> bytes:
    """Returns pypdf as an archive for the sandbox to import, with source and compiled files.

    Compiling takes a second. The sandbox uses the compiled files if its Python has the same
    version.
    """
    spec = importlib.util.find_spec("pypdf")
    if spec is None or spec.origin is None:
        raise RecalcError(
            "PDF is read with pypdf, which is not installed", hint=how_to_install("pdf")
        )
    folder = Path(spec.origin).parent
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as temporary, zipfile.ZipFile(buffer, "w") as archive:
        compiled = Path(temporary, "module.pyc")
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        for source in sorted(folder.rglob("*.py")):
            name = source.relative_to(folder.parent)
            archive.write(source, str(name), zipfile.ZIP_DEFLATED)  # seldom read
            py_compile.compile(str(source), str(compiled), dfile=str(name), invalidation_mode=mode)
            archive.write(compiled, str(name.with_suffix(".pyc")))
    return buffer.getvalue()


def read_pages(
    files: SealedFiles | None, data: bytes, *, with_text: bool = True
) -> Mapping[str, Any]:
    """Reads the number of ``pages`` of a PDF file, and their text.

    Args:
        files: reads the file in the sandbox; None if there is no sandbox.
        data: the file.
        with_text: whether to read the text.

    Raises:
        UnreadableFileError: the file is not a PDF file, or reading it exceeds a limit.
        RecalcError: there is no sandbox, or it cannot read PDF.
    """
    if files is None:
        raise RecalcError("PDF files are read in a sandbox, and no sandbox is available")
    library = _library()
    options = {"library_bytes": len(library), "texts": with_text}
    return files.read_file("pypdf", library + data, options)


def _read(
    metric_input: MetricInput, data: bytes, side: Side, *, texts: bool = True
) -> Mapping[str, Any]:
    try:
        return read_pages(metric_input.files, data, with_text=texts)
    except UnreadableFileError as error:
        if side is Side.GOLD:
            raise PublishedError("PdfReadError", str(error), side) from error
        raise UnreadableAnswerError(str(error)) from error


def published_pages(metric_input: MetricInput) -> float:
    """Compares the number of pages with the number in the task."""
    if metric_input.answer is None:
        return 0.0
    rule = {"method": metric_input.rule("relation"), "ref": metric_input.rule("ref_value")}
    try:
        count = _read(metric_input, metric_input.answer, Side.ANSWER, texts=False)["pages"]
    except UnreadableAnswerError as error:
        raise PublishedError("PdfReadError", str(error), Side.ANSWER) from error
    return float(matches(count, rule))


def right_pages(metric_input: MetricInput) -> Mismatch | None:
    """Compares the number of pages with the number in the task."""
    rule = {"method": metric_input.rule("relation"), "ref": metric_input.rule("ref_value")}
    if metric_input.answer is None:
        return MISSING
    count = _read(metric_input, metric_input.answer, Side.ANSWER, texts=False)["pages"]
    if matches(count, rule):
        return None
    return Mismatch(f"{rule['method']} {rule['ref']}", count, "number of pages")


def published_pdfs(metric_input: MetricInput) -> float:
    """Returns how similar the text of both files is, from 0 to 1."""
    if metric_input.answer is None:
        return 0.0
    try:
        texts = [
            "".join(_read(metric_input, data, side)["texts"]).strip()
            for data, side in (
                (metric_input.answer, Side.ANSWER),
                (metric_input.bytes_of_gold, Side.GOLD),
            )
        ]
    except (UnreadableAnswerError, PublishedError):
        return 0.0
    if texts[0] == texts[1]:
        return 1.0
    return min(ratio(texts[0], texts[1]) / 100, _MAX_UNEQUAL_SCORE)


def right_pdfs(metric_input: MetricInput) -> Mismatch | None:
    """Compares the words of each page, in order."""
    gold = _read(metric_input, metric_input.bytes_of_gold, Side.GOLD)
    if metric_input.answer is None:
        return MISSING
    own = _read(metric_input, metric_input.answer, Side.ANSWER)
    pages = [[" ".join(text.split()) for text in pdf["texts"]] for pdf in (gold, own)]
    return first_difference(pages[0], pages[1], "page")


METRICS = {
    "check_pdf_pages": Metric(published_pages, right_pages),
    "compare_pdfs": Metric(published_pdfs, right_pdfs),
}
