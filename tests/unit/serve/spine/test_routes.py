"""Every route with every role: nothing beyond one's rights, no secret, no answer that is not
described."""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, seed, settings

from judge.serve.access.accounts import revoke_token
from judge.serve.api import accounts
from judge.serve.app import make_app
from judge.serve.context import Server
from judge.serve.queue.leases import lock_account
from judge.serve.store import tables as t
from judge.serve.store.database import Database, Transaction, sqlite_url
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import Visibility
from tests.unit.serve.spine.test_submitting import handed_in
from tests.unit.serve.spine.world import ACTOR, ROLES, World, furnish

PUBLIC = {"/v1/suites", "/v1/status", "/v1/boards", "/v1/disputes", "/v1/rejudgings"}
"""Lists that a visitor may read; their entries are another matter."""


@functools.cache
def routes() -> list[tuple[str, str]]:
    """Returns methods and paths of the API from the document, which is the same on every server."""
    database = Database(sqlite_url(Path("judge.db")))  # which is not opened
    document: dict[str, Any] = make_app(Server(database, DataFolder(Path()))).openapi()
    database.close()
    return [
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    ]


def filled(path: str, ids: dict[str, str]) -> str:
    """Returns a path whose parameters name objects of the contestant and of hidden suites."""
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value)
    return path.replace("{number}", "1").replace("{entry}", ids["submission"])


def objects(world: World) -> dict[str, str]:
    """One object of each kind that belongs to the contestant, or to none of the tested roles."""
    submission = handed_in(world)["id"]
    with world.server.database.writing(ACTOR) as transaction:
        transaction.execute(
            sa.update(t.suite)
            .where(t.suite.c.name == "secret")
            .values(visibility=Visibility.HIDDEN)
        )
    missing = "0" * 26
    token = next(
        str(row["id"])
        for row in world.rows(t.token)
        if row["account"] == world.accounts["contestant"]
    )
    return {
        "submission": submission,
        "token": token,
        "suite": "secret",
        "task": "bars",
        "board": f"brd_{missing}",
        "dispute": f"dis_{missing}",
        "rejudging": f"rej_{missing}",
        "webhook": f"whk_{missing}",
    }


@pytest.mark.parametrize("role", ["visitor", "rival", "reviewer", "operator"])
def test_nobody_gets_at_what_is_not_theirs(small_world: World, role: str) -> None:
    """404 for objects of others and of hidden suites, as for objects that do not exist."""
    ids, client = objects(small_world), small_world.client()
    headers = {**small_world.headers(role), "If-Match": '"1-x"'}
    for method, path in routes():
        if "{" not in path:
            continue
        answer = client.request(method, filled(path, ids), headers=headers, json={})
        expected = {401, 404, 422} if role == "visitor" else {403, 404, 422}
        assert answer.status_code in expected, (method, path, answer.status_code, answer.text)
        if answer.status_code == 403:
            assert "scope" in answer.text or "role" in answer.text, (method, path, answer.text)
        if answer.status_code == 422:  # the body was looked at before the object: it tells nothing
            missing = {name: f"{value[:4]}{'1' * 26}" for name, value in ids.items()}
            other = client.request(method, filled(path, missing), headers=headers, json={})
            assert other.json().get("errors") == answer.json().get("errors"), (method, path)


@pytest.mark.parametrize("role", ROLES)
def test_no_list_has_what_is_not_theirs(small_world: World, role: str) -> None:
    ids, client = objects(small_world), small_world.client()
    for method, path in routes():
        if method != "GET" or "{" in path:
            continue
        answer = client.get(path, headers=small_world.headers(role))
        assert answer.status_code in {200, 401, 403}, (path, answer.text)
        if answer.status_code == 401:
            assert role == "visitor"
            assert answer.headers["www-authenticate"]
            assert path not in PUBLIC
        if role not in {"contestant", "author"}:
            assert ids["submission"] not in answer.text, path
            assert '"secret"' not in answer.text, path


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer x", "Basic YTpi", "Bearer jdg_" + "a" * 49, "Bearer \x7f", "bearer  "],
)
def test_a_token_that_is_not_valid_is_refused_alike(small_world: World, header: str) -> None:
    answers = [
        small_world.client().get(path, headers={"Authorization": header})
        for path in ("/v1/me", "/v1/suites", "/v1/status")
    ]
    assert {answer.status_code for answer in answers} == {401}, "not even what is public"
    assert len({answer.json()["title"] for answer in answers}) == 1


def test_a_cookie_gives_no_right_to_write(small_world: World) -> None:
    from judge.serve.access.accounts import create_sign_in, sign_in  # noqa: PLC0415

    with small_world.server.database.writing(ACTOR) as transaction:
        code = create_sign_in(transaction, small_world.accounts["contestant"])
        cookie = sign_in(transaction, code)
        assert sign_in(transaction, code) is None, "a link is used once"
    client = small_world.client()
    client.cookies.set(small_world.server.cookie, str(cookie))
    assert client.get("/v1/me").status_code == 200
    body = {"name": "x", "scopes": ["read"]}
    assert client.post("/v1/tokens", json=body).status_code == 401


