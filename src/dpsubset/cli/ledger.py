"""The commands ``dpsubset ledger ...``: the budget of a data set."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .select import reserve, write
from .shared import check_apart, fail, guarded, number, say, say_proviso

if TYPE_CHECKING:
    from ..ledger.event import Event
    from ..ledger.replay import History

ledger_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Where = Annotated[
    str,
    typer.Argument(
        help="A file, or postgresql://user@host/database, with #DATA-SET after it if there are "
        "several.",
        metavar="LEDGER",
        show_default=False,
    ),
]
Reason = Annotated[str, typer.Option(help="Why; it stays in the ledger.", show_default=False)]
Name = Annotated[str, typer.Option(help="Who says so; it stays too.", show_default=False)]
Epsilon = Annotated[
    str | None,
    typer.Option(help="The limit, taken exactly as written.", metavar="NUMBER", show_default=False),
]
Delta = Annotated[
    str,
    typer.Option(help="With --epsilon: a limit for both. 0 for a pure one.", metavar="NUMBER"),
]
Rho = Annotated[
    str | None,
    typer.Option(
        help="Instead of --epsilon: a limit of zero-concentrated privacy.",
        metavar="NUMBER",
        show_default=False,
    ),
]
Accounting = Annotated[
    str, typer.Option(help="With --delta: concentrated or basic; docs/ledger.md has both.")
]


@ledger_app.command("create")
def ledger_create(
    ledger: Where,
    data_set: Annotated[str, typer.Option(help="Whose budget it is.", show_default=False)],
    owner: Annotated[str, typer.Option(help="Who answers for the data set.", show_default=False)],
    purpose: Annotated[str, typer.Option(help="What it may be spent on.", show_default=False)],
    epsilon: Epsilon = None,
    delta: Delta = "0",
    rho: Rho = None,
    accounting: Accounting = "concentrated",
    unit: Annotated[str, typer.Option(help="Whom it protects, as the schemas say.")] = "one row",
    rows_per_unit: Annotated[int, typer.Option(help="Likewise.")] = 1,
    neighbours: Annotated[
        str,
        typer.Option(
            "--neighbours",
            "--neighbors",
            help="Under which relation costs are counted: replace-one or add-remove.",
        ),
    ] = "replace-one",
) -> None:
    """Start the ledger of a data set."""
    with guarded():
        from ..ledger.ledger import Ledger

        words: Any = {"neighbours": neighbours, "accounting": accounting}
        made = Ledger.create(
            ledger,
            data_set=data_set,
            owner=owner,
            purpose=purpose,
            unit=unit,
            rows_per_unit=rows_per_unit,
            **_limit(epsilon, delta, rho),
            **words,
        )
        say(
            f"Made a ledger of {data_set}: {made.standing().limit} for {unit}"
            f"{f' with up to {rows_per_unit} rows' if rows_per_unit > 1 else ''}, {neighbours}"
        )
        say("Keep 'dpsubset ledger export' somewhere else, now and then: it tells older copies.")


@ledger_app.command("show")
def ledger_show(
    ledger: Where,
    entries: Annotated[int, typer.Option(help="How many of the last entries to list.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
) -> None:
    """Show limit, sums and entries. Checks the chain on the way."""
    with guarded():
        from ..ledger.ledger import Ledger

        history = Ledger(ledger).history()
        if as_json:
            say(json.dumps(_facts(history)))
            return
        for line in _shown(history, entries):
            say(line)


@ledger_app.command("cost")
def ledger_cost(
    ledger: Where,
    file: Annotated[
        Path | None,
        typer.Argument(help="The table; its header alone is read.", show_default=False),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Bounds file.", show_default=False)] = None,
    k: Annotated[
        int | None, typer.Option("--k", help="Variables to select.", show_default=False)
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="Of one release.", metavar="NUMBER", show_default=False)
    ] = None,
    delta: Annotated[str, typer.Option(help="Of one release.", metavar="NUMBER")] = "0",
    mechanism: Annotated[str, typer.Option(help="How to select.")] = "permute-and-flip",
    option: Annotated[
        list[str] | None,
        typer.Option(help="An option of the mechanism; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    neighbours: Annotated[
        str, typer.Option("--neighbours", "--neighbors", help="replace-one or add-remove.")
    ] = "replace-one",
    model: Annotated[
        bool, typer.Option("--model", help="Of 'dpsubset fit' rather than 'select'.")
    ] = False,
    candidates: Annotated[
        int, typer.Option(help="Of a grid search: how many settings it tries.")
    ] = 0,
    folds: Annotated[int, typer.Option(help="Of a cross-validation: how many folds.")] = 0,
    refit: Annotated[
        bool, typer.Option("--refit/--no-refit", help="Whether a grid search fits once more.")
    ] = True,
    search: Annotated[
        str | None,
        typer.Option(
            help="Instead of all these: a Pipeline or GridSearchCV in a Python file, which is run; "
            "its private steps have a schema.",
            metavar="FILE.py:NAME",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Say what releases would cost, and whether there is room. Spends nothing.

    One release by default; with --candidates and --folds, all fits of a grid search; with --folds
    alone, those of a cross-validation. Ends with 4 if there is no room.
    """
    with guarded():
        from ..base.errors import ArgumentError
        from ..ledger.ledger import Ledger
        from ..mechanisms import option as parse

        if search is not None:
            if (file, schema, k, epsilon) != (None,) * 4:
                raise ArgumentError("--search says all: leave table, schema, k and epsilon out")
            events = _events_in(search)
        else:
            if file is None or schema is None or k is None or epsilon is None:
                raise ArgumentError("a table, --schema, --k and --epsilon are needed, or --search")
            if candidates < 0 or folds < 0 or (candidates and folds < 2):
                raise ArgumentError("a grid search has candidates and at least 2 folds")
            fits = candidates * folds + refit if candidates else max(folds, 1)
            asked: dict[str, Any] = {
                "k": k,
                "epsilon": number(epsilon, "epsilon"),
                "delta": number(delta, "delta"),
                "mechanism": mechanism,
                "options": dict(map(parse, option or ())),
                "neighbours": neighbours,
            }
            events = [_event(model, file, schema, asked)] * fits
        before, after = Ledger(ledger).check(events)
        limit, count = before.limit, len(events)
        each = f"{count} releases" if count > 1 else "This release"
        say(f"{each}: {limit.shown(after.current)} spent after, {limit.shown(before.current)} now")
        say_proviso(after.current)
        read = "Nothing was read but the header, nothing is spent."
        say(f"Limit: {limit}. There is room. {read if search is None else 'Nothing is spent.'}")


