"""Where suites are on this machine, by the digest of their content.

Logs that others read name a suite by its digest and not by a path. A caller that loads a suite from
a folder may have the folder remembered, so that the suite is found again.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

from judge.errors import StoreError
from judge.files.documents import read_json
from judge.files.paths import state_folder
from judge.files.writing import write_whole
from judge.suites.locate import SHIPPED, data_folder, fetched_folder, whole_source
from judge.suites.sources import load_sources
from judge.suites.suite import Suite

_DIGEST = re.compile(r"[0-9a-f]{64}")


def remember_suite(suite: Suite, source: str) -> None:
    """Remembers where a suite is; one that cannot be written down is named by hand later.

    Args:
        suite: the suite.
        source: what it was loaded from.
    """
    place = whole_source(source)
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the user has no home
        path = _path(suite.digest)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, json.dumps({"source": place}).encode())


def source_of_digest(digest: str, name: str) -> str | None:
    """What a suite can be loaded from on this machine; None if nobody knows.

    It may have changed since: compare the digests.

    Args:
        digest: of the suite's content; it may come from anybody.
        name: what the suite is called; it may come from anybody, and counts only as the name of a
            suite that ships with the judge or was fetched.
    """
    if _DIGEST.fullmatch(digest) is None:
        return None
    with contextlib.suppress(OSError, RuntimeError, StoreError):
        document = read_json(_path(digest), StoreError)
        source = document.get("source") if isinstance(document, dict) else None
        if isinstance(source, str):
            return source
    fetched = {
        load_source.name
        for load_source in load_sources(data_folder())
        if fetched_folder(load_source.name).is_dir()
    }
    return name if name in {*SHIPPED, *fetched} else None


def _path(digest: str) -> Path:
    return state_folder() / "suites" / f"{digest}.json"
