"""``dpsubset warmup``: compile now what later runs will use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from .shared import guarded, trouble

#: What every selection calls, or every one of a loss and a constraint, whatever its table holds:
#: that one of these is compiled says nothing about it.
_ALWAYS = {
    ("dpsubset.data.quantize", "_quantise"),
    ("dpsubset.objective.losses.quadratic_kernels", "score_all"),
    ("dpsubset.objective.losses.row_kernels", "score_all"),
}

#: A search that is hard, the same each time: bounds for columns that are alike are compiled too.
CHAIN: dict[str, Any] = {"k": 6, "epsilon": 1000, "seed": 0}
CHAINED = ("box", "ball")

_NOTE = "Compiling, once: this may take half a minute. Later runs start at once.\n"


@contextmanager
def telling_of_compilation(quiet: bool) -> Iterator[None]:
    """Say so while the code is compiled, on a machine where it has not been."""
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
                trouble(sys.stderr, _NOTE)

        def on_end(self, compiled: Any) -> None:
            pass

    with event.install_listener("numba:compile", Note()):
        yield


def chain() -> tuple[Any, Any]:
    """A table whose columns are much like their neighbours, and a response from some of them."""
    import numpy as np

    rng = np.random.default_rng(0)
    steps = rng.normal(size=(200, 60))
    x = np.empty_like(steps)
    x[:, 0] = steps[:, 0]
    for j in range(1, 60):
        x[:, j] = 0.9 * x[:, j - 1] + 0.44 * steps[:, j]
    y = x[:, ::7].sum(axis=1) / 8 + 0.05 * rng.normal(size=200)
    return np.clip(x / 2, -1, 1), np.clip(y, -1, 1)


def warmup_command(
    loss: Annotated[
        list[str] | None, typer.Option(help="For this loss; may be repeated. All by default.")
    ] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(help="For this constraint; may be repeated. All by default."),
    ] = None,
) -> None:
    """Compile what selections use, for every loss and constraint. Reads no table."""
    with guarded():
        import numpy as np

        from ..api.select import select
        from ..base.validation import check_choice
        from ..constraints import CONSTRAINTS
        from ..objective.losses import LOSSES
        from ..schema.schema import Bounds

        losses = [check_choice(name, LOSSES, "loss") for name in loss or LOSSES]
        forms = [
            check_choice(name, CONSTRAINTS, "constraint") for name in constraint or CONSTRAINTS
        ]

        rng = np.random.default_rng(0)
        x = rng.uniform(-1, 1, (200, 40))
        y = np.where(x[:, 0] + x[:, 1] > 0, 1.0, -1.0)
        for name in losses:
            for form in forms:
                typer.echo(f"{name}, {form} ...")
                # Made-up data: no ledger pays for it, also not the one of DPSUBSET_LEDGER.
                asked: dict[str, Any] = {"loss": name, "constraint": form, "ledger": False}
                # A small budget and a large one: searches take other ways for each.
                for epsilon in (1, 100):
                    select(x, y=y, bounds=Bounds(x=1, y=1), k=3, epsilon=epsilon, **asked)
                if name == "least-squares" and form in CHAINED:
                    walks, last = chain()
                    select(walks, y=last, bounds=Bounds(x=1, y=1), **CHAIN, **asked)
        typer.echo("Done: selections start at once.")
