"""What the types of problems mean, and the two addresses that watchdogs ask."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse, PlainTextResponse, Response

from judge.serve.context import ThisServer
from judge.serve.problems import KINDS, not_found

router = APIRouter()


@router.get("/problems/{name}")
def problem(name: str) -> Response:
    """The page of a kind of problem."""
    kind = KINDS.get(name)
    if kind is None:
        raise not_found()
    return PlainTextResponse(f"{kind.title} ({kind.status})\n\n{kind.explanation}\n")


@router.get("/healthz")
def health() -> Response:
    """The process answers."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz")
def ready(server: ThisServer) -> Response:
    """The process answers, and reaches its database and its data folder."""
    server.database.last_event()
    if not server.folder.has_space():
        return JSONResponse({"status": "no space"}, status_code=503)
    return JSONResponse({"status": "ready"})
