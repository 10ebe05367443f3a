"""The annotator's tool: new test cases, the rules for them, ideas for them, and their worth.

Nothing here prints or asks: the command line and any page stand on top.

- :mod:`edits`, :mod:`edit`: changes to a workbook that leave everything else as it is;
- :mod:`gold`: the gold that follows from a changed input;
- :mod:`casebook`: cases and drafts in a suite's folder, safe against crashes and other annotators;
- :mod:`rules`: the rules of the annotation manual;
- :mod:`suggest`: ideas for corner cases, with a validator;
- :mod:`strength`, :mod:`hack`: what a case is worth.
"""
