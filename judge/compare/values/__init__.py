"""Answers that are values: what a variable expects, and when a value agrees with it. Pure.

- :mod:`judge.compare.values.rules`: what is expected of each variable.
- :mod:`judge.compare.values.agreement`: whether a value agrees, by a profile; it alone
  decides.
- :mod:`judge.compare.published.babelbench`: the rules of the published script, faults included.

Values come out of replies and are hostile: everything here takes time and memory that are bounded
by the length of the reply, and nothing of it is ever executed.
"""
