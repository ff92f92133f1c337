"""The command ``dpsubset mechanisms``: what there is to choose from."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .shared import guarded

if TYPE_CHECKING:
    from ..mechanisms import Mechanism

_WIDTH = 100


def mechanisms_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print a list for machines.")] = False,
) -> None:
    """List the selection mechanisms: what each promises, and its options."""
    with guarded():
        import json

        from ..mechanisms import MECHANISMS

        listed = [_entry(cls) for cls in MECHANISMS.values()]
        if as_json:
            typer.echo(json.dumps(listed, indent=2))
            return
        for entry in listed:
            text = f"{entry['name']}: {entry['promises']}. Use it when {entry['use_when']}."
            typer.echo(fill(text, _WIDTH, subsequent_indent="    "))
            options = ", ".join(f"{name}={value}" for name, value in entry["options"].items())
            if options:
                typer.echo(
                    fill(
                        f"options: {options}",
                        _WIDTH,
                        initial_indent="    ",
                        subsequent_indent="    ",
                    )
                )


def _entry(cls: type[Mechanism]) -> dict[str, Any]:
    from dataclasses import fields

    defaults = {field.name: field.default for field in fields(cls)}
    return {
        "name": cls.name,
        "promises": cls.promises,
        "assumes": cls.assumes,
        "costs": cls.running_time,
        "use_when": cls.use_when,
        "source": cls.source,
        "delta": cls.takes_delta,
        "any_loss": cls.any_loss,
        "needs_records": cls.needs_records,
        "seedable": cls.seedable,
        "options": {name: _shown(value) for name, value in defaults.items()},
    }


def _shown(value: Any) -> Any:
    from fractions import Fraction

    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value) if isinstance(value, Fraction) else value
