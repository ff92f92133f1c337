"""The command ``dpsubset bounds suggest``: bounds from private quantiles, which cost epsilon."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.errors import ArgumentError
from ..base.text import escape_for_terminal
from . import signals
from .options import (
    Files,
    Force,
    LedgerAddress,
    Neighbours,
    NoLedger,
    Purpose,
    Separator,
    check_distinct,
    input_paths,
    parse_number,
    parse_separator,
    table_of,
)
from .outputs import Output
from .releasing import NOTHING_SPENT, open_ledger, print_balance
from .terminal import fail, handle_errors, try_print, warn

bounds_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@bounds_app.callback()
def _bounds() -> None:
    """Suggest bounds of columns from private quantiles, where public knowledge has none."""


@bounds_app.command("suggest")
@handle_errors()
def bounds_suggest(
    files: Files,
    epsilon: Annotated[
        str,
        typer.Option(
            help="Privacy budget of all bounds together, taken exactly as written.",
            metavar="NUMBER",
        ),
    ],
    within: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help="Smallest and largest possible value, from public knowledge, for all columns.",
            metavar="LO HI",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(help="Instead of --within: a bounds file with wide bounds for each column."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns, separated by commas. By default all that have bounds in the schema or a "
            "numeric type; a text file has no types, so columns must be named.",
            metavar="NAMES",
        ),
    ] = None,
    neighbours: Neighbours = "replace-one",
    out: Annotated[Path, typer.Option(help="Bounds file to write, YAML or .json.")] = Path(
        "bounds.yaml"
    ),
    force: Force = False,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed, for tests only: bounds from a seeded draw are NOT PRIVATE."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the cost. Spends nothing.")
    ] = False,
    ledger: LedgerAddress = None,
    no_ledger: NoLedger = False,
    purpose: Purpose = None,
    separator: Separator = None,
) -> None:
    """Release bounds for columns of FILE from private quantiles. Costs epsilon.

    Bounds from public knowledge cost nothing and are as good. The bounds file records which bounds
    were released and their cost, and so do the statements of selections that use it.
    """
    budget = parse_number(epsilon, "epsilon")
    check_distinct(*input_paths(files), schema, out)
    opened = open_ledger(ledger, no_ledger, purpose)

    from ..api.driver import make_release
    from ..api.suggest_bounds import build_bounds_request
    from ..release.bounds import cost_line

    if (within is None) == (schema is None):
        raise ArgumentError("give --within LO HI or --schema FILE, and not both")
    wide: Any = schema if within is None else tuple(map(_limit, within))
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    relation: Any = neighbours
    table = table_of(files)
    request = build_bounds_request(
        table, wide, epsilon=budget, columns=names, neighbours=relation, seed=seed,
        separator=parse_separator(separator),
    )  # fmt: skip
    if dry_run:
        typer.echo(escape_for_terminal(cost_line(request.guarantee, "Would spend")))
        print_balance(opened, request.event)
        typer.echo(NOTHING_SPENT)
        return
    if opened:
        opened.check([request.event()])  # before the cost is reported as spent
    with Output(out, replace=force) as output:
        typer.echo(escape_for_terminal(cost_line(request.guarantee, "Spending")))
        released = make_release(request, table, ledger=opened)
        # The budget is spent: the file is written before anything is printed.
        problems = []
        with signals.deferred():
            try:
                released.write(output.draft)
                output.publish()
            except OSError as error:
                problems.append(f"{out}: {error.strerror}")
    if seed is not None:
        warn("NOT PRIVATE: this draw was made with a fixed seed.")
    written = "" if problems else f"Wrote {escape_for_terminal(str(out))}\n"
    if unprinted := try_print(sys.stdout, f"{released}\n{written}"):
        problems.append(f"standard output: {unprinted}")
    if problems:
        try_print(sys.stderr, json.dumps(released.to_dict(), indent=2) + "\n")
        fail(f"bounds were released, but not all was written: {'; '.join(problems)}", 1)


def _limit(text: str) -> Any:
    """Return a number as written; a date stays text, which the column reads."""
    return text if text.count("-") == 2 and text[:4].isdigit() else parse_number(text, "within")
