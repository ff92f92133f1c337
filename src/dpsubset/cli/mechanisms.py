"""The command ``dpsubset mechanisms``: what there is to choose from."""

from __future__ import annotations

import typer

from .shared import guarded


def mechanisms_command() -> None:
    """List the selection mechanisms: what each promises, and its options."""
    with guarded():
        from dataclasses import fields

        from ..mechanisms import MECHANISMS

        for name, cls in MECHANISMS.items():
            options = ", ".join(f"{field.name}={field.default}" for field in fields(cls))
            typer.echo(f"{name}: {cls.promises}. Use it when {cls.use_when}.")
            if options:
                typer.echo(f"    options: {options}")
