"""The command ``dpsubset audit``: try to contradict the guarantees, on simulated data."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.errors import ArgumentError
from .options import parse_number
from .terminal import handle_errors, progress_bar

if TYPE_CHECKING:
    from ..audit.cases import Recipe
    from ..audit.findings import Report
    from ..mechanisms import Mechanism


@handle_errors()
def audit_command(
    mechanism: Annotated[
        str | None,
        typer.Argument(
            help="A mechanism of 'dpsubset mechanisms', or another step of a release: scale, "
            "class-share, noisy-moments, means, bounds, readable or private-search.",
            metavar="MECHANISM",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Audit every mechanism and step, and print a table.")
    ] = False,
    epsilon: Annotated[
        str, typer.Option(help="Privacy budget of the mechanism.", metavar="NUMBER")
    ] = "1",
    delta: Annotated[
        str | None,
        typer.Option(
            help="Delta of the mechanism; 0.001 by default if it needs one.", metavar="NUMBER"
        ),
    ] = None,
    loss: Annotated[
        list[str] | None,
        typer.Option(
            help="least-squares, logistic, hinge or huber; may be repeated. By default every loss "
            "that the mechanism supports."
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="An option of the mechanism; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            help="Draws for each loss and neighbour relation. By default 20000, for at most 2 "
            "seconds."
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a report here, Markdown or .json.")
    ] = None,
) -> None:
    """Try to contradict a guarantee on simulated data.

    Compares output distributions on neighbouring tables, for every loss: exactly where there is a
    closed form, and by draws. Reports how much of epsilon the worst pair of neighbours uses. No
    table is read. Exit code 1 if a guarantee is contradicted.
    """
    if (mechanism is None) != everything:
        raise ArgumentError("give the name of a mechanism, or --all")
    if everything and (option or delta is not None):
        raise ArgumentError("--option and --delta need one mechanism: leave them out with --all")
    with ExitStack() as stack:
        from .outputs import Output

        file = None if report is None else stack.enter_context(Output(report, replace=True))
        from ..api.request import exact_delta, exact_epsilon
        from ..audit.cases import audit
        from ..audit.report import CAVEAT, lines, markdown, to_json
        from ..audit.steps import STEPS_OF_RELEASES, audit_step

        budget = exact_epsilon(parse_number(epsilon, "epsilon"))
        chance = None if delta is None else exact_delta(parse_number(delta, "delta"))
        # A given number of draws is made however long it takes.
        limit: dict[str, Any] = {} if runs is None else {"runs": runs, "seconds": None}
        steps = [*STEPS_OF_RELEASES] if everything else [mechanism]
        steps = [name for name in steps if name in STEPS_OF_RELEASES]
        if steps and not everything and (option or loss or delta is not None):
            raise ArgumentError(f"{mechanism} has no options, losses or delta in an audit")
        chosen = _chosen(mechanism, option) if everything or not steps else []
        parts = len(chosen) + len(steps)
        reports: list[Report] = []
        left_out: dict[str, str] = {}
        with progress_bar("Auditing") as progress:
            for i, (one, recipe) in enumerate(chosen):
                limit["progress"] = _part(progress, i, parts)
                try:
                    reports.append(
                        audit(one, budget, chance, loss=loss or None, recipe=recipe, **limit)
                    )
                except ArgumentError as error:
                    if not everything:
                        raise
                    left_out[one.name] = f"NOT AUDITED: {error}"
            draws = {} if runs is None else {"runs": runs}
            reports += [
                audit_step(name, budget, **draws, progress=_part(progress, len(chosen) + i, parts))
                for i, name in enumerate(steps)
            ]
        for found in reports:
            typer.echo("\n".join(lines(found)))
        if everything:
            _print_table(reports, left_out)
        typer.echo(CAVEAT)
        if file is not None:
            written = to_json if file.path.suffix == ".json" else markdown
            text = written(reports)
            file.draft.write_text(text, encoding="utf-8")
            file.publish()
            typer.echo(f"Report: {file.path}")
    if any(found.contradicted for found in reports):
        raise typer.Exit(1)


def _chosen(name: str | None, options: list[str] | None) -> list[tuple[Mechanism, Recipe | None]]:
    from ..audit.cases import variants
    from ..mechanisms import MECHANISMS, mechanism
    from ..mechanisms import option as parse

    if name is None:
        return [*chain.from_iterable(map(variants, MECHANISMS))]
    if options:
        return [(mechanism(name, dict(map(parse, options))), None)]
    return [*variants(name)[:1]]


def _print_table(reports: list[Report], left_out: dict[str, str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from ..audit.report import row
    from ..mechanisms import MECHANISMS

    table = Table(title="Audits on simulated data", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("mechanism", min_width=max(map(len, MECHANISMS)), overflow="fold")
    table.add_column("loss", no_wrap=True)
    table.add_column("log ratio")
    table.add_column("used", max_width=9)
    table.add_column("by draws")
    table.add_column("verdict")
    for found in reports:
        # Name and verdict are those of all losses: only the first row of a mechanism has them.
        name, verdict = found.name, found.short_verdict + (" (assumed)" if found.assumes else "")
        for loss in found.losses:
            table.add_row(name, loss or "", *row(found, loss), verdict)
            name = verdict = ""
    for name, reason in left_out.items():
        table.add_row(name, "", "", "", "", reason)
    Console().print(table)


def _part(
    progress: Callable[[float], None] | None, i: int, count: int
) -> Callable[[float], None] | None:
    return None if progress is None else lambda share: progress((i + share) / count)
