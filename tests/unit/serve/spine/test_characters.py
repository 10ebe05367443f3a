"""Characters that a database cannot store end in an answer of the kind 4xx, on both databases."""

from __future__ import annotations

import pytest

from tests.unit.serve.spine.world import World

NAMES = ["\0", "a\0b", "\ud800", "\u202e"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_cannot_be_stored_is_no_fault_of_the_server(world: World, name: str) -> None:
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
