"""The tools for workbooks, and the server that offers them, with the official client."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from judge.recalc.library import Recalculation
from judge.tools.contract import MAX_RESULT_CHARS, ToolFaultError, shortened
from judge.tools.folder import ToolFolder
from judge.tools.mcp import HANDSHAKE, MAX_LINE_BYTES, STATELESS, ToolServer
from judge.tools.workbooks import WorkbookTools
from judge.workbook.cell import CellRef, ComputedValues


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.title = "Orders"
    for row in (["item", "price"], ["pear", 2], ["plum", 3.5]):
        sheet.append(row)
    sheet["B4"] = "=SUM(B2:B3)"
    book.create_sheet("Notes")["A1"] = "PEAR\u202efirst"
    book.save(work / "book.xlsx")
    return work


class Answers:
    """Computes one cell, and counts how often it was opened."""

    opened = 0

    def __call__(self, path: bytes, *, at: str | None = None) -> Recalculation:
        return Recalculation(ComputedValues({CellRef("Orders", 4, 2): 5.5}), ())


def calculator() -> Answers:
    Answers.opened += 1
    return Answers()


def tools(folder: Path, *, read_only: bool = False) -> dict[str, Any]:
    made = WorkbookTools(ToolFolder(folder, read_only=read_only), calculator).tools()
    return {tool.name: tool for tool in made}


def call(folder: Path, name: str, **arguments: object) -> str:
    text = tools(folder)[name](arguments)
    assert isinstance(text, str)
    return text


BOOK = {"path": "book.xlsx"}


def test_workbooks_and_sheets_are_listed(folder: Path) -> None:
    assert call(folder, "list_workbooks").startswith("book.xlsx: ")
    lines = call(folder, "list_sheets", **BOOK).splitlines()
    assert lines[0] == "'Orders': visible, worksheet, used A1:B4, 1 formulas"


def test_a_range_shows_values_formulas_and_formats(folder: Path) -> None:
    values = call(folder, "view_range", **BOOK, range="Orders!A1:B4").splitlines()
    assert values == [
        "Orders!A1:B4",
        "row | A | B",
        "1 | item | price",
        "2 | pear | 2",
        "3 | plum | 3.5",
        "4 |  | (no stored value)",
    ]
    both = call(folder, "view_range", **BOOK, range="Orders!B4", show="both")
    assert "=SUM(B2:B3) -> (no stored value)" in both
    call(folder, "set_format", **BOOK, range="Orders!A1", fill="FFFF00")
    formats = call(folder, "view_range", **BOOK, range="Orders!A1", show="formats")
    assert "fill FFFF00" in formats
    assert "item" in call(folder, "view_range", **BOOK, range="Orders!A1")


def test_a_range_is_cut_where_it_is_long(folder: Path) -> None:
    text = call(folder, "view_range", **BOOK, range="Orders!A1:B4", max_cells=4)
    assert text.splitlines()[0] == "Orders!A1:B2"
    assert text.splitlines()[-1] == "more: 4 rows and 2 columns in all"


def test_text_is_found_and_what_is_invisible_is_escaped(folder: Path) -> None:
    lines = call(folder, "find", **BOOK, text="Pear").splitlines()
    assert lines == ["'Orders'!A2: pear", "'Notes'!A1: PEAR\\u202efirst"]
    assert call(folder, "find", **BOOK, text="sum(", **{"in": "formulas"}) == (
        "'Orders'!B4: =SUM(B2:B3)"
    )
    assert call(folder, "find", **BOOK, text="pear", sheet="Notes").count("\n") == 0


def test_cells_are_set_and_compared_with_what_was(folder: Path) -> None:
    cells = [
        {"cell": "A2", "value": "fig"},
        {"cell": "B5", "value": "=B4*2"},
        {"cell": "A5", "value": {"date": "2024-02-29"}},
    ]
    said = call(folder, "set_cells", **BOOK, sheet="Orders", cells=cells, save_as="new.xlsx")
    assert said == "3 cells of 'Orders' were set"
    book = openpyxl.load_workbook(folder / "new.xlsx")
    assert book["Orders"]["B5"].value == "=B4*2"
    assert book["Orders"]["A5"].value.isoformat() == "2024-02-29T00:00:00"
    assert openpyxl.load_workbook(folder / "book.xlsx")["Orders"]["A2"].value == "pear"
    diff = call(folder, "diff", path="new.xlsx", against="book.xlsx").splitlines()
    assert diff[:2] == ["overwritten: 1", "added: 2"]
    assert "overwritten Orders!A2" in diff


def test_formulas_are_computed_by_one_calculator(folder: Path) -> None:
    Answers.opened = 0
    known = tools(folder)
    assert Answers.opened == 0
    for _ in range(2):
        text = known["recalc"]({**BOOK, "save_as": "done.xlsx"})
    assert text.splitlines()[0] == "1 formulas computed, 0 of them errors, 0 not computed"
    assert "'Orders'!B4: 5.5" in text
    assert Answers.opened == 1
    done = openpyxl.load_workbook(folder / "done.xlsx", data_only=True)
    assert done["Orders"]["B4"].value == 5.5


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["../out.xlsx", "/etc/passwd", "a/../../out.xlsx", "", "link.xlsx", "links/book.xlsx",
     "book.txt", "none.xlsx", "pipe.xlsx", "a\0b.xlsx", "\ud800.xlsx",
     "/".join(["x"] * 20) + ".xlsx"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["view_range", "set_cells"])
def test_no_path_leads_out_of_the_folder(folder: Path, path: str, name: str) -> None:
    outside = folder.parent / "out.xlsx"
    outside.write_bytes((folder / "book.xlsx").read_bytes())
    before = outside.read_bytes()
    (folder / "link.xlsx").symlink_to(outside)
    (folder / "links").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe.xlsx")
    rest: dict[str, object] = {"range": "Orders!A1"}
    if name == "set_cells":
        rest = {"sheet": "Orders", "cells": [{"cell": "A1", "value": 1}]}
    with pytest.raises(ToolFaultError):
        call(folder, name, path=path, **rest)
    if path != "none.xlsx":
        with pytest.raises(ToolFaultError):
            call(folder, "recalc", **BOOK, save_as=path)
    assert outside.read_bytes() == before
    assert "link.xlsx" not in call(folder, "list_workbooks")


def test_a_folder_for_reading_offers_no_tool_that_writes(folder: Path) -> None:
    known = tools(folder, read_only=True)
    assert not {"set_cells", "set_format"} & known.keys()
    with pytest.raises(ToolFaultError, match="read-only"):
        known["recalc"]({**BOOK, "save_as": "new.xlsx"})
    assert [each.name for each in folder.iterdir()] == ["book.xlsx"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "needs the argument 'path'"),
        ({"path": "book.xlsx", "range": "A1", "more": 1}, "has no argument 'more'"),
        ({"path": 3, "range": "A1"}, "must be of type string"),
        ({"path": "book.xlsx", "range": "A1", "show": "all"}, "must be one of values"),
        ({"path": "book.xlsx", "range": "A1", "max_cells": True}, "must be of type integer"),
        ({"path": "book.xlsx", "range": "A1", "max_cells": 0}, "must be from 1 to 10000"),
    ],
)
def test_arguments_that_do_not_fit_are_named(
    folder: Path, arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(ToolFaultError, match=said):
        call(folder, "view_range", **arguments)


def test_a_long_result_is_cut_in_the_middle() -> None:
    text = "a" * MAX_RESULT_CHARS + "b"
    assert shortened(text[:-1]) == text[:-1]
    assert "1 characters are left out" in shortened(text)
    assert shortened(text).endswith("b")


# -- the server ------------------------------------------------------------------------------------


def answers(folder: Path, *lines: bytes) -> list[dict[str, Any]]:
    server = ToolServer(list(tools(folder).values()))
    outgoing = io.BytesIO()
    server.serve(io.BytesIO(b"\n".join(lines) + b"\n"), outgoing)
    return [json.loads(line) for line in outgoing.getvalue().splitlines()]


def request(method: str, number: object = 1, **params: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode()


@pytest.mark.parametrize(
    ("asked", "given"), [*((v, v) for v in HANDSHAKE), ("2019", HANDSHAKE[-1])]
)
def test_a_handshake_agrees_on_a_version(folder: Path, asked: str, given: str) -> None:
    (answer,) = answers(folder, request("initialize", protocolVersion=asked))
    assert answer["result"]["protocolVersion"] == given
    assert "resultType" not in answer["result"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        (request("nothing"), -32601),
        (request("tools/call", name="nope"), -32602),
        (request("ping", _meta={"io.modelcontextprotocol/protocolVersion": "2031"}), -32022),
        (b"[" * 100_000, -32700),
        (b" " * (MAX_LINE_BYTES + 5), -32600),
    ],
)
def test_a_broken_message_gets_an_error_and_the_next_one_an_answer(
    folder: Path, line: bytes, code: int
) -> None:
    first, second = answers(folder, line, request("ping", 2))
    assert first["error"]["code"] == code
    assert second == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_a_notification_has_no_answer(folder: Path) -> None:
    assert answers(folder, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}', b"") == []


def test_a_fault_of_a_tool_is_a_result_for_the_model(folder: Path) -> None:
    (answer,) = answers(folder, request("tools/call", name="list_sheets", arguments={"path": "x"}))
    assert answer["result"]["isError"] is True
    assert "not the path of an .xlsx workbook" in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("mode", ["legacy", STATELESS[0], "auto"])
def test_the_official_client_uses_the_server_with_both_protocols(folder: Path, mode: str) -> None:
    from mcp import Client, StdioServerParameters  # noqa: PLC0415  it takes a second to load

    judge = str(Path(sys.executable).with_name("judge"))

    async def use() -> tuple[list[str], Any, Any]:
        server = StdioServerParameters(command=judge, args=["mcp", "--folder", str(folder)])
        async with Client(server, mode=mode) as client:
            listed = await client.list_tools()
            seen = await client.call_tool("view_range", {**BOOK, "range": "Orders!A2"})
            wrong = await client.call_tool("view_range", {"path": "../x.xlsx", "range": "A1"})
            return [tool.name for tool in listed.tools], seen, wrong

    names, seen, wrong = asyncio.run(asyncio.wait_for(use(), 60))
    assert names == list(tools(folder))
    assert not seen.is_error
    assert "pear" in seen.content[0].text
    assert wrong.is_error
