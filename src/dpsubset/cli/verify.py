"""The command ``dpsubset verify``: whether a release is what it says, and what was paid for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .shared import fail, guarded, say


def verify_command(
    release: Annotated[
        Path, typer.Argument(help="The release, as JSON: what --out wrote.", show_default=False)
    ],
    schema: Annotated[
        Path, typer.Option(help="The bounds file that it was made with.", show_default=False)
    ],
    ledger: Annotated[
        str | None,
        typer.Option(
            help="The ledger that it was debited to.", metavar="FILE|URL", show_default=False
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(help="The table, if the bounds file has patterns; only names are read."),
    ] = None,
) -> None:
    """Compare a release with its schema and its entry in a ledger: fingerprint, digest, version.

    Ends with 1 if something does not agree. Costs nothing.
    """
    with guarded():
        from ..data.readers import read_schema
        from ..ledger.ledger import Ledger
        from ..release.verify import checks

        found = checks(
            release,
            read_schema(schema, table).fingerprint(),
            None if ledger is None else Ledger(ledger),
        )
        for check in found:
            say(f"{'ok ' if check.holds else 'NO '} {check.says}")
        wrong = sum(not check.holds for check in found)
        if wrong:
            fail(f"{wrong} of {len(found)} do not agree", 1)
