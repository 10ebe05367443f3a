"""The judge as a library: score runs, run one program, check a suite, ask a chat model.

The command line is a thin layer over this package. ``judge/api/__init__.pyi`` is the table of the
names that can be imported from here; the modules behind them are imported when they are used.
"""

from judge import attach_stub

_HOMES, __getattr__, __dir__ = attach_stub(__name__, __file__)
__all__ = list(_HOMES)
