"""Release: what may leave, and the statement that goes with it.

Holds the released support and public facts, nothing else: no objective value, no row count, no
timing. Everything here may be published.
"""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .mechanisms.base import Guarantee, float_up, shown_up
from .problem import Problem
from .schema import Schema
from .sensitivity import Sensitivity

SEEDED_WARNING = (
    "This draw was made with a fixed seed. Whoever knows the seed can repeat the noise, so the "
    "release is NOT PRIVATE. Seeds are for tests and simulation only."
)

_PACKAGES = ("dpsubset", "numpy", "scipy", "numba", "python-flint")


@dataclass(frozen=True)
class Release:
    """A privately selected support with its guarantee and provenance.

    Attributes
    ----------
    support : tuple of int
        Positions of the selected variables among the schema's features.
    features : list of str
        Their names.
    guarantee : Guarantee
        What the release costs, and under which neighbours.
    diagnostics : dict, optional
        NOT PRIVATE counts of the search, if they were asked for by that name; no export has them.
    """

    support: tuple[int, ...]
    features: list[str]
    guarantee: Guarantee
    mechanism: str
    mechanism_summary: str
    schema: Schema
    problem: Problem
    sensitivity: Sensitivity
    diagnostics: dict[str, int] | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Everything a machine may want to know, as plain values."""
        g, problem, s = self.guarantee, self.problem, self.sensitivity
        return {
            "format": "dpsubset release 1",
            **({"warning": SEEDED_WARNING} if g.seeded else {}),
            "features": list(self.features),
            "support": list(self.support),
            "guarantee": {
                "private": not g.seeded,
                "seeded": g.seeded,
                "epsilon": float_up(g.epsilon),
                "epsilon_exact": str(g.epsilon),
                "delta": g.delta,
                "neighbours": g.neighbours,
                "unit": self.schema.unit,
                "epsilon_if_replace_one": float_up(g.epsilon_if_replace_one),
                "epsilon_if_add_remove": float_up(g.epsilon_if_add_remove),
            },
            "mechanism": self.mechanism,
            "parameters": {
                "loss": problem.loss,
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


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed as a package"
    return found


def _statement(release: Release) -> str:
    g, problem, s, schema = (
        release.guarantee,
        release.problem,
        release.sensitivity,
        release.schema,
    )
    epsilon = f"{shown_up(g.epsilon)}"
    relation = {
        "replace-one": "one row is replaced by any other (the number of rows is public)",
        "add-remove": "one row is added or removed (the number of rows is private)",
    }[g.neighbours]
    always = [schema.feature_names[j] for j in problem.always_include]
    public = ["column names and bounds", "k"] + (
        ["the number of rows"] if g.neighbours == "replace-one" else []
    )
    lines = [
        "# Privacy statement",
        "",
        *([f"> **{SEEDED_WARNING}**", ""] if g.seeded else []),
        f"Released: the names of {problem.k} of {problem.p} variables, chosen to explain "
        f"`{schema.response.name}`: " + ", ".join(f"`{name}`" for name in release.features) + ".",
        "",
        "## Guarantee",
        "",
        f"- Pure differential privacy, epsilon = {epsilon}, delta = 0.",
        f"- Unit of privacy: {schema.unit}. Whoever contributes m rows is protected at m times "
        "epsilon.",
        f"- Neighbours: {g.neighbours}: two tables are neighbours if {relation}.",
        f"- The same release costs epsilon = {shown_up(g.epsilon_if_replace_one)} under "
        f"replace-one and {shown_up(g.epsilon_if_add_remove)} under add-remove.",
        "- It holds for any two neighbouring tables and whatever else is known to an attacker; it "
        "assumes nothing about the data.",
        "",
        "## Mechanism",
        "",
        f"- `{release.mechanism}`. {release.mechanism_summary}",
        f"- Score f(S): smallest {problem.loss} objective over models on S with coefficients in "
        f"the {problem.constraint} of radius {problem.radius:.6g} (reach "
        f"{shown_up(problem.reach)}), ridge {problem.ridge:.6g}, in scaled units.",
        f"- A row added or removed moves scores relative to each other by at most "
        f"{shown_up(s.range)}, a row replaced by at most {shown_up(2 * s.range)} "
        f"(rule: {s.rule}); the numerical error of a score is certified below "
        f"{shown_up(s.tau, 3)} and is part of the guarantee.",
        "- Noise is drawn exactly from the operating system's cryptographic generator."
        if not g.seeded
        else "- Noise was drawn from a seeded, reproducible stream.",
        *([f"- In every candidate set by declaration: {', '.join(always)}."] if always else []),
        "",
        "## Pre-processing",
        "",
        "- Bounds were declared in the schema, not read from the data; values outside are clipped.",
        f"- Missing and unreadable cells count as the {schema.bad_cells} of their bounds.",
        "- Values are scaled to [-1, 1] and rounded to multiples of 1/32767.",
        "",
        "| variable | low | high |",
        "|---|---|---|",
        *(
            f"| {column.name} | {column.lo:g} | {column.hi:g} |"
            for column in (*_shown(schema), schema.response)
        ),
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
