"""Release: a privately selected support, for machines and for people.

A release holds what was released and public facts, and nothing else: no objective value, no number
of rows unless it is public, no time but the day of the call. Everything here may be published.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from ..base.errors import ArgumentError, DpsubsetError
from ..base.rounding import float_up
from ..base.text import escape_for_terminal
from ..ledger.canonical import sha256_of_facts
from ..ledger.receipt import KeptReceipt, Receipt
from ..mechanisms import MECHANISMS
from ..mechanisms.shared.base import SYSTEM_NOISE
from ..objective.problem import Problem
from ..objective.sensitivity import Sensitivity
from ..privacy.guarantee import Guarantee, shown_cost
from ..privacy.relations import PUBLIC_N
from ..schema.encoding import Design
from ..schema.labels import IMAGES
from ..schema.provenance import KEY
from ..schema.schema import Schema, SchemaLike
from .about import About
from .class_share import ReleasedShare
from .files import facts_from_json, facts_to_json, read_bytes
from .fitted import ReleasedFit
from .model import Model
from .notebook import release_html
from .readable import ReleasedReadable
from .response_range import ReleasedRange
from .statement.content import MADE_IN_SEARCH, warnings_of_guarantee
from .statement.write import Form, write_statement
from .tuned import Tuned, setting_as_text

if TYPE_CHECKING:
    # With a default, which `typing` has from Python 3.13 on: a bare Release may have a model.
    from typing_extensions import TypeVar

    OptionalModel = TypeVar(
        "OptionalModel", bound=Model | None, covariant=True, default=Model | None
    )
else:
    from typing import TypeVar

    OptionalModel = TypeVar("OptionalModel", covariant=True)

FORMAT = "dpsubset release 1"

_PACKAGES = ("dpsubset", "numpy", "scipy", "numba", "python-flint", "scikit-learn", "opendp")


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a release is made with."""
    return {
        "python": platform.python_version(),
        **{name: _package_version(name) for name in _PACKAGES},
    }


