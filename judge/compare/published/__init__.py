"""Evaluators of others, emulated: their verdicts, faults included.

What an evaluator does is emulated here, not what it should do. The judge's own reading is in the
other rooms of :mod:`judge.compare`, and only they import from here.
"""
