"""The command line: ``dpsubset select``, ``fit``, ``predict``, ``power``, ``schema``, ``bounds``,
``ledger``, ``verify``, ``mechanisms``, ``audit`` and ``warmup``.

Thin over the library, one file a command. Modules that are slow to import are imported by the
command that needs them, so that ``--help`` is quick.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .. import __version__
from . import signals
from .audit import audit_command
from .bounds import bounds_app
from .fit import fit_command, predict_command
from .ledger import ledger_app
from .mechanisms import mechanisms_command
from .power import power_command
from .schemas import schema_app
from .select import select_command
from .shared import guarded, occupy_streams, trouble
from .tune import tune_command
from .verify import verify_command
from .warmup import warmup_command

# Plain tracebacks would not do either: the text of an unforeseen exception may quote a cell.
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("select")(select_command)
app.command("fit")(fit_command)
app.command("tune")(tune_command)
app.command("predict")(predict_command)
app.command("power")(power_command)
app.command("plan", hidden=True)(power_command)  # its first name
app.command("mechanisms")(mechanisms_command)
app.add_typer(schema_app, name="schema", help="Write or check a schema: the public bounds file.")
app.add_typer(bounds_app, name="bounds", help="Suggest bounds from private quantiles.")
app.add_typer(ledger_app, name="ledger", help="The budget of a data set: what was spent of it.")
app.command("verify")(verify_command)
app.command("audit")(audit_command)
app.command("warmup")(warmup_command)


def main() -> None:
    """Entry point of the ``dpsubset`` command."""
    occupy_streams()
    code = 0
    try:
        with guarded():
            signals.catch()
            app(prog_name="dpsubset")  # also as python -m dpsubset, for completion too
    except typer.Exit as end:
        code = end.exit_code
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    # Nothing is left for the interpreter to flush, whose own way to fail is a traceback.
    for stream in (sys.stdout, sys.stderr):
        if trouble(stream, "") and stream is sys.stdout:
            code = code or 1
    sys.exit(code)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpsubset {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Which k of p variables matter, under pure differential privacy."""
