"""The command ``dpsubset statement``: write the statement of a saved release again."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from .options import (
    AboutFile,
    Force,
    ReleaseFile,
    ReleaseSchema,
    SchemaTable,
    check_distinct,
)
from .outputs import reserve_output, write_output
from .releasing import summary
from .terminal import fail, handle_errors, try_print, warn


@handle_errors()
def statement_command(
    release: ReleaseFile,
    schema: ReleaseSchema,
    about: AboutFile = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="Ledger that the release was debited to: the statement is written only if its "
            "entry agrees.",
            metavar="FILE|URL",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the statement here. The extension sets the format: .html, .json, .yaml (a "
            "draft for OpenDP's deployments registry), any other Markdown. By default it is "
            "printed."
        ),
    ] = None,
    force: Force = False,
    table: SchemaTable = None,
) -> None:
    """Write the statement of a saved release again. Costs nothing.

    It is the statement that the release was made with, with the figures of the ledger at that time.
    """
    with ExitStack() as stack:
        check_distinct(release, schema, about, out)

        from ..release.statement.write import form_of_path, write_statement

        form = form_of_path(out) if out is not None else "markdown"
        output = reserve_output(out, force, stack)

        from ..data.readers import read_schema
        from ..ledger.ledger import Ledger
        from ..release.about import About
        from ..release.files import FileDigests, sha256_of_file
        from ..release.release import Release
        from ..release.verify import checks

        declared = read_schema(schema, table)
        loaded = Release.load(release, declared)
        if ledger is not None:
            found = checks(release, declared.fingerprint(), Ledger(ledger))
            if wrong := [check.says for check in found if check.holds is False]:
                fail(f"no statement is written: {'; '.join(wrong)}", 1)
        known = None if about is None else About.load(about)
        files = FileDigests(sha256_of_file(release), sha256_of_file(schema))
        if loaded.guarantee.seeded:
            warn("NOT PRIVATE: this draw was made with a fixed seed.")
        if output is not None:
            text = write_statement(loaded, known, form, files)
            if problems := write_output(output, text):
                fail("; ".join(problems), 1)
        if problem := try_print(sys.stdout, summary(loaded, known, files, release, out)):
            fail(f"standard output: {problem}", 1)
