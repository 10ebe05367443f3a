"""Compares answers with golds: cells, values, rules, boards, files, and published evaluators.

A checker compares the answers of a task. It is one object in one module, and one line in
:mod:`judge.compare.registry`; its contract is :mod:`judge.compare.contract`. Nothing else in the
judge depends on the checker of a task.

``judge.compare(gold, output, position)`` compares two workbooks, as
:func:`judge.compare_workbooks` does: the package itself is callable.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judge.compare.cells.comparison import Comparison


class _CallablePackage(types.ModuleType):
    """A package that can be called like :func:`judge.compare_workbooks`."""

    def __call__(self, *args: Any, **options: Any) -> Comparison:
        """Compares two workbooks; see :func:`judge.compare_workbooks`."""
        return _function()(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature of the function, which ``help()`` shows."""
        return inspect.signature(_function())


def _function() -> Callable[..., Comparison]:
    """Imports the function only when it is needed: it belongs to a layer above this package."""
    function: Callable[..., Comparison] = importlib.import_module("judge").compare_workbooks
    return function


sys.modules[__name__].__class__ = _CallablePackage
