"""What inference takes from a run that it continues, and what it takes only if the user says so.

The options that a run remembers are in its folder, and a folder may come from anyone. Those that
decide whom to ask, with which key, what is read and what is paid are taken silently from runs that
this user started on this machine, and from other folders only when the user says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.api.infer_options import REMEMBERED, USUAL, InferOptions, check_remembered
from judge.core.records.runs import InferenceIdentity, RunDocument
from judge.errors import StoreError
from judge.files.paths import as_path
from judge.grading.store import RUN_FILE, RunDirectory
from judge.inference.config import check_address, origin_of
from judge.inference.started import StartedRuns

GUARDED = {
    "model": "chat model",
    "base_url": "endpoint",
    "api_key_env": "key",
    "models": "models file",
    "prompt": "prompt",
    "documents": "documents",
    "dataset": "suite",
    "param": "parameters",
    "samples": "samples",
    "rounds": "rounds",
    "price": "price",
}
"""Options that need the user's consent, with their names: they decide whom to ask, with which
key, what of this machine is read and sent, and what is paid."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """Options, filled up with those of the run that is continued.

    Attributes:
        options: what holds now.
        taken: guarded options that the folder alone gives, in a run of somebody else.
        key_said: endpoint and key name were given together, by this user.
        dropped_key: name of a key that was remembered for an endpoint other than the one given.
    """

    options: InferOptions
    taken: tuple[str, ...] = ()
    key_said: bool = False
    dropped_key: str | None = None

    def check_trusted(self) -> None:
        """Checks that nothing is taken from another user's folder without this user's consent.

        Raises:
            StoreError: something is, and ``trust_folder`` is not given.
        """
        if self.taken and not self.options.trust_folder:
            raise StoreError(
                f"{self.options.out}: was not started by you on this machine, and its {RUN_FILE} "
                f"alone says whom to ask or what to read ({', '.join(self.taken)})",
                hint="Give the options yourself, or --trust-folder (trust_folder=True) if you know "
                "where the folder is from.",
            )


def resume(options: InferOptions, started: StartedRuns | None = None) -> Resumed:
    """Fills the options that are not given with those of the run in ``out``.

    Args:
        options: what the user gives.
        started: the runs of this user; None for those on record in the user's state folder.

    Raises:
        StoreError: the run's description cannot be read, or holds what is not a value of an option.
    """
    given = options.given()
    said_together = {"base_url", "api_key_env"} <= given.keys()
    out = as_path(options.out)
    before = _options_in(out) if out is not None and out.is_dir() else None
    if out is None or before is None:
        return Resumed(options.filled({}), key_said=said_together)
    known = (started or StartedRuns()).options_of(out)
    own = known is not None and all(known.get(name) == before.get(name) for name in GUARDED)
    remembered, taken = {}, []
    for name in REMEMBERED:
        if name in given or before.get(name) is None:
            continue
        remembered[name] = _read_option(name, before[name], out)
        if name in GUARDED and not own and _says_something(name, remembered[name]):
            taken.append(name)
    dropped = None
    moved = "base_url" in given and not _same_server(given["base_url"], before.get("base_url"))
    if moved and "api_key_env" not in given:
        # A key belongs to its endpoint, and this is another one.
        dropped = remembered.pop("api_key_env", None)
        taken = [name for name in taken if name != "api_key_env"]
    remembered_together = own and "api_key_env" not in given and before.get("base_url") is not None
    return Resumed(
        options.filled(remembered), tuple(taken), said_together or remembered_together, dropped
    )


def _options_in(out: Path) -> Mapping[str, Any] | None:
    run = RunDirectory(out).read_run() or RunDocument()
    return (run.get("inference") or InferenceIdentity()).get("options")


def _read_option(name: str, value: object, out: Path) -> Any:
    try:
        return check_remembered(name, value)
    except (TypeError, ValueError) as error:
        raise StoreError(
            f"{out / RUN_FILE}: inference.options.{name} is {str(value)[:80]!r}: {error}",
            hint="It was not written by the judge. Give another --out.",
        ) from error


def _says_something(name: str, value: object) -> bool:
    """Whether a remembered value is anything but what holds without it."""
    usual = () if name == "param" else USUAL.get(name)
    return value != usual and not (name == "dataset" and value == "sample")


def _same_server(url: str, other: object) -> bool:
    if not isinstance(other, str):
        return False
    return origin_of(check_address(url)) == origin_of(check_address(other))