@cache
def _package_version(package: str) -> str:
    """Look a version up once: it takes longer than a small selection."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed as a package"


@dataclass(frozen=True)
class Release(Generic[OptionalModel]):
    """A privately selected support with its guarantee and provenance.

    To type checkers ``Release[Model]`` is a release that has a model.

    Attributes
    ----------
    support : tuple of int, or None
        Positions of the selected variables among the schema's features, where a group counts as
        one; None if the mechanism released no support, as some may.
    features : list of str
        The names of these variables; for a group, the name of the group.
    guarantee : Guarantee
        The privacy cost of the release under its relation of neighbours.
    earlier : str, optional
        The content digest of the earlier release that named the support, if the model was fitted on
        one; the guarantee is that of both.
    scale : ReleasedRange, optional
        The range of the response, if one was released before the selection.
    class_share : ReleasedShare, optional
        The share of each label, if it was released before the selection.
    model : Model, optional
        The model that was fitted on the support.
    fit : ReleasedFit, optional
        The noisy sums or coefficients that the model was computed from.
    tuned : Tuned, optional
        The private search that chose the setting of the release; the guarantee is that of the whole
        search.
    made_in_search : bool
        Whether the call was part of scikit-learn's model selection. Then the release is private by
        itself, but scores and choices of that search are not.
    rows : int, optional
        The number of rows, where it is public and no cost under add-remove is stated.
    date : str, optional
        The day of the call in UTC, taken before a value was read.
    versions : dict
        Versions of Python and of packages.
    readable : ReleasedReadable, optional
        Noisy counts of cells without a value, if requested.
    column_warnings : tuple of str
        Columns whose type does not match the schema; many of their cells may have counted as
        missing.
    receipt : Receipt, optional
        The entry in a ledger, whose id is that of the release, and what was spent before.
    diagnostics : dict, optional
        NOT PRIVATE counts of the search, if requested; no file has them.
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
    class_share: ReleasedShare | None = None
    model: OptionalModel = None  # type: ignore[assignment]
    fit: ReleasedFit | None = field(default=None, repr=False)
    tuned: Tuned | None = None
    made_in_search: bool = False
    earlier: str | None = None
    rows: int | None = None
    date: str | None = field(default=None, compare=False)
    versions: Mapping[str, str] = field(default_factory=package_versions, repr=False, compare=False)
    readable: ReleasedReadable | None = None
    column_warnings: tuple[str, ...] = ()
    receipt: Receipt | KeptReceipt | None = None
    diagnostics: dict[str, int] | None = field(default=None, repr=False, compare=False)

    @property
    def largest_size(self) -> int | None:
        """The largest number of variables if their number was chosen privately, None otherwise."""
        chosen = MECHANISMS.get(self.mechanism)
        return self.problem.k if chosen is not None and chosen.chooses_size else None

    @property
    def stated(self) -> Guarantee:
        """The guarantee without a cost under add-remove if the number of rows is stated.

        Release files of earlier versions may have both.
        """
        return self.guarantee if self.rows is None else self.guarantee.limited_to(PUBLIC_N)

    @property
    def warnings_of_counts(self) -> tuple[str, ...]:
        """Warnings of released numbers that indicate unreadable cells."""
        parts = (self.readable, self.scale, self.class_share, self.fit)
        return tuple(text for part in parts if part is not None for text in part.warnings())

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        g, problem, s = self.guarantee, self.problem, self.sensitivity
        warned = warnings_of_guarantee(g)
        return {
            "format": FORMAT,
            **({} if self.date is None else {"date": self.date}),
            **({"warning": " ".join(warned)} if warned else {}),
            **({"column_warnings": [*self.column_warnings]} if self.column_warnings else {}),
            "features": list(self.features),
            "support": None if self.support is None else list(self.support),
            **({} if self.earlier is None else {"earlier": self.earlier}),
            **({} if self.scale is None else {"scale": self.scale.to_dict()}),
            **({} if self.class_share is None else {"class_share": self.class_share.to_dict()}),
            **({} if self.readable is None else {"readable": self.readable.to_dict()}),
            **({} if self.model is None else {"model": self.model.to_dict()}),
            **({} if self.fit is None else {"fit": self.fit.to_dict()}),
            **({} if self.tuned is None else {"tuned": self.tuned.to_dict()}),
            **({"made_in_search": True} if self.made_in_search else {}),
            "guarantee": g.to_dict(
                unit=self.schema.privacy_unit, rows_per_unit=self.schema.rows_per_unit
            ),
            "mechanism": self.mechanism,
            "mechanism_summary": self.mechanism_summary,
            "mechanism_options": {
                name: _option_value(value) for name, value in self.options.items()
            },
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
        """Write a release file: JSON with a content digest."""
        return facts_to_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes, schema: SchemaLike) -> Release:
        """Read what :meth:`to_json` wrote, for a release from a table of this schema.

        Parameters
        ----------
        text : str or bytes
            The content of a release file.
        schema : Schema, path of a bounds file or dict of the same form
            The schema that the release was made with. For a bounds file with patterns, which stand
            for the names of a table, pass ``Schema.read(path, names)``.

        Raises
        ------
        ArgumentError
            If the file was changed, or the release was made with another schema.
        """
        if isinstance(schema, Mapping):
            schema = Schema.from_dict(schema)
        elif isinstance(schema, (str, Path)):
            schema = Schema.read(schema)
        elif not isinstance(schema, Schema):
            raise ArgumentError(
                "schema must be the dpsubset.Schema that the release was made with, the path of "
                "its bounds file, or a dict of the same form"
            )
        return _release_from_json(text, schema)

    @classmethod
    def load(cls, path: str | Path, schema: SchemaLike) -> Release:
        """Read a release file, with or without a model.

        Parameters
        ----------
        path : str or Path
            The release file.
        schema : Schema, path of a bounds file or dict of the same form
            As for :meth:`from_json`, which also lists the errors.

        Examples
        --------
        >>> import numpy as np, dpsubset as dps
        >>> X = np.tile([[-1.0, 1.0], [1.0, 1.0]], (500, 1))
        >>> release = dps.fit(X, y=X[:, 0], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=10)
        >>> again = dps.Release.from_json(release.to_json(), release.schema)
        >>> again.statement() == release.statement()
        True
        """
        return cls.from_json(read_bytes(path, "release"), schema)

    @property
    def content_digest(self) -> str:
        """The SHA-256 of all facts in canonical form, as in a release file and in ledgers.

        It does not depend on the formatting of a file. ``dpsubset verify`` prints it for a release
        file.
        """
        return sha256_of_facts(self.to_dict())

    def statement(self, about: About | None = None, *, form: Form = "markdown") -> str:
        """The privacy statement, for the person who signs.

        Parameters
        ----------
        about : About, optional
            What only the caller knows: data set, persons, purpose. The rest is to be filled in.
        form : {"markdown", "html", "json", "yaml"}
            "html" is one page to read or print, "yaml" a draft for OpenDP's deployments registry.
        """
        return write_statement(self, about, form)

    def __str__(self) -> str:
        """Summarise the release and its cost in a few lines."""
        heading, names, facts, fitted = _heading_names_facts(self)
        lines = [
            *_not_private_flags(self.guarantee),
            heading,
            *(f"  {name}" for name in names),
            *facts,
            *(str(self.model).splitlines() if self.model else []),
            *fitted,
        ]
        return "\n".join(map(escape_for_terminal, lines))

    def _repr_html_(self) -> str:
        """Summarise the release for notebooks."""
        heading, names, facts, fitted = _heading_names_facts(self)
        flags = _not_private_flags(self.guarantee)
        return release_html(flags, heading, names, [*facts, *fitted], self.model)


def _not_private_flags(g: Guarantee) -> list[str]:
    return [
        *(["*** NOT PRIVATE: seeded draw, for tests only ***"] if g.seeded else []),
        *([] if g.proven else ["*** NOT PRIVATE: no guarantee ***"]),
    ]


