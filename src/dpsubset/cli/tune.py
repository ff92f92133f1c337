"""``dpsubset tune``: a model whose setting is chosen privately among a grid."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.errors import ArgumentError
from .options import (
    AboutFile,
    Asked,
    DryRun,
    File,
    Force,
    LedgerOption,
    NoLedgerOption,
    Out,
    PurposeOption,
    Quiet,
    SchemaFile,
    Statement,
    asks,
)
from .select import Files, tell
from .shared import check_apart, guarded, ledger_of, number
from .warmup import telling_of_compilation

#: Entries of a grid that are words; all others are numbers.
_WORDS = ("mechanism", "loss", "constraint", "fit")


@asks
def tune_command(
    *,
    file: File,
    schema: SchemaFile,
    epsilon: Annotated[
        str,
        typer.Option(
            help="Privacy budget of the whole search, exactly as written.",
            metavar="NUMBER",
            show_default=False,
        ),
    ],
    grid: Annotated[
        list[str],
        typer.Option(
            "--grid",
            help="A name and its values, such as k=1,2,3,5 or budget_fraction=0.5,0.7; may be "
            "repeated, and all combinations are settings. Names: k, mechanism, loss, threshold, "
            "constraint, prediction_bound, radius, ridge, and fit, budget_fraction, width as for "
            "'dpsubset fit'.",
            metavar="NAME=VALUES",
            show_default=False,
        ),
    ],
    k: Annotated[
        int | None,
        typer.Option("--k", help="Variables to select, where the grid does not say so."),
    ] = None,
    runs: Annotated[
        str | None,
        typer.Option(
            help="Mean number of runs; that of the settings if not given.", metavar="NUMBER"
        ),
    ] = None,
    eta: Annotated[
        str,
        typer.Option(
            help="Shape of the distribution of the number of runs, above -1 and at most 1.",
            metavar="NUMBER",
        ),
    ] = "-0.5",
    asked: Asked,
    out: Out = None,
    model: Annotated[
        Path | None, typer.Option(help="Write the model here, as JSON, for 'dpsubset predict'.")
    ] = None,
    statement: Statement = None,
    about: AboutFile = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    ledger: LedgerOption = None,
    no_ledger: NoLedgerOption = False,
    purpose: PurposeOption = None,
) -> None:
    """Choose a setting privately and fit a linear model with it. Costs epsilon in all.

    A random number of runs is made, each with a setting of the grid, and the best by a private
    score is released. How long it takes depends on that number. Exit codes are those of 'dpsubset
    select'.
    """
    with guarded(), ExitStack() as stack:
        arguments: dict[str, Any] = asked.arguments()
        arguments |= {"epsilon": number(epsilon, "epsilon"), "grid": _grid(grid), "k": k}
        arguments["eta"] = number(eta, "eta")
        arguments["runs"] = None if runs is None else number(runs, "runs")
        check_apart(file, schema, about, out, model, statement)
        book = ledger_of(ledger, no_ledger, purpose)
        files = Files.reserve(stack, force, about, out, statement, model)

        from ..api.tune import event_of_tune, price_tune, tune

        if dry_run:
            price = price_tune(file, schema, **arguments)
            tell(price, book, lambda: event_of_tune(file, schema, **arguments))
            return
        with telling_of_compilation(quiet):
            release = tune(file, schema, ledger=book, **arguments)
        files.publish(release, quiet)


def _grid(entries: list[str]) -> dict[str, list[Any]]:
    """From what was written; names are checked where the plan is made."""
    found: dict[str, list[Any]] = {}
    for entry in entries:
        name, equals, values = entry.partition("=")
        name = name.strip()
        if not equals or name in found:
            raise ArgumentError("--grid takes NAME=VALUE,VALUE,..., each name once")
        listed = [value.strip() for value in values.split(",") if value.strip()]
        found[name] = listed if name in _WORDS else [number(value, name) for value in listed]
    return found
