"""The conditions of a judging: everything that decides its verdicts, identified by one digest."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from judge.api.options import ScoreOptions
from judge.core.limits import Limits
from judge.errors import UsageError
from judge.files.documents import dump_json
from judge.serve.store import tables as t
from judge.serve.store.database import Transaction, first_row
from judge.serve.store.folder import DataFolder
from judge.version import __version__

ENVIRONMENT = "environment"
"""Name of the setting with the sandbox and engines of the dispatcher that started last."""

SUITE_FOLDER = "suite"
CORRECTIONS_FILE = "corrections.yaml"
"""Names in a revision's folder: of the parent of the suite's folder, and of the file of
corrections."""

_OPTIONS = ("profile", "style", "checker", "recalc", "engine", "lenient_names", "limits", "best_of")


def digest_of(document: object) -> str:
    """SHA-256 of a document in canonical form: sorted keys, no white space."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def checked_options(options: dict[str, Any]) -> dict[str, Any]:
    """Checks options of a suite or a phase; only options that decide verdicts are accepted.

    Raises:
        UsageError: there is no such option, or its value is not valid.
    """
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise UsageError(
            f"{unknown[0]!r} is not an option of a suite", hint=f"There are {', '.join(_OPTIONS)}."
        )
    parsed = score_options(options)
    document = {name: getattr(parsed, name) for name in _OPTIONS if name in options}
    if "limits" in document:
        document["limits"] = asdict(document["limits"])
    return {name: list(v) if isinstance(v, tuple) else v for name, v in document.items()}


def score_options(options: dict[str, Any], **others: Any) -> ScoreOptions:
    """Converts the options of a suite to the options of the library.

    Args:
        options: the options, in the form in which the database stores them.
        others: further options of the judging, such as the suite's folder.

    Raises:
        UsageError: an option has a value that is not valid.
    """
    chosen = dict(options)
    if "limits" in chosen:
        try:
            chosen["limits"] = Limits(**chosen["limits"])
        except TypeError as error:
            raise UsageError(f"limits: {error}") from error
    if "style" in chosen:
        chosen["style"] = tuple(chosen["style"])
    return ScoreOptions(**chosen, **others)


def document_of(
    suite: str, revision: dict[str, Any], options: dict[str, Any], environment: dict[str, Any]
) -> dict[str, Any]:
    """The conditions of judging by a revision of a suite, as a document.

    It contains the suite's name: two suites can have the same files but different splits, and then
    their conditions have to differ.
    """
    parsed = score_options(options)
    return {
        "suite": {
            "name": suite,
            "revision": revision["number"],
            "digest": revision["digest"],
            "corrections": revision["corrections"],
        },
        "profile": parsed.profile,
        "style": list(parsed.style),
        "checker": dict(parsed.checker),
        "best_of": parsed.best_of,
        "recalc": {
            "mode": parsed.recalculation,
            "engine": parsed.engine,
            "lenient_names": parsed.lenient_names,
            "engines": environment["engines"],
        },
        "limits": asdict(parsed.limits),
        "sandbox": environment["sandbox"],
        "judge_version": environment["judge_version"],
        "options": options,
    }


_NAME_OF_SUITE = sa.select(t.suite.c.name).where(t.suite.c.id == sa.bindparam("suite"))


_KNOWN = sa.select(t.conditions.c.digest).where(t.conditions.c.digest == sa.bindparam("its_digest"))


def ensure_conditions(
    transaction: Transaction,
    revision: dict[str, Any],
    options: dict[str, Any],
    environment: dict[str, Any],
) -> str:
    """Records conditions if they are new, and returns their digest.

    Args:
        transaction: the transaction in which they are recorded.
        revision: row of the revision.
        options: the combined options of suite and phase, see :func:`options_of`.
        environment: see :func:`environment_of`.
    """
    name = transaction.execute(_NAME_OF_SUITE, {"suite": revision["suite"]}).scalar_one()
    document, digest = _document_with_digest(
        dump_json([name, revision["number"], revision["digest"], revision["corrections"]]),
        dump_json(options),
        dump_json(environment),
    )
    if transaction.execute(_KNOWN, {"its_digest": digest}).scalar() is None:
        transaction.execute(
            sa.insert(t.conditions).values(
                digest=digest, revision=revision["id"], document=document
            )
        )
    return digest


@functools.lru_cache(maxsize=64)
def _document_with_digest(
    of_suite: str, options: str, environment: str
) -> tuple[dict[str, Any], str]:
    """Conditions and their digest, from JSON. Cached: callers must not change the result."""
    name, number, digest, corrections = json.loads(of_suite)
    revision = {"number": number, "digest": digest, "corrections": corrections}
    document = document_of(name, revision, json.loads(options), json.loads(environment))
    return document, digest_of(document)


def options_of(suite: dict[str, Any], phase: dict[str, Any]) -> dict[str, Any]:
    """The options under which a phase is judged: the suite's, overridden by those of the phase."""
    return {**suite["options"], **phase["options"]}


def environment_of(connection: sa.Connection) -> dict[str, Any] | None:
    """Sandbox, engines and version of the dispatcher that started last; None before the first."""
    row = first_row(connection, sa.select(t.setting.c.value).where(t.setting.c.name == ENVIRONMENT))
    return None if row is None else row["value"]


def make_environment(image: str | None, engines: list[str]) -> dict[str, Any]:
    """Describes a dispatcher, in the form that :func:`environment_of` returns."""
    return {"sandbox": image, "engines": engines, "judge_version": __version__}


_SET = sa.update(t.setting).where(t.setting.c.name == sa.bindparam("of"))


def set_setting(transaction: Transaction, name: str, value: Any) -> None:
    """Sets a setting of the whole server."""
    changed = transaction.execute(_SET, {"of": name, "value": value})
    if not changed.rowcount:
        transaction.execute(sa.insert(t.setting).values(name=name, value=value))


def suite_path(folder: DataFolder, revision: dict[str, Any]) -> Path:
    """The path of a revision's suite, in a folder that has the suite's own name.

    Raises:
        UsageError: its files are missing.
    """
    parent = folder.suite(revision["folder"]) / SUITE_FOLDER
    paths = sorted(parent.iterdir()) if parent.is_dir() else []
    if len(paths) != 1:
        raise UsageError(f"revision {revision['id']}: its files are not in the data folder")
    return paths[0]


def corrections_path(folder: DataFolder, revision: dict[str, Any]) -> Path | None:
    """The file of a revision's corrections; None if it has no corrections."""
    if revision["corrections"] is None:
        return None
    return folder.suite(revision["folder"]) / CORRECTIONS_FILE