def _event(model: bool, file: Path, schema: Path, asked: dict[str, Any]) -> Event:
    from ..api.fit import event_of_fit
    from ..api.select import event_of_select

    return (event_of_fit if model else event_of_select)(file, schema, **asked)


def _events_in(search: str) -> list[Event]:
    """Releases of a fit of an estimator that stands in a Python file."""
    import runpy

    from ..base.errors import ArgumentError
    from ..sklearn.budget import events_of

    path, _, name = search.rpartition(":")
    if not Path(path).is_file():
        raise ArgumentError("--search takes FILE.py:NAME, and there is no such file")
    found = runpy.run_path(path, run_name="dpsubset_search").get(name)
    if found is None:
        raise ArgumentError(f"{path} has nothing called {name!r}")
    return events_of(found)


@ledger_app.command("verify")
def ledger_verify(
    ledger: Where,
    head: Annotated[
        list[Path] | None,
        typer.Option(help="A file of 'dpsubset ledger export'; may be repeated."),
    ] = None,
) -> None:
    """Check every line: hashes, order, times, states, sums; and that it goes on from exports.

    Ends with 5 if anything does not hold.
    """
    with guarded():
        from ..ledger.ledger import Ledger
        from ..ledger.reader import read_head

        history = Ledger(ledger).verify([read_head(path) for path in head or ()])
        say(
            f"{history.sequence} lines, {len(history.entries)} entries: all as they were written"
            f"{f', on from {len(head)} exported' if head else ''}"
        )
        say_proviso(history.standing.lifetime)
        if not head:
            say("Without an export (--head) an older copy of the whole ledger cannot be told.")


@ledger_app.command("void")
def ledger_void(
    ledger: Where,
    entry: Annotated[str, typer.Argument(help="Its id.", show_default=False)],
    reason: Reason,
    name: Name,
) -> None:
    """Take back a debit for which no value was read. All others stay, whatever became of them."""
    with guarded():
        from ..ledger.ledger import Ledger

        book = Ledger(ledger)
        book.void(entry, reason=reason, name=name)
        standing = book.standing()
        say(f"Void: {entry}. Spent: {standing.limit.shown(standing.current)} of {standing.limit}")
        say_proviso(standing.current)


