"""``dpsubset fit`` and ``predict``: a release with a model, and what that says of rows."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..text import visible
from . import signals
from .select import progress_bar, reserve, show, write
from .shared import (
    LedgerOption,
    NoLedgerOption,
    PurposeOption,
    check_apart,
    fail,
    guarded,
    ledger_of,
    number,
    show_room,
    trouble,
)
from .warmup import telling_of_compilation

if TYPE_CHECKING:
    from ..release.model import Model


def fit_command(
    file: Annotated[
        Path,
        typer.Argument(help="The sensitive table: Parquet, CSV or TSV.", show_default=False),
    ],
    schema: Annotated[Path, typer.Option(help="Bounds file, YAML or JSON.", show_default=False)],
    k: Annotated[int, typer.Option("--k", help="Variables to select.", show_default=False)],
    epsilon: Annotated[
        str,
        typer.Option(
            help="Privacy budget of scale, selection and fit together, exactly as written.",
            metavar="NUMBER",
            show_default=False,
        ),
    ],
    delta: Annotated[
        str,
        typer.Option(help="For Gaussian noise, where that is less; 0 for pure.", metavar="NUMBER"),
    ] = "0",
    share: Annotated[
        str | None,
        typer.Option(help="Of epsilon, for the fit; 0.6 if not given.", metavar="NUMBER"),
    ] = None,
    mechanism: Annotated[
        str, typer.Option(help="How to select; 'dpsubset mechanisms' lists them.")
    ] = "permute-and-flip",
    option: Annotated[
        list[str] | None,
        typer.Option(help="An option of the mechanism; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    neighbours: Annotated[
        str,
        typer.Option(
            "--neighbours",
            "--neighbors",
            help="replace-one (the number of rows is public) or add-remove (private).",
        ),
    ] = "replace-one",
    response_scale: Annotated[
        str | None,
        typer.Option(help="private or declared; as for 'select'."),
    ] = None,
    always_include: Annotated[
        list[str] | None,
        typer.Option(help="A variable that is part of every set; may be repeated.", metavar="NAME"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="For tests only: a seeded release is NOT PRIVATE.")
    ] = None,
    node_limit: Annotated[
        int | None,
        typer.Option(help="Most splits of the search; passing it costs epsilon, releases nothing."),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Most seconds of the search; passing it costs epsilon likewise."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the release here, as JSON.")] = None,
    model: Annotated[
        Path | None, typer.Option(help="Write the model here, as JSON, for 'dpsubset predict'.")
    ] = None,
    statement: Annotated[
        Path | None,
        typer.Option(help="Write the privacy statement here, as Markdown; else it is printed."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that are there already.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only say what it would cost and what would be read: spends nothing."
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print the selected names only, one a line.")
    ] = False,
    ledger: LedgerOption = None,
    no_ledger: NoLedgerOption = False,
    purpose: PurposeOption = None,
) -> None:
    """Select k variables of FILE and fit a linear model on them, privately. Costs epsilon.

    Exit codes are those of 'dpsubset select'.
    """
    with guarded(), ExitStack() as stack:
        budget, chance = number(epsilon, "epsilon"), number(delta, "delta")
        part = None if share is None else number(share, "share")
        check_apart(file, schema, out, model, statement)
        book = ledger_of(ledger, no_ledger, purpose)
        release_file, model_file, statement_file = (
            reserve(path, force, stack) for path in (out, model, statement)
        )

        from ..fitting import event_of_fit, fit, price_fit
        from ..mechanisms import option as parse
        from ..models.rule import FitRule

        asked: dict[str, Any] = {
            "k": k,
            "epsilon": budget,
            "delta": chance,
            "rule": None if part is None else FitRule(share=part),  # type: ignore[arg-type]
            "mechanism": mechanism,
            "options": dict(map(parse, option or ())),
            "neighbours": neighbours,
            "response_scale": response_scale,
            "always_include": always_include or (),
            "seed": seed,
            "node_limit": node_limit,
            "time_limit": time_limit,
        }
        if dry_run:
            typer.echo("\n".join(map(visible, str(price_fit(file, schema, **asked)).splitlines())))
            show_room(book, lambda: event_of_fit(file, schema, **asked))
            typer.echo("Nothing was read but the header, and nothing is spent.")
            return
        with telling_of_compilation(quiet), progress_bar(quiet) as progress:
            release = fit(file, schema, progress=progress, ledger=book, **asked)
        # From here on the budget is spent: files come first, and what cannot be written is printed.
        with signals.held():
            unwritten = write(release_file, release.to_json() + "\n")
            lost = [*unwritten, *write(statement_file, release.statement())]
            if release.model is not None:
                lost += write(model_file, release.model.to_json() + "\n")
        unprinted = show(release, release_file, statement_file, quiet)
        if unprinted and (release_file is None or unwritten):
            trouble(sys.stderr, json.dumps(release.to_dict(), indent=2) + "\n")
        if unprinted:
            lost.insert(0, f"standard output: {unprinted}")
        if lost:
            fail(f"the release was made, but not all of it was written: {'; '.join(lost)}", 1)


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
) -> None:
    """Predict the response for every row of FILE. Costs nothing.

    One line a row: the prediction, and for labels the chance of the second one beside it. They say
    what FILE says of its rows, so they are as sensitive as that.
    """
    with guarded(), ExitStack() as stack:
        check_apart(model, file, out)
        output = reserve(out, force, stack)

        from ..release.model import Model

        text = _predictions(Model.load(model), file)
        if output is None:
            if problem := trouble(sys.stdout, text):
                fail(f"standard output: {problem}", 1)
        elif problems := write(output, text):
            fail("; ".join(problems), 1)


def _predictions(model: Model, file: Path) -> str:
    import csv
    import io

    labels = model.schema.response.labels
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if labels is None:
        writer.writerow(["prediction"])
        writer.writerows([f"{value:.10g}"] for value in model.predict(file).tolist())
    else:
        writer.writerow(["prediction", f"chance of {labels[1]}"])
        chances = model.probabilities(file).tolist()
        writer.writerows([labels[chance > 0.5], f"{chance:.6g}"] for chance in chances)
    return text.getvalue()
