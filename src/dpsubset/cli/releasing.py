"""What the commands that make a release share: output files, the ledger, dry runs and printing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..base.errors import ArgumentError
from ..base.text import escape_for_terminal
from ..release.files import FileDigests, facts_to_json, sha256_of_bytes, sha256_of_file
from . import signals
from .options import (
    AboutFile,
    Force,
    LedgerAddress,
    NoLedger,
    Purpose,
    check_distinct,
    input_paths,
    table_of,
)
from .outputs import Output, reserve_output, write_output
from .terminal import fail, print_assumptions, print_line, release_progress_bar, try_print, warn

if TYPE_CHECKING:
    from ..api.select import Price
    from ..ledger.event import Event
    from ..ledger.ledger import Ledger
    from ..release.about import About
    from ..release.release import Release

NOTHING_SPENT = "Only the header was read, and nothing is spent."


@dataclass(frozen=True)
class ReleaseOptions:
    """Where a release is written, which ledger pays for it, and what is printed."""

    out: Annotated[Path | None, typer.Option(help="Write the release here, as JSON.")] = None
    statement: Annotated[
        Path | None,
        typer.Option(
            help="Write the privacy statement here. The extension sets the format: .html, .json, "
            ".yaml (a draft for OpenDP's deployments registry), any other Markdown. By default the "
            "statement is printed."
        ),
    ] = None
    about: AboutFile = None
    force: Force = False
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only print the cost and the columns to read. Spends nothing."
        ),
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print only the selected names, one a line.")
    ] = False
    ledger: LedgerAddress = None
    no_ledger: NoLedger = False
    purpose: Purpose = None

    def check_power(self, power: bool) -> None:
        """Refuse a power analysis without a dry run."""
        if power and not self.dry_run:
            raise ArgumentError("--power goes with --dry-run; 'dpsubset power' needs no table")

    @contextmanager
    def prepare(
        self,
        files: list[Path] | None,
        schema: Path,
        *more: Path | None,
        model: Path | None = None,
        moments: Path | None = None,
    ) -> Iterator[Making]:
        """Find whatever prevents the files from being written, before anything is spent."""
        check_distinct(
            *input_paths(files),
            moments,
            schema,
            *more,
            self.about,
            self.out,
            model,
            self.statement,
        )
        if self.statement is not None:
            from ..release.statement.write import form_of_path

            form_of_path(self.statement)
        ledger = open_ledger(self.ledger, self.no_ledger, self.purpose)
        with ExitStack() as stack:
            from ..release.about import About

            about = None if self.about is None else About.load(self.about)
            out, statement, model_file = (
                reserve_output(path, self.force, stack)
                for path in (self.out, self.statement, model)
            )
            digest = sha256_of_file(schema)
            yield Making(
                table_of(files, moments),
                schema,
                digest,
                self,
                ledger,
                about,
                out,
                statement,
                model_file,
            )


@dataclass(frozen=True)
class Making:
    """A release that is about to be made, with its ledger and its reserved files."""

    table: Any
    schema: Path
    schema_sha256: str | None
    options: ReleaseOptions
    ledger: Ledger | Literal[False]
    about: About | None
    out: Output | None
    statement: Output | None
    model: Output | None

    @property
    def of_moments(self) -> bool:
        """Whether the release is made from moments, which were read as a whole."""
        return not isinstance(self.table, (Path, list))

    def make(
        self,
        arguments: dict[str, Any],
        *,
        price: Callable[..., Price],
        event: Callable[..., Event],
        release: Callable[..., Release],
        hint: Callable[..., Iterable[str]] | None = None,
        shows_progress: bool = True,
    ) -> None:
        """Make, write and print the release; in a dry run, print its price alone."""
        if self.options.dry_run:
            lines = str(price(self.table, self.schema, **arguments)).splitlines()
            if hint is not None:
                hidden = (
                    self.ledger is not False and self.ledger.declaration.relation == "add-remove"
                )
                lines += hint(self.table, self.schema, rows_private=hidden, **arguments)
            typer.echo("\n".join(map(escape_for_terminal, lines)))
            print_balance(self.ledger, lambda: event(self.table, self.schema, **arguments))
            typer.echo("Nothing is spent." if self.of_moments else NOTHING_SPENT)
            return
        quiet = self.options.quiet
        bar = release_progress_bar(quiet) if shows_progress else nullcontext()
        with bar as progress:
            if shows_progress:
                arguments = {**arguments, "progress": progress}
            made = release(self.table, self.schema, ledger=self.ledger, **arguments)
        self._publish(made)

    def _publish(self, release: Release) -> None:
        """Write and print a release whose budget is spent.

        Files are written first, and what cannot be written is printed.
        """
        with signals.deferred():
            content = release.to_json() + "\n"
            unwritten = write_output(self.out, content)
            written = self.out is not None and not unwritten
            digest = sha256_of_bytes(content.encode()) if written else None
            files = FileDigests(digest, self.schema_sha256)
            problems = [*unwritten, *self._write_statement(release, files)]
            if release.model is not None:
                problems += write_output(self.model, release.model.to_json() + "\n")
        unprinted = self._print(release, files)
        if unprinted and (self.out is None or unwritten):
            # The last resort: public, and ASCII, for a terminal. If this fails too, only the
            # exit code reports it.
            try_print(sys.stderr, facts_to_json(release.to_dict(), ascii_only=True) + "\n")
        if unprinted:
            problems.insert(0, f"standard output: {unprinted}")
        if problems:
            fail(f"the release was made, but not all of it was written: {'; '.join(problems)}", 1)

    def _write_statement(self, release: Release, files: FileDigests) -> list[str]:
        if self.statement is None:
            return []
        from ..release.statement.write import form_of_path, write_statement

        form = form_of_path(self.statement.path)
        return write_output(self.statement, write_statement(release, self.about, form, files))

    def _print(self, release: Release, files: FileDigests) -> str | None:
        """Print the release; return why that failed, if it did."""
        if release.guarantee.seeded:
            warn("NOT PRIVATE: this draw was made with a fixed seed.")
        text = "".join(f"{escape_for_terminal(name)}\n" for name in release.features)
        if not self.options.quiet:
            place = None if self.statement is None else self.statement.path
            out = None if self.out is None else self.out.path
            text = summary(release, self.about, files, out, place)
        return try_print(sys.stdout, text)


def summary(
    release: Release, about: About | None, files: FileDigests, out: Path | None, place: Path | None
) -> str:
    """Return what is printed of a release: a summary, and its statement if no file has it."""
    from ..release.statement.write import write_statement

    lines = [str(release)]
    lines += [] if out is None else [escape_for_terminal(f"Release: {out}")]
    lines.append(escape_for_terminal(f"Privacy statement: {place or 'below'}"))
    lines += [] if place else ["", write_statement(release, about, "markdown", files).rstrip("\n")]
    return "\n".join(lines) + "\n"


def open_ledger(
    address: str | None, no_ledger: bool, purpose: str | None
) -> Ledger | Literal[False]:
    """Open the ledger that the options or DPSUBSET_LEDGER name; False for none."""
    if no_ledger:
        if address is not None or purpose is not None:
            raise ArgumentError("give --no-ledger alone, or --ledger and --purpose")
        return False
    address = address or os.environ.get("DPSUBSET_LEDGER") or None
    if address is None:
        if purpose is not None:
            raise ArgumentError("--purpose needs a ledger: give --ledger or set DPSUBSET_LEDGER")
        return False
    from ..ledger.ledger import Ledger

    return Ledger(address, purpose=purpose)


def print_balance(ledger: Ledger | Literal[False], event: Callable[[], Event]) -> None:
    """Print what the ledger would show after an event; raise `BudgetExceeded` beyond its limit."""
    if ledger:
        before, after = ledger.check([event()])
        limit = before.limit
        print_line(
            f"Ledger: {limit.shown(after.current)} of {limit} after it, now "
            f"{limit.shown(before.current)}; left after it: {after.left}"
        )
        print_assumptions(after.current)
