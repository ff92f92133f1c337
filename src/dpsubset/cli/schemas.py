"""The commands ``dpsubset schema ...``: the bounds file, which describes a table publicly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    Force,
    Json,
    NamedFiles,
    Separator,
    check_distinct,
    input_paths,
    parse_separator,
    table_of,
)
from .outputs import Output
from .terminal import handle_errors, print_line, red, warn

if TYPE_CHECKING:
    from ..schema.schema import Schema

schema_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

SchemaArgument = Annotated[Path, typer.Argument(help="The bounds file.", metavar="SCHEMA")]


@schema_app.command("init")
@handle_errors()
def schema_init(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="The table: a file, several, or a folder. Only names and types are read.",
            metavar="FILE...",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Bounds file to write, YAML or .json.")] = Path(
        "schema.yaml"
    ),
    force: Force = False,
    separator: Separator = None,
) -> None:
    """Write a bounds file to fill in.

    It has the column names of FILE, of several files those that all of them have. If FILE has types
    (Parquet, Arrow), the template has levels for text and dates for dates.
    """
    check_distinct(*input_paths(files), out)

    from ..data.readers import column_names
    from ..data.type_checks import column_kinds
    from ..schema.bounds_file import template

    with Output(out, replace=force) as output:
        table, sign = table_of(files), parse_separator(separator)
        known = column_kinds(table)
        names = list(known) or column_names(table, sign)
        template(names, output.draft, known, sign)
        output.publish()
    by_type = " with the keys of their types" if known else ""
    print_line(
        f"Wrote {out}: {len(names)} columns{by_type}, without bounds. Fill in lo and hi of every "
        "column, or its levels, from public knowledge, never from the table. Then name the "
        "response; one with two classes has labels in place of bounds."
    )


@schema_app.command("check")
@handle_errors()
def schema_check(
    schema: SchemaArgument,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="A table to compare with: a file, several, or a folder. Only names and types are "
            "read.",
            metavar="FILE...",
        ),
    ] = None,
) -> None:
    """Check a bounds file, and the columns of a table against it."""
    from ..data.readers import read_schema

    table = table_of(files) if files else None
    declared = read_schema(schema, table)
    print_line(
        f"{schema}: {len(declared.features)} features{_model(declared)}, response "
        f"{declared.response.name!r}{_labels(declared)}, unit of privacy: {declared.protected}"
    )
    if files:
        from ..data.readers import open_table
        from ..data.readers.parts import parts_of, undeclared_names
        from ..data.type_checks import column_kinds, type_mismatches

        # First, since a source refuses some types without saying what to declare.
        named = files[0] if len(files) == 1 else f"{len(files)} files"
        for mismatch in type_mismatches(table, declared):
            print_line(f"{named}: {mismatch}")
        open_table(table, declared)
        parts = parts_of(table) or ()
        counted = f" in each of {len(parts)} files" if len(parts) > 1 else ""
        print_line(f"{named}: has every declared column{counted}")
        if not column_kinds(table):
            print_line(
                f"{named}: has no types, so the form of its cells was not checked ('schema try' "
                "and --check-readable do that)"
            )
        if rest := undeclared_names(parts, declared):
            print_line(f"{named}: {_undeclared(rest)}")


@schema_app.command("try")
@handle_errors()
def schema_try(
    schema: SchemaArgument,
    files: Annotated[
        list[Path],
        typer.Argument(
            help="PUBLIC or invented sample rows: their cells are shown.", metavar="FILE..."
        ),
    ],
    rows: Annotated[int, typer.Option(help="Most rows to show.")] = 20,
    as_json: Json = False,
) -> None:
    """Show how the cells of sample rows are read. NOT PRIVATE.

    Each cell is a number, a date, a level, missing or unreadable. FILE must contain public or
    invented rows in the format of the sensitive table, and never the table itself: cells are shown
    as they are. Costs nothing and uses no ledger.
    """
    import json

    from ..api.read_sample import NOT_PRIVATE, read_sample

    found = read_sample(table_of(files), schema, rows)
    if as_json:
        warn(NOT_PRIVATE)
        typer.echo(json.dumps(found.to_dict(), indent=2))
    else:
        typer.echo(str(found).replace(NOT_PRIVATE, red(NOT_PRIVATE), 1))


@schema_app.command("fingerprint")
@handle_errors()
def schema_fingerprint(
    schema: SchemaArgument,
    files: NamedFiles = None,
) -> None:
    """Print the fingerprint of a bounds file.

    Releases and ledgers record it.
    """
    from ..data.readers import read_schema

    print_line(read_schema(schema, table_of(files) if files else None).fingerprint())


def _undeclared(names: Sequence[str]) -> str:
    from ..data.readers.header import looks_like_a_value

    count = len(names)
    text = f"{count} column{'s are' if count > 1 else ' is'} not declared and will not be read"
    # A name that may be a cell is not shown: a first line without letters may be a record.
    if any(looks_like_a_value(name) or not any(map(str.isalpha, name)) for name in names):
        return text
    return f"{text}: {', '.join(map(repr, names[:10]))}{', ...' if count > 10 else ''}"


def _model(schema: Schema) -> str:
    """Describe the columns of the model, if they are not the features themselves."""
    from ..schema.encoding import Design

    design = Design.of(schema)
    if not design.layout.grouped:
        return ""
    return f" ({len(design.choices)} choices of {len(design.columns)} columns in all)"


def _labels(schema: Schema) -> str:
    from ..schema.labels import labels_in_words

    labels = schema.response.labels
    return "" if labels is None else f" ({labels_in_words(labels)})"
