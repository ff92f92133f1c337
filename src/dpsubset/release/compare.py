"""Compare two releases: what differs, and what both cost together. Reads no table.

The cost of both is computed by `Guarantee.compose`, for each relation of neighbours. If a release
states the cost of an earlier one with its own, the earlier one is counted once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from ..base.errors import ArgumentError, DpsubsetError, TableError
from ..ledger.canonical import sha256_of_facts
from ..privacy.guarantee import Guarantee, shown_cost, shown_up, step_name
from ..privacy.relations import PUBLIC_N, RELATIONS
from ..schema.provenance import KEY
from ..schema.schema import Schema
from .files import facts_from_json, read_bytes
from .release import FORMAT

Kind = Literal[
    "same release", "second contains first", "first contains second", "common earlier release",
    "separate", "not added",
]  # fmt: skip

#: What the glossary calls parameters that release files name otherwise.
_PARAMETERS = {
    "reach": "prediction bound",
    "sensitivity": "sensitivity rule",
    "range": "score range",
    "tau": "numerical error of a score",
}

_EQUAL = (
    "The files name no entry in a ledger, and two draws with the same answer on one day give equal "
    "files. If these are two draws, they cost twice as much."
)
_FIRST, _SECOND = "the first release", "the second release"


@dataclass(frozen=True)
class ReleaseFacts:
    """The facts of a release file, and what they guarantee.

    Attributes
    ----------
    facts : mapping
    digest : str
        The content digest.
    guarantee : Guarantee
        Without a cost under add-remove if the file states the number of rows.
    """

    facts: Mapping[str, Any]
    digest: str
    guarantee: Guarantee

    @classmethod
    def load(cls, path: str | Path) -> ReleaseFacts:
        """Read a release file; refuse any other file, or one that was changed."""
        try:
            facts = facts_from_json(read_bytes(path, "release"), FORMAT, "release")
            guarantee = Guarantee.from_dict(facts["guarantee"])
            if facts["parameters"].get("rows") is not None:
                guarantee = guarantee.limited_to(PUBLIC_N)
            found = cls(facts, sha256_of_facts(facts), guarantee)
            found.described()
        except TableError:
            raise
        except ArgumentError as error:
            raise ArgumentError(f"{Path(path).name}: {error}") from None
        except (DpsubsetError, LookupError, TypeError, ValueError, AttributeError):
            raise ArgumentError(
                f"{Path(path).name}: this release file is damaged, or was not written by dpsubset"
            ) from None
        return found

    @property
    def unit(self) -> tuple[str, int]:
        """The unit of privacy, and its largest number of rows."""
        promised = self.facts["guarantee"]
        return promised["unit"], promised["rows_per_unit"]

    @property
    def entry(self) -> Mapping[str, Any]:
        """The receipt of a ledger; empty without one."""
        found: Mapping[str, Any] = self.facts.get("ledger", {})
        return found

    def described(self) -> dict[str, Any]:
        """Return what is compared, by name, as plain values."""
        facts, g = self.facts, self.guarantee
        stated, model = facts["parameters"], facts.get("model")
        unit, most = self.unit
        return {
            "selected": None if facts["support"] is None else list(facts["features"]),
            "model": None if model is None else _coefficients(model),
            "response range": [each["value"] for each in facts["scale"]["quantiles"]]
            if "scale" in facts
            else None,
            "class share": facts["class_share"]["share"] if "class_share" in facts else None,
            "budget": [f"{shown_cost(cost)} under {each}" for each, cost in g.costs.items()],
            "steps": [
                f"{step_name(name)} ({shown_cost(part.costs[g.neighbours])})"
                for name, part in g.parts
                if g.neighbours in part.costs
            ],
            "neighbours": g.neighbours,
            "seeded": g.seeded,
            "assumption": g.assumes,
            "unit": unit,
            "rows per unit": most,
            "mechanism": facts["mechanism"],
            "mechanism options": dict(facts["mechanism_options"]),
            "fit": _fit_of(facts["fit"]) if "fit" in facts else None,
            "chosen setting": facts["tuned"]["chosen"] if "tuned" in facts else None,
            **{
                _PARAMETERS.get(name, name.replace("_", " ")): value
                for name, value in stated.items()
                if name != "rows"
            },
            "number of rows": stated.get("rows"),
            "schema (content digest)": facts["schema_sha256"],
            "bounds released before": [_paid(each) for each in facts.get(KEY, [])],
            "earlier release": facts.get("earlier"),
            "data set": self.entry.get("data_set"),
            "ledger entry": self.entry.get("release_id"),
            "date": facts.get("date"),
            "versions": dict(facts["versions"]),
            "release (content digest)": self.digest,
        }


@dataclass(frozen=True)
class Together:
    """What two releases cost together.

    Attributes
    ----------
    kind : str
        How the two are related.
    guarantee : Guarantee, optional
        The guarantee of both; None if their costs cannot be added.
    notes : tuple of str
        Why, and what the sum does not cover.
    """

    kind: Kind
    guarantee: Guarantee | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain values; costs are exact."""
        costs = {} if self.guarantee is None else self.guarantee.costs
        return {
            "kind": self.kind,
            "costs": None
            if self.guarantee is None
            else {relation: cost.to_dict() for relation, cost in costs.items()},
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        if self.guarantee is None:
            return "Together: not added"
        missing = [each for each in RELATIONS if each not in self.guarantee.costs]
        costs = [
            f"{shown_cost(cost)} under {relation}"
            for relation, cost in self.guarantee.costs.items()
        ] + [f"no guarantee under {relation}" for relation in missing]
        return f"Together: {', '.join(costs)}"


@dataclass(frozen=True)
class Comparison:
    """What differs between two releases, and what both cost together. Public.

    Attributes
    ----------
    same : tuple of str
        What is equal.
    different : mapping from str to pair
        What differs, with its value in the first and in the second release.
    together : Together
    """

    same: tuple[str, ...]
    different: Mapping[str, tuple[Any, Any]]
    together: Together

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "format": "dpsubset comparison 1",
            "different": {
                name: {"first": first, "second": second}
                for name, (first, second) in self.different.items()
            },
            "same": list(self.same),
            "together": self.together.to_dict(),
        }

    def lines(self) -> list[str]:
        """For people."""
        if not self.different:
            return [
                "The two files hold the same release.", str(self.together), *self.together.notes
            ]  # fmt: skip
        width = max(map(len, self.different))
        return [
            "Different (first | second):",
            *(
                f"  {name:{width}}  {_as_text(first)} | {_as_text(second)}"
                for name, (first, second) in self.different.items()
            ),
            f"Same: {', '.join(self.same)}",
            str(self.together),
            *self.together.notes,
        ]


