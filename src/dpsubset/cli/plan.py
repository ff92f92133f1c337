"""The command ``dpsubset plan``: what to expect of a release, from made-up tables."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.errors import ArgumentError
from .options import Asked, Force, Intercept, asks
from .shared import guarded, number, say, working
from .warmup import telling_of_compilation

if TYPE_CHECKING:
    from ..power import Expectation
    from .outputs import Output

#: Options of selections that a plan has no use for.
_REFUSED = {"always_include": "--always-include", "node_limit": "--node-limit",
            "time_limit": "--time-limit", "check_readable": "--check-readable"}  # fmt: skip


@asks
def plan_command(
    *,
    p: Annotated[int, typer.Option("--p", help="Variables to choose from.", show_default=False)],
    k: Annotated[int, typer.Option("--k", help="How many of them matter.", show_default=False)],
    n: Annotated[
        int | None, typer.Option("--n", help="Rows of the table; or what is to be found.")
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            help="Privacy budget of the release, taken exactly as written; or what is to be found.",
            metavar="NUMBER",
        ),
    ] = None,
    probability: Annotated[
        float | None,
        typer.Option(help="Find the smallest epsilon (give --n) or n (give --epsilon) for this."),
    ] = None,
    snr: Annotated[
        float, typer.Option(help="Variance of the signal over that of the noise.")
    ] = 1.0,
    rho: Annotated[
        float, typer.Option(help="Correlation of neighbouring columns; rho^d at distance d.")
    ] = 0.0,
    least: Annotated[
        float, typer.Option(help="The smallest weight of a signal over the largest.")
    ] = 1.0,
    x_bound: Annotated[
        float, typer.Option(help="Bounds of the columns, in standard deviations.")
    ] = 3.0,
    y_bound: Annotated[
        float, typer.Option(help="Bounds of the response, in standard deviations.")
    ] = 3.0,
    labels: Annotated[
        bool, typer.Option("--labels", help="The response is one of two labels.")
    ] = False,
    rows_per_unit: Annotated[
        int, typer.Option(help="How many rows the guarantee is for, as in a schema.")
    ] = 1,
    asked: Asked,
    intercept: Intercept = True,
    method: Annotated[
        str,
        typer.Option(help="auto (the closed form where there is one), closed or simulated."),
    ] = "auto",
    tables: Annotated[
        int | None,
        typer.Option(help="Simulate so many tables. If not given: as many as there is time for."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Roughly how long a simulation may take.")] = 6.0,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw recovery against epsilon or n here: .png, .pdf or .svg."),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(help="What the figure goes over, n or epsilon. If not given: what is found."),
    ] = None,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer for machines.")] = False,
) -> None:
    """How likely a release names the k variables that matter. Reads no table, spends nothing.

    With n and epsilon: the probability that exactly the true support is released, on made-up tables
    with this signal. With --probability and one of them: the smallest value of the other one.

    \\b
    Exit codes:
      0: the answer was found.
      1: an unexpected error.
      2: an argument was refused.
    """
    with guarded(), ExitStack() as stack:
        arguments: dict[str, Any] = {
            "p": p, "k": k, "n": n, "probability": probability, "snr": snr, "rho": rho,
            "least": least, "x_bound": x_bound, "y_bound": y_bound, "labels": labels,
            "rows_per_unit": rows_per_unit, "intercept": intercept, "method": method,
            "tables": tables, "epsilon": None if epsilon is None else number(epsilon, "epsilon"),
            **_selection(asked),
        }  # fmt: skip
        if over is not None and figure is None:
            raise ArgumentError("--over goes with --figure")
        output = _reserve(figure, force, stack)

        from ..power import plan

        with telling_of_compilation(as_json), working("Simulating") as progress:
            found = plan(**arguments, seconds=seconds, progress=progress)
        typer.echo(found.to_json() if as_json else str(found))
        if output is not None:
            _draw(output, found, over, arguments, seconds)
            if not as_json:
                say(f"Figure: {output.path}")


def _selection(asked: Asked) -> dict[str, Any]:
    """What was said of the selection; what has no place in a plan is refused."""
    given = asked.arguments()
    for name, option in _REFUSED.items():
        if given.pop(name):
            raise ArgumentError(f"{option} goes with a table: a plan has none")
    return given


def _reserve(figure: Path | None, force: bool, stack: ExitStack) -> Output | None:
    """Whatever prevents a figure is found before anything is computed."""
    if figure is None:
        return None
    if figure.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ArgumentError("a figure ends in .png, .pdf or .svg")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise ArgumentError("a figure needs matplotlib: pip install 'dpsubset[plot]'")
    from .select import reserve

    return reserve(figure, force, stack)


def _draw(
    output: Output, found: Expectation, over: str | None, arguments: dict[str, Any], seconds: float
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from ..power.curve import around, curve, picture

    axis: Any = over or found.solved or "epsilon"
    settled = {**arguments, "n": found.n, "epsilon": found.epsilon, "probability": None}
    with working("Drawing") as progress:
        points = curve(
            axis, around(axis, getattr(found, axis, 0)), seconds=seconds, progress=progress,
            **settled,
        )  # fmt: skip
    form = output.path.suffix.lower().lstrip(".")
    picture(points, axis).figure.savefig(output.draft, format=form, dpi=150)
    output.publish()
