"""Pages on which a person works in the browser: deciding about suspect golds, using a desktop.

- :mod:`judge.sessions.review`: shows suspect golds one by one, with evidence; takes decisions and
  corrections;
- :mod:`judge.sessions.live`: lets a person work on a desktop; records and judges the episode.
"""
