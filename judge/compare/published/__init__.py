"""Emulates published evaluators: gives the same verdicts, faults included.

The modules emulate what an evaluator does, not what it should do. The judge's own reading is in
the other packages of :mod:`judge.compare`, and only they import from here.
"""
