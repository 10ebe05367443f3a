from __future__ import annotations

from hypothesis import settings

# No test is timed: a busy machine would decide what passes.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
