"""The annotator's tool: new test cases, their rules, ideas for them, and how strong they are.

Nothing here prints or asks: the command line and any page are built on it.

- :mod:`edits`, :mod:`edit`: changes to a workbook that leave everything else as it is;
- :mod:`gold`: the gold that follows from a changed input;
- :mod:`casebook`: cases and drafts in a suite's folder, safe against crashes and other annotators;
- :mod:`rules`: the rules of the annotation manual;
- :mod:`suggest`: ideas for corner cases, with a validator;
- :mod:`strength`, :mod:`hack`: how strong a case is.

``judge/annotate/__init__.pyi`` is the table of the names that commands use; the modules behind them
are imported when they are used.
"""

from judge import attach_stub

_HOMES, __getattr__, __dir__ = attach_stub(__name__, __file__)
__all__ = list(_HOMES)
