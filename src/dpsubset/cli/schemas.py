"""The commands ``dpsubset schema init`` and ``schema check``: the public bounds file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .shared import check_apart, guarded

if TYPE_CHECKING:
    from ..schema import Schema

schema_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@schema_app.command("init")
def schema_init(
    file: Annotated[Path, typer.Argument(help="The table; only its header is read.")],
    out: Annotated[Path, typer.Option(help="Where to write; .json gives JSON.")] = Path(
        "schema.yaml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a bounds file with the column names of FILE and empty bounds, to be filled in."""
    with guarded():
        check_apart(file, out)

        from ..outputs import Output
        from ..schema import template
        from ..sources.files import header

        with Output(out, replace=force) as output:
            names = header(file)
            template(names, output.draft)
            output.publish()
        typer.echo(
            f"Wrote {out}: {len(names)} columns, no bounds yet. Fill in lo and hi of every column "
            "from public knowledge, never from the table, and name the response (with two classes "
            "it has labels in place of bounds)."
        )


@schema_app.command("check")
def schema_check(
    schema: Annotated[Path, typer.Argument(help="The bounds file.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="A table to compare it with; only its header is read."),
    ] = None,
) -> None:
    """Check a bounds file, and that a table has the columns it declares."""
    with guarded():
        from ..schema import Schema

        declared = Schema.read(schema)
        typer.echo(
            f"{schema}: {len(declared.features)} features, response {declared.response.name!r}"
            f"{_labels(declared)}, unit of privacy: {declared.unit}"
        )
        if file is not None:
            from ..sources.files import open_file

            open_file(file, declared)
            typer.echo(f"{file}: has every declared column")


def _labels(schema: Schema) -> str:
    from ..labels import shown

    labels = schema.response.labels
    return "" if labels is None else f" ({shown(labels)})"