def compare(
    first: ReleaseFacts, second: ReleaseFacts, schemas: tuple[Schema, Schema] | None = None
) -> Comparison:
    """Compare two releases; with their schemas, also what these declare.

    Parameters
    ----------
    first, second : ReleaseFacts
        Releases, read by `ReleaseFacts.load`.
    schemas : pair of Schema, optional
        The schemas that they were made with.

    Returns
    -------
    Comparison

    Raises
    ------
    ArgumentError
        If a release was made with another schema.
    """
    pairs = [(first.described(), second.described())]
    if schemas is not None:
        for release, schema in zip((first, second), schemas, strict=True):
            if release.facts["schema_sha256"] != schema.fingerprint():
                raise ArgumentError(
                    "a release was made with another schema than the one that was given for it: "
                    "give the two schemas in the order of the releases"
                )
        pairs.append((_declared(schemas[0]), _declared(schemas[1])))
    same, different = [], {}
    for one, other in pairs:
        for name in dict.fromkeys([*one, *other]):
            values = one.get(name), other.get(name)
            if values[0] == values[1]:
                same.append(name)
            else:
                different[name] = _unequal(*values)
    return Comparison(tuple(same), different, cost_together(first, second))


def cost_together(first: ReleaseFacts, second: ReleaseFacts) -> Together:
    """Return what two releases cost together, or why that is not known."""
    if first.digest == second.digest:
        return Together("same release", first.guarantee, () if first.entry else (_EQUAL,))
    if reasons := _why_not_added(first, second):
        return Together("not added", None, tuple(reasons))
    g, h = first.guarantee, second.guarantee
    notes = []
    kind: Kind
    if second.facts.get("earlier") == first.digest:
        kind, whole = "second contains first", h
        notes.append("The second release is a fit on the first one, and states the cost of both.")
    elif first.facts.get("earlier") == second.digest:
        kind, whole = "first contains second", g
        notes.append("The first release is a fit on the second one, and states the cost of both.")
    elif first.facts.get("earlier") is not None and (
        first.facts["earlier"] == second.facts.get("earlier")
    ):
        *_, (_, last) = h.parts
        kind, whole = "common earlier release", _sum(g, last)
        notes.append("Both are fits on the same earlier release, whose cost is counted once.")
    else:
        kind, whole = "separate", _sum(g, h)
    if kind in ("separate", "common earlier release"):
        notes += _provisos(first, second)
    if whole.assumes:
        notes.append(f"The sum holds only if {whole.assumes}. This has not been checked.")
    paid = {_paid(each): None for each in (*first.facts.get(KEY, []), *second.facts.get(KEY, []))}
    notes += [f"Not in the sum: {each}." for each in paid]
    return Together(kind, whole, tuple(notes))


