"""Corrections as data: what one says, how it is read from YAML or JSON, and how it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judge.compare.cells.options import check_style_names
from judge.errors import PositionError, SuiteError, UsageError
from judge.files.documents import written
from judge.files.writing import naming_what_is_written, write_whole
from judge.files.yaml_documents import dump_yaml
from judge.suites.gold_corrections import CellCorrection, UnfitCellsError, read_cells
from judge.workbook.position import parse_position

FIELDS = ("answer_position", "answer_sheet", "style", "exclude", "gold")
"""What can be corrected: fields of a task; ``gold`` is cells of the gold of one case."""

_OF_CASES = {"exclude", "gold"}
"""What can be corrected in a single case, which requires the hash of its gold."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Correction:
    """One known fault of a suite, and what is right.

    Attributes:
        format: the format of the suites that have the fault.
        task: the task's id as text.
        field: one of :data:`FIELDS`.
        was: the field's value as published; where a suite has another one, the correction is not
            applied. None where the suite has no such field.
        now: the corrected value; for ``exclude`` the reason, for ``gold`` nothing.
        reason: what is wrong, for people; of a case, what a reader sees in the question.
        source: where it can be seen.
        evidence: what the cells show; empty if nobody says.
        case: number of the case, if it is about a single one.
        gold_sha256: hash of the gold of that case, as published.
        input_sha256: hash of its first input, if the correction follows from it.
        cells: for ``gold``, the cells that are wrong.
        by: who reviewed it; empty if that is not known.
        at: when, in ISO format; empty if that is not known.
    """

    format: str
    task: str
    field: str
    was: str | None
    now: str | tuple[str, ...]
    reason: str
    source: str
    evidence: str = ""
    case: int | None = None
    gold_sha256: str | None = None
    input_sha256: str | None = None
    cells: tuple[CellCorrection, ...] = ()
    by: str = ""
    at: str = ""

    @property
    def key(self) -> tuple[str, str, int | None, str]:
        """What may be corrected once: format, task, case and field."""
        return (self.format, self.task, self.case, self.field)

    def __str__(self) -> str:
        of_case = "" if self.case is None else f"case {self.case} "
        if self.field == "exclude":
            return f"{of_case}left out: {self.reason}"
        if self.field == "gold":
            more = f" and {len(self.cells) - 3} more" if len(self.cells) > 3 else ""
            cells = ", ".join(map(str, self.cells[:3]))
            return f"{of_case}gold: {cells}{more}: {self.reason}"
        now = self.now if isinstance(self.now, str) else ", ".join(self.now)
        return f"{self.field} is read as {now!r}: {self.reason}"


class CorrectionFaultError(Exception):
    """A correction is not valid."""


def correction_of(suite_format: str, entry: object) -> Correction:
    """Reads one correction, as YAML or JSON has it.

    Args:
        suite_format: the format of the suites that have the fault.
        entry: the correction.

    Raises:
        CorrectionFaultError: says what is wrong with it.
    """
    if not isinstance(entry, dict):
        raise CorrectionFaultError(f"must be an object, not {written(entry)}")
    unknown = entry.keys() - _ENTRY_FIELDS
    if unknown:
        raise CorrectionFaultError(f"unknown fields {', '.join(sorted(map(str, unknown)))}")
    field = entry.get("field")
    if field not in FIELDS:
        raise CorrectionFaultError(
            f"field 'field' must be one of {', '.join(FIELDS)}, not {written(field)}"
        )
    reason, source = _text(entry, "reason"), _text(entry, "source")
    was = entry.get("was")
    if was is not None and not isinstance(was, str):
        raise CorrectionFaultError(f"field 'was' must be text, not {written(was)}")
    evidence, by, at = (
        _text(entry, name) if entry.get(name) is not None else ""
        for name in ("evidence", "by", "at")
    )
    made = Correction(
        format=suite_format,
        task=_text(entry, "task"),
        field=field,
        was=was,
        now=reason if field in _OF_CASES else _new_value(field, entry.get("now")),
        reason=reason,
        source=source,
        evidence=evidence,
        by=by,
        at=at,
    )
    return _of_case(made, entry) if field == "gold" or "case" in entry else _whole(made, entry)


_ENTRY_FIELDS = {
    *("task", "field", "was", "now", "reason", "source", "evidence", "by", "at"),
    *("case", "gold_sha256", "input_sha256", "cells"),
}


