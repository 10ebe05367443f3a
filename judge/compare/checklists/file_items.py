"""Items about files next to the workbook, and about the reply.

The kinds are ``text``, ``file``, ``table``, ``calendar`` and ``mail``.
"""

from __future__ import annotations

import csv
import datetime as dt
import email
import email.policy
import fnmatch
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from email.message import EmailMessage

from judge.compare.checklists.cell_items import agreement_of, value_of_json
from judge.compare.checklists.items import (
    AMOUNT,
    COUNT,
    NUMBER,
    TEXT,
    TEXT_OR_TEXTS,
    TEXTS,
    TRUTH,
    VALUE,
    Item,
    ItemKind,
    Outcome,
    Reading,
    fails,
    holds,
)
from judge.compare.checklists.workspace import WORKBOOK_SUFFIXES, MissingError, Workspace
from judge.compare.rules.book import text_of
from judge.compare.rules.patterns import PatternError, check_pattern, search
from judge.core.finding import in_words
from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_BITS
from judge.workbook.package import Package
from judge.workbook.tree import read_tree

MAX_CHARS = 1_000_000
"""Largest text that an item searches, in characters; the rest is ignored."""

_MAX_ROWS = 200_000  # of a table; it is held in memory
_PARAGRAPH = re.compile(r"\}(p|tr|br)$")
_NUMBER = re.compile(
    r"(?<![\w.,])(?P<open>\()?(?P<sign>[-+\u2212])?[$\u20ac\u00a3\u00a5]?\s?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?P<rest>\.\d+)?"
    r"(?P<unit>%|(?:[kKmMbB]|bn|mn|x|bps)(?!\w))?(?P<close>\))?(?![\w]|[.,]\d)",
    re.ASCII,
)

# -- the text of a file ----------------------------------------------------------------------------


def text_of_file(workspace: Workspace, name: str) -> str:
    """Returns the text of a file: all cells, paragraphs or PDF pages, or the plain text.

    Raises:
        MissingError: the answer has no such file.
        WorkbookError: the file cannot be read.
        RecalcError: this machine cannot read PDF files.
    """
    path = workspace.path_of(name).lower()
    data = workspace.read(name)
    if path.endswith(WORKBOOK_SUFFIXES):
        return text_of_workbook(workspace, name)[:MAX_CHARS]
    if path.endswith((".docx", ".pptx")):
        return text_of_document(data)[:MAX_CHARS]
    if path.endswith(".pdf"):
        return workspace.pdf_text(data)[:MAX_CHARS]
    return data[: 4 * MAX_CHARS].decode("utf-8", "replace").lstrip("\ufeff")[:MAX_CHARS]


def text_of_workbook(workspace: Workspace, name: str) -> str:
    """Returns the computed cells of all sheets, one line for each row, separated by tabs."""
    book = workspace.book(name)
    lines: list[str] = []
    for sheet in book.workbook.sheet_names:
        rows: dict[int, list[str]] = {}
        for key, value in sorted(book.grid(sheet).values.items()):
            rows.setdefault(key >> COLUMN_BITS, []).append(text_of(value))
        lines += [sheet, *("\t".join(row) for row in rows.values())]
    return "\n".join(lines)


def text_of_document(data: bytes) -> str:
    """Returns the paragraphs of a Word document, including tables, or of a presentation's slides.

    Raises:
        WorkbookError: the file cannot be read.
    """
    package = Package(data)
    names = sorted(
        name
        for name in package.names
        if name == "word/document.xml" or fnmatch.fnmatch(name, "ppt/slides/slide*.xml")
    )
    if not names:
        raise WorkbookError("the file is neither a document nor a presentation")
    texts: list[str] = []
    for name in names:
        for node in read_tree(package, name, text=True).walk():
            if _PARAGRAPH.search(node.name):
                texts.append("\n")
            elif node.name.endswith("}t"):
                texts.append(node.text)
            elif node.name.endswith("}tab"):
                texts.append("\t")
    return "".join(texts)


