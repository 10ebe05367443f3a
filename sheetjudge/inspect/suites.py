"""Which suite a sample belongs to: by its digest, since logs hold no paths."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from judge.errors import UsageError
from judge.suites import Suite, load_suite
from judge.suites.suite import source_of_digest

SUITE = "suite"
SUITE_DIGEST = "suite_digest"
"""What samples call the name of their suite, and the hash of its content."""


def suite_of_sample(metadata: Mapping[str, Any], source: str | None) -> Suite:
    """The suite of a sample; read once per process.

    Args:
        metadata: the metadata of the sample; it may come from anybody.
        source: the suite that the user named; None to find it by its digest.

    Raises:
        UsageError: it is not known where the suite is, or it is another one.
        SuiteError: it is missing or broken.
    """
    name, digest = str(metadata.get(SUITE, ""))[:200], metadata.get(SUITE_DIGEST)
    place = source
    if place is None and isinstance(digest, str):
        place = source_of_digest(digest, name)
    if place is None:
        raise UsageError(
            f"where is the suite {name or 'of this log'}? It was not loaded on this machine before",
            hint="Name it: -S suite=PATH",
        )
    suite = loaded_suite(place)
    if isinstance(digest, str) and suite.digest != digest:
        raise UsageError(
            f"{place} is not the suite of this log ({name}): its content differs",
            hint="Name the right one: -S suite=PATH",
        )
    return suite


@lru_cache(maxsize=16)
def loaded_suite(source: str) -> Suite:
    """A suite by its place, read once per process.

    Raises:
        SuiteError: it is missing or broken.
    """
    return load_suite(source)
