"""The options that affect verdicts, on this machine and on workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from judge.core.limits import Limits
from judge.core.option import Option, Section
from judge.recalc.names import Mode

ClusterName = Annotated[
    str | None,
    Option(
        "Judge on workers: local:N, tcp://…, tls://… or FILE.yaml (docs/scaling.md).",
        Section.ISOLATION,
        metavar="CLUSTER",
    ),
]
InsecureCluster = Annotated[
    bool, Option("Allow a cluster on other machines without TLS.", Section.ISOLATION)
]
SandboxName = Annotated[
    str,
    Option(
        "What isolates programs.",
        Section.ISOLATION,
        choices="judge.sandbox.select:SANDBOX_KINDS",
    ),
]
"""The option that names a kind of sandbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingOptions:
    """The options that determine rules, engines and sandbox.

    Attributes:
        profile: comparison profile.
        style: style attributes to compare in addition to the values.
        recalc: ``auto``, ``never`` or ``always``; the profile ``ssb2-official`` never computes.
        engine: calculation engine, ``auto`` for the cascade.
        lenient_names: whether newer functions written without their prefix are computed.
        sandbox: ``auto``, ``docker``, ``bubblewrap``, or ``sealed-container``, which runs no
            programs.
        limits: limits on each run of a program.
    """

    profile: Annotated[
        str,
        Option(
            "What counts as equal.",
            Section.EQUAL,
            choices="judge.compare.profiles:PROFILES",
        ),
    ] = "standard"
    style: Annotated[
        tuple[str, ...],
        Option(
            "Also compare a style attribute (fill, font_color …); may be repeated.",
            Section.EQUAL,
            metavar="ATTRIBUTE",
        ),
    ] = ()
    recalc: Annotated[
        Mode, Option("When to compute formulas of the answer range.", Section.FORMULAS)
    ] = "auto"
    engine: Annotated[
        str,
        Option(
            "Calculation engine.",
            Section.FORMULAS,
            choices="judge.recalc.names:ENGINES",
            noun="calculation engine",
        ),
    ] = "auto"
    lenient_names: Annotated[
        bool,
        Option(
            "Compute newer functions written without their _xlfn. prefix (#NAME? in Excel).",
            Section.FORMULAS,
        ),
    ] = False
    sandbox: SandboxName = "auto"
    limits: Limits = field(default_factory=Limits)
