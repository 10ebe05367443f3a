"""Modules of the driver without the bus, which would need a desktop."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator

import pytest

_ON_THE_BUS = ("bus", "cells", "tree")


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], types.ModuleType]]:
    """Imports a module of the driver that uses the bus."""
    names = [f"judge.desktop.driver.{name}" for name in _ON_THE_BUS]
    repository = types.ModuleType("gi.repository")
    vars(repository).update(Gio=None, GLib=None)
    monkeypatch.setitem(sys.modules, "gi", types.ModuleType("gi"))
    monkeypatch.setitem(sys.modules, "gi.repository", repository)
    for name in names:
        sys.modules.pop(name, None)
    yield lambda name: importlib.import_module(f"judge.desktop.driver.{name}")
    for name in names:
        sys.modules.pop(name, None)
