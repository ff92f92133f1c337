"""The command ``dpsubset verify``: compare a release file with its schema and its ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .terminal import fail, handle_errors, print_line


@handle_errors()
def verify_command(
    release: Annotated[
        Path, typer.Argument(help="Release file, as written by --out.", metavar="RELEASE")
    ],
    schema: Annotated[Path, typer.Option(help="Bounds file of the release.")],
    ledger: Annotated[
        str | None, typer.Option(help="Ledger that the release was debited to.", metavar="FILE|URL")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(help="The table, if the bounds file has patterns; only its names are read."),
    ] = None,
) -> None:
    """Compare a release with its schema and its entry in a ledger.

    Compares fingerprint, digest and version. Exit code 1 if something differs. Costs nothing.
    """
    from ..data.readers import read_schema
    from ..ledger.ledger import Ledger
    from ..release.verify import checks

    found = checks(
        release,
        read_schema(schema, table).fingerprint(),
        None if ledger is None else Ledger(ledger),
    )
    for check in found:
        print_line(f"{'ok ' if check.holds else 'NO '} {check.says}")
    wrong = sum(not check.holds for check in found)
    if wrong:
        fail(f"{wrong} of {len(found)} do not agree", 1)