@ledger_app.command("refresh")
def ledger_refresh(ledger: Where, reason: Reason, name: Name) -> None:
    """Start from nothing, since the rows are new ones. Sums of the whole life go on."""
    with guarded():
        from ..ledger.ledger import Ledger

        book = Ledger(ledger)
        book.refresh(reason=reason, name=name)
        standing = book.standing()
        say(f"Spent: nothing of {standing.limit}; ever: {standing.limit.shown(standing.lifetime)}")
        say_proviso(standing.lifetime)


@ledger_app.command("limit")
def ledger_limit(
    ledger: Where,
    reason: Reason,
    name: Name,
    epsilon: Epsilon = None,
    delta: Delta = "0",
    rho: Rho = None,
    accounting: Annotated[
        str | None,
        typer.Option(help="With --delta: as it is, concentrated or basic.", show_default=False),
    ] = None,
) -> None:
    """Set another limit of the same kind, not below what is spent."""
    with guarded():
        from ..ledger.ledger import Ledger

        book, words = Ledger(ledger), {"accounting": accounting}
        limit: Any = {**_limit(epsilon, delta, rho), **words}
        book.change_limit(reason=reason, name=name, **limit)
        standing = book.standing()
        say(f"Spent: {standing.limit.shown(standing.current)} of {standing.limit}")
        say_proviso(standing.current)


@ledger_app.command("export")
def ledger_export(
    ledger: Where,
    out: Annotated[
        Path | None, typer.Option(help="Write it here; else it is printed.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Export the head: number and hash of the last line, and the sums. Keep it elsewhere."""
    with guarded(), ExitStack() as stack:
        check_apart(out)
        output = reserve(out, force, stack)

        from ..ledger.ledger import Ledger

        text = json.dumps(Ledger(ledger).head(), indent=2)
        if output is None:
            typer.echo(text)
        elif problems := write(output, text + "\n"):
            fail("; ".join(problems), 1)


def _limit(epsilon: str | None, delta: str, rho: str | None) -> dict[str, Any]:
    return {
        "epsilon": None if epsilon is None else number(epsilon, "epsilon"),
        "delta": number(delta, "delta"),
        "rho": None if rho is None else number(rho, "rho"),
    }


def _facts(history: History) -> dict[str, Any]:
    return {
        "declaration": history.declaration.to_dict(),
        "ledger": history.key,
        "sequence": history.sequence,
        "hash": history.hash,
        "standing": history.standing.to_dict(),
        "notes": history.notes,
        "entries": [entry.to_dict() for entry in history.entries.values()],
    }


def _shown(history: History, count: int) -> list[str]:
    declared, standing = history.declaration, history.standing
    limit = standing.limit
    rows = f", up to {declared.rows_per_unit} rows" if declared.rows_per_unit > 1 else ""
    lines = [
        f"Data set: {declared.data_set} (owner {declared.owner}; for {declared.purpose})",
        f"Protects: {declared.unit}{rows}; counted under {declared.relation}",
        f"Spent: {limit.shown(standing.current)} of {limit}",
    ]
    if standing.epoch:
        lines.append(f"Spent ever: {limit.shown(standing.lifetime)}; rows were declared new "
                     f"{standing.epoch} time{'s' * (standing.epoch > 1)}")  # fmt: skip
    lines += filter(None, [standing.lifetime.proviso])
    lines += [
        f"{note['time']}  {note['what']} by {note['actor']}: {note['reason']}"
        for note in history.notes
    ]
    entries = list(history.entries.values())
    if len(entries) > count:
        lines.append(f"The last {count} of {len(entries)} entries:")
    for entry in entries[-count:] if count > 0 else []:
        cost = limit.shown(declared.cost_of(entry.event))
        assumed = f"; assuming that {entry.event.assumes}" if entry.event.assumes else ""
        void = f" ({entry.reason})" if entry.state == "void" else ""
        lines.append(
            f"{entry.time}  {entry.id}  {entry.state}{void}  {entry.event.what} by "
            f"{entry.event.mechanism}: {cost}{assumed}; {entry.actor}, {entry.purpose}"
        )
    return lines
