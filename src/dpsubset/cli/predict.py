"""The command ``dpsubset predict``: predictions of a released model."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.text import escape_for_terminal
from .options import (
    Force,
    Separator,
    check_distinct,
    input_paths,
    parse_separator,
    table_of,
)
from .outputs import reserve_output, write_output
from .terminal import fail, handle_errors, try_print

if TYPE_CHECKING:
    from ..release.model import Model


@handle_errors()
def predict_command(
    model: Annotated[Path, typer.Argument(help="Model file of 'dpsubset fit'.", metavar="MODEL")],
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Rows to predict for: Parquet, Arrow (Feather), CSV or TSV. Files are read in the "
            "order given; those of a folder or of a pattern in quotes in the order of their names.",
            metavar="FILE...",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Write the predictions here, as CSV. By default they are printed."),
    ] = None,
    force: Force = False,
    separator: Separator = None,
    of: Annotated[
        str | None,
        typer.Option(
            help="For a response that was declared with a transform: predict its median (the "
            "default) or its mean, which uses the residual variance.",
            metavar="median|mean",
        ),
    ] = None,
) -> None:
    """Predict the response for every row of FILE. Costs nothing.

    Prints one line a row: the prediction, and for labels the probability of the second label.
    Predictions are as sensitive as the rows of FILE. Standard error says what is predicted.
    """
    with ExitStack() as stack:
        check_distinct(model, *input_paths(files), out)
        output = reserve_output(out, force, stack)

        from ..release.model import Model

        loaded, sign = Model.load(model), parse_separator(separator)
        if sign is not None:
            loaded = replace(loaded, schema=replace(loaded.schema, separator=sign))
        text = _predictions(loaded, table_of(files), of)
        typer.echo(f"Predictions are of {escape_for_terminal(loaded.predicts(of))}.", err=True)  # type: ignore[arg-type]
        if output is None:
            if problem := try_print(sys.stdout, text):
                fail(f"standard output: {problem}", 1)
        elif problems := write_output(output, text):
            fail("; ".join(problems), 1)


def _predictions(model: Model, table: Any, of: Any) -> str:
    import csv
    import io

    labels = model.schema.response.labels
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if labels is None:
        transformed = model.schema.response.transform is not None
        writer.writerow([f"predicted {of or 'median'}" if transformed else "prediction"])
        writer.writerows([f"{value:.10g}"] for value in model.predict(table, of).tolist())
    else:
        writer.writerow(["prediction", f"chance of {labels[1]}"])
        chances = model.probabilities(table).tolist()
        writer.writerows([labels[chance > 0.5], f"{chance:.6g}"] for chance in chances)
    return text.getvalue()
