"""Published suites: where their archives are and how they are checked (``sources.yaml``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from judge.errors import SuiteError
from judge.files.documents import written
from judge.files.yaml_documents import read_yaml

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAX_ADDRESSES = 20


@dataclass(frozen=True, slots=True)
class PublishedSuite:
    """A published suite.

    Attributes:
        name: what ``judge dataset fetch`` and ``--dataset`` call it.
        title: one line for people.
        format: name of the suite format.
        tasks: how many tasks it has.
        licence: licence of the data.
        homepage: where to read about it.
        archive: file name of the archive.
        size_bytes: size of the archive, where known.
        sha256: checksum of the archive, where one is known.
        urls: addresses of the archive, in the order in which they are tried.
    """

    name: str
    title: str
    format: str
    tasks: int
    licence: str
    homepage: str
    archive: str
    size_bytes: int | None
    sha256: str | None
    urls: tuple[str, ...]


def load_sources(folder: Path) -> tuple[PublishedSuite, ...]:
    """Reads ``sources.yaml``.

    Args:
        folder: the folder that holds it.

    Raises:
        SuiteError: it is missing, not YAML, or a field is not valid.
    """
    path = folder / "sources.yaml"
    document = read_yaml(path, SuiteError)
    entries = document.get("suites") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise SuiteError(f"{path}: field 'suites' must be a list")
    return tuple(_source(path, entry) for entry in entries)


def _source(path: Path, entry: object) -> PublishedSuite:
    if not isinstance(entry, dict):
        raise SuiteError(f"{path}: each suite must be an object, not {written(entry)}")
    fields = _Entry(path, entry)
    urls = entry.get("urls")
    if not isinstance(urls, list) or not urls or not all(isinstance(url, str) for url in urls):
        raise fields.fault("urls", "must be a list of addresses")
    for url in urls[:_MAX_ADDRESSES]:
        if not url.lower().startswith(("http://", "https://")):
            raise fields.fault(
                "urls", f"must hold only http and https addresses, not {written(url)}"
            )
    return PublishedSuite(
        name=fields.file_name("name"),
        title=fields.text("title"),
        format=fields.text("format"),
        tasks=fields.integer("tasks") or 0,
        licence=fields.text("licence"),
        homepage=fields.text("homepage"),
        archive=fields.file_name("archive"),
        size_bytes=fields.integer("size_bytes"),
        sha256=fields.checksum("sha256"),
        urls=tuple(urls[:_MAX_ADDRESSES]),
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    values: Mapping[str, object]

    def fault(self, name: str, problem: str) -> SuiteError:
        suite = self.values.get("name", "?")
        return SuiteError(f"{self.path}, suite {suite}: field {name!r} {problem}")

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if not isinstance(value, str) or not value:
            raise self.fault(name, f"must be text, not {written(value)}")
        return value

    def file_name(self, name: str) -> str:
        """A string that is used as a name of files and folders in the cache."""
        value = self.text(name)
        if _FILE_NAME.fullmatch(value) is None:
            raise self.fault(
                name,
                f"must be letters, digits, '.', '_' and '-', beginning with one of the "
                f"first two, not {written(value)}",
            )
        return value

    def integer(self, name: str) -> int | None:
        value = self.values.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
            return value
        raise self.fault(name, f"must be a positive integer or null, not {written(value)}")

    def checksum(self, name: str) -> str | None:
        value = self.values.get(name)
        if value is None:
            return None
        text = str(value).lower()
        if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
            raise self.fault(name, f"must be 64 hexadecimal digits or null, not {written(value)}")
        return text
