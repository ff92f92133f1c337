"""Release: what may leave, and the statement that goes with it.

Holds the released support and public facts, nothing else: no objective value, no row count, no
timing. Everything here may be published.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..exact import float_up
from ..losses import loss_of
from ..mechanisms.shared.base import SYSTEM_NOISE
from ..privacy.guarantee import Guarantee, shown_cost, shown_parts, shown_up
from ..privacy.sensitivity import Sensitivity
from ..public.labels import IMAGES, shown
from ..public.problem import Neighbours, Problem
from ..public.schema import Column, Schema
from ..text import code, markdown, visible

SEEDED_WARNING = (
    "This draw was made with a fixed seed. Whoever knows the seed can repeat the noise, so the "
    "release is NOT PRIVATE. Seeds are for tests and simulation only."
)

UNPROVEN_WARNING = (
    "This mechanism has NO PRIVACY GUARANTEE: whoever sees the release may learn about single rows."
)

_PACKAGES = ("dpsubset", "numpy", "scipy", "numba", "python-flint", "scikit-learn", "opendp")


@dataclass(frozen=True)
class Release:
    """A privately selected support with its guarantee and provenance.

    Attributes
    ----------
    support : tuple of int, or None
        Positions of the selected variables among the schema's features; None if the mechanism
        released nothing, as some may.
    features : list of str
        Their names.
    guarantee : Guarantee
        What the release costs, and under which neighbours.
    diagnostics : dict, optional
        NOT PRIVATE counts of the search, if they were asked for by that name; no export has them.
    """

    support: tuple[int, ...] | None
    features: list[str]
    guarantee: Guarantee
    mechanism: str
    mechanism_summary: str
    schema: Schema
    problem: Problem
    sensitivity: Sensitivity
    options: Mapping[str, Any] = field(default_factory=dict)
    details: Sequence[str] = ()
    randomness: str = SYSTEM_NOISE
    diagnostics: dict[str, int] | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Everything a machine may want to know, as plain values."""
        g, problem, s = self.guarantee, self.problem, self.sensitivity
        return {
            "format": "dpsubset release 1",
            **({"warning": " ".join(_warnings(g))} if _warnings(g) else {}),
            "features": list(self.features),
            "support": None if self.support is None else list(self.support),
            "guarantee": {
                "private": g.private,
                "seeded": g.seeded,
                "epsilon": _float(g.epsilon),
                "epsilon_exact": None if g.epsilon is None else str(g.epsilon),
                "delta": float_up(g.delta),
                "assumes": g.assumes,
                "neighbours": g.neighbours,
                "unit": self.schema.unit,
                **_either_way(g),
                **_parts(g),
            },
            "mechanism": self.mechanism,
            "mechanism_options": {name: _plain(value) for name, value in self.options.items()},
            "parameters": {
                "loss": problem.loss,
                "threshold": problem.threshold,
                "labels": _label_entries(self.schema),
                "p": problem.p,
                "k": problem.k,
                "always_include": list(problem.always_include),
                "constraint": problem.constraint,
                "radius": problem.radius,
                "reach": float_up(problem.reach),
                "ridge": problem.ridge,
                "sensitivity": s.rule,
                "range": float_up(s.range),
                "tau": float_up(s.tau),
            },
            "schema_sha256": self.schema.fingerprint(),
            "versions": _versions(),
        }

    def to_json(self) -> str:
        """The release as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def statement(self) -> str:
        """The privacy statement, in Markdown, for the person who signs."""
        return _statement(self)

    def __str__(self) -> str:
        """What was released and what it cost, in a few lines."""
        heading, names, facts = _summary(self)
        lines = [*_flags(self.guarantee), heading, *(f"  {name}" for name in names), *facts]
        return "\n".join(map(visible, lines))

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        heading, names, facts = _summary(self)
        flags = "".join(f"<p><strong>{escape(flag)}</strong></p>" for flag in
                        _flags(self.guarantee))  # fmt: skip
        items = "".join(f"<li>{escape(name)}</li>" for name in names)
        lines = "<br>".join(map(escape, facts))
        return f"{flags}<p>{escape(heading)}</p><ul>{items}</ul><p>{lines}</p>"


def _flags(g: Guarantee) -> list[str]:
    return [
        *(["*** NOT PRIVATE: seeded draw, for tests only ***"] if g.seeded else []),
        *([] if g.proven else ["*** NOT PRIVATE: no guarantee ***"]),
    ]


def _summary(release: Release) -> tuple[str, list[str], list[str]]:
    """A heading, the names below it, and what they cost."""
    g, schema = release.guarantee, release.schema
    selected = f"Selected {len(release.features)} of {len(schema.features)} variables"
    if release.support is None:
        selected = "Released nothing: no set of variables could be named"
    costs = [f"{shown_cost(cost)} under {relation}" for relation, cost in g.costs.items()]
    return (
        f"{selected} to explain {schema.response.name}:",
        list(release.features),
        [
            f"Guarantee: {g}; unit of privacy: {schema.unit}",
            *([f"Cost: {', '.join(costs)}"] if costs else []),
        ],
    )


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed as a package"
    return found


def _float(x: Fraction | None) -> float | None:
    return None if x is None else float_up(x)


def _delta(g: Guarantee, relation: Neighbours) -> float | None:
    return float_up(g.costs[relation].delta) if relation in g.costs else None


def _either_way(g: Guarantee) -> dict[str, float | None]:
    """What it costs under both relations, with rho where zero-concentrated privacy has one."""
    rhos = {relation: cost.rho for relation, cost in g.costs.items() if cost.rho is not None}
    return {
        "epsilon_if_replace_one": _float(g.epsilon_if_replace_one),
        "delta_if_replace_one": _delta(g, "replace-one"),
        "epsilon_if_add_remove": _float(g.epsilon_if_add_remove),
        "delta_if_add_remove": _delta(g, "add-remove"),
        **({"rho": _float(g.rho)} if rhos else {}),
        **({"rho_if_replace_one": _float(rhos.get("replace-one"))} if rhos else {}),
        **({"rho_if_add_remove": _float(rhos.get("add-remove"))} if rhos else {}),
    }


def _parts(g: Guarantee) -> dict[str, list[dict[str, Any]]]:
    """The steps of a release that was made in several, under its neighbours; else nothing."""
    if not g.parts:
        return {}
    entries = [
        {
            "name": name,
            "epsilon": _float(part.epsilon),
            "epsilon_exact": None if part.epsilon is None else str(part.epsilon),
            "delta": float_up(part.delta),
            "assumes": part.assumes,
            **_either_way(part),
        }
        for name, part in g.parts
    ]
    return {"parts": entries}


def _plain(value: Any) -> Any:
    """An option as JSON has it."""
    return str(value) if isinstance(value, Fraction) else value


def _label_entries(schema: Schema) -> list[dict[str, Any]] | None:
    """The labels of the response, and what they count as."""
    if schema.response.labels is None:
        return None
    pairs = zip(schema.response.labels, IMAGES, strict=True)
    return [{"label": label, "counts_as": int(image)} for label, image in pairs]


def _label_lines(schema: Schema, problem: Problem) -> list[str]:
    """For the statement: the same, and what becomes of cells with another label."""
    response = schema.response
    if response.labels is None:
        return []
    takes_labels = loss_of(problem).labels  # the sign of the response, 1 for 0
    rest = {
        "low": f"as {response.labels[0]}",
        "high": f"as {response.labels[1]}",
        "middle": f"as {response.labels[1]}" if takes_labels else "as 0",
    }[schema.bad_cells]
    return [
        f"- The labels of {code(response.name)} were declared, not read from the data: "
        f"{markdown(shown(response.labels))}; a cell with neither counts {markdown(rest)}."
    ]


def _bounds_row(column: Column) -> str:
    low, high = column.span if column.labels is None else column.labels
    texts = [f"{x:g}" if isinstance(x, float) else str(x) for x in (low, high)]
    return f"| {' | '.join(map(markdown, (column.name, *texts)))} |"


def _warnings(g: Guarantee) -> list[str]:
    found = [SEEDED_WARNING] if g.seeded else []
    if not g.proven:
        found.append(UNPROVEN_WARNING)
    if g.assumes:
        found.append(
            f"The guarantee holds only if {g.assumes}. Nobody has checked that, and it may be "
            "false."
        )
    return found


def _released(release: Release) -> str:
    problem, response = release.problem, code(release.schema.response.name)
    if release.support is None:
        return (
            f"Released: that no {problem.k} of {problem.p} variables to explain {response} could "
            "be named with this mechanism at this price."
        )
    names = ", ".join(map(code, release.features)) or "none of them"
    return (
        f"Released: the names of {len(release.features)} of {problem.p} variables, chosen to "
        f"explain {response}: {names}."
    )


def _guarantee_lines(g: Guarantee, protected: str) -> list[str]:
    if not g.proven:
        return [
            "- None. This mechanism is known not to keep the epsilon it was run with; it exists to "
            "reproduce published figures on data that are not sensitive."
        ]
    relation = {
        "replace-one": "one row is replaced by any other (the number of rows is public)",
        "add-remove": "one row is added or removed (the number of rows is private)",
    }[g.neighbours]
    cost, other = g.costs[g.neighbours], [shown_cost(c) + f" under {r}" for r, c in g.costs.items()]
    kind, rest = ("Approximate", "") if cost.delta else ("Pure", ", delta = 0")
    return [
        f"- {kind} differential privacy, {shown_cost(cost)}{rest}.",
        *([f"- It is the total of {markdown(shown_parts(g))}."] if g.parts else []),
        *_rho_lines(g),
        f"- Unit of privacy: {markdown(protected)}. Whoever contributes m rows is protected at m "
        "times epsilon" + (" (and a larger delta)." if cost.delta else "."),
        f"- Neighbours: {g.neighbours}: two tables are neighbours if {relation}.",
        f"- The same release costs {' and '.join(other)}."
        if len(other) > 1
        else "- Under other neighbours nothing is promised: what was done depends on the number of "
        "rows.",
        f"- It holds only if {g.assumes}. Nobody has checked that, and it may be false; without it "
        "there is no guarantee."
        if g.assumes
        else "- It holds for any two neighbouring tables and whatever else is known to an "
        "attacker; it assumes nothing about the data.",
    ]


def _rho_lines(g: Guarantee) -> list[str]:
    rhos = [(cost.rho, relation) for relation, cost in g.costs.items() if cost.rho is not None]
    shown = " and ".join(f"rho = {shown_up(rho)} under {relation}" for rho, relation in rhos)
    return [f"- It is zero-concentrated differential privacy too, {shown}."] if shown else []


def _statement(release: Release) -> str:
    g, problem, schema = release.guarantee, release.problem, release.schema
    always = [code(schema.feature_names[j]) for j in problem.always_include]
    labels = [] if schema.response.labels is None else ["the labels of the response"]
    public = ["column names and bounds", *labels, "k"] + (
        ["the number of rows"] if g.neighbours == "replace-one" else []
    )
    lines = [
        "# Privacy statement",
        "",
        *(line for warning in _warnings(g) for line in (f"> **{warning}**", "")),
        _released(release),
        "",
        "## Guarantee",
        "",
        *_guarantee_lines(g, schema.unit),
        "",
        "## Mechanism",
        "",
        f"- `{release.mechanism}`. {release.mechanism_summary}",
        *(f"- {sentence}" for sentence in release.details),
        *(
            ["- Options: " + ", ".join(f"{name} = {value}" for name, value in stated) + "."]
            if (stated := [(n, v) for n, v in release.options.items() if v is not None])
            else []
        ),
        f"- {release.randomness}"
        if not g.seeded
        else "- Noise was drawn from a seeded, reproducible stream.",
        *([f"- In every candidate set by declaration: {', '.join(always)}."] if always else []),
        "",
        "## Pre-processing",
        "",
        "- Bounds were declared in the schema, not read from the data; values outside are clipped.",
        f"- Missing and unreadable cells count as the {schema.bad_cells} of their bounds.",
        *_label_lines(schema, problem),
        "- Values are scaled to [-1, 1] and rounded to multiples of 1/32767.",
        "",
        "| variable | low | high |",
        "|---|---|---|",
        *(_bounds_row(column) for column in (*_shown(schema), schema.response)),
        "",
        "## Not protected",
        "",
        f"- {', '.join(public)}.",
        "- The running time, memory use and power draw of the computation depend on the data. An "
        "attacker who can observe them learns something this guarantee does not cover.",
        "- So does the chance of passing a node or time limit, where one was set. A search that "
        "passes it ends without a release; its epsilon counts as spent all the same.",
        "- Other releases from the same table: their epsilons add up.",
        "",
        "## Provenance",
        "",
        f"- Schema SHA-256: `{schema.fingerprint()}`",
        "- Versions: " + ", ".join(f"{name} {number}" for name, number in _versions().items()),
        "",
    ]
    return "\n".join(lines)


def _shown(schema: Schema) -> tuple[Any, ...]:
    # A statement is read by people: long tables are found by the schema's fingerprint instead.
    return schema.features[:50]
