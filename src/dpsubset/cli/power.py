"""The command ``dpsubset power``: a power analysis, on simulated tables."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.errors import ArgumentError
from .options import (
    BudgetFraction,
    FitMechanism,
    FitWidth,
    Force,
    Intercept,
    Json,
    SelectionOptions,
    fit_rule,
    parse_number,
    with_option_groups,
)
from .outputs import Output, reserve_output
from .terminal import handle_errors, print_line, progress_bar

if TYPE_CHECKING:
    from ..power_analysis.expectation import Expectation

#: Options of selections that have no effect without a table.
_REFUSED = {"max_k": "--max-k", "always_include": "--always-include", "node_limit": "--node-limit",
            "time_limit": "--time-limit", "check_readable": "--check-readable"}  # fmt: skip


@handle_errors()
@with_option_groups
def power_command(
    *,
    p: Annotated[int, typer.Option(help="Variables to select from.")],
    k: Annotated[int, typer.Option(help="How many make up the response.")],
    n: Annotated[int | None, typer.Option(help="Number of rows. Leave out to find it.")] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            help="Privacy budget of the release, taken exactly as written. Leave out to find it.",
            metavar="NUMBER",
        ),
    ] = None,
    probability: Annotated[
        float | None,
        typer.Option(help="Find the smallest epsilon (give --n) or n (give --epsilon) for this."),
    ] = None,
    snr: Annotated[
        float, typer.Option(help="Signal-to-noise ratio, as a quotient of variances.")
    ] = 1.0,
    rho: Annotated[
        float, typer.Option(help="Correlation of neighbouring columns; rho^d at distance d.")
    ] = 0.0,
    signals: Annotated[
        str,
        typer.Option(
            help="Profile shown beside equal signals: linear or geometric decay of the weights; "
            "or equal, for none."
        ),
    ] = "linear",
    least: Annotated[
        float, typer.Option(help="The smallest of these weights over the largest.")
    ] = 0.05,
    release: Annotated[
        str,
        typer.Option(
            help="Release to simulate: select, or fit, which divides epsilon among response range, "
            "selection and fit, and whose expected intervals are shown."
        ),
    ] = "select",
    levels: Annotated[
        list[int] | None,
        typer.Option(
            help="Number of levels of a variable of the model that is a category; may be repeated. "
            "Needs --release fit."
        ),
    ] = None,
    budget_fraction: BudgetFraction = None,
    how: FitMechanism = None,
    width: FitWidth = None,
    x_bound: Annotated[
        float, typer.Option(help="Declared bounds of the columns, in standard deviations.")
    ] = 3.0,
    y_bound: Annotated[
        float, typer.Option(help="Declared bounds of the response, in standard deviations.")
    ] = 3.0,
    labels: Annotated[
        bool, typer.Option("--labels", help="The response is one of two labels.")
    ] = False,
    rows_per_unit: Annotated[
        int, typer.Option(help="How many rows one privacy unit has, as in a schema.")
    ] = 1,
    selection: SelectionOptions,
    intercept: Intercept = True,
    tables: Annotated[
        int | None,
        typer.Option(help="Number of simulated tables. By default as many as --seconds allow."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Approximate time limit.")] = 6.0,
    figure: Annotated[
        Path | None,
        typer.Option(help="Plot recovery against epsilon or n into this .png, .pdf or .svg file."),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(help="The figure's x axis, n or epsilon. By default the one that is found."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Power analysis: how likely a release names the true variables. Spends nothing.

    With --n and --epsilon: estimate the probability that a release names exactly the k true
    variables, and how many of them it names, on simulated tables with equal and with unequal
    signals. With --probability and one of them: find the smallest value of the other one for equal
    signals. With --release fit: expected intervals of the model, too. No table is read.

    \b
    Exit codes:
      0: success.
      1: an unexpected error.
      2: an argument was refused.
    """
    with ExitStack() as stack:
        arguments: dict[str, Any] = {
            "p": p, "k": k, "n": n, "probability": probability, "snr": snr, "rho": rho,
            "least": least, "x_bound": x_bound, "y_bound": y_bound, "labels": labels,
            "rows_per_unit": rows_per_unit, "intercept": intercept, "tables": tables,
            "signals": signals, "release": release, "levels": levels or (),
            "rule": fit_rule(budget_fraction, how, width),
            "epsilon": None if epsilon is None else parse_number(epsilon, "epsilon"),
            **_without_table(selection),
        }  # fmt: skip
        if over is not None and figure is None:
            raise ArgumentError("--over needs --figure")
        output = _reserve(figure, force, stack)

        from ..power_analysis.power import power

        with progress_bar("Simulating") as progress:
            found = power(**arguments, seconds=seconds, progress=progress)
        typer.echo(found.to_json() if as_json else str(found))
        if output is not None:
            _draw(output, found, over, arguments, seconds)
            if not as_json:
                print_line(f"Figure: {output.path}")


def _without_table(selection: SelectionOptions) -> dict[str, Any]:
    """The options of the selection; those that need a table are refused."""
    given = selection.arguments()
    for name, option in _REFUSED.items():
        if given.pop(name, None):
            raise ArgumentError(f"{option} needs a table, and a power analysis has none")
    return given


def _reserve(figure: Path | None, force: bool, stack: ExitStack) -> Output | None:
    """Check that the figure can be written before anything is computed."""
    if figure is None:
        return None
    if figure.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ArgumentError("the name of a figure must end in .png, .pdf or .svg")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise ArgumentError("a figure needs matplotlib: pip install 'dpsubset[plot]'")
    return reserve_output(figure, force, stack)


def _draw(
    output: Output, found: Expectation, over: str | None, arguments: dict[str, Any], seconds: float
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from ..power_analysis.curve import around, curve, picture

    axis: Any = over or found.solved or "epsilon"
    settled = {**arguments, "n": found.n, "epsilon": found.epsilon, "probability": None}
    with progress_bar("Drawing") as progress:
        points = curve(
            axis, around(axis, getattr(found, axis, 0)), seconds=seconds, progress=progress,
            **settled,
        )  # fmt: skip
    form = output.path.suffix.lower().lstrip(".")
    picture(points, axis).figure.savefig(output.draft, format=form, dpi=150)
    output.publish()
