"""``judge audit``: has a person mark a sample of the verdicts, and computes rates of errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge import api
from judge.cli.help import HelpCommand
from judge.cli.options import json_option, option
from judge.core.statistics import SEED
from judge.files.documents import dump_json
from judge.files.writing import write_whole

if TYPE_CHECKING:
    from judge.core.statistics import Estimate
    from judge.report.audit import AuditRates


@click.command(
    cls=HelpCommand,
    examples=(
        "audit results/mine --sample 50",
        "audit results/mine --read results/mine/audit.xlsx",
        "audit results/mine --items 40 --out items.json",
    ),
)
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@option(
    "--sample",
    "size",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="How many instructions to draw, each with all of its cases.",
)
@option("--seed", type=int, help="Seed of the draw, or of the intervals. [20240624]")
@option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Sheet to write, .xlsx or .csv. [audit.xlsx in RUN]",
)
@option("--dataset", metavar="SUITE", help="Suite; default: the one that the run remembers.")
@option(
    "--read",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Read a marked sheet back and print the rates.",
)
@option(
    "--items",
    type=click.IntRange(min=1),
    metavar="N",
    help="Draw N items of checklists instead, for `judge checklist take`.",
)
@json_option("the rates")
def audit(
    run: Path,
    size: int,
    seed: int | None,
    out: Path | None,
    dataset: str | None,
    read: Path | None,
    items: int | None,
    as_json: bool,
) -> None:
    """Have a person mark a sample of the verdicts of RUN, and show how far they can be trusted.

    Writes a sheet with instruction, verdict, differences and links to the workbooks. Fill in right
    or wrong; --read then gives the four rates of the benchmark's paper with intervals. With
    --items, the sheet has single items of checklists, without the judge's marks.
    """
    if items is not None:
        _draw_items(run, items, SEED if seed is None else seed, out or run / "items.json")
        return
    if read is not None:
        rates = api.read_audit(run, read, seed=seed)
        click.echo(
            json.dumps(rates.to_json(), ensure_ascii=False) if as_json else "\n".join(_lines(rates))
        )
        return
    audit = api.make_audit(
        run, size=size, out=out, dataset=dataset, **({} if seed is None else {"seed": seed})
    )
    drawn = len(audit.sample.submissions)
    click.echo(
        f"{audit.sheet}: {drawn} of {audit.sample.population} instructions, "
        f"{len(audit.sample.verdicts)} cases, seed {audit.sample.seed}"
    )
    click.echo(f"fill in right or wrong, then: judge audit {run} --read {audit.sheet}")


def _draw_items(run: Path, size: int, seed: int, out: Path) -> None:
    from judge.report.load import load_run  # noqa: PLC0415  for a quick --help
    from judge.report.marks import draw_items, sheet_of  # noqa: PLC0415

    drawn = draw_items(load_run(run), size, seed)
    write_whole(out, f"{dump_json(sheet_of(drawn), indent=2)}\n".encode())
    click.echo(f"{out}: {len(drawn)} items, seed {seed}")
    click.echo(f"fill in score (0 to 1), then: judge checklist take {run} {out} --by NAME")


def _lines(rates: AuditRates) -> list[str]:
    cases, solved = rates.cases, rates.solved
    false_yes, false_no = cases.false_positive, cases.false_negative
    marked = (
        f"audit {rates.sample_id}: {rates.marked_cases} of {rates.sampled_cases} cases and "
        f"{rates.whole_instructions} of {rates.sampled_instructions} instructions with all of "
        "their cases are marked"
    )
    lines = [
        marked,
        _line(
            "test case, false discovery",
            rates.case_false_discovery,
            false_yes,
            false_yes + cases.true_positive,
            "accepted cases are wrong",
        ),
        _line(
            "test case, false omission",
            rates.case_false_omission,
            false_no,
            false_no + cases.true_negative,
            "cases that were not accepted are right",
        ),
        _line(
            "instruction, false positive",
            rates.instruction_false_positive,
            rates.false_positive_instructions,
            rates.whole_instructions,
            "instructions have a wrong case that was accepted",
        ),
        _line(
            "instruction, false negative",
            rates.instruction_false_negative,
            rates.false_negative_instructions,
            rates.whole_instructions,
            "instructions have a right case that was not accepted",
        ),
    ]
    if rates.marked_instructions:
        lines.append(
            f"  {solved.true_positive + solved.false_positive} of {rates.marked_instructions} "
            f"instructions are called solved, {solved.false_positive} of them wrongly; "
            f"{solved.false_negative} of the others are solved"
        )
    if rates.marked_by_cases:
        lines.append(
            f"{rates.marked_by_cases} instructions are not marked; their marks follow from those "
            "of their cases"
        )
    if rates.rejudged_cases:
        lines.append(
            f"{rates.rejudged_cases} cases got another verdict after the sample was drawn; the "
            "rates use the earlier one, which is the one that was marked"
        )
    return lines


def _line(name: str, rate: Estimate, count: int, total: int, what: str) -> str:
    return f"  {name:28} {api.with_interval(rate):>24} %   {count} of {total} {what}"
