"""``POST /v1/submissions`` in all its forms: lines, a program, an archive, a form, a batch."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import JSONResponse

from judge.errors import JudgeError
from judge.serve.access.rights import Viewer
from judge.serve.api.limits import rate
from judge.serve.catalog import LoadedSuites
from judge.serve.context import Caller, Server, ThisServer
from judge.serve.intake import (
    ARCHIVE,
    LIMITS,
    LINES,
    PROGRAM,
    Admission,
    SubmitterStatement,
    admit,
    check_body,
    check_open,
    submit,
)
from judge.serve.problems import Problem
from judge.serve.store.database import DatabaseGoneError
from judge.serve.store.folder import ReceivedBody

router = APIRouter(tags=["submissions"])

FORM = "multipart/form-data"
_KEY = re.compile(r"[ -~]{1,80}")
_PIECE_BYTES = 1 << 20  # read from a form's file at a time
_MAX_FORM_FIELDS = 20  # besides the file

_Name = Annotated[str, Query(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9 ._@-]+$")]
_Text = Annotated[str, Query(max_length=200)]
# Without a user name: https://known.example@evil.example/ would lead elsewhere than it seems to.
_URL = r"^(https?://[!-\"$-.0->A-~]+([/?#][!-~]*)?)?$"


class Claims(BaseModel):
    """What a submitter may state about a submission."""

    model_config = ConfigDict(extra="forbid")

    system: Annotated[str, Field(max_length=200)] = ""
    model: Annotated[str, Field(max_length=200)] = ""
    setting: Annotated[str, Field(max_length=200)] = ""
    url: Annotated[str, Field(max_length=500, pattern=_URL)] = ""
    cost_usd: Annotated[float | None, Field(ge=0, le=1e9)] = None
    tokens: Annotated[int | None, Field(ge=0, le=10**15)] = None
    cutoff: Annotated[str | None, Field(pattern=r"^\d{4}-\d\d-\d\d$")] = None
    note: Annotated[str, Field(max_length=2000)] = ""

    def described(self) -> SubmitterStatement:
        """The claims, checked for characters that the database cannot store."""
        fields = self.model_dump()
        for name, value in fields.items():
            if isinstance(value, str) and ("\0" in value or not value.isprintable()):
                raise Problem("invalid", f"{name}: has characters that cannot be shown.")
        if self.cutoff is not None and not _is_day(self.cutoff):
            raise Problem("invalid", f"cutoff: there is no day {self.cutoff}.")
        return SubmitterStatement(**fields)


def _is_day(text: str) -> bool:
    try:
        return bool(dt.date.fromisoformat(text))
    except ValueError:
        return False


class BatchItem(Claims):
    """One submission of a batch: lines, or one program with its task."""

    phase: Annotated[str, Field(min_length=1, max_length=80)]
    team: Annotated[str | None, Field(max_length=80)] = None
    key: Annotated[str | None, Field(min_length=1, max_length=80, pattern=r"^[ -~]+$")] = None
    lines: Annotated[str | None, Field(max_length=1 << 20)] = None
    task: Annotated[str | None, Field(max_length=200)] = None
    program: Annotated[str | None, Field(max_length=1 << 20)] = None


class Batch(BaseModel):
    """Up to 100 submissions."""

    model_config = ConfigDict(extra="forbid")

    submissions: Annotated[list[BatchItem], Field(min_length=1, max_length=100)]


_BODIES = {
    "requestBody": {
        "required": True,
        "content": {
            LINES: {"schema": {"type": "string"}},
            PROGRAM: {"schema": {"type": "string"}},
            ARCHIVE: {"schema": {"type": "string", "format": "binary"}},
            FORM: {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "additionalProperties": False,
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
        },
    }
}


@router.post("/submissions", status_code=202, openapi_extra=_BODIES, dependencies=[rate("submit")])
async def make_submission(
    request: Request,
    caller: Caller,
    server: ThisServer,
    phase: _Name,
    task: Annotated[str | None, Query(max_length=200)] = None,
    team: Annotated[str | None, Query(max_length=80)] = None,
    system: _Text = "",
    model: _Text = "",
    setting: _Text = "",
    url: Annotated[str, Query(max_length=500, pattern=_URL)] = "",
    cost_usd: Annotated[float | None, Query(ge=0, le=1e9)] = None,
    tokens: Annotated[int | None, Query(ge=0, le=10**15)] = None,
    cutoff: Annotated[str | None, Query(pattern=r"^\d{4}-\d\d-\d\d$")] = None,
    note: Annotated[str, Query(max_length=2000)] = "",
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Makes a submission to a phase; answers 202 with its address."""
    claims = Claims(
        system=system,
        model=model,
        setting=setting,
        url=url,
        cost_usd=cost_usd,
        tokens=tokens,
        cutoff=cutoff,
        note=note,
    )
    described = claims.described()
    key = checked_key(idempotency_key)
    admission = await run_in_threadpool(admit, server, caller, phase, team, key)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type not in LIMITS and content_type != FORM:
        raise Problem("unsupported-type", f"Send one of {', '.join([*LIMITS, FORM])}.")

    def accept(received: ReceivedBody, kind: str) -> tuple[dict[str, Any], bool]:
        return accept_body(server, caller, admission, received, kind, described, key, task)

    answer, replayed = await receive(server, request, content_type, accept)
    return JSONResponse(answer, 202, _headers(answer, replayed))


