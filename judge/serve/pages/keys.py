"""``/.well-known/judge-keys.json``: the keys with which results and boards are signed."""

from __future__ import annotations

import sqlalchemy as sa
from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from judge.serve.boards.versions import boards_of
from judge.serve.context import ThisServer
from judge.serve.store import tables as t

router = APIRouter()


@router.get("/.well-known/judge-keys.json")
def keys(server: ThisServer) -> Response:
    """The public keys, the current one last; a rotated key stays."""
    with server.database.reading() as connection:
        now = connection.execute(sa.select(t.Now())).scalar_one()
    listed = boards_of(server).public_keys(now)
    return JSONResponse({"keys": listed}, headers={"Cache-Control": "public, max-age=300"})
