"""Cell formats of a workbook, as far as values need them: which number format each one has."""

from __future__ import annotations

from judge.compare.number_formats import NumberFormats
from judge.compare.package import Package, check_token, feed, new_parser
from judge.errors import WorkbookError


class _EnoughError(Exception):
    """The cell formats have been read."""


def read_number_formats(package: Package, part: str | None) -> NumberFormats:
    """Number formats by cell format; none where the workbook has no style sheet.

    Raises:
        WorkbookError: the style sheet is broken or over a limit.
    """
    if part is None or part not in package:
        return NumberFormats()
    custom: dict[int, str] = {}
    ids: list[int] = []
    path: list[str] = []
    parser = new_parser()

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        path.append(name)
        if len(path) != 3:
            if len(path) > package.budget.limits.depth:
                raise WorkbookError(f"{part} nests too many elements")
            return
        if name == "xf" and path[1] == "cellXfs":
            ids.append(_whole_number(attributes.get("numFmtId") or "0", part))
        elif name == "numFmt" and path[1] == "numFmts":
            number = _whole_number(attributes.get("numFmtId", ""), part)
            custom[number] = attributes.get("formatCode", "")

    def on_end(_: str) -> None:
        if path.pop() == "cellXfs" and len(path) == 1:
            raise _EnoughError

    parser.StartElementHandler = on_start
    parser.EndElementHandler = on_end
    fed = 0
    try:
        for chunk in package.chunks(part):
            feed(parser, chunk, part)
            fed += len(chunk)
            check_token(parser, fed, part, package.budget.limits)
        feed(parser, b"", part, final=True)
    except _EnoughError:
        pass
    return NumberFormats(tuple(ids), custom)


def _whole_number(text: str, part: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise WorkbookError(f"{part} holds {text[:30]!r} where a whole number belongs") from None
