"""What a chat model's reply holds: the program, found wherever it stands. Pure, and never run here.

- :mod:`judge.replies.extract`: the program of a reply; the one place that decides.
- :mod:`judge.replies.recorded`: the program of a record of solutions.

Everything else serves those two. Replies are hostile text: whatever reads them takes time that is
linear in their length. Patterns that repeat anything are possessive (``++``, ``*+``) wherever what
follows could fail, so that they never go back.
"""
