"""An online judge for spreadsheet work.

The public interface for other programs. Each name is imported when it is first used, so
``import judge`` itself is fast. ``judge/__init__.pyi`` is the table of these names:

- ``Judge`` (with ``JudgingOptions``) is opened once and judges answers one by one
- ``Rewards`` turns verdicts into numbers for training
- ``score`` (with ``ScoreOptions``; returns a ``ScoredRun``), ``run`` and ``verify`` judge files
- ``infer`` (with ``InferOptions``) asks a chat model for solutions
- ``compare_workbooks`` compares two workbooks (``judge.compare`` is short for it)
- ``recalculate`` computes the formulas of one workbook, ``Recalculating`` those of several
- ``rejudge`` judges a run again, ``change_verdict`` changes the verdict on one case by hand
- ``Report``, ``report_data``, ``report_html`` and ``compare_runs`` make reports
- ``make_audit`` and ``read_audit`` let a person mark a sample of the verdicts
- ``load_suite`` loads a suite
"""

from __future__ import annotations

import importlib
import sys


def attach_stub(package: str, file: str):  # noqa: ANN202  the stub declares the return type
    """Makes a package import its public names only when they are first used.

    Args:
        package: the package.
        file: its ``__init__.py``. The stub for type checkers, in the same folder, is the table: it
            has a line for each name, ``from HOME import ATTRIBUTE as NAME`` or ``NAME = OTHER``.

    Returns:
        For each name its module and the attribute there; then the package's ``__getattr__`` and
        ``__dir__``.
    """
    homes = {}
    with open(f"{file}i", encoding="utf-8") as stub:  # noqa: PTH123  pathlib is slow to import
        for line in stub:
            if line.startswith("from ") and " as " in line:
                _, home, _, attribute, _, name = line.split()
                homes[name] = (home, attribute)
            name, _, other = line.strip().partition(" = ")
            if other in homes:
                homes[name] = homes[other]

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, attribute = homes[name]
        module = importlib.import_module(home)
        # An import may have set a submodule of this name; the callable must win (`judge.compare`).
        return vars(sys.modules[package]).get(name) or getattr(module, attribute)

    return homes, get, lambda: sorted(homes)


_HOMES, __getattr__, __dir__ = attach_stub(__name__, __file__)
__all__ = list(_HOMES)
