"""The command ``dpsubset warmup``: compile the code of later runs in advance."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from .terminal import handle_errors, try_print

#: Functions that every selection calls, or every one with a given loss and constraint, whatever its
#: table holds: that one of these is compiled tells nothing about the table.
_ALWAYS = {
    ("dpsubset.data.quantize", "_quantise"),
    ("dpsubset.objective.losses.quadratic_kernels", "score_all"),
    ("dpsubset.objective.losses.row_kernels", "score_all"),
}

#: A hard search with a fixed seed, which also compiles the bounds for highly correlated columns.
CHAIN: dict[str, Any] = {"k": 6, "epsilon": 1000, "seed": 0}
CHAINED = ("box", "ball")

_NOTE = "Compiling, once: this may take half a minute. Later runs start at once.\n"


@contextmanager
def note_compilation(quiet: bool) -> Iterator[None]:
    """Print a note if the code has to be compiled, which takes half a minute."""
    if quiet:
        yield
        return
    from numba.core import event

    class Note(event.Listener):
        said = False

        def on_start(self, compiled: Any) -> None:
            function = compiled.data["dispatcher"].py_func
            if not self.said and (function.__module__, function.__name__) in _ALWAYS:
                self.said = True
                try_print(sys.stderr, _NOTE)

        def on_end(self, compiled: Any) -> None:
            pass

    with event.install_listener("numba:compile", Note()):
        yield


def chain() -> tuple[Any, Any]:
    """Simulate a table with highly correlated neighbouring columns, and its response."""
    import numpy as np

    rng = np.random.default_rng(0)
    steps = rng.normal(size=(200, 60))
    x = np.empty_like(steps)
    x[:, 0] = steps[:, 0]
    for j in range(1, 60):
        x[:, j] = 0.9 * x[:, j - 1] + 0.44 * steps[:, j]
    y = x[:, ::7].sum(axis=1) / 8 + 0.05 * rng.normal(size=200)
    return np.clip(x / 2, -1, 1), np.clip(y, -1, 1)


@handle_errors()
def warmup_command(
    loss: Annotated[
        list[str] | None,
        typer.Option(help="A loss; may be repeated. All by default.", metavar="NAME"),
    ] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(help="A constraint; may be repeated. All by default.", metavar="NAME"),
    ] = None,
) -> None:
    """Compile the code of selections in advance. Reads no table."""
    import numpy as np

    from ..api.select import select
    from ..base.validation import check_choice
    from ..constraints import CONSTRAINTS
    from ..objective.losses import LOSSES
    from ..schema.schema import Bounds

    losses = [check_choice(name, LOSSES, "loss") for name in loss or LOSSES]
    forms = [check_choice(name, CONSTRAINTS, "constraint") for name in constraint or CONSTRAINTS]

    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (200, 40))
    y = np.where(x[:, 0] + x[:, 1] > 0, 1.0, -1.0)
    for name in losses:
        for form in forms:
            typer.echo(f"{name}, {form} ...")
            # The data are simulated, so no ledger is debited, not even that of DPSUBSET_LEDGER.
            asked: dict[str, Any] = {"loss": name, "constraint": form, "ledger": False}
            # Searches with a small and with a large budget use different code.
            for epsilon in (1, 100):
                select(x, y=y, bounds=Bounds(x=1, y=1), k=3, epsilon=epsilon, **asked)
            if name == "least-squares" and form in CHAINED:
                walks, last = chain()
                select(walks, y=last, bounds=Bounds(x=1, y=1), **CHAIN, **asked)
    typer.echo("Done: selections start at once.")
