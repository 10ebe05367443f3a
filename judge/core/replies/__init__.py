"""Finds the program or the answer in a chat model's reply. Pure; no program runs here.

- :mod:`judge.core.replies.extract`: the program in a reply or in a record of solutions; only this
  module decides about it.
- :mod:`judge.core.replies.answers`: the typed answer.

All other modules serve these two. Replies are hostile text, so all readers take time linear in
their length. Repetitions in patterns are possessive (``++``, ``*+``) wherever the rest of the
pattern could fail, so that they never backtrack.
"""
