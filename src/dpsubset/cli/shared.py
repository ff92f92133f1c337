"""What the commands share: how they print, how they read numbers, and how they end.

What is printed is public: the release and its guarantee, or an error that quotes no cell.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TextIO

import typer

from ..base.errors import (
    ArgumentError,
    BudgetExceeded,
    ColumnTypeWarning,
    DpsubsetError,
    LedgerError,
    SearchLimitError,
)
from ..base.text import escape_for_terminal
from . import signals

if TYPE_CHECKING:
    from ..ledger.composition import Totals
    from ..ledger.event import Event
    from ..ledger.ledger import Ledger

#: Options of every command that spends.


def ledger_of(ledger: str | None, no_ledger: bool, purpose: str | None) -> Ledger | Literal[False]:
    """The ledger that the options of a command name."""
    if no_ledger:
        if ledger is not None or purpose is not None:
            raise ArgumentError("give --no-ledger alone, or --ledger and --purpose")
        return False
    address = ledger or os.environ.get("DPSUBSET_LEDGER") or None
    if address is None:
        if purpose is not None:
            raise ArgumentError("--purpose goes with a ledger")
        return False
    from ..ledger.ledger import Ledger

    return Ledger(address, purpose=purpose)


def number(text: str, what: str) -> Decimal:
    """A number exactly as written."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ArgumentError(f"{what} must be a number, such as 0.5 or 1e-6") from None


def check_apart(*paths: Path | None) -> None:
    """Refuse to read and write one file."""
    given = [path.resolve() for path in paths if path is not None]
    if len(set(given)) < len(given):
        raise ArgumentError("the table, the schema and the outputs must be different files")


def occupy_streams() -> None:
    """Have 0, 1 and 2 open: an output file must not get the number of a closed stream."""
    with suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)


def trouble(stream: TextIO | None, text: str) -> str | None:
    """Print and flush; returns what went wrong. After that the stream takes everything."""
    if stream is None:
        return "it is closed" if text else None
    try:
        if text:
            typer.echo(text, file=stream, nl=False)
        stream.flush()
    except (OSError, ValueError) as error:  # also text that the stream's encoding does not have
        with suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
        return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
    return None


def say(text: str) -> None:
    """Print a line."""
    typer.echo(escape_for_terminal(text))


def say_proviso(spent: Totals) -> None:
    """What a sum that was told holds only under, if anything is assumed."""
    if spent.assumes:
        say(spent.proviso)


def red(text: str) -> str:
    """For what must not be overlooked; plain where NO_COLOR says so (no-color.org)."""
    return text if os.environ.get("NO_COLOR") else typer.style(text, fg="red")


def show_room(ledger: Ledger | Literal[False], event: Callable[[], Event]) -> None:
    """Of a dry run: what would be spent of the ledger; its refusal if there is no room."""
    if ledger:
        before, after = ledger.check([event()])
        limit = before.limit
        say(f"Ledger: {limit.shown(after.current)} of {limit} after it, now "
            f"{limit.shown(before.current)}")  # fmt: skip
        say_proviso(after.current)


@contextmanager
def working(what: str) -> Iterator[Callable[[float], None] | None]:
    """A bar on the terminal for what reads no table."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextmanager
def guarded() -> Iterator[None]:
    """End with one line and an exit code.

    2 for a clear error, 3 for a limit of the search, whose budget is spent, 4 for a ledger without
    room, 5 for one that cannot be used, 128 and its number for a signal, 1 for the rest.
    """
    try:
        with _telling_of_columns():
            yield
    except (typer.Exit, typer.Abort):
        raise
    except SearchLimitError as error:
        fail(str(error), 3)
    except BudgetExceeded as error:
        fail(str(error), 4)
    except LedgerError as error:
        fail(str(error), 5)
    except DpsubsetError as error:
        fail(str(error), 2)
    except signals.Ended as end:
        signals.heard()
        fail("interrupted" if end.number == 2 else f"ended by {end}", 128 + end.number)
    except KeyboardInterrupt:
        fail("interrupted", 130)
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            # By its number: the text of another library might quote a cell.
            fail(f"the system refused to read or write: {os.strerror(error.errno)}", 1)
        fail(
            f"stopped by an unexpected {type(error).__name__}. Its text is withheld, because it "
            "could quote the table. To see it, run dpsubset.select from Python on made-up data",
            1,
        )


@contextmanager
def _telling_of_columns() -> Iterator[None]:
    """Warnings about columns, a line each, whatever filters are set."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", ColumnTypeWarning)
        usual = warnings.showwarning

        def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
            if issubclass(category, ColumnTypeWarning):
                trouble(sys.stderr, red(f"Warning: {escape_for_terminal(str(message))}") + "\n")
            else:
                usual(message, category, *where, **more)

        warnings.showwarning = show
        yield


def fail(message: str, code: int) -> NoReturn:
    """Say why, in one line, and end."""
    trouble(sys.stderr, red("Error: " + escape_for_terminal(message)) + "\n")
    raise typer.Exit(code) from None
