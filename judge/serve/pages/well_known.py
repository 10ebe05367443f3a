"""Addresses that programs know: problems, watchdogs, signing keys, and the OpenAPI document."""

from __future__ import annotations

import sqlalchemy as sa
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from judge.serve.boards.versions import boards_of
from judge.serve.context import ThisServer
from judge.serve.problems import KINDS, not_found
from judge.serve.store import tables as t

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


@router.get("/.well-known/judge-keys.json")
def keys(server: ThisServer) -> Response:
    """The public keys, the current one last; a rotated key stays."""
    with server.database.reading() as connection:
        now = connection.execute(sa.select(t.Now())).scalar_one()
    listed = boards_of(server).public_keys(now)
    return JSONResponse({"keys": listed}, headers={"Cache-Control": "public, max-age=300"})


@router.get("/v1/openapi.json")
def document(request: Request) -> Response:
    """The OpenAPI document."""
    return JSONResponse(request.app.openapi(), headers={"Cache-Control": "public, max-age=300"})
