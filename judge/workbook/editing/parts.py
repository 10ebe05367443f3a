"""Replaces some parts of a workbook's package; all others are copied byte for byte."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping

from judge.errors import WorkbookError
from judge.workbook.package import Package
from judge.workbook.reader import Workbook
from judge.workbook.workbook_parts import main_part, read_workbook_part
from judge.workbook.xml_parts import relationships, scan_part

QUOTED = rb"""(?:[^<>"']|"[^"<]*"|'[^'<]*')*?"""
"""Pattern of a tag's attributes, which may hold ``>`` in quotes, but never ``<``."""

CONTENT_TYPES = "[Content_Types].xml"

SHEET_TAG = re.compile(rb"<(?:\w+:)?sheet\b" + QUOTED + rb"/?>")
"""A sheet in the list of the main part."""


def copy_package(data: bytes, replaced: Mapping[str, bytes | None]) -> bytes:
    """A copy of a package in which some parts are replaced.

    Args:
        data: the package.
        replaced: name of a part -> its new content; None removes it.

    Raises:
        WorkbookError: the archive is broken.
    """
    target = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(target, "w") as copy:
            for entry in archive.infolist():
                content = replaced.get(entry.filename, b"")
                if content is None:
                    continue
                if entry.filename not in replaced:
                    content = archive.read(entry)
                copy.writestr(entry, content, compress_type=entry.compress_type)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise WorkbookError(f"the workbook's archive is broken: {error}") from error
    return target.getvalue()


def styles_part(workbook: Workbook) -> str | None:
    """Name of the part with the cell formats; None if there is none."""
    return read_workbook_part(workbook.package).styles


def linked_part(workbook: Workbook, kind: str) -> str | None:
    """Name of a part that the main part points to, such as ``calcChain``."""
    package = workbook.package
    for link in relationships(package, main_part(package)).values():
        if link.kind == kind and not link.external and link.target in package:
            return link.target
    return None


def without_part(package: Package, name: str) -> dict[str, bytes | None]:
    """The replacements that remove a part, its content type and the references to it."""
    folder, _, file = main_part(package).rpartition("/")
    links = f"{folder}/_rels/{file}.rels"
    leaf = re.escape(name.rpartition("/")[2]).encode()
    changed: dict[str, bytes | None] = {name: None}
    pointer = re.compile(
        rb"<(?:\w+:)?Relationship\b(?=" + QUOTED + rb'Target\s*=\s*["\'](?:[^"\']*/)?' + leaf
        + rb'["\'])' + QUOTED + rb"/>"
    )  # fmt: skip
    declared = re.compile(
        rb"<(?:\w+:)?Override\b(?=" + QUOTED + rb'PartName\s*=\s*["\']/?' + re.escape(name.encode())
        + rb'["\'])' + QUOTED + rb"/>"
    )  # fmt: skip
    for part, pattern in ((links, pointer), (CONTENT_TYPES, declared)):
        if part in package:
            changed[part] = pattern.sub(b"", package.read(part))
    return changed


def sheet_ids(package: Package) -> dict[str, str]:
    """Name of each sheet's part -> its ``sheetId``, by which the calculation chain names it."""
    main = main_part(package)
    links = relationships(package, main)
    parts: dict[str, str] = {}

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        link = links.get(attributes.get("r:id", "")) if tag == "sheet" else None
        if link is not None:
            parts[link.target] = attributes.get("sheetId", "")

    scan_part(package, main, on_start)
    return parts


_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))


def attribute(tag: bytes, name: str) -> str | None:
    """The value of a tag's attribute, with entities resolved."""
    match = re.search(rb"(?<![\w:])" + name.encode() + rb"\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", tag)
    if match is None:
        return None
    text = (match[1] if match[1] is not None else match[2]).decode()
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text


def with_attribute(tag: bytes, name: str, value: str) -> bytes:
    """Sets one attribute of a start tag, and changes no others."""
    written = f'{name}="{escape_attribute(value)}"'.encode()
    pattern = re.compile(rb"(?<![\w:])" + name.encode() + rb"\s*=\s*(?:\"[^\"]*\"|'[^']*')")
    if pattern.search(tag):
        return pattern.sub(lambda _: written, tag, count=1)
    end = -2 if tag.endswith(b"/>") else -1
    return tag[:end].rstrip() + b" " + written + tag[end:]


def without_attributes(attributes: bytes, *names: str) -> bytes:
    """The attributes of a tag without some of them."""
    for name in names:
        attributes = re.sub(
            rb"\s+" + name.encode() + rb"\s*=\s*(?:\"[^\"]*\"|'[^']*')", b"", attributes
        )
    return attributes


def escape_attribute(text: str) -> str:
    """Escapes text for an attribute in double quotes."""
    return escape_text(text).replace('"', "&quot;")


def escape_text(text: str) -> str:
    """Escapes text for the content of an element."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