def _heading_names_facts(release: Release) -> tuple[str, list[str], list[str], list[str]]:
    g, schema = release.stated, release.schema
    selected = f"Selected {len(release.features)} of {release.problem.p} variables"
    if release.largest_size is not None:
        selected += f" (number chosen privately, at most {release.largest_size})"
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
            *([_tuned_line(release.tuned)] if release.tuned else []),
            *([MADE_IN_SEARCH] if release.made_in_search else []),
            *(f"Released first: {each}" for each in (release.scale, release.class_share) if each),
            *(f"Warning: {text}" for text in release.column_warnings),
            *(f"Warning: {text}" for text in release.warnings_of_counts),
            *(release.readable.lines() if release.readable else []),
            *([f"Ledger: {release.receipt}"] if release.receipt else []),
        ],
        [f"Fitted on {rows}"] if rows else [],
    )


def _tuned_line(tuned: Tuned) -> str:
    return f"Chosen privately among {len(tuned.grid)} settings: {setting_as_text(tuned.setting)}"


def _option_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_option_value(each) for each in value]
    return str(value) if isinstance(value, Fraction) else value


def _label_entries(schema: Schema) -> list[dict[str, Any]] | None:
    if schema.response.labels is None:
        return None
    pairs = zip(schema.response.labels, IMAGES, strict=True)
    return [{"label": label, "counts_as": int(image)} for label, image in pairs]


OTHER_SCHEMA = (
    "this release was not made from this schema: its fingerprint is another one. Take the schema "
    "that the release was made with, unchanged"
)


def _release_from_json(text: str | bytes, schema: Schema) -> Release:
    """Build a release from a file, and accept it only if it would be written as the same file."""
    facts = facts_from_json(text, FORMAT, "release")
    if facts.get("schema_sha256") != schema.fingerprint():
        raise ArgumentError(OTHER_SCHEMA)
    if "model" in facts and "clip" not in facts.get("fit", ()):
        raise ArgumentError(
            "this release file was written by an earlier version of dpsubset, and its model cannot "
            "be read from it: read its model file"
        )
    with suppress(
        DpsubsetError, LookupError, TypeError, ValueError, AttributeError, OverflowError,
        ZeroDivisionError,
    ):  # fmt: skip
        found = _release_from_facts(facts, schema)
        again = json.loads(json.dumps(found.to_dict()))
        # Versions are those of the program that wrote the file.
        if {**again, "versions": 0} == {**facts, "versions": 0}:
            # A cost under add-remove that does not hold is not stated from now on.
            return replace(found, guarantee=found.stated)
    raise ArgumentError("this release file is damaged, or was not written by dpsubset")


def _release_from_facts(facts: Mapping[str, Any], schema: Schema) -> Release:
    design, stated, promised = Design.of(schema), facts["parameters"], facts["guarantee"]
    labels = schema.response.labels is not None
    problem = Problem.create(
        len(design.choices), stated["k"], constraint=stated["constraint"], radius=stated["radius"],
        ridge=stated["ridge"], neighbours=promised["neighbours"],
        always_include=stated["always_include"], loss=stated["loss"], threshold=stated["threshold"],
        intercept=stated["intercept"] is not None, labels=labels, layout=design.layout,
    )  # fmt: skip
    support = None if facts["support"] is None else tuple(facts["support"])
    if support is not None and support != tuple(j for j in range(problem.p) if j in support):
        raise ValueError("a support lists positions of variables in order")
    versions = dict(facts["versions"])
    scale = ReleasedRange.from_dict(facts["scale"], schema.response) if "scale" in facts else None
    share = None
    if "class_share" in facts:
        share = ReleasedShare.from_dict(facts["class_share"], schema.response)
    model = Model.from_dict(facts["model"]) if "model" in facts else None
    fit = None
    if support is not None and model is not None:
        fit = ReleasedFit.from_dict(
            facts["fit"], schema, support, scale, problem.neighbours, stated.get("rows")
        )
        if len(model.terms) != fit.entries.m:
            raise ValueError("the model has other columns than the fit")
    if not all(isinstance(text, str) for text in (*versions, *versions.values())):
        raise TypeError("versions are texts")
    return Release(
        support=support,
        features=design.names(support),
        guarantee=Guarantee.from_dict(promised),
        mechanism=facts["mechanism"],
        mechanism_summary=facts["mechanism_summary"],
        schema=schema,
        problem=problem,
        sensitivity=Sensitivity.of(problem, stated["sensitivity"]),
        options=facts["mechanism_options"],
        details=facts["mechanism_details"],
        randomness=facts["randomness"],
        scale=scale,
        class_share=share,
        model=model,
        fit=fit,
        tuned=Tuned.from_dict(facts["tuned"]) if "tuned" in facts else None,
        made_in_search=facts.get("made_in_search", False),
        earlier=facts.get("earlier"),
        rows=stated.get("rows"),
        readable=ReleasedReadable.from_dict(facts["readable"]) if "readable" in facts else None,
        column_warnings=tuple(map(str, facts.get("column_warnings", ()))),
        date=facts.get("date"),
        versions=versions,
        receipt=KeptReceipt(facts["ledger"]) if "ledger" in facts else None,
    )