def made_with(client: TestClient, token: str, *scopes: str, **how: int) -> dict[str, str]:
    """Makes a token; returns its id and its text."""
    answer = client.post(
        "/v1/tokens", headers=bearer(token), json={"name": "x", "scopes": scopes, **how}
    )
    assert answer.status_code == 201, answer.text
    made: dict[str, str] = answer.json()
    return made


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_token_that_a_token_made_ends_with_it(world: World) -> None:
    client, own = world.client(), world.headers("contestant")
    first = made_with(client, world.tokens["contestant"], "submit", "read", days=2)
    second = made_with(client, first["token"], "read", days=90)
    third = made_with(client, second["token"], "read")
    other = made_with(client, world.tokens["contestant"], "read")
    listed = {one["id"]: one for one in client.get("/v1/tokens", headers=own).json()["tokens"]}
    assert listed[second["id"]]["expires"] <= listed[first["id"]]["expires"]
    assert listed[other["id"]]["expires"] > listed[first["id"]]["expires"]
    assert client.delete(f"/v1/tokens/{first['id']}", headers=own).status_code == 204
    tokens = (first, second, third, other)
    statuses = [client.get("/v1/me", headers=bearer(one["token"])).status_code for one in tokens]
    assert statuses == [401, 401, 401, 200]
    ended = [row["object"] for row in world.rows(t.event) if row["kind"] == "token.revoked"]
    assert sorted(map(str, ended)) == sorted(one["id"] for one in tokens[:3])


def test_a_token_that_is_revoked_while_it_makes_another_makes_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made_with(world.client(), world.tokens["contestant"], "read")
    lock = lock_account

    def revoked_first(transaction: Transaction, account: str) -> None:
        monkeypatch.setattr(accounts, "lock_account", lock)
        revoke_token(transaction, first["id"])  # as if another request came first
        lock(transaction, account)

    monkeypatch.setattr(accounts, "lock_account", revoked_first)
    body = {"name": "x", "scopes": ["read"]}
    answer = world.client().post("/v1/tokens", headers=bearer(first["token"]), json=body)
    assert answer.status_code == 401
    assert first["id"] not in {row["maker"] for row in world.rows(t.token)}


def test_a_token_ends_none_that_may_do_more(small_world: World) -> None:
    client, own = small_world.client(), small_world.headers("contestant")
    reads = made_with(client, small_world.tokens["contestant"], "read")
    submits = made_with(client, small_world.tokens["contestant"], "submit", "read")
    address = f"/v1/tokens/{submits['id']}"
    assert client.delete(address, headers=bearer(reads["token"])).status_code == 403
    assert client.get("/v1/me", headers=bearer(submits["token"])).status_code == 200
    its_own = f"/v1/tokens/{reads['id']}"
    assert client.delete(its_own, headers=bearer(reads["token"])).status_code == 204
    assert client.delete(address, headers=own).status_code == 204


def test_planted_secrets_are_in_no_answer(small_world: World) -> None:
    """Texts of a hidden suite, tokens, hashes and paths, in everything that others can fetch."""
    ids, client = objects(small_world), small_world.client()
    secrets = [
        *small_world.tokens.values(),
        str(small_world.server.folder.path),
        *(str(row["sha256"]) for row in small_world.rows(t.token)),
        small_world.server.folder.secret("cursors.key").hex(),
    ]
    for role in ("visitor", "rival", "reviewer", "operator"):
        for method, path in routes():
            headers = {**small_world.headers(role), "If-Match": "*"}
            answer = client.request(method, filled(path, ids), headers=headers, json={"x": "y"})
            text = answer.text + json.dumps(dict(answer.headers))
            for secret in secrets:
                assert secret not in text, (role, method, path)


@pytest.mark.parametrize("role", ["visitor", "contestant", "author", "operator"])
def test_every_answer_is_one_that_the_document_describes(small_world: World, role: str) -> None:
    """A short run of schemathesis; benchmarks/serve_fuzzing.py runs it for long."""
    statuses = fuzz(small_world, role, 60)
    assert sum(statuses.values()) >= 50


FUZZED = {
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
}


def fuzz(world: World, role: str, examples: int, number: int = 1) -> Counter[int]:
    """The answers to generated requests of a role; two in three name public objects.

    Args:
        world: nothing is in it yet.
        role: whose token is sent.
        examples: how many requests.
        number: for the generator; the same number, the same requests.

    Returns:
        How many answers there were of each status code.
    """
    import schemathesis  # noqa: PLC0415  every worker collects this module
    from schemathesis.checks import CHECKS, load_all_checks  # noqa: PLC0415

    schemathesis.serializer("application/zip")(_zip)
    ids = furnish(world)
    app = make_app(world.server)
    load_all_checks()
    chosen = [check for check in CHECKS.get_all() if check.__name__ in FUZZED]
    assert len(chosen) == len(FUZZED)
    statuses: Counter[int] = Counter()
    headers = world.headers(role)

    def send(document: dict[str, Any], some: int) -> None:
        schema = schemathesis.openapi.from_dict(document)
        schema.app = app

        @seed(number)
        @given(case=schema.exclude(path_regex=r"/events$").as_strategy())
        @settings(
            max_examples=some,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def send_one(case: Any) -> None:
            answer = case.call(headers=headers)
            statuses[answer.status_code] += 1
            case.validate_response(answer, checks=chosen)

        send_one()

    send(app.openapi(), examples // 6)
    send(seeded(app.openapi(), ids), examples // 6)
    send(seeded(app.openapi(), {"open": ids["open"]}), examples - 2 * (examples // 6))
    return statuses


def seeded(document: dict[str, Any], ids: dict[str, dict[str, str]]) -> dict[str, Any]:
    """The OpenAPI document, whose parameters and bodies name existing objects."""
    document = json.loads(json.dumps(document))
    names: dict[str, list[Any]] = {
        name: [ids[suite][name] for suite in ids] for name in ids["open"] if name != "number"
    }
    names |= {"phase": list(ids), "a": names["entry"], "b": names["entry"], "number": [1, 2]}

    def of(name: str) -> dict[str, Any]:
        return {"enum": names[name]}

    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in names:
                    parameter["schema"] = of(parameter["name"])
    for schema in document["components"]["schemas"].values():
        for name in schema.get("properties", {}):
            if name in names:
                schema["properties"][name] = of(name)
    return document


def _zip(_: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