@router.post("/submissions:batch", dependencies=[rate("submit")])
def make_batch(batch: Batch, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """Makes up to 100 submissions; the answer has an outcome with a status for each."""
    check_open(server)
    outcomes = []
    for number, item in enumerate(batch.submissions):
        try:
            answer, replayed = _one_of_batch(server, caller, item)
            outcomes.append({"status": 202, "submission": answer, "replayed": replayed})
        except Problem as problem:
            document = problem.document(f"{caller.request}#{number}")
            outcomes.append({"status": problem.kind.status, "problem": document})
    return {"outcomes": outcomes}


def _one_of_batch(server: Server, caller: Viewer, item: BatchItem) -> tuple[dict[str, Any], bool]:
    claims = Claims(**item.model_dump(include=set(Claims.model_fields)))
    described = claims.described()
    if (item.lines is None) == (item.program is None):
        raise Problem("invalid", "Give either `lines` or `program`.")
    admission = admit(server, caller, item.phase, item.team, item.key)
    text = item.lines if item.program is None else item.program
    kind = LINES if item.program is None else PROGRAM
    with server.folder.receiving() as received:
        received.write(str(text).encode("utf-8", "replace"))
        return accept_body(
            server, caller, admission, received, kind, described, item.key, item.task
        )


def accept_body(
    server: Server,
    caller: Viewer,
    admission: Admission,
    received: ReceivedBody,
    content_type: str,
    described: SubmitterStatement,
    key: str | None,
    task: str | None,
) -> tuple[dict[str, Any], bool]:
    """Checks a body that was received, stores it, and queues it; pages use it as well.

    Returns:
        The answer, and whether it repeats the answer to an earlier request.

    Raises:
        Problem: it cannot be accepted.
    """
    suites: LoadedSuites = server.shared.setdefault("suites", LoadedSuites(server.folder))
    try:
        suite = suites.suite(admission.revision)
        checked = check_body(server.folder, received, content_type, suite, admission.tasks, task)
        return submit(server, caller, admission, checked, described, key)
    except DatabaseGoneError:
        raise
    except JudgeError as error:
        headers = {"Retry-After": "60"}
        raise Problem(
            "unavailable", "The submission could not be stored.", headers=headers
        ) from error


async def receive(
    server: Server,
    request: Request,
    content_type: str,
    accept: Callable[[ReceivedBody, str], tuple[dict[str, Any], bool]],
) -> tuple[dict[str, Any], bool]:
    """Writes a body to the disk, up to its limit, and submits it.

    Raises:
        Problem: 413, 400 for a broken form, 507 if the disk is full.
    """
    limit = LIMITS.get(content_type, max(LIMITS.values()))
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 15:
        raise Problem("malformed", "Content-Length is not a number.")
    if int(length) > limit:
        raise Problem("too-large", f"At most {limit >> 20} MiB.")
    if not server.folder.has_space(int(length)):
        raise Problem("no-space", headers={"Retry-After": "600"})
    pieces = _limited(request, limit)
    if content_type == FORM:
        return await _form(server, request, pieces, accept)
    with server.folder.receiving() as received:
        async for piece in pieces:
            await run_in_threadpool(received.write, piece)
        return await run_in_threadpool(accept, received, content_type)


async def _limited(request: Request, limit: int) -> AsyncGenerator[bytes, None]:
    """Yields the pieces of a body, up to the limit of its type."""
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise Problem("too-large", f"At most {limit >> 20} MiB.")
        yield piece


async def _form(
    server: Server,
    request: Request,
    pieces: AsyncGenerator[bytes, None],
    accept: Callable[[ReceivedBody, str], tuple[dict[str, Any], bool]],
) -> tuple[dict[str, Any], bool]:
    try:
        parser = MultiPartParser(request.headers, pieces, max_files=1, max_fields=_MAX_FORM_FIELDS)
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        raise Problem("malformed", "The form is not well formed.") from error
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise Problem("invalid", "The form needs a field `file` with a file.")
        if others := sorted(set(form) - {"file"}):  # a claim there would be lost
            raise Problem("invalid", f"{others[0]!r} belongs in the query, not in the form.")
        kind = kind_of_file(file.filename or "", file.content_type or "")
        with server.folder.receiving() as received:
            await receive_file(file, received, kind)
            return await run_in_threadpool(accept, received, kind)
    finally:
        with suppress(OSError):
            await form.close()


async def receive_file(file: UploadFile, received: ReceivedBody, kind: str) -> None:
    """Stores the file of a form.

    Raises:
        Problem: 413, it is larger than its kind may be.
    """
    while piece := await file.read(_PIECE_BYTES):
        await run_in_threadpool(received.write, piece)
        if received.size > LIMITS[kind]:
            raise Problem("too-large", f"At most {LIMITS[kind] >> 20} MiB.")


def kind_of_file(name: str, content_type: str) -> str:
    """The content type of a form's file; derived from the file's name if the browser sends none."""
    stated = content_type.partition(";")[0].strip().lower()
    if stated in LIMITS:
        return stated
    endings = {".zip": ARCHIVE, ".py": PROGRAM}
    return next((kind for end, kind in endings.items() if name.lower().endswith(end)), LINES)


def checked_key(key: str | None) -> str | None:
    """Checks an idempotency key.

    Raises:
        Problem: 400, it is not 1 to 80 printable ASCII characters.
    """
    if key is not None and _KEY.fullmatch(key) is None:
        raise Problem("malformed", "Idempotency-Key must have 1 to 80 printable ASCII characters.")
    return key


def _headers(answer: dict[str, Any], replayed: bool) -> dict[str, str]:
    headers = {"Location": answer["links"]["self"], "Cache-Control": "no-store"}
    return {**headers, "Idempotency-Replayed": "true"} if replayed else headers
