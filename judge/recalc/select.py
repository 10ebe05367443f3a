"""Which engines are available, and a recalculator that uses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from judge.errors import JudgeError, RecalcError, UsageError
from judge.files.paths import cache_folder
from judge.recalc.cache import ResultCache
from judge.recalc.contract import Engine
from judge.recalc.engines import INSTALL_COMMAND, ServiceEngine, VersionBook
from judge.recalc.names import EMBEDDED, ENGINE_NAMES, ENGINES, LIBREOFFICE, Mode
from judge.recalc.policy import DEFAULT_TIMEOUT_S, Recalculator
from judge.recalc.service import ServicePool
from judge.recalc.services import program_text
from judge.recalc.trust import TrustTable, trust_table
from judge.sandbox.contract import Sandbox

OFFICE_ROOT = "office"
PYTHON_ROOT = "python"

OFFICE_MEMORY_BYTES = 3 * 1024**3
EMBEDDED_MEMORY_BYTES = 3 * 1024**3


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """One line of ``judge engines``.

    Attributes:
        name: short name of the engine.
        available: whether it can be used here.
        version: its version; empty if it is not available.
        coverage: results of the benchmark: for how many functions the engine was measured, and for
            how many of them it is trusted.
        hint: the command that installs it if it is missing, or why it does not start.
    """

    name: str
    available: bool
    version: str = ""
    coverage: Mapping[str, int] = field(default_factory=dict)
    hint: str = ""


def check_recalculation(mode: str, engine: str) -> None:
    """Checks the names of a mode and of an engine.

    Raises:
        UsageError: there is no such mode or engine.
    """
    if mode not in get_args(Mode):
        raise UsageError(f"{mode!r} is not a recalculation mode: use auto, never or always")
    if engine not in ENGINES:
        raise UsageError(f"{engine!r} is not a calculation engine; known: {', '.join(ENGINES)}")


def open_recalculator(
    sandbox: Sandbox | None,
    *,
    mode: Mode = "auto",
    engine: str = "auto",
    cache_dir: Path | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    lenient_names: bool = False,
    workers: int = 1,
) -> Recalculator:
    """Makes a recalculator with the engines that a sandbox has, without starting them.

    Args:
        sandbox: where the engines run; None only if nothing is to be computed.
        mode: see :class:`judge.recalc.policy.Recalculator`.
        engine: ``auto`` for all available engines, or the name of the only one to use.
        cache_dir: folder in which results and versions are kept between runs; None for neither.
        timeout_s: processor seconds that one engine may take for one workbook.
        lenient_names: whether newer functions without their prefix are computed.
        workers: how many workbooks each engine may compute at once.

    Raises:
        UsageError: no such engine or mode.
        RecalcError: the engine requested by name is not installed.
    """
    check_recalculation(mode, engine)
    engines: list[Engine] = []
    missing: list[str] = []
    if sandbox is not None and mode != "never":
        there = available_engines(sandbox)
        missing = [name for name in ENGINE_NAMES if name not in there]
        chosen = there if engine == "auto" else (engine,)
        if engine != "auto" and engine not in there:
            raise RecalcError(f"{engine} is not in the sandbox", hint=f"Run `{INSTALL_COMMAND}`.")
        book = VersionBook(cache_dir / "versions") if cache_dir is not None else None
        engines = make_engines(sandbox, chosen, workers=workers, book=book)
    return Recalculator(
        engines,
        mode=mode,
        timeout_s=timeout_s,
        cache=ResultCache(cache_dir / "results" if cache_dir is not None else None),
        lenient_names=lenient_names,
        missing=missing if engine == "auto" else (),
    )


def available_engines(sandbox: Sandbox) -> tuple[str, ...]:
    """The names of the engines that are installed in the sandbox; none of them is started."""
    installed = []
    if sandbox.has_root(OFFICE_ROOT):
        installed.append(LIBREOFFICE)
    if sandbox.has_root(PYTHON_ROOT):
        installed.extend(EMBEDDED)
    return tuple(installed)


def recalc_cache_folder() -> Path:
    """The folder in which results and versions are kept between runs; see :func:`cache_folder`."""
    return cache_folder() / "recalc"


def make_engines(
    sandbox: Sandbox,
    names: tuple[str, ...],
    *,
    workers: int = 1,
    book: VersionBook | None = None,
) -> list[Engine]:
    """Makes engines by name, without starting them; embedded ones share one service."""
    engines: list[Engine] = []
    if LIBREOFFICE in names:
        office = ServicePool(
            lambda: sandbox.service(
                program_text("office"), root=OFFICE_ROOT, memory_bytes=OFFICE_MEMORY_BYTES
            ),
            size=workers,
        )
        root = sandbox.root_digest(OFFICE_ROOT)
        engines.append(ServiceEngine(LIBREOFFICE, office, root=root, book=book))
    embedded = [name for name in EMBEDDED if name in names]
    if embedded:
        pool = ServicePool(
            lambda: sandbox.service(
                program_text("embedded"), root=PYTHON_ROOT, memory_bytes=EMBEDDED_MEMORY_BYTES
            ),
            size=workers,
        )
        root = sandbox.root_digest(PYTHON_ROOT)
        engines.extend(ServiceEngine(name, pool, root=root, book=book) for name in embedded)
    return engines


def engine_report(sandbox: Sandbox | None) -> tuple[EngineEntry, ...]:
    """The state of every known engine: version, coverage, or how to install it.

    Starts the installed engines to ask for their versions.
    """
    there = available_engines(sandbox) if sandbox is not None else ()
    table = trust_table()
    engines = {e.name: e for e in make_engines(sandbox, there)} if sandbox is not None else {}
    try:
        return tuple(_entry(name, engines.get(name), table) for name in ENGINE_NAMES)
    finally:
        for engine in engines.values():
            engine.close()


def _entry(name: str, engine: Engine | None, table: TrustTable) -> EngineEntry:
    coverage = table.coverage(name)
    if engine is None:
        return EngineEntry(name, False, coverage=coverage, hint=f"`{INSTALL_COMMAND}`")
    try:
        return EngineEntry(name, True, version=engine.version, coverage=coverage)
    except JudgeError as error:
        return EngineEntry(name, False, coverage=coverage, hint=error.message)


def report_as_json(entries: tuple[EngineEntry, ...]) -> list[dict[str, Any]]:
    """Converts the report to plain data for JSON."""
    return [
        {
            "name": entry.name,
            "available": entry.available,
            "version": entry.version,
            "coverage": dict(entry.coverage),
            "hint": entry.hint,
        }
        for entry in entries
    ]
