"""What notebooks show of a release and of its model: HTML with escaped names."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from .target import unit_of

if TYPE_CHECKING:
    from .model import Model

_COLUMNS = ("coefficient", "95 % interval", "standardised")


def model_html(model: Model) -> str:
    """Return the model's heading, its table, and the units of the numbers."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("", *_COLUMNS))
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in model.rows()
    )
    units = unit_of(model.schema.response, model.link, model.loss)
    notes = [
        f"Coefficients and intervals are in {units}, per unit of the column; standardised sizes "
        "are in standard deviations of both.",
        *([] if model.r2 is None else [f"R2 {model.r2:.2f}, of {model.target}"]),
    ]
    heading = f"{model.heading[0].upper()}{model.heading[1:]}"
    return (
        f"<p>{escape(heading)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        f"</table><p>{'<br>'.join(map(escape, notes))}</p>"
    )


def release_html(
    flags: Sequence[str], heading: str, names: Sequence[str], facts: Sequence[str],
    model: Model | None,
) -> str:  # fmt: skip
    """Return a release's warnings, its names, its facts, and the table of its model."""
    warned = "".join(f"<p><strong>{escape(flag)}</strong></p>" for flag in flags)
    items = "".join(f"<li>{escape(name)}</li>" for name in names)
    table = "" if model is None else model_html(model)
    return (
        f"{warned}<p>{escape(heading)}</p><ul>{items}</ul>{table}"
        f"<p>{'<br>'.join(map(escape, facts))}</p>"
    )
