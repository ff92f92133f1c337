"""Options that several commands share, and groups of options.

A command that is decorated with `with_option_groups` has the options of a group in place of each
parameter whose type is one: `SelectionOptions` for the options of :func:`dpsubset.select`, or
`cli.releasing.ReleaseOptions` for where a release goes and what pays for it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ..base.errors import ArgumentError

if TYPE_CHECKING:
    from ..models.rule import FitRule

#: Former names and other spellings of options. They are accepted and not shown in help texts.
OTHER_SPELLINGS = {
    "reach": "prediction-bound",
    "response-scale": "response-range",
    "share": "budget-fraction",
    "neighbors": "neighbours",
}

Files = Annotated[
    list[Path],
    typer.Argument(
        help="The sensitive table: Parquet, Arrow (Feather), CSV or TSV. One file, several, a "
        "folder, or a pattern in quotes such as 'data/*.parquet'.",
        metavar="FILE...",
    ),
]
FilesOrMoments = Annotated[
    list[Path] | None,
    typer.Argument(
        help="The sensitive table: Parquet, Arrow (Feather), CSV or TSV. One file, several, a "
        "folder, or a pattern in quotes such as 'data/*.parquet'. Not with --moments.",
        metavar="FILE...",
    ),
]
MomentsFile = Annotated[
    Path | None,
    typer.Option(help="Instead of FILE: moments of 'dpsubset moments' or 'dpsubset merge'."),
]
NamedFiles = Annotated[
    list[Path] | None,
    typer.Argument(
        help="The table, if the bounds file has patterns; only its names are read.",
        metavar="FILE...",
    ),
]
SchemaFile = Annotated[
    Path, typer.Option(help="Bounds file, YAML or JSON; 'dpsubset schema init' writes a template.")
]
ReleaseFile = Annotated[
    Path, typer.Argument(help="Release file, as written by --out.", metavar="RELEASE")
]
ReleaseSchema = Annotated[Path, typer.Option(help="Bounds file of the release.")]
SchemaTable = Annotated[
    Path | None,
    typer.Option(help="The table, if the bounds file has patterns; only its names are read."),
]
AboutFile = Annotated[
    Path | None,
    typer.Option(
        help="YAML file with facts for the statement: data_set, version, curator, operator, "
        "approver, purpose, recipient, bounds_from. Missing ones are left to fill in by hand."
    ),
]
Neighbours = Annotated[
    str,
    typer.Option(
        help="Neighbouring tables: replace-one (the number of rows is public) or add-remove (it is "
        "private)."
    ),
]
Intercept = Annotated[
    bool,
    typer.Option(
        "--intercept/--no-intercept", help="Whether each model has an intercept beside k variables."
    ),
]
ModelFile = Annotated[
    Path | None, typer.Option(help="Write the model here, as JSON, for 'dpsubset predict'.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
LedgerAddress = Annotated[
    str | None,
    typer.Option(
        help="Debit the cost to this ledger before a value is read: a file or URL of 'dpsubset "
        "ledger create'. By default the ledger in DPSUBSET_LEDGER, if set.",
        metavar="FILE|URL",
    ),
]
NoLedger = Annotated[
    bool, typer.Option("--no-ledger", help="Debit no ledger, even if DPSUBSET_LEDGER is set.")
]
Purpose = Annotated[
    str | None, typer.Option(help="Purpose to record in the ledger. By default the ledger's own.")
]
LedgerArgument = Annotated[
    str,
    typer.Argument(
        help="A file, or postgresql://user@host/database, with #DATA-SET after it if it has "
        "several.",
        metavar="LEDGER",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Column separator of a text file, if not a comma: ';', '|' or 'tab'. In a bounds file "
        "it is the key separator.",
        metavar="SIGN",
    ),
]
SizeOption = Annotated[
    str | None,
    typer.Option(
        "--k",
        help="Number of variables to select; auto to have it chosen privately, up to --max-k.",
        metavar="NUMBER|auto",
    ),
]
BudgetFraction = Annotated[
    str | None, typer.Option(help="Fraction of epsilon for the fit; 0.6 by default.",
                             metavar="NUMBER"),
]  # fmt: skip
FitMechanism = Annotated[
    str | None,
    typer.Option(
        "--fit",
        help="Fitting mechanism: noisy-moments (least squares), objective-perturbation (the "
        "loss of the selection), or gaussian-ols, which has no proof of privacy. By default "
        "objective-perturbation with --loss logistic, otherwise noisy-moments, "
        "objective-perturbation or both, depending on the noise for the selected columns.",
    ),
]
DryRunPower = Annotated[
    bool,
    typer.Option(
        "--power",
        help="With --dry-run: simulate how likely the true variables are selected, and for a fit "
        "how wide its intervals are. Takes about a second.",
    ),
]
FitWidth = Annotated[
    str | None,
    typer.Option(
        help="Where the fit clips the response, in half-widths of its response range. By "
        "default a public rule decides.",
        metavar="NUMBER",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True)
class SelectionOptions:
    """The options of :func:`dpsubset.select`, under its names, as given on the command line.

    A test compares names and defaults with those of the function. Values are checked where the
    request is built.
    """

    max_k: Annotated[
        int | None,
        typer.Option(
            help="Largest number of variables with --k auto, which may be left out then. By "
            "default 5, or all variables if these are fewer."
        ),
    ] = None
    delta: Annotated[
        str, typer.Option(help="Delta of mechanisms that need one; otherwise 0.", metavar="NUMBER")
    ] = "0"
    mechanism: Annotated[
        str | None,
        typer.Option(
            help="Selection mechanism; 'dpsubset mechanisms' lists them. By default "
            "permute-and-flip; with --k auto penalised, which also chooses the number of variables."
        ),
    ] = None
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option", help="An option of the mechanism; may be repeated.", metavar="NAME=VALUE"
        ),
    ] = None
    allow_unproven: Annotated[
        bool, typer.Option("--allow-unproven", help="Allow a mechanism with NO PRIVACY GUARANTEE.")
    ] = False
    loss: Annotated[
        str | None,
        typer.Option(
            help="least-squares, logistic, hinge or huber. By default least-squares, also for "
            "labels, which count as -1 and 1."
        ),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Threshold of the huber loss, in half-ranges of the response; 0.25 by default."
        ),
    ] = None
    constraint: Annotated[
        str, typer.Option(help="Set of allowed coefficients: box, ball or l1.")
    ] = "box"
    prediction_bound: Annotated[
        float | None,
        typer.Option(
            help="Largest absolute prediction, in half-ranges of the response. By default 1.25 "
            "with a private response range (1 if that is a median, more if epsilon times the "
            "number of rows is large), 1 with declared bounds, 1.25 for labels, and 2 for logistic "
            "and hinge."
        ),
    ] = None
    radius: Annotated[
        float | None,
        typer.Option(
            help="Radius of the constraint, in scaled units; instead of --prediction-bound."
        ),
    ] = None
    ridge: Annotated[
        float, typer.Option(help="Weight of the squared coefficients, in scaled units.")
    ] = 0.0
    neighbours: Neighbours = "replace-one"
    sensitivity: Annotated[
        str,
        typer.Option(help="Sensitivity rule: sharp, or published or lemma-2, which are looser."),
    ] = "sharp"
    response_range: Annotated[
        str | None,
        typer.Option(
            help="Range to which the response is scaled: private (quantiles, or the class share of "
            "labels, released first with a part of epsilon) or declared (its bounds). By default "
            "private; for labels under other losses than least squares declared."
        ),
    ] = None
    check_readable: Annotated[
        str | None,
        typer.Option(
            help="Release noisy counts of cells without a readable value, for this fraction of "
            "epsilon (such as 0.01), and warn if most of a column seems unreadable.",
            metavar="FRACTION",
        ),
    ] = None
    always_include: Annotated[
        list[str] | None,
        typer.Option(
            help="A variable that is part of every support; may be repeated.", metavar="NAME"
        ),
    ] = None
    seed: Annotated[
        int | None, typer.Option(help="Seed, for tests only: a seeded release is NOT PRIVATE.")
    ] = None
    node_limit: Annotated[
        int | None,
        typer.Option(
            help="Most nodes of the search. If it is exceeded, epsilon is spent and nothing is "
            "released."
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="Most seconds of the search. If it is exceeded, epsilon is spent and nothing is "
            "released."
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as they were written."""
        return {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) not in (field.default, [])
        }

    def arguments(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as `dpsubset.select` takes them."""
        found = self.given()
        for name in ("delta", "check_readable"):
            if name in found:
                found[name] = parse_number(found[name], name.replace("_", "-"))
        if "options" in found:
            from ..mechanisms import option

            found["options"] = dict(map(option, found["options"]))
        return found


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Show the options of a group in place of each parameter of a command that is a group."""
    parameters = _parameters(command)
    groups: dict[str, Any] = {
        each.name: each.annotation for each in parameters if is_dataclass(each.annotation)
    }
    shown: list[inspect.Parameter] = []
    for parameter in parameters:
        group = groups.get(parameter.name)
        shown += [parameter] if group is None else _parameters(group)

    @functools.wraps(command)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in shown}
    return called


