"""The program or the answer in a chat model's reply. Pure; no program runs here.

- :mod:`judge.replies.extract`: the program of a reply, or of a record of solutions; the one place
  that decides.
- :mod:`judge.replies.answers`: a typed answer.

Everything else serves those two. Replies are hostile text: everything that reads them takes time
linear in their length. Patterns that repeat anything are possessive (``++``, ``*+``) wherever what
follows could fail, so that they never backtrack.
"""
