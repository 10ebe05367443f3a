"""``judge compare --board``: two workbooks compared by a check board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.errors import UsageError, WorkbookError

if TYPE_CHECKING:
    from judge.compare.boards.board import Board
    from judge.core.finding import Finding

_COMPUTING = ("recalc", "engine", "lenient_names", "sandbox")


def compare_by_board(gold: Path, output: Path, path: Path, options: dict[str, Any]) -> Finding:
    """Compares two workbooks by the board of a file.

    Args:
        gold: the gold workbook.
        output: the output workbook.
        path: the board, YAML or JSON: as published, or what is below ``check_board`` there.
        options: the command's options: profile, engines.

    Raises:
        UsageError: the file is not a board.
        WorkbookError: a workbook cannot be read.
        GoldFaultError: nothing of what the board asks is in the gold.
    """
    from judge.api.workbooks import Engines  # noqa: PLC0415
    from judge.compare.boards.judging import finding_by_board  # noqa: PLC0415
    from judge.compare.boards.standard import UnusableBoardError  # noqa: PLC0415
    from judge.compare.contract import GoldFaultError  # noqa: PLC0415
    from judge.compare.profiles import get_profile  # noqa: PLC0415
    from judge.compare.rules.book import Book  # noqa: PLC0415
    from judge.compare.rules.raised import Side  # noqa: PLC0415
    from judge.core.submission import Origin  # noqa: PLC0415
    from judge.workbook.reader import open_workbook  # noqa: PLC0415

    board = _read_board(path)
    golden = Book(open_workbook(gold), Side.GOLD)
    answer = Book(open_workbook(output), Side.ANSWER)
    profile = get_profile(options["profile"])
    try:
        with (
            Engines(**{name: options[name] for name in _COMPUTING}) as engines,
            answer.workbook.package.budget.working(),
        ):
            return finding_by_board(
                answer,
                golden,
                board,
                engines,
                Origin.FINISHED,
                published=profile.published,
                profile=profile.name,
            )
    except UnusableBoardError as error:
        raise GoldFaultError(f"{path}: {error}") from error
    except WorkbookError as error:
        named = gold if error.culprit is golden.workbook.package else output
        raise WorkbookError(f"{named}: {error.message}", hint=error.hint) from error


def _read_board(path: Path) -> Board:
    from judge.compare.boards.board import Board  # noqa: PLC0415
    from judge.files.yaml_documents import read_yaml  # noqa: PLC0415

    document = read_yaml(path, UsageError)
    try:
        return Board.of(document)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from error
