"""Characters that a database cannot store give an answer of the kind 4xx, on both databases."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

from judge.serve.api import results
from judge.serve.app import API_ROUTES, PAGE_ROUTES
from tests.unit.serve.spine.test_rights import LAST, Visitors, filled
from tests.unit.serve.spine.world import World, furnish

NAMES = ["\0", "a\0b", "\ud800", "\u202e"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_cannot_be_stored_is_not_a_fault_of_the_server(world: World, name: str) -> None:
    import json  # noqa: PLC0415

    client, headers = world.client(), world.headers("contestant")
    item = {"phase": name, "team": name, "lines": name}
    body = json.dumps({"submissions": [item, {**item, "phase": "open"}]})
    answer = client.post(
        "/v1/submissions:batch",
        headers={**headers, "content-type": "application/json"},
        content=body,
    )
    assert answer.status_code in {200, 422}, answer.text
    for path in ("suites/%00", "submissions/%00", "boards/a%00b", "suites/open/tasks/%00"):
        assert client.get(f"/v1/{path}", headers=headers).status_code in {404, 422}, path
    for query in ("phase=%00", "cursor=%00", "fields=%00", "cursor=%F0%9F%92%A9"):
        assert client.get(f"/v1/submissions?{query}", headers=headers).status_code in {404, 422}


PARTS = ["9223372036854775808", "-9223372036854775809", "a%00b", "%ed%a0%80", "%F0%9F%92%A9"]


def parameters() -> Iterator[tuple[str, str, str]]:
    """Yields method, path and query of every route, for each value of each of its parameters."""
    for names, prefix in ((API_ROUTES, "/v1"), (PAGE_ROUTES, "")):
        for route in (one for name in names for one in importlib.import_module(name).router.routes):
            depends = [route.dependant, *route.dependant.dependencies]
            queries = {field.alias for one in depends for field in one.query_params}
            for method in route.methods:
                path = prefix + route.path
                if f"{method} {path}" in LAST:
                    continue
                for part in PARTS:
                    for name in re.findall(r"{(\w+)}", path):
                        yield method, path.replace(f"{{{name}}}", part), ""
                    for name in sorted(queries):
                        yield method, path, f"?{name}={part}&{name}={part}"


def test_no_number_and_no_character_of_an_address_is_a_fault(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers beyond 64 bits, nulls, lone surrogates and repeated parameters, in each parameter."""
    monkeypatch.setattr(results, "_MAX_STREAM_S", 0)
    ids, visitors, asked = furnish(world)["open"], Visitors(world), 0
    body: dict[str, Any] = {}
    for method, path, query in parameters():
        answer = visitors.ask("contestant", method, filled(path, ids) + query, body)
        assert answer.status_code < 500, (method, path, query, answer.text)
        asked += 1
    assert asked > 500
