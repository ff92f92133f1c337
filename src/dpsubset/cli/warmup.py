"""The command ``dpsubset warmup``: compile the code of later runs in advance."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .terminal import handle_errors

#: A hard search with a fixed seed, which also compiles the bounds for highly correlated columns.
CHAIN: dict[str, Any] = {
    "k": 6,
    "epsilon": 1000,
    "seed": 0,
    "response_range": "declared",
    "prediction_bound": 1.0,
}
CHAINED = ("box", "ball")


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


def _read_text() -> None:
    """Read a simulated text file with numbers, dates and levels."""
    import tempfile
    from pathlib import Path

    from ..data.readers import open_table
    from ..schema.schema import Schema

    columns = {"a": (0, 9), "b": {"levels": ["u", "v"]}, "c": ("2000-01-01", "2020-12-31")}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        file.write_text("a,b,c,y\n1,u,2001-02-03,4\n")
        list(open_table(file, Schema.from_bounds(columns, ("y", 0, 9))).blocks())


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

    _read_text()
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