def _whole(made: Correction, entry: Mapping[object, object]) -> Correction:
    """A correction of a whole task, which has nothing that belongs to a case."""
    for name in ("gold_sha256", "input_sha256", "cells"):
        if name in entry:
            raise CorrectionFaultError(f"field {name!r} is only for corrections of a case")
    return made


def _of_case(made: Correction, entry: Mapping[object, object]) -> Correction:
    """A correction of a single case, bound to the content of its files."""
    if made.field not in _OF_CASES:
        raise CorrectionFaultError(
            f"field 'case': {made.field!r} is corrected for all cases of a task"
        )
    case = entry.get("case")
    if not isinstance(case, int) or isinstance(case, bool) or case < 1:
        raise CorrectionFaultError(
            f"field 'case' must be the number of a case, not {written(case)}"
        )
    if not made.evidence:
        raise CorrectionFaultError("field 'evidence' must say what the cells show")
    if (made.field == "gold") is not ("cells" in entry):
        raise CorrectionFaultError(
            "field 'cells' is what the field 'gold' needs, and nothing else has"
        )
    try:
        cells = read_cells(entry["cells"]) if made.field == "gold" else ()
    except UnfitCellsError as fault:
        raise CorrectionFaultError(str(fault)) from fault
    return replace(
        made,
        case=case,
        gold_sha256=_sha256(entry, "gold_sha256"),
        input_sha256=_sha256(entry, "input_sha256") if "input_sha256" in entry else None,
        cells=cells,
    )


def _sha256(entry: Mapping[object, object], name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise CorrectionFaultError(
            f"field {name!r} must be a SHA-256 in hexadecimal, not {written(value)}"
        )
    return value


def _text(entry: Mapping[object, object], name: str) -> str:
    value = entry.get(name)
    if name == "task" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise CorrectionFaultError(f"field {name!r} must be text, not {written(value)}")
    return " ".join(value.split())


def _new_value(field: str, now: object) -> str | tuple[str, ...]:
    try:
        if field == "style":
            if (
                not isinstance(now, list)
                or not now
                or not all(isinstance(each, str) for each in now)
            ):
                raise CorrectionFaultError(
                    f"field 'now' must be a list of style attributes, not {written(now)}"
                )
            check_style_names(now)
            return tuple(now)
        if not isinstance(now, str) or not now.strip():
            raise CorrectionFaultError(f"field 'now' must be text, not {written(now)}")
        if field == "answer_position":
            parse_position(now)
    except (PositionError, UsageError) as error:
        raise CorrectionFaultError(f"field 'now': {error.message}") from error
    return now


def describe_corrections(corrections: Sequence[Correction]) -> list[dict[str, object]]:
    """Corrections as they are written into run.json and the report."""
    return [_described(correction) for correction in corrections]


def _described(correction: Correction) -> dict[str, object]:
    record: dict[str, Any] = {"task": correction.task}
    if correction.case is not None:
        record["case"] = correction.case
    record["field"] = correction.field
    if correction.case is None:
        now = correction.now
        record["was"] = correction.was
        record["now"] = now if isinstance(now, str) else list(now)
    else:
        record["gold_sha256"] = correction.gold_sha256
        if correction.input_sha256 is not None:
            record["input_sha256"] = correction.input_sha256
        if correction.cells:
            record["cells"] = [cell.to_json() for cell in correction.cells]
    record |= {"reason": correction.reason, "source": correction.source}
    further = {"evidence": correction.evidence, "by": correction.by, "at": correction.at}
    return record | {name: text for name, text in further.items() if text}


def write_corrections(path: Path, suite_format: str, corrections: Sequence[Correction]) -> None:
    """Writes a file of corrections, as :func:`load_corrections` reads it; a whole file or none.

    Args:
        path: the file, in a folder that is there.
        suite_format: of the suites that have the faults.
        corrections: the corrections, all of this format.

    Raises:
        SuiteError: it cannot be written.
    """
    entries = []
    for correction in corrections:
        entry = {name: value for name, value in _described(correction).items() if value is not None}
        if correction.field == "exclude":
            entry.pop("now", None)
        entries.append(entry)
    text = dump_yaml({"format": suite_format, "corrections": entries})
    with naming_what_is_written(path, SuiteError):
        write_whole(path, text.encode("utf-8", "replace"), mode=0o644, durable=True)