def _unequal(first: Any, second: Any) -> tuple[Any, Any]:
    """Return two values that differ; of two mappings only the entries that do."""
    if not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return first, second
    left, right = (
        {name: value for name, value in one.items() if name not in other or other[name] != value}
        for one, other in ((first, second), (second, first))
    )
    return left, right


def _sum(g: Guarantee, h: Guarantee) -> Guarantee:
    # The declared relation of the second one does not matter: costs are added for each relation.
    return Guarantee.compose({_FIRST: g, _SECOND: replace(h, neighbours=g.neighbours)})


def _why_not_added(first: ReleaseFacts, second: ReleaseFacts) -> list[str]:
    reasons = []
    for name, each in ((_FIRST, first), (_SECOND, second)):
        if each.guarantee.seeded or not each.guarantee.proven:
            why = "was made with a seed" if each.guarantee.seeded else "has no privacy guarantee"
            reasons.append(f"{name.capitalize()} {why}, so nothing limits what both reveal.")
    if first.unit != second.unit:
        units = " and ".join(f"{unit!r} with up to {most} row{'s' * (most > 1)}" for unit, most in
                             (first.unit, second.unit))  # fmt: skip
        reasons.append(f"They protect different units: {units}. Their costs cannot be added.")
    sets = first.entry.get("data_set"), second.entry.get("data_set")
    if None not in sets and sets[0] != sets[1]:
        reasons.append(
            f"They are of different data sets, {sets[0]!r} and {sets[1]!r}: their costs are not "
            "added. A person who is in both data sets has the cost of each."
        )
    return reasons


def _provisos(first: ReleaseFacts, second: ReleaseFacts) -> list[str]:
    """State what the sum of two separate releases rests on."""
    books = first.entry.get("ledger"), second.entry.get("ledger")
    found = []
    if None in books:
        found.append(
            "The sum is for releases from the same data set. Whether these two are was not "
            "checked, since not both have an entry in a ledger."
        )
    elif books[0] != books[1]:
        found.append("They are in two ledgers of one data set: no ledger limits the sum.")
    elif first.entry.get("release_id") == second.entry.get("release_id"):
        found.append(
            "Both name the same entry of a ledger, which has one release: at least one of the "
            "files was changed. 'dpsubset verify' with the ledger shows which."
        )
    rows = [each.facts["parameters"].get("rows") for each in (first, second)]
    if None not in rows and rows[0] != rows[1]:
        found.append(
            f"The tables had {rows[0]} and {rows[1]} rows, so they were not the same. The sum "
            "holds for a person who is in both."
        )
    return found


def _coefficients(model: Mapping[str, Any]) -> dict[str, str]:
    terms = [*model["terms"], model["intercept"]]
    return {str(term["name"]): f"{term['coefficient']:.4g}" for term in terms}


def _paid(entry: Mapping[str, Any]) -> str:
    names: Sequence[str] = entry["columns"]
    cost = f"epsilon = {shown_up(Fraction(entry['epsilon']))} under {entry['neighbours']}"
    seeded = ", WITH A SEED" if entry.get("seeded") else ""
    return f"bounds of {', '.join(names)}, released before for {cost}{seeded}"


def _declared(schema: Schema) -> dict[str, Any]:
    facts = schema.to_dict()
    return {
        "schema: bad_cells": facts["bad_cells"],
        "schema: response": facts["response"],
        **{f"schema: {name}": entry for name, entry in facts["columns"].items()},
    }


def _as_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {_as_text(each)}" for name, each in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_as_text, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _fit_of(facts: Mapping[str, Any]) -> str:
    """Name the mechanism of a fit, or both where it released sums and coefficients."""
    parts = [facts, *([facts["minimum"]] if "minimum" in facts else [])]
    return " and ".join(part["mechanism"] for part in parts)
