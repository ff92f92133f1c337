"""What the commands print, how they report errors and with which exit codes they end.

What is printed is public: the release and its guarantee, or an error that quotes no cell.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import typer

from ..base.errors import (
    BudgetExceeded,
    ColumnTypeWarning,
    DpsubsetError,
    LargeEpsilonWarning,
    LedgerError,
    SearchLimitError,
)
from ..base.text import escape_for_terminal
from . import signals

if TYPE_CHECKING:
    from ..ledger.composition import Totals

#: Where this package is.
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")

#: Warnings that are printed whatever filters are set, wherever they point to.
_PRINTED = (ColumnTypeWarning, LargeEpsilonWarning)

#: Seconds after which a search is reported as a hard one.
_LONG_SEARCH = 10.0
_SEARCH = "Selecting"
_HARD = " (a hard search: docs/engine.md says how to make the next one easier)"


def occupy_streams() -> None:
    """Open file descriptors 0, 1 and 2: an output file must not get that of a closed stream."""
    with suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)


def try_print(stream: TextIO | None, text: str) -> str | None:
    """Print and flush. Return why that failed, if it did; the stream is redirected to null then."""
    if stream is None:
        return "it is closed" if text else None
    try:
        if text:
            typer.echo(text, file=stream, nl=False)
        stream.flush()
    except (OSError, ValueError) as error:  # also text that the stream cannot encode
        with suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
        return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
    return None


def print_line(text: str) -> None:
    """Print a line, with control characters escaped."""
    typer.echo(escape_for_terminal(text))


def print_assumptions(spent: Totals) -> None:
    """Print what a printed total assumes, if anything."""
    if spent.assumes:
        print_line(spent.proviso)


def red(text: str) -> str:
    """Colour a warning or an error; not if NO_COLOR is set (no-color.org)."""
    return text if os.environ.get("NO_COLOR") else typer.style(text, fg="red")


def warn(text: str) -> None:
    """Print a warning in red to standard error."""
    try_print(sys.stderr, red(text) + "\n")


def fail(message: str, code: int) -> NoReturn:
    """Print a one-line error and end with an exit code."""
    warn("Error: " + escape_for_terminal(message))
    raise typer.Exit(code) from None


@contextmanager
def handle_errors() -> Iterator[None]:
    """Turn exceptions into a one-line error and an exit code.

    2 for a clear error, 3 for an exceeded limit of the search, whose budget is spent, 4 for a
    ledger whose limit does not allow it, 5 for a ledger that cannot be used, 128 and its number for
    a signal, 1 for all others.
    """
    try:
        with _print_warnings():
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
        signals.acknowledge()
        fail("interrupted" if end.number == 2 else f"ended by {end}", 128 + end.number)
    except KeyboardInterrupt:
        fail("interrupted", 130)
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            # By its number: the text of another library might quote a cell.
            fail(f"the system refused to read or write: {os.strerror(error.errno)}", 1)
        fail(
            f"stopped by an unexpected {type(error).__name__}. Its text is withheld, because it "
            "could quote the table. To see it, run dpsubset.select from Python on simulated data",
            1,
        )


@contextmanager
def _print_warnings() -> Iterator[None]:
    """Print each warning of this package as a line; about columns or epsilon, despite filters."""
    with warnings.catch_warnings():
        for category in _PRINTED:
            warnings.simplefilter("always", category)
        show_others = warnings.showwarning

        def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
            if issubclass(category, _PRINTED) or str(where[0]).startswith(_PACKAGE):
                warn(f"Warning: {escape_for_terminal(str(message))}")
            else:
                show_others(message, category, *where, **more)

        warnings.showwarning = show
        yield


@contextmanager
def progress_bar(task: str) -> Iterator[Callable[[float], None] | None]:
    """Show a bar on the terminal for work that is not a release."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        shown = bar.add_task(task, total=1.0)
        yield lambda fraction: bar.update(shown, completed=fraction)


@contextmanager
def release_progress_bar(quiet: bool) -> Iterator[Callable[[float], None] | None]:
    """Show a bar on the terminal with the public fraction of the work and the elapsed time."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, Task, TaskProgressColumn, TimeElapsedColumn
    from rich.progress import TextColumn as Column
    from rich.text import Text

    class Stage(Column):
        """The stage of the work. A long search is marked; this depends on the time alone."""

        def render(self, task: Task) -> Text:
            long = task.description == _SEARCH and (task.elapsed or 0.0) > _LONG_SEARCH
            return Text(f"{task.description}{_HARD if long else ''}")

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (Stage("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True)
    try:
        bar.start()
        reading = bar.add_task("Reading", total=None)  # until a fraction is public

        def report(fraction: float) -> None:
            with suppress(OSError):
                bar.update(reading, total=1.0, completed=fraction)
                if fraction >= 1 and len(bar.tasks) == 1:
                    bar.add_task(_SEARCH, total=None)

        yield report
    finally:
        # A terminal that has gone away must not take the release with it.
        with suppress(OSError):
            bar.stop()
