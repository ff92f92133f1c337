"""The command ``dpsubset select``: one private release, its files and its statement."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..base.text import escape_for_terminal
from ..release.files import facts_to_json
from . import signals
from .options import (
    AboutFile,
    Asked,
    DryRun,
    File,
    Force,
    Intercept,
    LedgerOption,
    NoLedgerOption,
    Out,
    PurposeOption,
    Quiet,
    SchemaFile,
    Statement,
    asks,
)
from .shared import check_apart, fail, guarded, ledger_of, number, red, show_room, trouble
from .warmup import telling_of_compilation

if TYPE_CHECKING:
    from ..api.select import Price
    from ..ledger.event import Event
    from ..ledger.ledger import Ledger
    from ..release.about import About
    from ..release.release import Release
    from .outputs import Output


@asks
def select_command(
    *,
    file: File,
    schema: SchemaFile,
    k: Annotated[int, typer.Option("--k", help="Variables to select.", show_default=False)],
    epsilon: Annotated[
        str,
        typer.Option(
            help="Privacy budget of this release, taken exactly as written.",
            metavar="NUMBER",
            show_default=False,
        ),
    ],
    asked: Asked,
    intercept: Intercept = True,
    out: Out = None,
    statement: Statement = None,
    about: AboutFile = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    ledger: LedgerOption = None,
    no_ledger: NoLedgerOption = False,
    purpose: PurposeOption = None,
) -> None:
    """Select k variables of FILE privately. Costs epsilon.

    \b
    Exit codes:
      0: the release was made.
      1: an unexpected error; or the release was made, so epsilon is spent,
         but not all of it could be written or printed.
      2: an argument, the bounds file or the table's header was refused.
         Nothing is spent.
      3: the search passed --node-limit or --time-limit. Nothing is released,
         and epsilon is spent.
      4: the ledger has no room for this release. Nothing is spent.
      5: the ledger could not be used, or this release does not belong in it.
         Nothing is released; the message says if something may be spent.
      128 + n: ended by signal n (130 by ctrl-c).
    """
    with guarded(), ExitStack() as stack:
        arguments = {"k": k, "intercept": intercept, **asked.arguments()}
        arguments["epsilon"] = number(epsilon, "epsilon")
        check_apart(file, schema, about, out, statement)
        book = ledger_of(ledger, no_ledger, purpose)
        files = Files.reserve(stack, force, about, out, statement)

        from ..api.select import event_of_select, price, select

        if dry_run:
            from ..power_analysis.dry_run_hint import dry_run_hint

            hidden = book is not False and book.declaration.relation == "add-remove"
            tell(
                price(file, schema, **arguments),
                book,
                lambda: event_of_select(file, schema, **arguments),
                dry_run_hint(file, schema, rows_private=hidden, **arguments),
            )
            return
        with telling_of_compilation(quiet), progress_bar(quiet) as progress:
            release = select(file, schema, progress=progress, ledger=book, **arguments)
        files.publish(release, quiet)


def tell(
    price: Price,
    ledger: Ledger | Literal[False],
    event: Callable[[], Event],
    hint: Iterable[str] = (),
) -> None:
    """Print what something would cost, whether there is room for it, and what to expect of it."""
    typer.echo("\n".join(map(escape_for_terminal, [*str(price).splitlines(), *hint])))
    show_room(ledger, event)
    typer.echo("Nothing was read but the header, and nothing is spent.")


@dataclass(frozen=True)
class Files:
    """Where a release goes: whatever prevents that is found before anything is spent."""

    release: Output | None
    statement: Output | None
    model: Output | None = None
    about: About | None = None

    @classmethod
    def reserve(
        cls,
        stack: ExitStack,
        force: bool,
        about: Path | None,
        out: Path | None,
        statement: Path | None,
        model: Path | None = None,
    ) -> Files:
        """Of the names that were given."""
        from ..release.about import About

        told = None if about is None else About.load(about)
        first, second, third = (reserve(path, force, stack) for path in (out, statement, model))
        return cls(first, second, third, told)

    def publish(self, release: Release, quiet: bool) -> None:
        """Write and print a release that has been paid for: files come first, and what cannot be
        written is printed.
        """
        with signals.held():
            unwritten = write(self.release, release.to_json() + "\n")
            lost = [*unwritten, *self._state(release)]
            if release.model is not None:
                lost += write(self.model, release.model.to_json() + "\n")
        unprinted = show(release, self, quiet)
        if unprinted and (self.release is None or unwritten):
            # The last resort: public, and ASCII, for a terminal. If this fails too, the exit code
            # says so.
            trouble(sys.stderr, facts_to_json(release.to_dict(), ascii_only=True) + "\n")
        if unprinted:
            lost.insert(0, f"standard output: {unprinted}")
        if lost:
            fail(f"the release was made, but not all of it was written: {'; '.join(lost)}", 1)

    def _state(self, release: Release) -> list[str]:
        """Write the statement if asked to; returns what went wrong."""
        if self.statement is None:
            return []
        from ..release.statement.write import form_of_path

        form = form_of_path(self.statement.path)
        return write(self.statement, release.statement(self.about, form=form))


def reserve(path: Path | None, force: bool, stack: ExitStack) -> Output | None:
    """A file that is to be written, if there is one; whatever prevents it is found at once."""
    from .outputs import Output

    return None if path is None else stack.enter_context(Output(path, replace=force))


def write(output: Output | None, text: str) -> list[str]:
    """Write if asked to; returns what went wrong."""
    if output is None:
        return []
    try:
        output.draft.write_text(text, encoding="utf-8")
        output.publish()
    except OSError as error:
        return [f"{output.path}: {error.strerror}"]
    return []


def show(release: Release, files: Files, quiet: bool) -> str | None:
    """Print the release; returns what went wrong."""
    if release.guarantee.seeded:
        trouble(sys.stderr, red("NOT PRIVATE: this draw was made with a fixed seed.\n"))
    if quiet:
        return trouble(sys.stdout, "\n".join(map(escape_for_terminal, release.features)) + "\n")
    lines = [
        str(release),
        *([escape_for_terminal(f"Release: {files.release.path}")] if files.release else []),
        escape_for_terminal(
            f"Privacy statement: {files.statement.path if files.statement else 'below'}"
        ),
        *([] if files.statement else ["", release.statement(files.about).rstrip("\n")]),
    ]
    return trouble(sys.stdout, "\n".join(lines) + "\n")


#: Seconds after which a search is said to be a hard one.
_LONG = 10.0
_SEARCH = "Selecting"
_HARD = " (a hard search: docs/engine.md says what can be decided before the next one)"


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[float], None] | None]:
    """A bar on the terminal. It shows percentages of what `passes` lets be told, and time."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        Task,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text

    class Stage(TextColumn):
        """What is being done, and of a long search that it is one: nothing but time is told."""

        def render(self, task: Task) -> Text:
            late = task.description == _SEARCH and (task.elapsed or 0.0) > _LONG
            return Text(f"{task.description}{_HARD if late else ''}")

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (
        Stage("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=console, transient=True)
    try:
        bar.start()
        reading = bar.add_task("Reading", total=None)  # until something may be told

        def report(fraction: float) -> None:
            with suppress(OSError):
                bar.update(reading, total=1.0, completed=fraction)
                if fraction >= 1 and len(bar.tasks) == 1:
                    bar.add_task(_SEARCH, total=None)

        yield report
    finally:
        # A terminal that is gone by then must not take the release with it.
        with suppress(OSError):
            bar.stop()
