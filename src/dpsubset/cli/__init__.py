"""The command line ``dpsubset``: one file a command, which calls the function of the same name.

Modules that are slow to import are imported within the commands, so that ``--help`` is quick.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .. import __version__
from . import signals
from .audit import audit_command
from .bounds import bounds_app
from .compare import compare_command
from .fit import fit_command
from .ledger import ledger_app
from .mechanisms import mechanisms_command
from .moments import merge_command, moments_command
from .options import OTHER_SPELLINGS
from .power import power_command
from .predict import predict_command
from .schemas import schema_app
from .select import select_command
from .statement import statement_command
from .terminal import handle_errors, occupy_streams, try_print
from .tune import tune_command
from .verify import verify_command
from .warmup import warmup_command

# No tracebacks: the text of an unexpected exception may quote a cell.
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"token_normalize_func": lambda name: OTHER_SPELLINGS.get(name, name)},
)
app.command("select")(select_command)
app.command("fit")(fit_command)
app.command("tune")(tune_command)
app.command("predict")(predict_command)
app.command("moments")(moments_command)
app.command("merge")(merge_command)
app.command("power")(power_command)
app.command("plan", hidden=True)(power_command)  # its first name
app.command("mechanisms")(mechanisms_command)
app.add_typer(schema_app, name="schema", help="Write or check a bounds file.")
app.add_typer(bounds_app, name="bounds", help="Suggest bounds from private quantiles.")
app.add_typer(ledger_app, name="ledger", help="Limit and record what is spent on a data set.")
app.command("statement")(statement_command)
app.command("verify")(verify_command)
app.command("compare")(compare_command)
app.command("audit")(audit_command)
app.command("warmup")(warmup_command)


def main() -> None:
    """Entry point of the ``dpsubset`` command."""
    occupy_streams()
    code = 0
    try:
        with handle_errors():
            signals.raise_on_signals()
            app(prog_name="dpsubset")  # the same name under python -m dpsubset
    except typer.Exit as end:
        code = end.exit_code
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    # Flush here: where the interpreter fails to flush, it prints a traceback.
    for stream in (sys.stdout, sys.stderr):
        if try_print(stream, "") and stream is sys.stdout:
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
    """Exact best-subset selection under pure differential privacy."""
