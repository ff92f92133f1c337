"""The command ``dpsubset bounds suggest``: bounds from private quantiles, which cost epsilon."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.text import escape_for_terminal
from . import signals
from .options import (
    File,
    LedgerOption,
    Neighbours,
    NoLedgerOption,
    PurposeOption,
    SeparatorOption,
    separator_sign,
)
from .shared import check_apart, fail, guarded, ledger_of, number, red, show_room, trouble

bounds_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@bounds_app.callback()
def _bounds() -> None:
    """Bounds of columns, where nobody knows them well enough."""


@bounds_app.command("suggest")
def bounds_suggest(
    file: File,
    epsilon: Annotated[
        str,
        typer.Option(
            help="What all bounds cost together, taken exactly as written.",
            metavar="NUMBER",
            show_default=False,
        ),
    ],
    within: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help="Where values can lie at all, from public knowledge: for all columns alike.",
            metavar="LO HI",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="Instead of --within: a bounds file with wide bounds, column by column.",
            show_default=False,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="For which, by commas. If not given: all that have bounds in the schema, or whose "
            "type is a number; a text file has no types, so there they must be named.",
            metavar="NAMES",
        ),
    ] = None,
    neighbours: Neighbours = "replace-one",
    out: Annotated[Path, typer.Option(help="Where to write; .json gives JSON.")] = Path(
        "bounds.yaml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(help="For tests only: bounds from a seeded draw are NOT PRIVATE."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only say what it would cost: spends nothing."),
    ] = False,
    ledger: LedgerOption = None,
    no_ledger: NoLedgerOption = False,
    purpose: PurposeOption = None,
    separator: SeparatorOption = None,
) -> None:
    """Release bounds for columns of FILE from private quantiles. Costs epsilon.

    Bounds from public knowledge cost nothing and are as good. The file that is written says which
    bounds were released and what that has cost; a selection that uses it says so too.
    """
    with guarded():
        budget = number(epsilon, "epsilon")
        check_apart(file, schema, out)
        book = ledger_of(ledger, no_ledger, purpose)

        from ..api.driver import make_release
        from ..api.suggest_bounds import build_bounds_request
        from ..base.errors import ArgumentError
        from ..release.bounds import cost_line
        from .outputs import Output

        if (within is None) == (schema is None):
            raise ArgumentError("give --within LO HI or --schema FILE, and not both")
        wide: Any = schema if within is None else tuple(map(_end, within))
        names = None if columns is None else [name.strip() for name in columns.split(",")]
        relation: Any = neighbours
        planned = build_bounds_request(
            file, wide, epsilon=budget, columns=names, neighbours=relation, seed=seed,
            separator=separator_sign(separator),
        )  # fmt: skip
        if dry_run:
            typer.echo(escape_for_terminal(cost_line(planned.guarantee, "Would spend")))
            show_room(book, planned.event)
            typer.echo("Nothing was read but the header, and nothing is spent.")
            return
        if book:
            book.check([planned.event()])  # before it is said to be spent
        with Output(out, replace=force) as output:
            typer.echo(escape_for_terminal(cost_line(planned.guarantee, "Spending")))
            released = make_release(planned, file, ledger=book)
            # From here on the budget is spent: the file comes first.
            lost = []
            with signals.held():
                try:
                    released.write(output.draft)
                    output.publish()
                except OSError as error:
                    lost.append(f"{out}: {error.strerror}")
        if seed is not None:
            trouble(sys.stderr, red("NOT PRIVATE: this draw was made with a fixed seed.\n"))
        written = "" if lost else f"Wrote {escape_for_terminal(str(out))}\n"
        unprinted = trouble(sys.stdout, f"{released}\n{written}")
        if unprinted:
            lost.append(f"standard output: {unprinted}")
        if lost:
            trouble(sys.stderr, json.dumps(released.to_dict(), indent=2) + "\n")
            fail(f"bounds were released, but not all was written: {'; '.join(lost)}", 1)


def _end(text: str) -> Any:
    """A number as written, or a date, which the column understands."""
    return text if text.count("-") == 2 and text[:4].isdigit() else number(text, "within")
