"""The command line: ``dpsubset select``, ``schema`` and ``audit``, thin over the library.

What is printed is public: the release and its guarantee, or an error that quotes no cell. Modules
that are slow to import are imported by the command that needs them, so that ``--help`` is quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TextIO

import typer

from . import __version__, signals
from .cli_audit import audit_command
from .errors import ArgumentError, DpsubsetError

if TYPE_CHECKING:
    from .outputs import Output
    from .release import Release
    from .schema import Schema

# Plain tracebacks would not do either: the text of an unforeseen exception may quote a cell.
app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
schema_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(schema_app, name="schema", help="Write or check a schema: the public bounds file.")


def main() -> None:
    """Entry point of the ``dpsubset`` command."""
    _occupy_streams()
    code = 0
    try:
        with _guarded():
            signals.catch()
            app()
    except typer.Exit as end:
        code = end.exit_code
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    # Nothing is left for the interpreter to flush, whose own way to fail is a traceback.
    for stream in (sys.stdout, sys.stderr):
        if _trouble(stream, "") and stream is sys.stdout:
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


@app.command("select")
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
            help="least-squares, logistic, hinge or huber. If not given: least-squares for a "
            "response with bounds, a loss of labels for one with labels."
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
            help="Largest prediction, in half-ranges of the response; 1 if not given, for losses "
            "of labels 2."
        ),
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option(help="Radius of the constraint, in scaled units; instead of --reach."),
    ] = None,
    ridge: Annotated[
        float, typer.Option(help="Weight of the squared coefficients, in scaled units.")
    ] = 0.0,
    neighbours: Annotated[
        str,
        typer.Option(help="replace-one (the number of rows is public) or add-remove (private)."),
    ] = "replace-one",
    sensitivity: Annotated[
        str, typer.Option(help="sharp, or the name of a published, looser rule.")
    ] = "sharp",
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
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print the selected names only, one a line.")
    ] = False,
) -> None:
    """Select k variables of FILE privately. Costs epsilon."""
    with _guarded(), ExitStack() as stack:
        budget, chance = _number(epsilon, "epsilon"), _number(delta, "delta")
        _check_apart(file, schema, out, statement)
        release_file = _reserve(out, stack)
        statement_file = _reserve(statement, stack)

        from .mechanisms import option as parse
        from .selection import select

        options = dict(map(parse, option or ()))
        with _progress_bar(quiet) as progress:
            release = select(
                file,
                schema,
                k=k,
                epsilon=budget,
                delta=chance,
                mechanism=mechanism,
                options=options,
                allow_unproven=allow_unproven,
                loss=loss,  # type: ignore[arg-type]
                threshold=threshold,
                constraint=constraint,  # type: ignore[arg-type]
                reach=reach,
                radius=radius,
                ridge=ridge,
                neighbours=neighbours,  # type: ignore[arg-type]
                sensitivity=sensitivity,  # type: ignore[arg-type]
                always_include=always_include or (),
                seed=seed,
                node_limit=node_limit,
                time_limit=time_limit,
                progress=progress,
            )
        # From here on the budget is spent: files come first, and what cannot be written is printed.
        written = release.to_json() + "\n"
        with signals.held():
            unwritten = _write(release_file, written)
            lost = [*unwritten, *_write(statement_file, release.statement())]
        unprinted = _show(release, release_file, statement_file, quiet)
        if unprinted and (release_file is None or unwritten):
            # The last resort; it is public. If this fails too, the exit code says so.
            _trouble(sys.stderr, written)
        if unprinted:
            lost.insert(0, f"standard output: {unprinted}")
        if lost:
            _fail(f"the release was made, but not all of it was written: {'; '.join(lost)}", 1)


@app.command("mechanisms")
def mechanisms_command() -> None:
    """List the selection mechanisms: what each promises, and its options."""
    with _guarded():
        from dataclasses import fields

        from .mechanisms import MECHANISMS

        for name, cls in MECHANISMS.items():
            options = ", ".join(f"{field.name}={field.default}" for field in fields(cls))
            typer.echo(f"{name}: {cls.promises}. Use it when {cls.use_when}.")
            if options:
                typer.echo(f"    options: {options}")


@schema_app.command("init")
def schema_init(
    file: Annotated[Path, typer.Argument(help="The table; only its header is read.")],
    out: Annotated[Path, typer.Option(help="Where to write; .json gives JSON.")] = Path(
        "schema.yaml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a bounds file with the column names of FILE and empty bounds, to be filled in."""
    with _guarded():
        if out.exists() and not force:
            raise ArgumentError(f"{out} exists already: choose another name or pass --force")
        _check_apart(file, out)

        from .outputs import Output
        from .schema import template
        from .sources.files import header

        names = header(file)
        with Output(out) as output:
            template(names, output.draft)
            output.publish()
        typer.echo(
            f"Wrote {out}: {len(names)} columns, no bounds yet. Fill in lo and hi of every column "
            "from public knowledge, never from the table, and name the response (with two classes "
            "it has labels in place of bounds)."
        )


