"""``GET /v1/openapi.json``: the description of the API, as it is committed in docs/schemas."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

router = APIRouter()


@router.get("/openapi.json", include_in_schema=False)
def document(request: Request) -> Response:
    """The OpenAPI document."""
    return JSONResponse(request.app.openapi(), headers={"Cache-Control": "public, max-age=300"})
