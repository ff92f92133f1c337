"""The command ``dpsubset compare``: two releases, and what both cost together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..base.errors import ArgumentError
from .options import Json, SchemaTable
from .terminal import handle_errors, print_line


@handle_errors()
def compare_command(
    first: Annotated[Path, typer.Argument(help="Release file.", metavar="FIRST")],
    second: Annotated[Path, typer.Argument(help="Another release file.", metavar="SECOND")],
    schema: Annotated[
        list[Path] | None,
        typer.Option(
            help="Bounds file of both releases, or, given twice, of the first and of the second: "
            "compares what they declare, too."
        ),
    ] = None,
    table: SchemaTable = None,
    as_json: Json = False,
) -> None:
    """Show what differs between two releases, and what both cost together. Costs nothing.

    Costs are added for each relation of neighbours. They are not added for releases from different
    data sets or of different privacy units. A fit on an earlier release contains its cost.
    """
    from ..data.readers import read_schema
    from ..release.compare import ReleaseFacts, compare

    if schema is not None and len(schema) > 2:
        raise ArgumentError("give --schema once for both releases, or twice")
    declared = [read_schema(path, table) for path in schema or ()]
    found = compare(
        ReleaseFacts.load(first),
        ReleaseFacts.load(second),
        (declared[0], declared[-1]) if declared else None,
    )
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
        return
    for line in found.lines():
        print_line(line)