def numbers_in(text: str) -> list[float]:
    """Returns the numbers in a string, with their signs but without percent signs and units.

    ``1970`` does not contain ``97``, and ``-97`` is not ``97``. A number in brackets is negative.
    """
    numbers = []
    for match in _NUMBER.finditer(text):
        digits = match["digits"].replace(",", "") + (match["rest"] or "")
        if len(digits) > 300:
            continue
        minus = match["sign"] in {"-", "\u2212"} or (match["open"] and match["close"])
        numbers.append(-float(digits) if minus else float(digits))
    return numbers


# -- text ------------------------------------------------------------------------------------------


def _text(item: Item, workspace: Workspace, _: Reading) -> Outcome:
    text = _searched(item, workspace)
    fold = item.fields.get("exact") is not True
    own = _folded(text) if fold else text
    for forbidden in item.texts("without"):
        if (_folded(forbidden) if fold else forbidden) in own:
            return fails(f"no {forbidden!r}", forbidden)
    for required in item.texts("contains"):
        if (_folded(required) if fold else required) not in own:
            return fails(required, _excerpt(text))
    any_of = item.texts("any_of")
    if any_of and not any((_folded(part) if fold else part) in own for part in any_of):
        return fails({"one of": list(any_of)}, _excerpt(text))
    flags = re.IGNORECASE if fold else 0
    patterns = item.texts("patterns")
    if patterns and not any(search(pattern, text, flags, workspace.steps) for pattern in patterns):
        return fails({"one of": list(patterns)}, _excerpt(text))
    if "number" in item.fields:
        tolerance = max(item.number("tolerance"), abs(item.number("number")) * 1e-9)
        numbers = numbers_in(text)
        if not any(abs(part - item.number("number")) <= tolerance for part in numbers):
            return fails(item.fields["number"], numbers[:20])
    return holds(_text_words(item), None)


def _searched(item: Item, workspace: Workspace) -> str:
    """Returns the text that an item searches: a file, the reply, or one key of the reply."""
    if item.file:
        return text_of_file(workspace, item.file)
    key = item.text("reply_key")
    if key:
        document = workspace.reply
        if not isinstance(document, Mapping) or key not in document:
            raise MissingError(f"the reply has no {key!r}")
        return "\n".join(leaves(document[key]))[:MAX_CHARS]
    if workspace.reply_text is None:
        raise MissingError("there is no reply")
    return workspace.reply_text[:MAX_CHARS]


