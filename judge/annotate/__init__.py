"""The annotator's tool: new test cases, the rules for them, ideas for them, and their strength.

Nothing here prints or prompts: the command line and the page are built on top of it.

- :mod:`edits`, :mod:`edit`: changes to a workbook that leave everything else unchanged;
- :mod:`gold`: the gold that follows from a changed input;
- :mod:`casebook`: cases and drafts in a suite's folder, safe against crashes and other annotators;
- :mod:`rules`: the rules of the annotation manual;
- :mod:`suggest`: ideas for corner cases, with a validator;
- :mod:`strength`, :mod:`hack`: how strong a case is.

``judge/annotate/__init__.pyi`` lists the names that commands use; their modules are imported when
the names are first used.
"""

from judge import attach_stub

_HOMES, __getattr__, __dir__ = attach_stub(__name__, __file__)
__all__ = list(_HOMES)
