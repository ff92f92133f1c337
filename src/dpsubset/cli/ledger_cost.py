"""The command ``dpsubset ledger cost``: the cost of releases, compared with a ledger's limit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import ArgumentError
from .options import (
    LedgerArgument,
    SelectionOptions,
    SizeOption,
    parse_k,
    parse_number,
    table_of,
    with_option_groups,
)
from .releasing import NOTHING_SPENT
from .terminal import handle_errors, print_assumptions, print_line

if TYPE_CHECKING:
    from ..ledger.event import Event


@handle_errors()
@with_option_groups
def ledger_cost(
    *,
    ledger: LedgerArgument,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="The table, as for 'dpsubset select'; only its header is read.", metavar="FILE..."
        ),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Bounds file.")] = None,
    k: SizeOption = None,
    epsilon: Annotated[
        str | None, typer.Option(help="Privacy budget of one release.", metavar="NUMBER")
    ] = None,
    model: Annotated[
        bool, typer.Option("--model", help="Releases of 'dpsubset fit' instead of 'select'.")
    ] = False,
    candidates: Annotated[int, typer.Option(help="Number of settings of a grid search.")] = 0,
    folds: Annotated[int, typer.Option(help="Number of folds of a cross-validation.")] = 0,
    refit: Annotated[
        bool, typer.Option("--refit/--no-refit", help="Whether a grid search fits once more.")
    ] = True,
    search: Annotated[
        str | None,
        typer.Option(
            help="Instead of all other options: a Pipeline or GridSearchCV in a Python file, which "
            "is run. Its private steps need a schema.",
            metavar="FILE.py:NAME",
        ),
    ] = None,
    selection: SelectionOptions,
) -> None:
    """Show the cost of releases and whether the limit allows it. Spends nothing.

    By default one release; with --candidates and --folds all fits of a grid search; with --folds
    alone all fits of a cross-validation. Exit code 4 if the limit does not allow it.
    """
    if search is not None:
        if files or (schema, k, epsilon) != (None,) * 3 or selection.given():
            raise ArgumentError(
                "--search has table, schema, k, epsilon and all options: leave these out"
            )
        events = _events_in(search)
    else:
        sized = k is not None or selection.max_k is not None
        if not files or schema is None or epsilon is None or not sized:
            raise ArgumentError("give a table, --schema, --k and --epsilon, or --search")
        if candidates < 0 or folds < 0 or (candidates and folds < 2):
            raise ArgumentError("a grid search has candidates and at least 2 folds")
        from ..api.fit import event_of_fit
        from ..api.select import event_of_select

        event_of = event_of_fit if model else event_of_select
        budget = parse_number(epsilon, "epsilon")
        table, options = table_of(files), selection.arguments()
        event = event_of(table, schema, k=parse_k(k), epsilon=budget, **options)
        events = [event] * (candidates * folds + refit if candidates else max(folds, 1))

    from ..ledger.ledger import Ledger

    before, after = Ledger(ledger).check(events)
    limit, count = before.limit, len(events)
    releases = f"{count} releases" if count > 1 else "This release"
    print_line(
        f"{releases}: {limit.shown(after.current)} spent after, {limit.shown(before.current)} now"
    )
    print_assumptions(after.current)
    spent = NOTHING_SPENT if search is None else "Nothing is spent."
    print_line(f"Limit: {limit}, which allows this. Left after: {after.left}. {spent}")


def _events_in(search: str) -> list[Event]:
    """Return the releases of one fit of an estimator in a Python file."""
    import runpy

    from ..sklearn.budget import events_of

    path, _, name = search.rpartition(":")
    if not Path(path).is_file():
        raise ArgumentError(f"--search takes FILE.py:NAME, and there is no file {path}")
    found = runpy.run_path(path, run_name="dpsubset_search").get(name)
    if found is None:
        raise ArgumentError(f"{path} does not define {name!r}")
    return events_of(found)
