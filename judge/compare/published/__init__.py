"""Emulates published evaluators: gives the same verdicts, faults included.

The modules emulate what an evaluator does, not what it should do. The judge's own reading is in
the other packages of :mod:`judge.compare`. The checks of a suite that are items of a checklist are
here in both readings (:mod:`judge.compare.checklists.suites`).
"""
