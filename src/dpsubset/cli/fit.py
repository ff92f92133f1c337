"""``dpsubset fit`` and ``predict``: a release with a model, and what that says of rows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.errors import ArgumentError
from ..base.text import escape_for_terminal
from .options import (
    AboutFile,
    Asked,
    DryRun,
    File,
    Force,
    LedgerOption,
    NoLedgerOption,
    Out,
    PurposeOption,
    Quiet,
    SchemaFile,
    SeparatorOption,
    Statement,
    asks,
    separator_sign,
)
from .select import Files, progress_bar, reserve, tell, write
from .shared import check_apart, fail, guarded, ledger_of, number, trouble
from .warmup import telling_of_compilation

if TYPE_CHECKING:
    from ..api.select import Price
    from ..ledger.event import Event
    from ..release.model import Model
    from ..release.release import Release


@asks
def fit_command(
    *,
    file: File,
    schema: SchemaFile,
    epsilon: Annotated[
        str,
        typer.Option(
            help="Privacy budget of scale, selection and fit together, exactly as written; with "
            "--on, of the fit.",
            metavar="NUMBER",
            show_default=False,
        ),
    ],
    k: Annotated[
        int | None,
        typer.Option("--k", help="Variables to select; not with --on.", show_default=False),
    ] = None,
    on: Annotated[
        Path | None,
        typer.Option(
            "--on",
            help="A release file of 'dpsubset select' on this schema: fit on its variables, and "
            "spend the fit alone. Of the options below it takes --delta and --seed.",
            show_default=False,
        ),
    ] = None,
    budget_fraction: Annotated[
        str | None,
        typer.Option(
            "--budget-fraction",
            "--share",
            help="Fraction of epsilon for the fit; 0.6 if not given.",
            metavar="NUMBER",
        ),
    ] = None,
    how: Annotated[
        str | None,
        typer.Option(
            "--fit",
            help="How to fit: noisy-moments (least squares), objective-perturbation (the loss of "
            "the selection), or gaussian-ols, which is not private by proof. If not given, "
            "objective-perturbation with --loss logistic, else noisy-moments.",
            show_default=False,
        ),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(
            help="Where the fit clips the response, in half-distances of its released quantiles; "
            "by a public rule if not given.",
            metavar="NUMBER",
        ),
    ] = None,
    asked: Asked,
    out: Out = None,
    model: Annotated[
        Path | None, typer.Option(help="Write the model here, as JSON, for 'dpsubset predict'.")
    ] = None,
    statement: Statement = None,
    about: AboutFile = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    ledger: LedgerOption = None,
    no_ledger: NoLedgerOption = False,
    purpose: PurposeOption = None,
) -> None:
    """Select k variables of FILE and fit a linear model on them, privately. Costs epsilon.

    Exit codes are those of 'dpsubset select'.
    """
    with guarded(), ExitStack() as stack:
        arguments: dict[str, Any] = asked.arguments()
        arguments["epsilon"] = number(epsilon, "epsilon")
        part = {"budget_fraction": budget_fraction, "width": width}
        chosen = {name: number(text, name) for name, text in part.items() if text is not None}
        check_apart(file, schema, on, about, out, model, statement)
        _check_what_goes_together(on, k, asked, budget_fraction)
        book = ledger_of(ledger, no_ledger, purpose)
        files = Files.reserve(stack, force, about, out, statement, model)

        from ..api.fit import event_of_fit, fit, price_fit
        from ..api.fit_released import event_of_released, fit_released, price_released
        from ..models.rule import FitRule

        arguments["rule"] = FitRule(mechanism=how, **chosen)  # type: ignore[arg-type]
        cost: Callable[..., Price]
        make: Callable[..., Release]
        note: Callable[..., Event]
        if on is None:
            cost, make, note, arguments["k"] = price_fit, fit, event_of_fit, k
        else:
            cost, make = partial(price_released, on), partial(fit_released, on)
            note = partial(event_of_released, on)
            arguments = {name: arguments[name] for name in ("epsilon", "delta", "seed", "rule")}
        if dry_run:
            tell(cost(file, schema, **arguments), book, lambda: note(file, schema, **arguments))
            return
        with telling_of_compilation(quiet), progress_bar(quiet) as progress:
            release = make(file, schema, progress=progress, ledger=book, **arguments)
        files.publish(release, quiet)


def _check_what_goes_together(
    on: Path | None, k: int | None, asked: Asked, budget_fraction: str | None
) -> None:
    if on is None and k is None:
        raise ArgumentError("give --k, how many variables to select, or --on a release that has")
    if on is None:
        return
    beside = asked.beyond("delta", "seed")
    beside += ["--k"] * (k is not None) + ["--budget-fraction"] * (budget_fraction is not None)
    if beside:
        raise ArgumentError(
            f"{beside[0]} is a matter of the selection, which --on has behind it: leave it out"
        )


def predict_command(
    model: Annotated[
        Path, typer.Argument(help="A model file of 'dpsubset fit'.", show_default=False)
    ],
    file: Annotated[
        Path,
        typer.Argument(help="Rows to predict for: Parquet, CSV or TSV.", show_default=False),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write predictions here, as CSV; else they are printed.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that is there already.")
    ] = False,
    separator: SeparatorOption = None,
    of: Annotated[
        str | None,
        typer.Option(
            "--of",
            help="Of a response that was declared with a transform: predict its median (the "
            "transform undone, as without this option) or its mean, by the residual variance.",
            metavar="median|mean",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Predict the response for every row of FILE. Costs nothing.

    One line a row: the prediction, and for labels the chance of the second one beside it. They say
    what FILE says of its rows, so they are as sensitive as that. What they are of is told on
    standard error.
    """
    with guarded(), ExitStack() as stack:
        check_apart(model, file, out)
        output = reserve(out, force, stack)

        from ..release.model import Model

        fitted, sign = Model.load(model), separator_sign(separator)
        if sign is not None:
            fitted = replace(fitted, schema=replace(fitted.schema, separator=sign))
        text = _predictions(fitted, file, of)
        typer.echo(f"Predictions are of {escape_for_terminal(fitted.predicts(of))}.", err=True)  # type: ignore[arg-type]
        if output is None:
            if problem := trouble(sys.stdout, text):
                fail(f"standard output: {problem}", 1)
        elif problems := write(output, text):
            fail("; ".join(problems), 1)


def _predictions(model: Model, file: Path, of: Any) -> str:
    import csv
    import io

    labels = model.schema.response.labels
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if labels is None:
        transformed = model.schema.response.transform is not None
        writer.writerow([f"predicted {of or 'median'}" if transformed else "prediction"])
        writer.writerows([f"{value:.10g}"] for value in model.predict(file, of).tolist())
    else:
        writer.writerow(["prediction", f"chance of {labels[1]}"])
        chances = model.probabilities(file).tolist()
        writer.writerows([labels[chance > 0.5], f"{chance:.6g}"] for chance in chances)
    return text.getvalue()
