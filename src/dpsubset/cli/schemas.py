"""The commands ``dpsubset schema init`` and ``schema check``: the public bounds file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import SeparatorOption, separator_sign
from .shared import check_apart, guarded, red, say, trouble

if TYPE_CHECKING:
    from ..schema.schema import Schema

schema_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@schema_app.command("init")
def schema_init(
    file: Annotated[Path, typer.Argument(help="The table; only names and types are read.")],
    out: Annotated[Path, typer.Option(help="Where to write; .json gives JSON.")] = Path(
        "schema.yaml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    separator: SeparatorOption = None,
) -> None:
    """Write a bounds file with the column names of FILE and empty bounds, to be filled in.

    Where FILE has types (Parquet, Arrow), text is asked for its levels and dates for dates.
    """
    with guarded():
        check_apart(file, out)

        from ..data.readers.files import header
        from ..data.type_checks import column_kinds
        from ..schema.bounds_file import template
        from .outputs import Output

        with Output(out, replace=force) as output:
            known, sign = column_kinds(file), separator_sign(separator)
            names = list(known) or header(file, sign)
            template(names, output.draft, known, sign)
            output.publish()
        by_type = ", their forms by their types" if known else ""
        say(
            f"Wrote {out}: {len(names)} columns{by_type}, no bounds yet. Fill in lo and hi of "
            "every column, or its levels, from public knowledge, never from the table, and name "
            "the response (with two classes it has labels in place of bounds)."
        )


@schema_app.command("check")
def schema_check(
    schema: Annotated[Path, typer.Argument(help="The bounds file.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="A table to compare it with; only names and types are read."),
    ] = None,
) -> None:
    """Check a bounds file, and that a table has the columns it declares, of fitting types."""
    with guarded():
        from ..data.readers import read_schema

        declared = read_schema(schema, file)
        say(
            f"{schema}: {len(declared.features)} features{_model(declared)}, response "
            f"{declared.response.name!r}{_labels(declared)}, unit of privacy: {declared.protected}"
        )
        if file is not None:
            from ..data.readers.files import first_line, open_file
            from ..data.type_checks import column_kinds, type_mismatches

            # First, since a source refuses some types without a word on what to declare.
            for doubt in type_mismatches(file, declared):
                say(f"{file}: {doubt}")
            open_file(file, declared)
            say(f"{file}: has every declared column")
            if not column_kinds(file):
                say(
                    f"{file}: has no types: whether its cells are written as declared was not "
                    "checked ('schema try', --check-readable)"
                )
            known = {*(column.name for column in declared.columns), declared.response.name}
            rest = [name for name in first_line(file, declared.separator) if name not in known]
            if rest:
                say(f"{file}: {_undeclared(rest)}")


@schema_app.command("try")
def schema_try(
    schema: Annotated[Path, typer.Argument(help="The bounds file.")],
    file: Annotated[
        Path, typer.Argument(help="PUBLIC or made-up sample rows: their cells are shown.")
    ],
    rows: Annotated[int, typer.Option(help="How many rows to show at most.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show how sample rows read, cell by cell: number, date, level, missing or unreadable.

    NOT PRIVATE: cells are shown as they are. FILE must hold public or made-up rows, written as
    those of the sensitive table are, and never that table itself. Costs nothing, and touches no
    ledger.
    """
    with guarded():
        import json

        from ..api.read_sample import NOT_PRIVATE, read_sample

        found = read_sample(file, schema, rows)
        if as_json:
            trouble(sys.stderr, red(NOT_PRIVATE) + "\n")
            typer.echo(json.dumps(found.to_dict(), indent=2))
        else:
            typer.echo(str(found).replace(NOT_PRIVATE, red(NOT_PRIVATE), 1))


@schema_app.command("fingerprint")
def schema_fingerprint(
    schema: Annotated[Path, typer.Argument(help="The bounds file.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="The table, if the bounds file has patterns; only names are read."),
    ] = None,
) -> None:
    """Print the fingerprint of a bounds file: releases and ledgers remember it."""
    with guarded():
        from ..data.readers import read_schema

        say(read_schema(schema, file).fingerprint())


def _undeclared(names: Sequence[str]) -> str:
    from ..data.readers.header import looks_like_a_value

    count = len(names)
    text = f"{count} column{'s are' if count > 1 else ' is'} not declared and will not be read"
    # What may be a cell is not shown: a first line without letters may be a person's record.
    if any(looks_like_a_value(name) or not any(map(str.isalpha, name)) for name in names):
        return text
    return f"{text}: {', '.join(map(repr, names[:10]))}{', ...' if count > 10 else ''}"


def _model(schema: Schema) -> str:
    """What the features become, where that is something else."""
    from ..schema.encoding import Design

    design = Design.of(schema)
    if not design.layout.grouped:
        return ""
    return f" ({len(design.choices)} choices of {len(design.columns)} columns in all)"


def _labels(schema: Schema) -> str:
    from ..schema.labels import labels_in_words

    labels = schema.response.labels
    return "" if labels is None else f" ({labels_in_words(labels)})"
