"""Names of the calculation engines and of the recalculation modes."""

from typing import Literal

Mode = Literal["auto", "never", "always"]
"""Which formulas are computed: those without a trusted value, none, or all."""

LIBREOFFICE = "libreoffice"
IRONCALC = "ironcalc"
FORMUALIZER = "formualizer"
FORMULAS = "formulas"

JUDGE = "judge"
"""The engine name of values that the judge computes itself (:mod:`judge.recalc.functions.own`)."""

EMBEDDED = (IRONCALC, FORMUALIZER, FORMULAS)
"""Engines that are Python packages and run in the solutions' interpreter."""

ENGINE_NAMES = (LIBREOFFICE, *EMBEDDED)

ENGINES = ("auto", *ENGINE_NAMES)
"""Values of an option that selects an engine: the name of one, or ``auto`` for the cascade."""