def leaves(value: object) -> Iterator[str]:
    """Yields the values in a JSON document as strings, without keys and ``null``."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting.extend(reversed(list(part.values())))
        elif isinstance(part, list | tuple):
            waiting.extend(reversed(part))
        elif isinstance(part, bool):
            yield str(part).lower()
        elif part is not None:
            yield str(part)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _excerpt(text: str) -> str:
    short = " ".join(text[:400].split())
    return short[:200] + ("…" if len(text) > 200 else "")


def _text_words(item: Item) -> str:
    subject = item.file or (
        f"the reply's {item.text('reply_key')}" if "reply_key" in item.fields else "the reply"
    )
    parts = [f"contains {', '.join(item.texts('contains'))}"] if "contains" in item.fields else []
    if "any_of" in item.fields:
        parts.append(f"contains one of {', '.join(item.texts('any_of'))}")
    if "without" in item.fields:
        parts.append(f"does not contain {', '.join(item.texts('without'))}")
    if "patterns" in item.fields:
        parts.append(f"matches {' or '.join(item.texts('patterns'))}")
    if "number" in item.fields:
        parts.append(f"states the number {item.fields['number']}")
    return f"{subject} {' and '.join(parts)}"


def _text_faults(item: Item) -> Iterator[str]:
    if not {"contains", "any_of", "without", "patterns", "number"} & item.fields.keys():
        yield f"item {item.id} (text): contains, any_of, without, patterns or number is needed"
    for pattern in item.texts("patterns"):
        try:
            check_pattern(pattern)
        except PatternError as error:
            yield f"item {item.id} (text): the pattern {pattern!r}: {error}"


# -- files -----------------------------------------------------------------------------------------


def _file(item: Item, workspace: Workspace, _: Reading) -> Outcome:
    pattern = item.text("pattern")
    if pattern:
        names = [name for name in workspace.files if fnmatch.fnmatchcase(name, pattern)]
        count = item.fields.get("count")
        right = len(names) == count if count is not None else bool(names)
        return (holds if right else fails)(pattern if count is None else count, names[:20])
    path = posixpath.normpath(item.file)
    folder = f"{path}/"
    present = path in workspace.files or any(name.startswith(folder) for name in workspace.files)
    if item.fields.get("exists") is False:
        return fails("no such file", path) if present else holds("no such file")
    if not present:
        return fails(path, sorted(workspace.files)[:20], detail="there is no such file")
    source = item.text("equals")
    if source:
        gold = workspace.golds.get(source)
        if gold is None:
            return fails(detail=f"there is no gold {source!r}")
        same = workspace.files.get(path) == gold
        return holds(source, path) if same else fails(source, path, detail="the bytes differ")
    if item.fields.get("unchanged") is True:
        same = workspace.files.get(path) == workspace.before.get(path)
        return holds("unchanged", path) if same else fails("unchanged", path)
    return holds(path, path)


def _file_words(item: Item) -> str:
    if pattern := item.text("pattern"):
        count = item.fields.get("count")
        return (
            f"there are {count} files {pattern}"
            if count is not None
            else f"there is a file {pattern}"
        )
    if item.fields.get("exists") is False:
        return f"there is no file {item.file}"
    if source := item.text("equals"):
        return f"the file {item.file} equals {source}"
    if item.fields.get("unchanged") is True:
        return f"the file {item.file} is unchanged"
    return f"there is a file {item.file}"


def _file_faults(item: Item) -> Iterator[str]:
    if not item.file and "pattern" not in item.fields:
        yield f"item {item.id} (file): file or pattern is needed"


# -- tables ----------------------------------------------------------------------------------------


def _table(item: Item, workspace: Workspace, _: Reading) -> Outcome:
    rows = _rows(workspace, item)
    header, body = (rows[:1], rows[1:]) if item.fields.get("header") is not False else ([], rows)
    if "rows" in item.fields and len(body) != item.fields["rows"]:
        return fails(item.fields["rows"], len(body), item.file, "rows")
    names = [name.strip() for name in header[0]] if header else []
    columns = item.texts("columns")
    if columns and [name.casefold() for name in names] != [name.casefold() for name in columns]:
        return fails(list(columns), names, item.file, "headings")
    if "expected" in item.fields:
        return _table_cell(item, names, body)
    return holds(_table_words(item), None, item.file)


def _table_cell(item: Item, names: Sequence[str], body: Sequence[Sequence[str]]) -> Outcome:
    row, column = int(item.number("row", 1)), item.fields.get("column", 1)
    index = names.index(column) if column in names else column
    if isinstance(index, str) or not isinstance(index, int):
        return fails(column, names, item.file, "there is no such column")
    position = index if column in names else index - 1
    spot = f"{item.file} row {row}, column {column}"
    if not (0 < row <= len(body) and 0 <= position < len(body[row - 1])):
        return fails(item.fields["expected"], None, spot, "there is no such cell")
    text = body[row - 1][position].strip()
    expected = value_of_json(item.fields["expected"])
    value = _typed(text) if isinstance(expected, int | float) else text
    agree = agreement_of(item)(expected, value or None)
    return (
        holds(item.fields["expected"], text, spot)
        if agree
        else fails(item.fields["expected"], text, spot)
    )


def _typed(text: str) -> float | str:
    numbers = numbers_in(text)
    return numbers[0] if len(numbers) == 1 else text


def _rows(workspace: Workspace, item: Item) -> list[list[str]]:
    text = workspace.read(item.file)[: 4 * MAX_CHARS].decode("utf-8", "replace").lstrip("\ufeff")
    separator = item.text("separator") or ("\t" if item.file.lower().endswith(".tsv") else ",")
    rows: list[list[str]] = []
    try:
        for row in csv.reader(text.splitlines(keepends=True), delimiter=separator[:1]):
            if any(cell.strip() for cell in row):
                rows.append(row)
            if len(rows) > _MAX_ROWS:
                raise WorkbookError(f"{item.file} has more than {_MAX_ROWS:,} rows")
    except csv.Error as error:
        raise WorkbookError(f"{item.file} is not a table: {error}") from error
    return rows


def _table_words(item: Item) -> str:
    parts = [f"has {item.fields['rows']} rows"] if "rows" in item.fields else []
    if "columns" in item.fields:
        parts.append(f"has the headings {', '.join(item.texts('columns'))}")
    if "expected" in item.fields:
        row, column = item.fields.get("row", 1), item.fields.get("column", 1)
        value = in_words(item.fields["expected"])
        parts.append(f"has {value} in row {row}, column {column}")
    return f"the table {item.file} {' and '.join(parts) or 'can be read'}"


def _table_faults(item: Item) -> Iterator[str]:
    if not item.file:
        yield f"item {item.id} (table): file is missing"


# -- calendars and mail ----------------------------------------------------------------------------


def events_of(data: bytes) -> list[Mapping[str, str]]:
    """Returns the events of an iCalendar file: property -> value, without parameters.

    Source: RFC 5545, sections 3.1 (folded lines) and 3.3.11 (escaped text).
    """
    text = data[: 4 * MAX_CHARS].decode("utf-8", "replace").replace("\r\n", "\n")
    events: list[Mapping[str, str]] = []
    event: dict[str, str] | None = None
    for line in re.sub(r"\n[ \t]", "", text).split("\n"):
        name, _, value = line.partition(":")
        name = name.partition(";")[0].strip().upper()
        if (name, value.strip().upper()) == ("BEGIN", "VEVENT"):
            event = {}
        elif (name, value.strip().upper()) == ("END", "VEVENT") and event is not None:
            events.append(event)
            event = None
        elif event is not None and name:
            plain = value.replace("\\n", "\n").replace("\\,", ",").replace("\\;", ";")
            event.setdefault(name, plain.replace("\\\\", "\\").strip())
    return events


def moment(text: str) -> dt.datetime | None:
    """Reads an iCalendar or ISO 8601 date or time without its zone; None if it cannot be read."""
    bare = (
        text.strip()
        .rstrip("Zz")
        .replace("T", "")
        .replace("-", "")
        .replace(":", "")
        .replace(" ", "")
    )
    for form in ("%Y%m%d%H%M%S", "%Y%m%d%H%M", "%Y%m%d"):
        try:
            return dt.datetime.strptime(bare, form)  # noqa: DTZ007 - the zone is ignored
        except ValueError:
            continue
    return None


def _calendar(item: Item, workspace: Workspace, _: Reading) -> Outcome:
    events = events_of(workspace.read(item.file))
    hits = [event for event in events if _event_fits(item, event)]
    shown = [f"{event.get('SUMMARY', '')} {event.get('DTSTART', '')}" for event in events[:20]]
    if item.fields.get("exists") is False:
        return fails("no such event", shown) if hits else holds("no such event", shown)
    if "count" in item.fields:
        count = item.fields["count"]
        return (holds if len(hits) == count else fails)(count, len(hits), item.file)
    return (holds if hits else fails)(_calendar_words(item), shown, item.file)


def _event_fits(item: Item, event: Mapping[str, str]) -> bool:
    for name, field in (("summary", "SUMMARY"), ("location", "LOCATION")):
        if name in item.fields and _folded(item.text(name)) not in _folded(event.get(field, "")):
            return False
    return all(
        moment(event.get(field, "")) == moment(item.text(name))
        for name, field in (("start", "DTSTART"), ("end", "DTEND"))
        if name in item.fields
    )


def _calendar_words(item: Item) -> str:
    there = "there is no event" if item.fields.get("exists") is False else "there is an event"
    words = [
        f"{text} {item.text(name)}"
        for name, text in (
            ("summary", "called"),
            ("start", "from"),
            ("end", "to"),
            ("location", "at"),
        )
        if name in item.fields
    ]
    return f"{there} {' '.join(words)} in {item.file}".replace("  ", " ")


def _mail(item: Item, workspace: Workspace, _: Reading) -> Outcome:
    pattern = item.file or "*.eml"
    names = [name for name in sorted(workspace.files) if fnmatch.fnmatchcase(name, pattern)]
    hits = [name for name in names[:1_000] if _mail_fits(item, workspace.files[name])]
    if item.fields.get("exists") is False:
        return fails("no such mail", hits) if hits else holds("no such mail")
    if "count" in item.fields:
        count = item.fields["count"]
        return (holds if len(hits) == count else fails)(count, len(hits), pattern)
    return (holds if hits else fails)(_mail_words(item), names[:20], pattern)


def _mail_fits(item: Item, data: bytes) -> bool:
    message = email.message_from_bytes(data[:MAX_CHARS], policy=email.policy.default)
    for name in ("subject", "to", "from"):
        header = _header(message, name)
        if name in item.fields and _folded(item.text(name)) not in _folded(header):
            return False
    body = _folded(_body(message))
    return all(_folded(part) in body for part in item.texts("contains"))


def _header(message: EmailMessage, name: str) -> str:
    try:
        return str(message.get(name, ""))
    except (ValueError, IndexError, AttributeError, TypeError):
        # The library raises these on some headers that break the standard.
        return ""


def _body(message: EmailMessage) -> str:
    try:
        part = message.get_body(("plain", "html"))
        return "" if part is None else str(part.get_content())
    except (ValueError, LookupError, AttributeError, TypeError):
        return ""


def _mail_words(item: Item) -> str:
    there = "there is no mail" if item.fields.get("exists") is False else "there is a mail"
    words = [
        f"{text} {item.text(name)}"
        for name, text in (("to", "to"), ("from", "from"), ("subject", "about"))
        if name in item.fields
    ]
    if "contains" in item.fields:
        words.append(f"that says {', '.join(item.texts('contains'))}")
    return f"{there} {' '.join(words)} at {item.file or '*.eml'}".replace("  ", " ")


def _calendar_faults(item: Item) -> Iterator[str]:
    if not item.file:
        yield f"item {item.id} (calendar): file is missing"
    for name in ("start", "end"):
        if name in item.fields and moment(item.text(name)) is None:
            yield f"item {item.id} (calendar): {name} is neither a date nor a time"


_COUNTED = {"exists": TRUTH, "count": COUNT}

KINDS = {
    "text": ItemKind(
        _text,
        _text_words,
        {
            "reply_key": TEXT,
            "contains": TEXT_OR_TEXTS,
            "any_of": TEXTS,
            "without": TEXT_OR_TEXTS,
            "patterns": TEXTS,
            "number": NUMBER,
            "tolerance": AMOUNT,
            "exact": TRUTH,
        },
        faults=_text_faults,
    ),
    "file": ItemKind(
        _file,
        _file_words,
        {"pattern": TEXT, "equals": TEXT, "unchanged": TRUTH, **_COUNTED},
        faults=_file_faults,
    ),
    "table": ItemKind(
        _table,
        _table_words,
        {
            "header": TRUTH,
            "separator": TEXT,
            "rows": COUNT,
            "columns": TEXTS,
            "row": COUNT,
            "column": VALUE,
            "expected": VALUE,
            "tolerance": AMOUNT,
            "relative": AMOUNT,
            "exact": TRUTH,
        },
        faults=_table_faults,
    ),
    "calendar": ItemKind(
        _calendar,
        _calendar_words,
        {"summary": TEXT, "start": TEXT, "end": TEXT, "location": TEXT, **_COUNTED},
        faults=_calendar_faults,
    ),
    "mail": ItemKind(
        _mail,
        _mail_words,
        {
            "subject": TEXT,
            "to": TEXT,
            "from": TEXT,
            "contains": TEXT_OR_TEXTS,
            **_COUNTED,
        },
    ),
}
