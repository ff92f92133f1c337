"""Options that several commands have, each written down once.

`selection` lists what may be said of a selection; a command decorated with `asks` has all of these
options in place of its argument ``asked``, and gets them as :func:`dpsubset.select` takes them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from .shared import number

File = Annotated[
    Path, typer.Argument(help="The sensitive table: Parquet, CSV or TSV.", show_default=False)
]
SchemaFile = Annotated[
    Path,
    typer.Option(
        help="Bounds file, YAML or JSON; 'dpsubset schema init' writes one to fill in.",
        show_default=False,
    ),
]
Neighbours = Annotated[
    str,
    typer.Option(
        "--neighbours",
        "--neighbors",
        help="replace-one (the number of rows is public) or add-remove (private).",
    ),
]
Intercept = Annotated[
    bool,
    typer.Option(
        "--intercept/--no-intercept", help="Whether every model has one, beside the k variables."
    ),
]
Out = Annotated[Path | None, typer.Option(help="Write the release here, as JSON.")]
Statement = Annotated[
    Path | None,
    typer.Option(
        help="Write the privacy statement here: .html is a page to read or print, .json for "
        "machines, .yaml a draft for OpenDP's deployments registry, any other name Markdown. If "
        "not given, it is printed."
    ),
]
AboutFile = Annotated[
    Path | None,
    typer.Option(
        "--about",
        help="YAML file for the statement: data_set, version, curator, operator, approver, "
        "purpose, recipient, bounds_from. What it leaves out is left to fill in by hand.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Only say what it would cost and what would be read: spends nothing."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the selected names only, one a line.")]
LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        help="Debit the cost here before a value is read: a file or a URL of 'dpsubset ledger "
        "create'. If not given: what DPSUBSET_LEDGER names.",
        metavar="FILE|URL",
    ),
]
NoLedgerOption = Annotated[
    bool,
    typer.Option("--no-ledger", help="Debit nowhere, also where DPSUBSET_LEDGER names a ledger."),
]
PurposeOption = Annotated[
    str | None,
    typer.Option(help="What for: a line for the ledger. If not given: the ledger's own purpose."),
]
SeparatorOption = Annotated[
    str | None,
    typer.Option(
        "--separator",
        help="What separates the columns of a text file, if not a comma: ';', '|' or 'tab'. A "
        "bounds file says it by its key separator.",
        metavar="SIGN",
        show_default=False,
    ),
]


def separator_sign(written: str | None) -> str | None:
    """What an option says of a separator; a tab is hard to type."""
    from ..schema.bounds_file import check_separator

    return check_separator("\t" if written in ("tab", "\\t") else written)


def selection(
    delta: Annotated[
        str,
        typer.Option(help="For guarantees that have one; 0 otherwise.", metavar="NUMBER"),
    ] = "0",
    mechanism: Annotated[
        str, typer.Option(help="How to select; 'dpsubset mechanisms' lists them.")
    ] = "permute-and-flip",
    option: Annotated[
        list[str] | None,
        typer.Option(help="An option of the mechanism; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    allow_unproven: Annotated[
        bool,
        typer.Option("--allow-unproven", help="Run a mechanism that has NO PRIVACY GUARANTEE."),
    ] = False,
    loss: Annotated[
        str | None,
        typer.Option(
            help="least-squares, logistic, hinge or huber. If not given: least-squares, also for "
            "labels, which count as -1 and 1."
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Of the huber loss, in half-ranges of the response; 0.25 if not given."),
    ] = None,
    constraint: Annotated[
        str, typer.Option(help="Set of allowed coefficients: box, ball or l1.")
    ] = "box",
    prediction_bound: Annotated[
        float | None,
        typer.Option(
            "--prediction-bound",
            "--reach",
            help="Largest prediction, in half-ranges of the response. If not given: 1.25 in a "
            "private scale (1 if that is a median); in the declared one 1, for labels 1.25, and 2 "
            "under logistic and hinge.",
        ),
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option(
            help="Radius of the constraint, in scaled units; instead of --prediction-bound."
        ),
    ] = None,
    ridge: Annotated[
        float, typer.Option(help="Weight of the squared coefficients, in scaled units.")
    ] = 0.0,
    neighbours: Neighbours = "replace-one",
    sensitivity: Annotated[
        str, typer.Option(help="sharp, or the name of a published, looser rule.")
    ] = "sharp",
    response_range: Annotated[
        str | None,
        typer.Option(
            "--response-range",
            "--response-scale",
            help="What the response is scaled by: private (quantiles, released first with a part "
            "of epsilon) or declared (its bounds). If not given: private, for labels declared.",
        ),
    ] = None,
    check_readable: Annotated[
        str | None,
        typer.Option(
            help="Count, with noise, the cells that hold no value, for this share of epsilon (such "
            "as 0.01). A warning follows if most of a column seems unreadable.",
            metavar="SHARE",
        ),
    ] = None,
    always_include: Annotated[
        list[str] | None,
        typer.Option(help="A variable that is part of every set; may be repeated.", metavar="NAME"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="For tests only: a seeded release is NOT PRIVATE."),
    ] = None,
    node_limit: Annotated[
        int | None,
        typer.Option(help="Most splits of the search; passing it costs epsilon, releases nothing."),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Most seconds of the search; passing it costs epsilon likewise."),
    ] = None,
) -> dict[str, Any]:
    """What may be said of a selection, as `dpsubset.select` takes it.

    Words are checked where the plan is made, not by their types.
    """
    from ..mechanisms import option as parse

    return {
        "delta": number(delta, "delta"),
        "mechanism": mechanism,
        "options": dict(map(parse, option or ())),
        "allow_unproven": allow_unproven,
        "loss": loss,
        "threshold": threshold,
        "constraint": constraint,
        "prediction_bound": prediction_bound,
        "radius": radius,
        "ridge": ridge,
        "neighbours": neighbours,
        "sensitivity": sensitivity,
        "response_range": response_range,
        "check_readable": _share(check_readable),
        "always_include": always_include or (),
        "seed": seed,
        "node_limit": node_limit,
        "time_limit": time_limit,
    }


def _share(text: str | None) -> Any:
    return None if text is None else number(text, "check-readable")


class Asked:
    """The options of `selection` as somebody wrote them."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given

    def arguments(self) -> dict[str, Any]:
        """For `dpsubset.select`; an error if one of them cannot be read."""
        return selection(**self._given)

    def beyond(self, *names: str) -> list[str]:
        """Options that are neither these nor left as they are by default, as they are written."""
        usual = inspect.signature(selection).parameters
        return [
            "--" + name.replace("_", "-")
            for name, value in self._given.items()
            if name not in names and value not in (usual[name].default, [])
        ]


def asks(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of `selection` in place of its argument ``asked``."""
    listed = _parameters(selection)
    shown: list[inspect.Parameter] = []
    for parameter in _parameters(command):
        shown += listed if parameter.name == "asked" else [parameter]

    @functools.wraps(command)
    def called(**given: Any) -> None:
        asked = Asked({each.name: given.pop(each.name) for each in listed})
        command(asked=asked, **given)

    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in shown}
    return called


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """With annotations that are objects, not texts: the texts are of different modules."""
    hints = get_type_hints(function, include_extras=True)
    return [
        parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(function).parameters.items()
    ]
