"""The command ``dpsubset fit``: a private release with a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.errors import ArgumentError
from .options import (
    BudgetFraction,
    DryRunPower,
    FilesOrMoments,
    FitMechanism,
    FitWidth,
    ModelFile,
    MomentsFile,
    SchemaFile,
    SelectionOptions,
    SizeOption,
    fit_rule,
    flag,
    parse_k,
    parse_number,
    with_option_groups,
)
from .releasing import ReleaseOptions
from .terminal import handle_errors


@handle_errors()
@with_option_groups
def fit_command(
    *,
    files: FilesOrMoments = None,
    schema: SchemaFile,
    epsilon: Annotated[
        str,
        typer.Option(
            help="Privacy budget of response range, selection and fit together, taken exactly as "
            "written; with --on, of the fit alone.",
            metavar="NUMBER",
        ),
    ],
    k: SizeOption = None,
    on: Annotated[
        Path | None,
        typer.Option(
            help="Release file of 'dpsubset select' with this schema: fit its variables, and spend "
            "the fit alone. Of the options of a selection only --delta and --seed apply."
        ),
    ] = None,
    budget_fraction: BudgetFraction = None,
    how: FitMechanism = None,
    width: FitWidth = None,
    model: ModelFile = None,
    moments: MomentsFile = None,
    power: DryRunPower = False,
    selection: SelectionOptions,
    output: ReleaseOptions,
) -> None:
    """Select k variables and fit a linear model privately. Costs epsilon.

    Exit codes are those of 'dpsubset select'.
    """
    arguments: dict[str, Any] = {"epsilon": parse_number(epsilon, "epsilon")}
    arguments |= selection.arguments()
    output.check_power(power)
    if power and on is not None:
        raise ArgumentError("--power is about a selection, which --on has made already")
    if on is None and k is None and selection.max_k is None:
        raise ArgumentError(
            "give --k, the number of variables to select or auto, or --on a release"
        )
    if on is not None:
        own = {**selection.given(), "k": k, "budget_fraction": budget_fraction}
        for name in own.keys() - {"delta", "seed"}:
            if own[name] is not None:
                raise ArgumentError(
                    f"{flag(name)} is an option of the selection, which --on has made already: "
                    "leave it out"
                )
    with output.prepare(files, schema, on, model=model, moments=moments) as making:
        from ..api.fit import event_of_fit, fit, price_fit
        from ..api.fit_released import event_of_released, fit_released, price_released

        arguments["rule"] = fit_rule(budget_fraction, how, width)
        if on is None:
            arguments["k"] = parse_k(k)
            hint: Callable[..., list[str]] | None = None
            if power:  # its modules and its simulation take longer than the price
                from ..power_analysis.dry_run_hint import dry_run_hint_of_fit

                hint = dry_run_hint_of_fit
            making.make(arguments, price=price_fit, event=event_of_fit, release=fit, hint=hint)
        else:
            making.make(
                arguments,
                price=partial(price_released, on),
                event=partial(event_of_released, on),
                release=partial(fit_released, on),
            )
