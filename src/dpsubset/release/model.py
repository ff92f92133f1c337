"""Model: a linear model on a released support, in the user's units.

    prediction = intercept + sum of coefficient * column

over the columns of the model. A column is a number (its logarithm or square root, if declared), or
an indicator of a level of a category; the other levels are compared with the first one. For a
response with a transform the prediction is the mean of its logarithm or square root; for a logistic
model it is the logarithm of the odds of the second label. `Model.target` says what the model is of.
Everything here is computed from released numbers and may be published.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..base.errors import ArgumentError, ColumnTypeWarning, DpsubsetError
from ..base.text import escape_for_terminal
from ..base.validation import check_choice
from ..data.quantize import Quantizer
from ..data.readers.features import feature_blocks
from ..schema.encoding import Design, ModelColumn
from ..schema.layout import STEPS
from ..schema.schema import Column, FeatureSchema, Schema
from .files import facts_from_json, facts_to_json, read_bytes
from .notebook import model_html
from .target import Of, kind_of, predicted, target_of

FORMAT = "dpsubset model 1"

#: Stands for an infinite end in a file: JSON has no infinity.
_OPEN = None


@dataclass(frozen=True)
class Term:
    """A coefficient of a model.

    Attributes
    ----------
    name : str
        The feature, with its level if it has levels: ``ward = medicine``.
    coefficient : float
        In units of the model's target per unit of the column, shrunk towards 0 where noise is
        large.
    interval : pair of floats
        95 % confidence interval of the coefficient in the population that the rows were drawn from:
        sampling and the noise for privacy.
    table_interval : pair of floats
        95 % interval of the least squares coefficient of this table: the noise alone.
    standardised : float, optional
        Deviations of the response per deviation of the column, if these were released.
    """

    name: str
    coefficient: float
    interval: tuple[float, float]
    table_interval: tuple[float, float]
    standardised: float | None = 0.0

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.interval[0] > 0 or self.interval[1] < 0

    def to_dict(self) -> dict[str, Any]:
        """As plain values; an infinite end is null."""
        return {
            "name": self.name,
            "coefficient": self.coefficient,
            "interval": _finite_ends(self.interval),
            "table_interval": _finite_ends(self.table_interval),
            "standardised": self.standardised,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Term:
        """Read what :meth:`to_dict` wrote."""

        def interval(ends: Any) -> tuple[float, float]:
            low, high = (None if end is None else float(end) for end in ends)
            return -math.inf if low is None else low, math.inf if high is None else high

        return cls(
            str(facts["name"]), float(facts["coefficient"]), interval(facts["interval"]),
            interval(facts["table_interval"]), _optional_float(facts["standardised"]),
        )  # fmt: skip


@dataclass(frozen=True)
class Model:
    """A linear model on a released support. Public.

    Attributes
    ----------
    terms : tuple of Term
        One for each column of the model.
    constant : Term
        The intercept.
    r2 : float, optional
        Estimated fraction of the response's variance that the model explains on the table, between
        0 and 1, from the same noisy sums. It refers to the clipped and transformed response.
    schema : Schema
        Schema of the model's features and the response.
    positions, width : tuple of int, int
        Positions of these features in an array of all features, and its number of columns.
    clipped : pair of floats, optional
        The range to which the response was clipped for the fit, in its units.
    guarantee : str
        The privacy cost of the release, in words.
    link : {"identity", "logistic"}
        The link function.
    loss : str, optional
        The loss that was minimised: "least-squares", "logistic" or "hinge"; None in files of
        versions that did not state it.
    residual_variance : float, optional
        Estimated variance of the transformed and clipped response about the model on the table,
        between 0 and the variance of the response. None if the fit released nothing to estimate it.
    """

    terms: tuple[Term, ...]
    constant: Term
    r2: float | None
    schema: Schema
    positions: tuple[int, ...]
    width: int
    clipped: tuple[float, float] | None = None
    guarantee: str = ""
    link: str = "identity"
    loss: str | None = "least-squares"
    residual_variance: float | None = None

    @property
    def target(self) -> str:
        """The quantity that coefficients, intervals and R2 refer to: the response in the fit.

        Names its transform and the range to which it was clipped, or how labels count.
        """
        return target_of(self.schema.response, self.clipped, self.link, self.loss)

    @property
    def heading(self) -> str:
        """The kind of model, and its target."""
        labels = self.schema.response.labels is not None
        return f"{kind_of(self.link, self.loss, labels)} of {self.target}"

    @property
    def intercept(self) -> float:
        """The prediction where all columns are 0."""
        return self.constant.coefficient

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients by name of the model's columns."""
        return {term.name: term.coefficient for term in self.terms}

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """95 % confidence intervals by name: sampling and noise."""
        return {term.name: term.interval for term in self.terms}

    @property
    def table_intervals(self) -> dict[str, tuple[float, float]]:
        """95 % intervals of the table's own least squares coefficients by name: noise alone."""
        return {term.name: term.table_interval for term in self.terms}

    @property
    def standardised(self) -> dict[str, float | None]:
        """Standardised coefficients by name: deviations of the response per deviation."""
        return {term.name: term.standardised for term in self.terms}

    def predict(self, data: Any, of: Of | None = None) -> NDArray[np.float64]:
        """Predictions for the rows of a file, a frame or an array, within the declared bounds.

        Cells are read, clipped and filled in as they were for the fit. An array has all columns of
        the fit's table, or those of the model alone. Predictions are of the response as it was
        clipped for the fit (`target`).

        Parameters
        ----------
        data : path, list of paths, pyarrow dataset, data frame or array
        of : {"median", "mean"}, optional
            Of a response that was declared with a transform. "median" undoes the transform: exp of
            the predicted mean of the logarithm, which is the median of the response where errors
            are symmetric, and below its mean. "mean" allows for the errors, as if they were normal,
            with their `residual_variance` s^2: exp(score + s^2 / 2) for a logarithm, score^2 + s^2
            for a square root. By default the median. Where errors are not normal, the mean may be
            off by a factor of several: docs/model.md has an example. Without a transform both are
            the linear prediction, which is of the mean.

        For a response with labels, the prediction is the mean of the label counted as -1 and 1:
        twice the probability of the second label, minus 1. `probabilities` returns the probability.
        """
        of = self._settled(of)
        scores = self.scores(data)
        response = self.schema.response
        if self.link == "logistic":
            return np.tanh(scores / 2)
        low, high = response.scaled_span
        scores = np.clip(scores, low, high)
        if response.transform is None:
            return scores
        variance = self.residual_variance if of == "mean" else 0.0
        assert variance is not None  # or there would have been an error
        most = response.span[1]
        assert most is not None  # a transform goes with bounds
        if response.transform == "log":
            return np.minimum(np.exp(np.minimum(scores + variance / 2, high)), most)
        return np.minimum(scores**2 + variance, most)

    def predicts(self, of: Of | None = None) -> str:
        """Describe what `predict` returns."""
        of = self._settled(of)
        return predicted(self.schema.response, self.target, of, self.residual_variance)

    def _settled(self, of: Of | None) -> Of:
        """Return what predictions are of; refuse a mean that cannot be computed."""
        if of is None:
            return "mean" if self.schema.response.transform is None else "median"
        check_choice(of, get_args(Of), "of")
        if self.schema.response.labels is not None:
            raise ArgumentError("of= is for a response that was declared with a transform")
        known = self.residual_variance is not None or self.schema.response.transform is None
        if of == "mean" and not known:
            raise ArgumentError(
                "a mean of a transformed response needs a residual variance, which this fit has "
                "not released: fit by noisy-moments, or ask for of='median'"
            )
        return of

    def scores(self, data: Any) -> NDArray[np.float64]:
        """Return the linear predictions: not clipped, and before a transform is undone."""
        own = FeatureSchema(self.schema.features, self.schema.bad_cells)
        design, quantizer = Design.of(own), Quantizer(own)
        kept = [(i, c) for i, c in enumerate(design.columns) if c.level != 0 and self.terms]
        spans = [
            _middle_and_half_width(column, design.features[column.feature]) for _, column in kept
        ]
        coefficients = np.array([term.coefficient for term in self.terms])
        parts, empty = [np.empty(0)], np.ones(len(design.features), dtype=bool)
        for x in feature_blocks(data, self.schema, self.positions, self.width):
            empty &= np.isnan(np.asarray(x, dtype=np.float64)).all(axis=0)
            cells = np.empty((len(x), quantizer.width))
            quantizer.features(x, cells)
            cells = cells[:, [i for i, _ in kept]] / STEPS
            for j, (middle, half) in enumerate(spans):
                cells[:, j] = middle + half * cells[:, j]
            parts.append(self.intercept + cells @ coefficients)
        found = np.concatenate(parts)
        if len(found) and self.terms:
            _warn_of_empty(f for f, none in zip(design.features, empty, strict=True) if none)
        return found

    def probabilities(self, data: Any) -> NDArray[np.float64]:
        """Return probabilities of the second label, where the response has labels.

        Those of a linear model are clipped to [0, 1]. Those of a hinge model order rows, but are
        not calibrated.
        """
        if self.schema.response.labels is None:
            raise ArgumentError("probabilities are for a response with labels")
        if self.link == "logistic":
            return np.asarray(expit(self.scores(data)))
        return np.clip((self.scores(data) + 1) / 2, 0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "format": FORMAT,
            "response": self.schema.response.name,
            "target": self.target,
            "guarantee": self.guarantee,
            "intercept": self.constant.to_dict(),
            "terms": [term.to_dict() for term in self.terms],
            "r2": self.r2,
            "clipped": None if self.clipped is None else list(self.clipped),
            "schema": self.schema.to_dict(),
            # A mapping of columns has no order in every program that may copy the file.
            "order": list(self.schema.feature_names),
            "positions": list(self.positions),
            "width": self.width,
            "link": self.link,
            "loss": self.loss,
            "residual_variance": self.residual_variance,
        }

    def to_json(self) -> str:
        """Write a model file: the model, public facts, and the content digest of both."""
        return facts_to_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Model:
        """Read what :meth:`to_json` wrote; refuse any other file, or one that was changed."""
        facts = facts_from_json(text, FORMAT, "model")
        with suppress(
            DpsubsetError, KeyError, TypeError, ValueError, AttributeError, OverflowError
        ):
            return cls.from_dict(facts)
        raise ArgumentError("this model file is damaged, or was not written by dpsubset")

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a model file."""
        return cls.from_json(read_bytes(path, "model"))

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Model:
        """Read what :meth:`to_dict` wrote; errors are those of Python."""
        schema = Schema.from_dict({**facts["schema"], "patterns": False})
        by_name = {column.name: column for column in schema.columns}
        schema = replace(schema, columns=tuple(by_name[name] for name in facts["order"]))
        terms = tuple(Term.from_dict(entry) for entry in facts["terms"])
        names = tuple(name for name, _ in names_of(schema)) if terms else ()
        positions = tuple(int(i) for i in facts["positions"])
        if names != tuple(term.name for term in terms) or len(positions) != len(schema.features):
            raise ValueError("terms and schema do not go together")
        clipped, link = facts["clipped"], facts.get("link", "identity")
        if link not in ("identity", "logistic"):
            raise ValueError("there is no such link")
        # Files of earlier versions have no loss.
        loss = facts.get("loss", "logistic" if link == "logistic" else None)
        if loss not in (None, "least-squares", "logistic", "hinge"):
            raise ValueError("there is no such loss")
        return cls(
            terms, Term.from_dict(facts["intercept"]), _optional_float(facts["r2"]), schema,
            positions,
            int(facts["width"]), None if clipped is None else (float(clipped[0]),
                                                               float(clipped[1])),
            str(facts["guarantee"]), link, loss, _optional_float(facts.get("residual_variance")),
        )  # fmt: skip

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return name, coefficient, interval and standardised size as text, the intercept last."""
        sizes = (
            "not known" if t.standardised is None else f"{t.standardised:.2f}" for t in self.terms
        )
        named = [*zip((t.name for t in self.terms), sizes, self.terms, strict=True),
                 ("(intercept)", "", self.constant)]  # fmt: skip
        return [
            (name, f"{t.coefficient:.4g}", _interval_as_text(t.interval), size)
            for name, size, t in named
        ]

    def __str__(self) -> str:
        """The model's heading and a table of its coefficients."""
        rows = [("", "coefficient", "95 % interval", "standardised"), *self.rows()]
        widths = [max(len(escape_for_terminal(row[i])) for row in rows) for i in range(4)]
        lines = [
            "  ".join(
                escape_for_terminal(cell).ljust(w) for cell, w in zip(row, widths, strict=True)
            ).rstrip()
            for row in rows
        ]
        heading = f"{self.heading[0].upper()}{self.heading[1:]}"
        r2 = [] if self.r2 is None else [escape_for_terminal(f"R2 {self.r2:.2f}, of {self.target}")]
        return "\n".join([escape_for_terminal(heading), *lines, *r2])

    def _repr_html_(self) -> str:
        """The model as a table, for notebooks."""
        return model_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Plot standardised coefficients with intervals by matplotlib (extra `plot`).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to plot; by default on a new figure.

        Returns
        -------
        matplotlib Axes
            Its ``figure`` is what ``savefig`` writes to a file.

        Raises
        ------
        ArgumentError
            If matplotlib is missing, or the fit has released nothing to standardise by.

        Examples
        --------
        >>> import matplotlib, numpy as np, dpsubset as dps
        >>> matplotlib.use("Agg")
        >>> X = np.tile([[-1.0, 1.0], [1.0, 1.0]], (500, 1))
        >>> bounds = dps.Bounds(x=1, y=1)
        >>> release = dps.fit(X, y=X[:, 0], bounds=bounds, k=1, epsilon=10, ledger=False)
        >>> [label.get_text() for label in release.model.plot().get_yticklabels()]
        ['x0']
        """
        from .picture import coefficients

        return coefficients(self, ax)


def names_of(schema: Schema) -> list[tuple[str, ModelColumn]]:
    """List the columns of a model with their names."""
    design = Design.of(schema)
    found = []
    for column in design.columns:
        feature = design.features[column.feature]
        if column.kind == "missing":
            found.append((f"{feature.name} is missing", column))
        elif column.kind == "value":
            name = feature.name if feature.transform is None else (
                f"{feature.transform}({feature.name})"
            )  # fmt: skip
            found.append((name, column))
        elif column.level != 0:
            assert feature.levels is not None
            found.append((f"{feature.name} = {feature.levels[column.level]}", column))
    return found


def _warn_of_empty(columns: Iterable[Column]) -> None:
    """Warn of unreadable columns in rows to predict for; these rows are not protected."""
    for column in columns:
        if not column.has_indicator:
            warnings.warn(
                f"no cell of {escape_for_terminal(column.name)} holds a value that can be read: "
                "all of them count as missing. Compare their form with that of the fit's table",
                ColumnTypeWarning,
                stacklevel=4,
            )


def _middle_and_half_width(column: ModelColumn, feature: Column) -> tuple[float, float]:
    """Return middle and half-width of the values that a column of the quantizer stands for."""
    if column.kind != "value":
        return 0.0, 1.0
    low, high = feature.scaled_span
    return low / 2 + high / 2, high / 2 - low / 2


def _finite_ends(interval: tuple[float, float]) -> list[float | None]:
    return [end if math.isfinite(end) else _OPEN for end in interval]


def _optional_float(value: Any) -> float | None:
    return None if value is None else float(value)


def _interval_as_text(interval: tuple[float, float]) -> str:
    low, high = interval
    if not (math.isfinite(low) and math.isfinite(high)):
        return "not known"
    return f"{low:.4g} to {high:.4g}"
