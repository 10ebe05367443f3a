"""Names of the calculation engines, and when they compute."""

from typing import Literal

Mode = Literal["auto", "never", "always"]
"""When formulas are computed: those without a value to trust, none, or all."""

LIBREOFFICE = "libreoffice"
IRONCALC = "ironcalc"
FORMUALIZER = "formualizer"
FORMULAS = "formulas"

JUDGE = "judge"
"""Stands for values that are computed here (:mod:`judge.recalc.own`), as if it were an engine."""

EMBEDDED = (IRONCALC, FORMUALIZER, FORMULAS)
"""Engines from the package registry, which run in the solutions' interpreter."""

ENGINE_NAMES = (LIBREOFFICE, *EMBEDDED)

ENGINES = ("auto", *ENGINE_NAMES)
"""What an option that names an engine can be: one of them, or ``auto`` for the cascade."""
