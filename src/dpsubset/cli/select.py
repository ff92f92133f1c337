"""The command ``dpsubset select``: one private release, its files and its statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from .options import (
    DryRunPower,
    FilesOrMoments,
    Intercept,
    MomentsFile,
    SchemaFile,
    SelectionOptions,
    SizeOption,
    parse_k,
    parse_number,
    with_option_groups,
)
from .releasing import ReleaseOptions
from .terminal import handle_errors


@handle_errors()
@with_option_groups
def select_command(
    *,
    files: FilesOrMoments = None,
    schema: SchemaFile,
    epsilon: Annotated[
        str,
        typer.Option(
            help="Privacy budget of this release, taken exactly as written.", metavar="NUMBER"
        ),
    ],
    k: SizeOption = None,
    intercept: Intercept = True,
    moments: MomentsFile = None,
    power: DryRunPower = False,
    selection: SelectionOptions,
    output: ReleaseOptions,
) -> None:
    """Select k variables of FILE privately. Costs epsilon.

    \b
    Exit codes:
      0: the release was made.
      1: an unexpected error; or the release was made, so epsilon is spent,
         but not all of it could be written or printed.
      2: an argument, the bounds file or the table's header was refused.
         Nothing is spent.
      3: the search exceeded --node-limit or --time-limit. Nothing is released,
         and epsilon is spent.
      4: the limit of the ledger does not allow this release. Nothing is spent.
      5: the ledger could not be used, or this release does not belong in it.
         Nothing is released; the message says if something may be spent.
      128 + n: ended by signal n (130 by Ctrl-C).
    """
    arguments = {"k": parse_k(k), "epsilon": parse_number(epsilon, "epsilon")}
    arguments |= {"intercept": intercept, **selection.arguments()}
    output.check_power(power)
    with output.prepare(files, schema, moments=moments) as making:
        from ..api.select import event_of_select, price, select

        hint: Callable[..., list[str]] | None = None
        if power:  # its modules and its simulation take longer than the price
            from ..power_analysis.dry_run_hint import dry_run_hint

            hint = dry_run_hint
        making.make(arguments, price=price, event=event_of_select, release=select, hint=hint)
