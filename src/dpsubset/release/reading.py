"""Release files, read back: everything is made anew of what they say and of the schema.

A file is taken for what it says only if the release that is made of it would be written the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ..base.errors import ArgumentError, DpsubsetError
from ..ledger.receipt import KeptReceipt
from ..objective.problem import Problem
from ..objective.sensitivity import Sensitivity
from ..privacy.guarantee import Cost, Guarantee
from ..privacy.quantiles import QuantileRule
from ..schema.encoding import Design
from ..schema.schema import Schema
from .files import opened
from .readable import ReleasedReadable
from .release import FORMAT, Release
from .scale import ReleasedRange

#: Of the program that wrote the file, not of the release.
_OF_THE_PROGRAM = "versions"


def release_of(text: str | bytes, schema: Schema) -> Release:
    """The release of a file, from a table of this schema."""
    facts = opened(text, FORMAT, "release")
    if facts.get("schema_sha256") != schema.fingerprint():
        raise ArgumentError(OTHER_SCHEMA)
    if "model" in facts:
        raise ArgumentError("this release has a model already: read its model file")
    with suppress(
        DpsubsetError, LookupError, TypeError, ValueError, AttributeError, OverflowError,
        ZeroDivisionError,
    ):  # fmt: skip
        found = _release(facts, schema)
        if _same(found, facts):
            # Without a cost under add-remove that does not hold, in what is written from now on.
            return replace(found, guarantee=found.stated)
    raise ArgumentError("this release file is damaged, or was not written by dpsubset")


OTHER_SCHEMA = (
    "this release was not made from this schema: its fingerprint is another one. Take the schema "
    "that the release was made with, unchanged"
)


def _same(release: Release, facts: Mapping[str, Any]) -> bool:
    again = json.loads(json.dumps(release.to_dict()))
    return {**again, _OF_THE_PROGRAM: 0} == {**facts, _OF_THE_PROGRAM: 0}


def _release(facts: Mapping[str, Any], schema: Schema) -> Release:
    design, said, promised = Design.of(schema), facts["parameters"], facts["guarantee"]
    labels = schema.response.labels is not None
    problem = Problem.create(
        len(design.choices), said["k"], constraint=said["constraint"], radius=said["radius"],
        ridge=said["ridge"], neighbours=promised["neighbours"],
        always_include=said["always_include"], loss=said["loss"], threshold=said["threshold"],
        intercept=said["intercept"] is not None, labels=labels, layout=design.layout,
    )  # fmt: skip
    support = None if facts["support"] is None else tuple(facts["support"])
    if support is not None and support != tuple(j for j in range(problem.p) if j in support):
        raise ValueError("a support lists positions of variables in order")
    scale = _scale(facts["scale"], schema) if "scale" in facts else None
    return Release(
        support=support,
        features=design.names(support),
        guarantee=_guarantee(promised, promised),
        mechanism=facts["mechanism"],
        mechanism_summary=facts["mechanism_summary"],
        schema=schema,
        problem=problem,
        sensitivity=Sensitivity.of(problem, said["sensitivity"]),
        options=facts["mechanism_options"],
        details=facts["mechanism_details"],
        randomness=facts["randomness"],
        scale=scale,
        earlier=facts.get("earlier"),
        rows=said.get("rows"),
        readable=ReleasedReadable.from_dict(facts["readable"]) if "readable" in facts else None,
        column_warnings=tuple(map(str, facts.get("column_warnings", ()))),
        date=facts.get("date"),
        versions=_versions(facts[_OF_THE_PROGRAM]),
        receipt=KeptReceipt(facts["ledger"]) if "ledger" in facts else None,
    )


def _versions(said: Mapping[str, Any]) -> dict[str, str]:
    if not all(isinstance(text, str) for text in (*said, *said.values())):
        raise TypeError("versions are texts")
    return dict(said)


def _scale(said: Mapping[str, Any], schema: Schema) -> ReleasedRange:
    listed = said["quantiles"]
    shares = tuple(Fraction(each["share"]) for each in listed)
    rule = QuantileRule(shares, Fraction(said["widening"]), Fraction(said["least_in_steps"]))
    steps = tuple(int(each["step"]) for each in listed)
    return ReleasedRange(rule, rule.range_of(steps), schema.response)


def _guarantee(said: Mapping[str, Any], whole: Mapping[str, Any]) -> Guarantee:
    """Of a release, or of one of its parts."""
    if "parts" in said:
        parts = {part["name"]: _guarantee(part, whole) for part in said["parts"]}
        # Files of earlier versions state costs of parts that the whole does not have.
        return replace(Guarantee.compose(parts), parts=tuple(parts.items()))
    costs = {relation: _cost(cost) for relation, cost in said["costs"].items()}
    return Guarantee(whole["neighbours"], costs, whole["seeded"], said["assumes"])


def _cost(said: Mapping[str, Any]) -> Cost:
    rho = None if said["rho"] is None else Fraction(said["rho"])
    ranged = said.get("bounded_range") is True
    return Cost(Fraction(said["epsilon"]), Fraction(said["delta"]), rho, bounded_range=ranged)
