"""The command ``dpsubset verify``: compare a release file with its schema, ledger and statement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import ArgumentError
from .options import AboutFile, ReleaseFile, ReleaseSchema, SchemaTable
from .terminal import fail, handle_errors, print_line

if TYPE_CHECKING:
    from ..release.verify import Check
    from ..schema.schema import Schema


@handle_errors()
def verify_command(
    release: ReleaseFile,
    schema: ReleaseSchema,
    ledger: Annotated[
        str | None, typer.Option(help="Ledger that the release was debited to.", metavar="FILE|URL")
    ] = None,
    statement: Annotated[
        Path | None,
        typer.Option(
            help="Statement of the release to compare, sentence by sentence: .html, .json, .yaml, "
            "any other Markdown."
        ),
    ] = None,
    about: AboutFile = None,
    table: SchemaTable = None,
) -> None:
    """Compare a release with its schema, its entry in a ledger and its statement.

    The statement is written again from the release and compared line by line. Exit code 1 if
    something differs; what was not checked is named. Costs nothing.
    """
    from ..data.readers import read_schema
    from ..ledger.ledger import Ledger
    from ..release.verify import Check, checks

    if about is not None and statement is None:
        raise ArgumentError("--about is for --statement: give both")
    declared = read_schema(schema, table)
    found = checks(release, declared.fingerprint(), None if ledger is None else Ledger(ledger))
    if statement is None:
        found.append(Check(None, "a statement, since none was given"))
    else:
        found += _statement_checks(statement, release, schema, declared, about)
    for check in found:
        print_line(str(check))
        for line in check.lines:
            print_line(f"      {line}")
    wrong = sum(check.holds is False for check in found)
    if wrong:
        fail(f"{wrong} of {len(found)} do not agree", 1)


def _statement_checks(
    statement: Path, release: Path, schema: Path, declared: Schema, about: Path | None
) -> list[Check]:
    from ..release.about import About
    from ..release.release import Release
    from ..release.statement.check import statement_checks
    from ..release.verify import Check

    known = None if about is None else About.load(about)
    try:
        loaded = Release.load(release, declared)
    except ArgumentError as error:
        return [Check(False, f"the statement cannot be written again: {error}")]
    return statement_checks(statement, loaded, known, release, schema)
