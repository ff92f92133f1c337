"""Release: what may leave, for machines and for people.

Holds what was released, a support and perhaps a scale of the response, and public facts; nothing
else: no objective value, no row count unless it is public, no time but the day on which it was
asked for. Everything here may be published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

from ..base.rounding import float_up
from ..base.text import escape_for_terminal
from ..ledger.receipt import KeptReceipt, Receipt
from ..mechanisms.shared.base import SYSTEM_NOISE
from ..objective.problem import Problem
from ..objective.sensitivity import Sensitivity
from ..privacy.guarantee import Guarantee, shown_cost
from ..privacy.relations import PUBLIC_N, Neighbours
from ..schema.labels import IMAGES
from ..schema.provenance import KEY
from ..schema.schema import Schema
from .about import About
from .files import loaded, written
from .fitted import ReleasedFit
from .model import Model
from .notices import MADE_IN_SEARCH, versions, warnings
from .readable import ReleasedReadable
from .scale import ReleasedRange
from .statement import Form, statement
from .tuned import Tuned, shown

FORMAT = "dpsubset release 1"


@dataclass(frozen=True)
class Release:
    """A privately selected support with its guarantee and provenance.

    Attributes
    ----------
    support : tuple of int, or None
        Positions of the selected variables among the schema's features, of which a group counts as
        one; None if the mechanism released nothing, as some may.
    features : list of str
        Their names; of a group, that of the group.
    guarantee : Guarantee
        What the release costs, and under which neighbours.
    earlier : str, optional
        The digest of the release that named the support, where a model was fitted on an earlier
        one; the guarantee is that of both.
    scale : ReleasedRange, optional
        The scale of the response, where one was released before the selection.
    model : Model, optional
        What was fitted on the support, where that was asked for.
    fit : ReleasedFit, optional
        The noisy sums that the model was made of.
    tuned : Tuned, optional
        The private search that chose the setting of the release, where there was one; the guarantee
        is that of the whole search.
    made_in_search : bool
        Whether scikit-learn's model selection was among the callers. Then the release is private by
        itself, but scores and choices of that search are not.
    rows : int, optional
        The number of rows, where it is public and no cost under add-remove is stated.
    date : str, optional
        The day on which it was asked for, in UTC: taken before a value was read.
    versions : dict
        What it was made with.
    readable : ReleasedReadable, optional
        Noisy counts of the cells that hold no value, where these were asked for.
    column_warnings : tuple of str
        Columns whose types go ill with the schema: much of them may have counted as missing.
    receipt : Receipt, optional
        Its entry in a ledger, whose id is the release's, and what was spent before.
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
    scale: ReleasedRange | None = None
    model: Model | None = None
    fit: ReleasedFit | None = field(default=None, repr=False)
    tuned: Tuned | None = None
    made_in_search: bool = False
    earlier: str | None = None
    rows: int | None = None
    date: str | None = field(default=None, compare=False)
    versions: Mapping[str, str] = field(default_factory=versions, repr=False, compare=False)
    readable: ReleasedReadable | None = None
    column_warnings: tuple[str, ...] = ()
    receipt: Receipt | KeptReceipt | None = None
    diagnostics: dict[str, int] | None = field(default=None, repr=False, compare=False)

    @property
    def stated(self) -> Guarantee:
        """The guarantee as statements have it: no cost under add-remove beside the number of rows.

        Release files of earlier versions may have both.
        """
        return self.guarantee if self.rows is None else self.guarantee.limited_to(PUBLIC_N)

    @property
    def warnings_of_counts(self) -> tuple[str, ...]:
        """What released numbers tell of cells that may not have been read as they were meant."""
        parts = (self.readable, self.scale, self.fit)
        return tuple(text for part in parts if part is not None for text in part.warnings())

    def to_dict(self) -> dict[str, Any]:
        """Everything a machine may want to know, as plain values."""
        g, problem, s = self.guarantee, self.problem, self.sensitivity
        return {
            "format": FORMAT,
            **({} if self.date is None else {"date": self.date}),
            **({"warning": " ".join(warnings(g))} if warnings(g) else {}),
            **({"column_warnings": [*self.column_warnings]} if self.column_warnings else {}),
            "features": list(self.features),
            "support": None if self.support is None else list(self.support),
            **({} if self.earlier is None else {"earlier": self.earlier}),
            **({} if self.scale is None else {"scale": self.scale.to_dict()}),
            **({} if self.readable is None else {"readable": self.readable.to_dict()}),
            **({} if self.model is None else {"model": self.model.to_dict()}),
            **({} if self.fit is None else {"fit": self.fit.to_dict()}),
            **({} if self.tuned is None else {"tuned": self.tuned.to_dict()}),
            **({"made_in_search": True} if self.made_in_search else {}),
            "guarantee": {
                "private": g.private,
                "seeded": g.seeded,
                "epsilon": _float(g.epsilon),
                "epsilon_exact": None if g.epsilon is None else str(g.epsilon),
                "delta": float_up(g.delta),
                "assumes": g.assumes,
                "neighbours": g.neighbours,
                "unit": self.schema.privacy_unit,
                "rows_per_unit": self.schema.rows_per_unit,
                **_either_way(g),
                "costs": _costs(g),
                **_parts(g),
            },
            "mechanism": self.mechanism,
            "mechanism_summary": self.mechanism_summary,
            "mechanism_options": {name: _plain(value) for name, value in self.options.items()},
            "mechanism_details": list(self.details),
            "randomness": self.randomness,
            "parameters": {
                "loss": problem.loss,
                "threshold": problem.threshold,
                "labels": _label_entries(self.schema),
                "p": problem.p,
                "k": problem.k,
                "always_include": list(problem.always_include),
                "constraint": problem.constraint,
                "radius": problem.radius,
                "reach": float_up(problem.prediction_bound),
                "ridge": problem.ridge,
                "intercept": float(problem.layout.intercept_value) or None,
                "columns": problem.columns,
                **({} if self.rows is None else {"rows": self.rows}),
                "sensitivity": s.rule,
                "range": float_up(s.range),
                "tau": float_up(s.tau),
            },
            "schema_sha256": self.schema.fingerprint(),
            **({KEY: [each.entry() for each in self.schema.paid]} if self.schema.paid else {}),
            **({} if self.receipt is None else {"ledger": self.receipt.to_dict()}),
            "versions": dict(self.versions),
        }

    def to_json(self) -> str:
        """A release file: all of this as JSON, and a digest of it."""
        return written(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes, schema: Schema) -> Release:
        """Read what :meth:`to_json` wrote of a release from a table of this schema.

        An error for anything else: a file that was changed, or a release from another schema. A
        release that has a model is not read back; its model has a file of its own.
        """
        from .reading import release_of

        return release_of(text, schema)

    @classmethod
    def load(cls, path: str | Path, schema: Schema) -> Release:
        """Read a release file."""
        return cls.from_json(loaded(path, "release"), schema)

    def statement(self, about: About | None = None, *, form: Form = "markdown") -> str:
        """The privacy statement, for the person who signs.

        Parameters
        ----------
        about : About, optional
            What only the caller knows: data set, persons, purpose. The rest is left to fill in.
        form : {"markdown", "html", "json", "yaml"}
            "html" is one page to read or print, "yaml" a draft for OpenDP's deployments registry.
        """
        return statement(self, about, form)

    def __str__(self) -> str:
        """What was released and what it cost, in a few lines."""
        heading, names, facts = _summary(self)
        lines = [*_flags(self.guarantee), heading, *(f"  {name}" for name in names), *facts]
        return "\n".join(map(escape_for_terminal, lines))

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
    g, schema = release.stated, release.schema
    selected = f"Selected {len(release.features)} of {release.problem.p} variables"
    if release.support is None:
        selected = "Released nothing: no set of variables could be named"
    costs = [f"{shown_cost(cost)} under {relation}" for relation, cost in g.costs.items()]
    rows = None if release.fit is None else release.fit.rows_in_words(schema.response.name)
    return (
        f"{selected} to explain {schema.response.name}:",
        list(release.features),
        [
            f"Guarantee: {g}; unit of privacy: {schema.protected}",
            *([f"Cost: {', '.join(costs)}"] if costs and g.private else []),
            *([_chosen(release.tuned)] if release.tuned else []),
            *([MADE_IN_SEARCH] if release.made_in_search else []),
            *([f"Released first: {release.scale}"] if release.scale else []),
            *(f"Warning: {text}" for text in release.column_warnings),
            *(f"Warning: {text}" for text in release.warnings_of_counts),
            *(release.readable.lines() if release.readable else []),
            *([f"Ledger: {release.receipt}"] if release.receipt else []),
            *(str(release.model).splitlines() if release.model else []),
            *([f"Fitted on {rows}"] if rows else []),
        ],
    )


def _chosen(tuned: Tuned) -> str:
    return f"Chosen privately among {len(tuned.grid)} settings: {shown(tuned.setting)}"


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


def _costs(g: Guarantee) -> dict[str, dict[str, str | bool | None]]:
    """The same exactly: what the floats beside it are rounded up from."""
    return {
        relation: {
            "epsilon": str(cost.epsilon),
            "delta": str(cost.delta),
            "rho": None if cost.rho is None else str(cost.rho),
            **({"bounded_range": True} if cost.bounded_range else {}),
        }
        for relation, cost in g.costs.items()
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
            "costs": _costs(part),
        }
        for name, part in g.parts
    ]
    return {"parts": entries}


def _plain(value: Any) -> Any:
    """An option as JSON has it."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Fraction) else value


def _label_entries(schema: Schema) -> list[dict[str, Any]] | None:
    """The labels of the response, and what they count as."""
    if schema.response.labels is None:
        return None
    pairs = zip(schema.response.labels, IMAGES, strict=True)
    return [{"label": label, "counts_as": int(image)} for label, image in pairs]
