"""The command ``dpsubset mechanisms``: the selection mechanisms and their options."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import typer

from .options import Json
from .terminal import handle_errors

if TYPE_CHECKING:
    from ..mechanisms import Mechanism

_WIDTH = 100


@handle_errors()
def mechanisms_command(as_json: Json = False) -> None:
    """List the selection mechanisms, their guarantees and options."""
    import json

    from ..mechanisms import MECHANISMS

    listed = [_to_dict(cls) for cls in MECHANISMS.values()]
    if as_json:
        typer.echo(json.dumps(listed, indent=2))
        return
    for entry in listed:
        text = f"{entry['name']}: {entry['promises']}. Use it when {entry['use_when']}."
        typer.echo(fill(text, _WIDTH, subsequent_indent="    "))
        options = ", ".join(f"{name}={value}" for name, value in entry["options"].items())
        if options:
            text = f"options: {options}"
            typer.echo(fill(text, _WIDTH, initial_indent="    ", subsequent_indent="    "))


def _to_dict(cls: type[Mechanism]) -> dict[str, Any]:
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