@schema_app.command("check")
def schema_check(
    schema: Annotated[Path, typer.Argument(help="The bounds file.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="A table to compare it with; only its header is read."),
    ] = None,
) -> None:
    """Check a bounds file, and that a table has the columns it declares."""
    with _guarded():
        from .schema import Schema

        declared = Schema.read(schema)
        typer.echo(
            f"{schema}: {len(declared.features)} features, response {declared.response.name!r}"
            f"{_labels(declared)}, unit of privacy: {declared.unit}"
        )
        if file is not None:
            from .sources.files import open_file

            open_file(file, declared)
            typer.echo(f"{file}: has every declared column")


def _labels(schema: Schema) -> str:
    from .labels import shown

    labels = schema.response.labels
    return "" if labels is None else f" ({shown(labels)})"


def _number(text: str, what: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ArgumentError(f"{what} must be a number, such as 0.5 or 1e-6") from None


def _check_apart(*paths: Path | None) -> None:
    given = [path.resolve() for path in paths if path is not None]
    if len(set(given)) < len(given):
        raise ArgumentError("the table, the schema and the outputs must be different files")


def _reserve(path: Path | None, stack: ExitStack) -> Output | None:
    from .outputs import Output

    return None if path is None else stack.enter_context(Output(path))


def _write(output: Output | None, text: str) -> list[str]:
    """Write if asked to; returns what went wrong."""
    if output is None:
        return []
    try:
        output.draft.write_text(text, encoding="utf-8")
        output.publish()
    except OSError as error:
        return [f"{output.path}: {error.strerror}"]
    return []


def _show(
    release: Release, out: Output | None, statement: Output | None, quiet: bool
) -> str | None:
    """Print the release; returns what went wrong."""
    guarantee, schema = release.guarantee, release.schema
    if guarantee.seeded:
        _trouble(sys.stderr, _red("NOT PRIVATE: this draw was made with a fixed seed.\n"))
    if quiet:
        return _trouble(sys.stdout, "\n".join(release.features) + "\n")
    from .mechanisms.base import shown_cost

    costs = [f"{shown_cost(cost)} under {relation}" for relation, cost in guarantee.costs.items()]
    selected = f"Selected {len(release.features)} of {len(schema.features)} variables"
    if release.support is None:
        selected = "Released nothing: no set of variables could be named"
    lines = [
        *(["*** NOT PRIVATE: seeded draw, for tests only ***"] if guarantee.seeded else []),
        *([] if guarantee.proven else ["*** NOT PRIVATE: no guarantee ***"]),
        f"{selected} to explain {schema.response.name}:",
        *(f"  {name}" for name in release.features),
        f"Guarantee: {guarantee}; unit of privacy: {schema.unit}",
        *([f"Cost: {', '.join(costs)}"] if costs else []),
        *([f"Release: {out.path}"] if out else []),
        f"Privacy statement: {statement.path if statement else 'below'}",
        *([] if statement else ["", release.statement().rstrip("\n")]),
    ]
    return _trouble(sys.stdout, "\n".join(lines) + "\n")


def _occupy_streams() -> None:
    """Have 0, 1 and 2 open: an output file must not get the number of a closed stream."""
    with suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)


def _trouble(stream: TextIO | None, text: str) -> str | None:
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


def _red(text: str) -> str:
    return typer.style(text, fg="red")


@contextmanager
def _progress_bar(quiet: bool) -> Iterator[Callable[[float], None] | None]:
    """A bar on the terminal. It shows percentages only: the number of rows may be private."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
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


@contextmanager
def _guarded() -> Iterator[None]:
    """End with one line and an exit code.

    2 for a clear error, 128 and its number for a signal, 1 for the rest.
    """
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except DpsubsetError as error:
        _fail(str(error), 2)
    except signals.Ended as end:
        _fail("interrupted" if end.number == 2 else f"ended by {end}", 128 + end.number)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            # By its number: the text of another library might quote a cell.
            _fail(f"the system refused to read or write: {os.strerror(error.errno)}", 1)
        _fail(
            f"stopped by an unexpected {type(error).__name__}. Its text is withheld, because it "
            "could quote the table. To see it, run dpsubset.select from Python on made-up data",
            1,
        )


def _fail(message: str, code: int) -> NoReturn:
    _trouble(sys.stderr, _red("Error: " + " ".join(message.splitlines())) + "\n")
    raise typer.Exit(code) from None


app.command("audit")(_guarded()(audit_command))
