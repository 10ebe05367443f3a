"""Help and wrong paths of the benchmarks and scripts, which print no tracebacks."""

from __future__ import annotations

import contextlib
import re
import runpy
import sys
from pathlib import Path

import pytest

from benchmarks.command_line import existing, run_command
from judge.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [
    file.name
    for file in sorted(ROOT.glob("scripts/*"))
    if file.is_file() and "def main() -> None:" in file.read_text()
]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_has_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))  # as Python does for a script
    main = runpy.run_path(str(ROOT / "scripts" / name))["main"]
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with contextlib.suppress(SystemExit):
        main()
    assert capsys.readouterr().out.startswith(("usage: ", "Measures "))


@pytest.mark.parametrize("file", sorted(ROOT.glob("benchmarks/*.py")), ids=lambda file: file.stem)
def test_every_benchmark_has_help_and_says_which_path_is_wrong(file: Path) -> None:
    """It has a parser if it is a command, and its positional paths, which it reads, are checked."""
    text = file.read_text()
    assert "parse_args(" in text or '__name__ == "__main__"' not in text
    unchecked = re.findall(r'add_argument\(\s*"[a-z]\w*", type=Path', text)
    assert not unchecked or "parser.error(" in text


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    assert existing(str(tmp_path)) == tmp_path
    with pytest.raises(Exception, match=r"there is no file or folder .*/none"):
        existing(f"{tmp_path}/none")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("two runs are needed", hint="Name both."),
         "error: two runs are needed\nName both."),
        (FileNotFoundError(2, "No such file or directory", "x/dataset.json"),
         "error: x/dataset.json: No such file or directory"),
    ],
)  # fmt: skip
def test_errors_of_a_benchmark_are_sentences(error: Exception, code: str) -> None:
    def main() -> None:
        raise error

    with pytest.raises(SystemExit) as ended:
        run_command(main)
    assert ended.value.code == code