def _parameters(command: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return parameters whose annotations are resolved in the module that defines them."""
    hints = get_type_hints(command, include_extras=True)
    return [
        parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(command).parameters.items()
    ]


def flag(name: str) -> str:
    """Return the option of a parameter, as in --node-limit."""
    return "--" + {"options": "option"}.get(name, name).replace("_", "-")


def parse_k(text: str | None) -> Any:
    """Return the value of --k: a whole number, or a word to be checked with the request."""
    return int(text) if text is not None and text.strip().isdecimal() else text


def parse_number(text: str, name: str) -> Decimal:
    """Return a number exactly as written."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ArgumentError(f"{name} must be a number, such as 0.5 or 1e-6") from None


def fit_rule(budget_fraction: str | None, how: str | None, width: str | None) -> FitRule | None:
    """Return the rule of a fit that these options state; None if none of them is given."""
    given = {"budget_fraction": budget_fraction, "width": width}
    numbers: dict[str, Any] = {
        name: parse_number(text, name) for name, text in given.items() if text is not None
    }
    if how is None and not numbers:
        return None
    from ..models.rule import FitRule

    return FitRule(mechanism=how, **numbers)


def parse_separator(text: str | None) -> str | None:
    """Return a column separator; a tab may be written out."""
    from ..schema.bounds_file import check_separator

    return check_separator("\t" if text in ("tab", "\\t") else text)


def table_of(files: list[Path] | None, moments: Path | None = None) -> Any:
    """Return the table that the arguments name, as functions take it."""
    if moments is None and files:
        return files[0] if len(files) == 1 else files
    if moments is None or files:
        raise ArgumentError("give the table, FILE..., or --moments, and not both")
    from ..data.moments import Moments

    return Moments.load(moments)


def input_paths(files: list[Path] | None) -> list[Path]:
    """Return the files that the arguments name; they themselves if there are no such files."""
    if not files:
        return []
    from ..base.errors import TableError
    from ..data.readers.paths import files_of

    try:
        return files_of(files)
    except TableError:
        return files  # reported where the table is opened


def check_distinct(*paths: Path | None) -> None:
    """Refuse to read and write the same file."""
    given = [path.resolve() for path in paths if path is not None]
    if len(set(given)) < len(given):
        raise ArgumentError("the table, the schema and the outputs must be different files")
