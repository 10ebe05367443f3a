"""Comparing answers with golds: cells, values, rules, boards, files, and published evaluators.

A checker compares the answers of a task. It is one object in one module, and one line in
:mod:`judge.compare.registry`; its contract is :mod:`judge.compare.contract`. Nothing else in the
judge depends on which checker a task has.

``judge.compare(gold, output, position)`` compares two workbooks, as
:func:`judge.compare_workbooks` does: this package can be called.
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
    """A package that is also the function :func:`judge.compare_workbooks`."""

    def __call__(self, *args: Any, **options: Any) -> Comparison:
        """Compares two workbooks; see :func:`judge.compare_workbooks`."""
        return _function()(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        """What the function takes, for help."""
        return inspect.signature(_function())


def _function() -> Callable[..., Comparison]:
    """The function, found by name: it belongs to a layer above this package."""
    function: Callable[..., Comparison] = importlib.import_module("judge").compare_workbooks
    return function


sys.modules[__name__].__class__ = _CallablePackage
