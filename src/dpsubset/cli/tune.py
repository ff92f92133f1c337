"""The command ``dpsubset tune``: a model whose setting is chosen privately from a grid."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..base.errors import ArgumentError
from .options import (
    Files,
    ModelFile,
    SchemaFile,
    SelectionOptions,
    SizeOption,
    parse_k,
    parse_number,
    with_option_groups,
)
from .releasing import ReleaseOptions
from .terminal import handle_errors

#: Parameters of a grid whose values are names; all others are numbers.
_NAMES = ("mechanism", "loss", "constraint", "fit")


@handle_errors()
@with_option_groups
def tune_command(
    *,
    files: Files,
    schema: SchemaFile,
    epsilon: Annotated[
        str,
        typer.Option(
            help="Privacy budget of the whole search, taken exactly as written.", metavar="NUMBER"
        ),
    ],
    grid: Annotated[
        list[str],
        typer.Option(
            help="A parameter and its values, such as k=1,2,3,5 or budget_fraction=0.5,0.7; may be "
            "repeated, and every combination is a setting. Parameters: k, mechanism, loss, "
            "threshold, constraint, prediction_bound, radius, ridge, and fit, budget_fraction, "
            "width as in 'dpsubset fit'.",
            metavar="NAME=VALUES",
        ),
    ],
    k: SizeOption = None,
    runs: Annotated[
        str | None,
        typer.Option(
            help="Mean number of runs; by default the number of settings.", metavar="NUMBER"
        ),
    ] = None,
    eta: Annotated[
        str,
        typer.Option(
            help="Shape of the distribution of the number of runs, above -1 and at most 1.",
            metavar="NUMBER",
        ),
    ] = "-0.5",
    model: ModelFile = None,
    selection: SelectionOptions,
    output: ReleaseOptions,
) -> None:
    """Fit a linear model with a privately chosen setting. Costs epsilon.

    The number of runs is random. Each run uses a setting of the grid, and the run with the best
    private score is released; epsilon covers all of it. Running time depends on the number of runs.
    Exit codes are those of 'dpsubset select'.
    """
    arguments: dict[str, Any] = {
        "epsilon": parse_number(epsilon, "epsilon"),
        "grid": _grid(grid),
        "k": parse_k(k),
        "eta": parse_number(eta, "eta"),
        "runs": None if runs is None else parse_number(runs, "runs"),
        **selection.arguments(),
    }
    with output.prepare(files, schema, model=model) as making:
        from ..api.tune import event_of_tune, price_tune, tune

        making.make(
            arguments, price=price_tune, event=event_of_tune, release=tune, shows_progress=False
        )


def _grid(entries: list[str]) -> dict[str, list[Any]]:
    """Parse the entries of a grid; names are checked where the request is built."""
    found: dict[str, list[Any]] = {}
    for entry in entries:
        name, equals, values = entry.partition("=")
        name = name.strip()
        if not equals or name in found:
            raise ArgumentError("--grid takes NAME=VALUE,VALUE,..., each name once")
        listed = [value.strip() for value in values.split(",") if value.strip()]
        found[name] = listed if name in _NAMES else [parse_number(value, name) for value in listed]
    return found
