"""The commands ``dpsubset moments`` and ``dpsubset merge``: sums of a table, for its curator."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Files, Force, SchemaFile, check_distinct, input_paths, table_of
from .outputs import Output
from .terminal import handle_errors, print_line, progress_bar

if TYPE_CHECKING:
    from ..data.moments import Moments

OutFile = Annotated[Path, typer.Option(help="Write the moments here, an .npz file.")]


@handle_errors()
def moments_command(files: Files, schema: SchemaFile, out: OutFile, force: Force = False) -> None:
    """Compute the moments of the table in FILE: exact sums of products. NOT A RELEASE.

    They cost nothing, and are as private as the table: the file can be read by its owner alone.
    'dpsubset select' and 'fit' take it as --moments, and 'dpsubset merge' adds up those of several
    sites.
    """
    check_distinct(*input_paths(files), schema, out)
    with ExitStack() as stack:
        output = stack.enter_context(Output(out, replace=force))

        from ..api.moments import moments

        progress = stack.enter_context(progress_bar("Reading"))
        _write(output, moments(table_of(files), schema, progress=progress))


@handle_errors()
def merge_command(
    parts: Annotated[
        list[Path],
        typer.Argument(
            help="Files of 'dpsubset moments' with the same schema and different records.",
            metavar="PART...",
        ),
    ],
    out: OutFile,
    force: Force = False,
) -> None:
    """Add up the moments of different records. NOT A RELEASE: the sum is private, too.

    Parts with another schema are refused, and so is a part that is given twice or was merged
    before. A table that was read twice, into two parts, is not noticed.
    """
    check_distinct(*dict.fromkeys(parts), out)
    with Output(out, replace=force) as output:
        from ..data.moments import Moments

        first, *others = map(Moments.load, parts)
        _write(output, sum(others, first))


def _write(output: Output, moments: Moments) -> None:
    moments.save(output.draft)
    output.publish()
    print_line(f"Wrote {output.path}, which is as private as the table")
