"""The command ``dpsubset select``: one private release, its files and its statement."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..text import visible
from . import signals
from .shared import (
    LedgerOption,
    NoLedgerOption,
    PurposeOption,
    check_apart,
    fail,
    guarded,
    ledger_of,
    number,
    red,
    show_room,
    trouble,
)
from .warmup import telling_of_compilation

if TYPE_CHECKING:
    from ..release.release import Release
    from .outputs import Output


def select_command(
    file: Annotated[
        Path,
        typer.Argument(help="The sensitive table: Parquet, CSV or TSV.", show_default=False),
    ],
    schema: Annotated[
        Path,
        typer.Option(
            help="Bounds file, YAML or JSON; 'dpsubset schema init' writes one to fill in.",
            show_default=False,
        ),
    ],
    k: Annotated[int, typer.Option("--k", help="Variables to select.", show_default=False)],
    epsilon: Annotated[
        str,
        typer.Option(
            help="Privacy budget of this release, taken exactly as written.",
            metavar="NUMBER",
            show_default=False,
        ),
    ],
    delta: Annotated[
        str,
        typer.Option(help="For mechanisms whose guarantee has one; 0 otherwise.", metavar="NUMBER"),
    ] = "0",
    mechanism: Annotated[
        str, typer.Option(help="How to select; 'dpsubset mechanisms' lists them.")
    ] = "permute-and-flip",
    option: Annotated[
        list[str] | None,
        typer.Option(help="An option of the mechanism; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    allow_unproven: Annotated[
        bool,
        typer.Option("--allow-unproven", help="Run a mechanism that has NO PRIVACY GUARANTEE."),
    ] = False,
    loss: Annotated[
        str | None,
        typer.Option(
            help="least-squares, logistic, hinge or huber. If not given: least-squares, also for "
            "labels, which count as -1 and 1."
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Of the huber loss, in half-ranges of the response; 0.25 if not given."),
    ] = None,
    constraint: Annotated[
        str, typer.Option(help="Set of allowed coefficients: box, ball or l1.")
    ] = "box",
    reach: Annotated[
        float | None,
        typer.Option(
            help="Largest prediction, in half-ranges of the response. If not given: 1.25 in a "
            "private scale (1 if that is a median); in the declared one 1, for labels 1.25, and 2 "
            "under logistic and hinge."
        ),
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option(help="Radius of the constraint, in scaled units; instead of --reach."),
    ] = None,
    ridge: Annotated[
        float, typer.Option(help="Weight of the squared coefficients, in scaled units.")
    ] = 0.0,
    intercept: Annotated[
        bool,
        typer.Option(
            "--intercept/--no-intercept",
            help="Whether every model has one, beside the k variables.",
        ),
    ] = True,
    neighbours: Annotated[
        str,
        typer.Option(
            "--neighbours",
            "--neighbors",
            help="replace-one (the number of rows is public) or add-remove (private).",
        ),
    ] = "replace-one",
    sensitivity: Annotated[
        str, typer.Option(help="sharp, or the name of a published, looser rule.")
    ] = "sharp",
    response_scale: Annotated[
        str | None,
        typer.Option(
            help="What the response is scaled by: private (quantiles, released first with a part "
            "of epsilon) or declared (its bounds). If not given: private, for labels declared.",
        ),
    ] = None,
    always_include: Annotated[
        list[str] | None,
        typer.Option(help="A variable that is part of every set; may be repeated.", metavar="NAME"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="For tests only: a seeded release is NOT PRIVATE."),
    ] = None,
    node_limit: Annotated[
        int | None,
        typer.Option(help="Most splits of the search; passing it costs epsilon, releases nothing."),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Most seconds of the search; passing it costs epsilon likewise."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the release here, as JSON."),
    ] = None,
    statement: Annotated[
        Path | None,
        typer.Option(help="Write the privacy statement here, as Markdown; else it is printed."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that --out and --statement name.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only say what it would cost and what would be read: spends nothing."
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print the selected names only, one a line.")
    ] = False,
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
        budget, chance = number(epsilon, "epsilon"), number(delta, "delta")
        check_apart(file, schema, out, statement)
        book = ledger_of(ledger, no_ledger, purpose)
        release_file = reserve(out, force, stack)
        statement_file = reserve(statement, force, stack)

        from ..mechanisms import option as parse
        from ..selection import event_of_select, price, select

        options = dict(map(parse, option or ()))
        # Words are checked where the plan is made, not by their types.
        asked: dict[str, Any] = {
            "k": k,
            "epsilon": budget,
            "delta": chance,
            "mechanism": mechanism,
            "options": options,
            "allow_unproven": allow_unproven,
            "loss": loss,
            "threshold": threshold,
            "constraint": constraint,
            "reach": reach,
            "radius": radius,
            "ridge": ridge,
            "intercept": intercept,
            "neighbours": neighbours,
            "sensitivity": sensitivity,
            "response_scale": response_scale,
            "always_include": always_include or (),
            "seed": seed,
            "node_limit": node_limit,
            "time_limit": time_limit,
        }
        if dry_run:
            typer.echo("\n".join(map(visible, str(price(file, schema, **asked)).splitlines())))
            show_room(book, lambda: event_of_select(file, schema, **asked))
            typer.echo("Nothing was read but the header, and nothing is spent.")
            return
        with telling_of_compilation(quiet), progress_bar(quiet) as progress:
            release = select(file, schema, progress=progress, ledger=book, **asked)
        # From here on the budget is spent: files come first, and what cannot be written is printed.
        with signals.held():
            unwritten = write(release_file, release.to_json() + "\n")
            lost = [*unwritten, *write(statement_file, release.statement())]
        unprinted = show(release, release_file, statement_file, quiet)
        if unprinted and (release_file is None or unwritten):
            # The last resort: public, and ASCII, for a terminal. If this fails too, the exit code
            # says so.
            trouble(sys.stderr, json.dumps(release.to_dict(), indent=2) + "\n")
        if unprinted:
            lost.insert(0, f"standard output: {unprinted}")
        if lost:
            fail(f"the release was made, but not all of it was written: {'; '.join(lost)}", 1)


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


def show(release: Release, out: Output | None, statement: Output | None, quiet: bool) -> str | None:
    """Print the release; returns what went wrong."""
    if release.guarantee.seeded:
        trouble(sys.stderr, red("NOT PRIVATE: this draw was made with a fixed seed.\n"))
    if quiet:
        return trouble(sys.stdout, "\n".join(map(visible, release.features)) + "\n")
    lines = [
        str(release),
        *([visible(f"Release: {out.path}")] if out else []),
        visible(f"Privacy statement: {statement.path if statement else 'below'}"),
        *([] if statement else ["", release.statement().rstrip("\n")]),
    ]
    return trouble(sys.stdout, "\n".join(lines) + "\n")


#: Seconds after which a search is said to be a hard one.
_LONG = 10.0
_HARD = " (a hard search: docs/engine.md says what can be decided before the next one)"


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[float], None] | None]:
    """A bar on the terminal. It shows percentages only: the number of rows may be private."""
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
            late = task.total is None and (task.elapsed or 0.0) > _LONG
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
        reading = bar.add_task("Reading", total=1.0)

        def report(fraction: float) -> None:
            with suppress(OSError):
                bar.update(reading, completed=fraction)
                if fraction >= 1 and len(bar.tasks) == 1:
                    bar.add_task("Selecting", total=None)

        yield report
    finally:
        # A terminal that is gone by then must not take the release with it.
        with suppress(OSError):
            bar.stop()
