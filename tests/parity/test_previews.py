"""What prompts show of the input workbooks of the published suites, to the byte.

Prompts that differ make runs that cannot be compared. The digests are those of the texts that were
shown when previews still had a reader of their own; where one changes, all texts are to be compared
with those of the state before, and each difference needs a reason.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from benchmarks.pairs import SUITE, VERIFIED
from judge.inference.choices import CONTENT_FORMS
from judge.inference.content import ContentLimits, render_content
from judge.workbook.preview import read_preview

pytestmark = pytest.mark.data

SHOWN = {
    "pandas": "0f3125e36efc8ca97ba447342292a92e5a379f98e1e0abe3af9f32a2dacb9146",
    "markdown": "7d7d719bc4d5f5f45300264a1f9b0dd5cd8895887c1126293f9d320834fb5c19",
    "csv": "1c975f63fcf039a709d69860f5229b9ee35938acc4e3b709dec7681cbec36cae",
    "addresses": "354e19c7314c3fa7770d89c48a8107f7c36c8fa3fec521ca8469fcc9a7f21f28",
    "info": "7b57bb1a32487709eba9b0b1408a6fa5ebcc889b21e51e0e66ff12e750ddcfd5",
}


def test_prompts_show_the_same(judge_data: Path) -> None:
    inputs = [
        *sorted((judge_data / SUITE).rglob("*_input.xlsx")),
        *sorted((judge_data / VERIFIED).rglob("*_init.xlsx")),
    ]
    assert len(inputs) == 1021
    limits = ContentLimits()
    digests = {form: hashlib.sha256() for form in CONTENT_FORMS}
    for path in inputs:
        sheets = read_preview(path, limits.rows + 1)
        for form, digest in digests.items():
            digest.update(render_content(sheets, form, limits).encode())
    assert {form: digest.hexdigest() for form, digest in digests.items()} == SHOWN
