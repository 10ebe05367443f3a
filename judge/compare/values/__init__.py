"""Typed answers: what is expected of each variable, and which values agree with that.

- :mod:`judge.compare.values.rules`: what is expected of each variable.
- :mod:`judge.compare.values.agreement`: whether a value agrees, by a profile; no other module
  decides this.
- :mod:`judge.compare.published.babelbench`: the rules of the published script, faults included.

Values come from replies and may be hostile: the length of the reply bounds the time and memory of
everything here, and no part of a reply is ever executed.
"""
