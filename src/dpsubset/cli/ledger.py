"""The commands ``dpsubset ledger ...``: the ledger of a data set, which limits what is spent."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .ledger_cost import ledger_cost
from .options import Force, Json, LedgerArgument, parse_number
from .outputs import reserve_output, write_output
from .terminal import fail, handle_errors, print_assumptions, print_line

if TYPE_CHECKING:
    from ..ledger.composition import Limit
    from ..ledger.entry import Entry
    from ..ledger.ledger import Ledger
    from ..ledger.replay import History
    from ..ledger.standing import Declaration

ledger_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

ledger_app.command("cost")(ledger_cost)

Reason = Annotated[str, typer.Option(help="Reason; recorded in the ledger.")]
Name = Annotated[
    str,
    typer.Option(
        help="Who makes this change; recorded in the ledger, with the account that runs this."
    ),
]
Epsilon = Annotated[
    str | None, typer.Option(help="The limit, taken exactly as written.", metavar="NUMBER")
]
Delta = Annotated[
    str,
    typer.Option(
        help="With --epsilon: the limit of delta; 0 for pure differential privacy.",
        metavar="NUMBER",
    ),
]
Rho = Annotated[
    str | None,
    typer.Option(
        help="Instead of --epsilon: a limit of zero-concentrated differential privacy.",
        metavar="NUMBER",
    ),
]


@ledger_app.command("create")
@handle_errors()
def ledger_create(
    ledger: LedgerArgument,
    data_set: Annotated[str, typer.Option(help="Name of the data set.")],
    owner: Annotated[str, typer.Option(help="Who is responsible for the data set.")],
    purpose: Annotated[str, typer.Option(help="What the budget may be spent on.")],
    epsilon: Epsilon = None,
    delta: Delta = "0",
    rho: Rho = None,
    accounting: Annotated[
        str,
        typer.Option(
            help="With --delta, how costs are added up: concentrated or basic (docs/ledger.md)."
        ),
    ] = "concentrated",
    unit: Annotated[str, typer.Option(help="Privacy unit, as in the bounds files.")] = "one row",
    rows_per_unit: Annotated[
        int, typer.Option(help="Most rows of a privacy unit, as in the bounds files.")
    ] = 1,
    neighbours: Annotated[
        str, typer.Option(help="Neighbour relation of the costs: replace-one or add-remove.")
    ] = "replace-one",
) -> None:
    """Create the ledger of a data set."""
    from ..ledger.ledger import Ledger

    choices: Any = {"neighbours": neighbours, "accounting": accounting}
    created = Ledger.create(
        ledger,
        data_set=data_set,
        owner=owner,
        purpose=purpose,
        unit=unit,
        rows_per_unit=rows_per_unit,
        **_limit(epsilon, delta, rho),
        **choices,
    )
    print_line(
        f"Created a ledger of {data_set}: {created.standing().limit} for {unit}"
        f"{f' with up to {rows_per_unit} rows' if rows_per_unit > 1 else ''}, {neighbours}"
    )
    print_line(
        "Run 'dpsubset ledger export' regularly and store the result elsewhere: with it, 'dpsubset "
        "ledger verify' detects an older copy of the ledger."
    )


@ledger_app.command("show")
@handle_errors()
def ledger_show(
    ledger: LedgerArgument,
    entries: Annotated[int, typer.Option(help="Number of entries to list, latest last.")] = 20,
    as_json: Json = False,
) -> None:
    """Show limit, totals and entries, after checking the hash chain."""
    from ..ledger.ledger import Ledger

    history = Ledger(ledger).history()
    if as_json:
        print_line(json.dumps(_to_dict(history)))
        return
    for line in _lines(history, entries):
        print_line(line)


@ledger_app.command("verify")
@handle_errors()
def ledger_verify(
    ledger: LedgerArgument,
    head: Annotated[
        list[Path] | None,
        typer.Option(help="File of 'dpsubset ledger export'; may be repeated.", metavar="FILE"),
    ] = None,
) -> None:
    """Check the integrity of a ledger.

    Checks hashes, order, times, states and totals, and that the ledger continues exported ones.
    Exit code 5 if a check fails.
    """
    from ..ledger.ledger import Ledger
    from ..ledger.reader import read_head

    history = Ledger(ledger).verify([read_head(path) for path in head or ()])
    print_line(
        f"{history.sequence} lines, {len(history.entries)} entries: all unchanged"
        f"{f', and they continue {len(head)} exported' if head else ''}"
    )
    if count := history.from_outside:
        entered = "1 entry was" if count == 1 else f"{count} entries were"
        print_line(f"{entered} declared as spending from outside, which no program can check.")
    print_assumptions(history.standing.lifetime)
    if not head:
        print_line("Without an export (--head) an older copy of the whole ledger is not detected.")


@ledger_app.command("debit")
@handle_errors()
def ledger_debit(
    ledger: LedgerArgument,
    reason: Reason,
    name: Name,
    epsilon: Annotated[
        str | None,
        typer.Option(
            help="What was spent, under the ledger's relation and for its unit; taken exactly as "
            "written.",
            metavar="NUMBER",
        ),
    ] = None,
    delta: Annotated[
        str, typer.Option(help="With --epsilon: the delta that was spent.", metavar="NUMBER")
    ] = "0",
    rho: Annotated[
        str | None,
        typer.Option(
            help="Instead of --epsilon: what was spent as zero-concentrated differential privacy. "
            "Under a limit with basic accounting also --delta, at which it counts as an epsilon.",
            metavar="NUMBER",
        ),
    ] = None,
    already_spent: Annotated[
        bool,
        typer.Option(
            "--already-spent",
            help="It has been spent: enter it even above the limit. Then every release is refused.",
        ),
    ] = False,
) -> None:
    """Enter spending from outside: by another tool, or before this ledger was made.

    Exit code 4 if the limit does not allow it, and it has not been spent already.
    """
    from ..ledger.ledger import Ledger

    opened = Ledger(ledger)
    spent: Any = {**_limit(epsilon, delta, rho), "already_spent": already_spent}
    entry = opened.debit(reason=reason, name=name, **spent)
    declared, limit = opened.declaration, opened.standing().limit
    cost = _shown_cost(entry, declared, limit)
    print_line(f"Entered: {cost} under {declared.relation}, for {declared.unit}; entry {entry.id}")
    _print_spent(opened)


@ledger_app.command("void")
@handle_errors()
def ledger_void(
    ledger: LedgerArgument,
    entry: Annotated[str, typer.Argument(help="Id of the debit.", metavar="ENTRY")],
    reason: Reason,
    name: Name,
) -> None:
    """Cancel a debit for which no value was read, or spending that was entered by mistake.

    Other debits cannot be cancelled.
    """
    from ..ledger.ledger import Ledger

    opened = Ledger(ledger)
    opened.void(entry, reason=reason, name=name)
    print_line(f"Void: {entry}")
    _print_spent(opened)


@ledger_app.command("refresh")
@handle_errors()
def ledger_refresh(ledger: LedgerArgument, reason: Reason, name: Name) -> None:
    """Reset what is spent, because all rows are new. Lifetime totals are kept."""
    from ..ledger.ledger import Ledger

    opened = Ledger(ledger)
    opened.refresh(reason=reason, name=name)
    standing = opened.standing()
    ever = standing.limit.shown(standing.lifetime)
    print_line(f"Spent: nothing of {standing.limit}; ever: {ever}")
    print_line(f"Left: {standing.left}")
    print_assumptions(standing.lifetime)


@ledger_app.command("limit")
@handle_errors()
def ledger_limit(
    ledger: LedgerArgument,
    reason: Reason,
    name: Name,
    epsilon: Epsilon = None,
    delta: Delta = "0",
    rho: Rho = None,
    accounting: Annotated[
        str | None, typer.Option(help="With --delta: concentrated or basic. By default unchanged.")
    ] = None,
) -> None:
    """Change the limit, but not below what is spent."""
    from ..ledger.ledger import Ledger

    opened = Ledger(ledger)
    limit: Any = {**_limit(epsilon, delta, rho), "accounting": accounting}
    before = opened.change_limit(reason=reason, name=name, **limit)
    print_line(f"Limit: {before} before, {opened.standing().limit} now")
    _print_spent(opened)


@ledger_app.command("export")
@handle_errors()
def ledger_export(
    ledger: LedgerArgument,
    out: Annotated[
        Path | None, typer.Option(help="Write the export here. By default it is printed.")
    ] = None,
    force: Force = False,
) -> None:
    """Export number and hash of the last line, and the totals.

    Store exports away from the ledger: 'dpsubset ledger verify --head' compares with them.
    """
    with ExitStack() as stack:
        output = reserve_output(out, force, stack)

        from ..ledger.ledger import Ledger

        text = json.dumps(Ledger(ledger).head(), indent=2)
        if output is None:
            typer.echo(text)
        elif problems := write_output(output, text + "\n"):
            fail("; ".join(problems), 1)


def _print_spent(ledger: Ledger) -> None:
    standing = ledger.standing()
    print_line(f"Spent: {standing.limit.shown(standing.current)} of {standing.limit}")
    print_line(f"Left: {standing.left}")
    print_assumptions(standing.current)


def _limit(epsilon: str | None, delta: str, rho: str | None) -> dict[str, Any]:
    return {
        "epsilon": None if epsilon is None else parse_number(epsilon, "epsilon"),
        "delta": parse_number(delta, "delta"),
        "rho": None if rho is None else parse_number(rho, "rho"),
    }


def _to_dict(history: History) -> dict[str, Any]:
    return {
        "declaration": history.declaration.to_dict(),
        "ledger": history.key,
        "sequence": history.sequence,
        "hash": history.hash,
        "standing": history.standing.to_dict(),
        "left": history.standing.left.to_dict(),
        "notes": history.notes,
        "entries": [entry.to_dict() for entry in history.entries.values()],
    }


def _lines(history: History, count: int) -> list[str]:
    declared, standing = history.declaration, history.standing
    limit = standing.limit
    rows = f", up to {declared.rows_per_unit} rows" if declared.rows_per_unit > 1 else ""
    lines = [
        f"Data set: {declared.data_set} (owner {declared.owner}; for {declared.purpose})",
        f"Protects: {declared.unit}{rows}; counted under {declared.relation}",
        f"Spent: {limit.shown(standing.current)} of {limit}",
        f"Left: {standing.left}",
    ]
    if standing.epoch:
        times = f"{standing.epoch} time{'s' * (standing.epoch > 1)}"
        lines.append(f"Spent ever: {limit.shown(standing.lifetime)}; refreshed {times}")
    lines += filter(None, [standing.lifetime.proviso])
    lines += map(_note_line, history.notes)
    entries = list(history.entries.values())
    if len(entries) > count:
        lines.append(f"The last {count} of {len(entries)} entries:")
    lines += [
        _entry_line(entry, declared, limit) for entry in (entries[-count:] if count > 0 else [])
    ]
    return lines


def _note_line(note: dict[str, Any]) -> str:
    from ..ledger.composition import Limit
    from ..ledger.identity import Identity

    what = str(note["what"])
    if what == "limit":
        before, after = (Limit.from_dict(note[key]) for key in ("before", "after"))
        what = f"limit changed from {before} to {after}"
    who = Identity.from_dict(note["identity"]).shown(note["actor"])
    return f"{note['time']}  {what} by {who}: {note['reason']}"


def _entry_line(entry: Entry, declared: Declaration, limit: Limit) -> str:
    cost = _shown_cost(entry, declared, limit)
    assumed = f"; assuming that {entry.event.assumes}" if entry.event.assumes else ""
    void = f" ({entry.reason})" if entry.state == "void" else ""
    what = f"{entry.event.what} by {entry.event.mechanism}"
    if entry.event.is_outside:
        what = "spending from outside"
    who = entry.identity.shown(entry.actor)
    return (
        f"{entry.time}  {entry.id}  {entry.state}{void}  {what}: {cost}{assumed}; {who}, "
        f"{entry.purpose}"
    )


def _shown_cost(entry: Entry, declared: Declaration, limit: Limit) -> str:
    """Write what an entry counts for under the limit; spending from outside as it was entered."""
    if not entry.event.is_outside:
        return limit.shown(declared.cost_of(entry.event))
    from ..privacy.guarantee import shown_cost, shown_up

    cost = entry.event.cost(declared.relation)
    return shown_cost(cost) if cost.rho is None else f"rho = {shown_up(cost.rho)}"
