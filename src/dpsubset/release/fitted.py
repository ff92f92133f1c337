"""ReleasedFit: noisy sums or coefficients of the selected columns, and the model from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..data.quantize import STEPS
from ..mechanisms.shared.base import JOINT_NOISE, OPENDP_NOISE, SYSTEM_NOISE
from ..models.entries import LARGEST, Entries, of_support
from ..models.rule import FITS
from ..models.solve import Solution
from ..privacy.quantiles import RangeInSteps
from ..privacy.relations import PUBLIC_N, Neighbours
from ..schema.encoding import Design
from ..schema.schema import Schema
from .model import Model, Term, names_of
from .response_range import ReleasedRange, clip_of

Floats = NDArray[np.float64]

#: Deviations of its noise that a noisy number of rows must exceed to be distinguished from 0.
_CLEAR = 4

_TRY = "'dpsubset schema try', on public rows"

#: Largest coefficient in the user's units that stays within float64 with noise.
LARGEST_UNIT = 1e250


@dataclass(frozen=True)
class ReleasedFit:
    """The noisy numbers that a model is computed from. Public."""

    #: Schema of the selected features and the response.
    schema: Schema
    #: The columns of the model and, for noisy-moments, the released sums.
    entries: Entries
    #: These sums, or coefficients in multiples of ``step``, with noise.
    released: tuple[int, ...]
    #: The number of rows, where it is public; `counted_rows` is how many of them count.
    n: int | None
    #: Centre and width by which the response was clipped; by default its declared bounds.
    clip: RangeInSteps | None
    #: Standard deviation of the noise, in scaled units: of each sum, of the slope that was added to
    #: the objective, or of each coefficient.
    deviation: float
    #: Description of the mechanism, for the privacy statement.
    summary: str
    #: The fraction of epsilon that the fit took.
    share: Fraction
    #: The mechanism of the fit.
    mechanism: str = FITS[0]
    #: The unit of released coefficients, in scaled units.
    step: Fraction | None = None
    #: The loss that was minimised.
    loss: str = "least-squares"
    #: The ridge of objective perturbation, in scaled units.
    ridge: float = 0.0
    #: Whether the noise was drawn by OpenDP, from OpenSSL's generator.
    by_opendp: bool = False
    #: Coefficients that were released with these sums. They are the model's; intervals and R2 are
    #: made from the sums.
    minimum: ReleasedFit | None = None

    @property
    def released_fits(self) -> tuple[ReleasedFit, ...]:
        """Sums, coefficients or both, each with its own noise."""
        return (self,) if self.minimum is None else (self, self.minimum)

    @property
    def kinds(self) -> str:
        """What was released, in words: sums, coefficients or both."""
        parts = self.released_fits
        return " and ".join("sums" if part.step is None else "coefficients" for part in parts)

    @property
    def noise(self) -> str:
        """The noise in sentences for the statement."""
        size = f"a standard deviation of {self.deviation:.4g}"
        joint = "" if self.by_opendp else f" {JOINT_NOISE}"
        if self.step is None:
            return (
                f"There are {self.entries.d} sums. The noise of each has {size}, where one row "
                f"adds between -1 and 1 to a sum.{joint}"
            )
        if not self.ridge:
            return f"The noise of each coefficient has {size}, in scaled units."
        return (
            f"The random multiples have {size}, where one row counts from -1 to 1.{joint} The "
            f"ridge is {self.ridge:.4g} on scaled columns."
        )

    @property
    def counted_rows(self) -> int | None:
        """The noisy number of rows that count, from 1 to ``n``; None if it was not released.

        If the schema drops rows without a readable response, these do not count.
        """
        if self.step is not None or not self.entries.counted:
            return None
        rows = max(round(Fraction(self.released[-1], LARGEST)), 1)
        return rows if self.n is None else min(rows, max(self.n, 1))

    @property
    def rows_unknown(self) -> bool:
        """Whether the noisy number of rows that count cannot be distinguished from 0."""
        if self.step is not None or not self.entries.counted:
            return False
        return self.released[-1] < _CLEAR * self.deviation * LARGEST

    def rows_in_words(self, response: str) -> str | None:
        """Describe how many rows the model is of; None if that was not released."""
        rows = self.counted_rows
        if rows is None:
            return None
        of_all = "" if self.n is None else f" of {self.n:,}"
        which = f" with a readable {response}" if self.schema.response.drops_rows else ""
        return f"about {rows:,}{of_all} rows{which} (noise included)"

    def warnings(self) -> Iterator[str]:
        """Warn if the noisy number of rows indicates that the response could hardly be read."""
        rows, response = self.counted_rows, self.schema.response.name
        if self.rows_unknown:
            yield (
                f"The number of rows with a readable {response} cannot be distinguished from 0: "
                "there are too few for the noise, or its cells are not written as declared "
                f"({_TRY})"
            )
        elif rows is not None and self.n is not None and 2 * rows < self.n:
            yield (
                f"Only about {rows:,} of {self.n:,} rows seem to have a readable {response}: all "
                f"others contribute nothing. Compare the schema with how it is written ({_TRY})"
            )

    @property
    def randomness(self) -> str:
        """The source of the noise if there is no seed, in words for the statement."""
        return OPENDP_NOISE if self.by_opendp else SYSTEM_NOISE

    @property
    def theta(self) -> Floats:
        """Released coefficients in scaled units, the constant last."""
        assert self.step is not None
        return np.array([float(self.step * value) for value in self.released])

    @property
    def span(self) -> tuple[float, float]:
        """The values of the transformed response that count as -1 and 1 in the fit."""
        low, high = self.schema.response.scaled_span
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        if self.clip is None:
            return low, high
        centre = middle + float(self.clip.centre) / STEPS * half
        width = float(self.clip.half_width) / STEPS * half
        return centre - width, centre + width

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "mechanism": self.mechanism,
            "summary": self.summary,
            **self._values(),
            "deviation": self.deviation,
            "response_span": list(self.span),
            "clip": None
            if self.clip is None
            else {
                "centre_in_steps": str(self.clip.centre),
                "half_width_in_steps": str(self.clip.half_width),
            },
            "share": str(self.share),
            "randomness": self.randomness,
            **({} if self.minimum is None else {"minimum": self.minimum.to_dict()}),
        }

    @classmethod
    def from_dict(
        cls,
        facts: Mapping[str, Any],
        schema: Schema,
        support: Sequence[int],
        scale: ReleasedRange | None,
        neighbours: Neighbours,
        n: int | None,
    ) -> ReleasedFit:
        """Read what :meth:`to_dict` wrote, for a release of this support."""
        part = of_support(schema, Design.of(schema), support)
        counted = neighbours not in PUBLIC_N or part.response.drops_rows
        given, clip = facts["clip"], None
        if given is not None:
            centre, half_width = (
                Fraction(given[f"{name}_in_steps"]) for name in ("centre", "half_width")
            )
            clip = RangeInSteps(centre, half_width, () if scale is None else scale.exact.quantiles)
        step = Fraction(facts["step"]) if "step" in facts else None
        minimum = None
        if "minimum" in facts:
            minimum = cls.from_dict(facts["minimum"], schema, support, scale, neighbours, n)
        return cls(
            part,
            Entries.of(Design.of(part), counted, empty=not support),
            tuple(map(int, facts["sums" if step is None else "coefficients"])),
            n if neighbours in PUBLIC_N else None,
            clip,
            float(facts["deviation"]),
            str(facts["summary"]),
            Fraction(facts["share"]),
            str(facts["mechanism"]),
            step,
            str(facts.get("loss", "least-squares")),
            float(facts.get("ridge", 0.0)),
            facts["randomness"] == OPENDP_NOISE,
            minimum,
        )

    def _values(self) -> dict[str, Any]:
        values = [str(value) for value in self.released]
        if self.step is None:
            counted = self.counted_rows
            return {"sums": values, **({} if counted is None else {"counted_rows": counted})}
        return {
            "loss": self.loss, "coefficients": values, "step": str(self.step), "ridge": self.ridge
        }  # fmt: skip


def check_units(schema: Schema) -> None:
    """Refuse bounds so wide that coefficients in their units would exceed float64."""
    low, high = schema.response.scaled_span
    half = high / 2 - low / 2
    for column in schema.features:
        if column.levels is None:
            first, last = column.scaled_span
            slope = half / (last / 2 - first / 2)
            if max(slope, slope * abs(first / 2 + last / 2)) > LARGEST_UNIT:
                raise ArgumentError(
                    f"the bounds of {schema.response.name!r} are so wide beside those of "
                    f"{column.name!r} that a coefficient could not be written as a number"
                )


def units_of(fitted: ReleasedFit) -> tuple[Floats, Floats]:
    """Return matrix and shift from scaled coefficients to the user's units, intercept last."""
    entries, schema = fitted.entries, fitted.schema
    low, high = fitted.span
    half, middle = high / 2 - low / 2, high / 2 + low / 2
    units = np.zeros((entries.m + 1, entries.m + 1))
    units[-1, -1] = half
    for a, column in enumerate(entries.columns):
        # u = (value - centre) / width for numbers, 2 x - 1 for levels that are on or off.
        centre, width = 0.5, 0.5
        if column.kind == "value":
            first, last = schema.features[column.feature].scaled_span
            centre, width = first / 2 + last / 2, last / 2 - first / 2
        units[a, a] = half / width
        units[-1, a] = -half * (centre / width)  # in this order nothing overflows
    shift = np.zeros(entries.m + 1)
    shift[-1] = middle
    return units, shift


def model_of(
    fitted: ReleasedFit,
    solution: Solution,
    positions: tuple[int, ...],
    width: int,
    guarantee: str,
) -> Model:
    """Build the model in the user's units."""
    units, shift = units_of(fitted)
    values = units @ solution.theta + shift
    names = [name for name, _ in names_of(fitted.schema)] if fitted.entries.m else []
    sizes = solution.theta[:-1] * solution.spread / solution.response_spread
    terms = []
    for i, name in enumerate([*names, "(intercept)"]):
        both, alone = (
            (float(ends[i, 0] + shift[i]), float(ends[i, 1] + shift[i]))
            for ends in (solution.of_both, solution.of_table)
        )
        size = _known(sizes[i]) if i < len(names) else 0.0
        terms.append(Term(name, float(values[i]), both, alone, size))
    clipped = None if fitted.clip is None else clip_of(fitted.schema.response, fitted.clip)
    *columns, constant = terms
    low, high = fitted.span
    # Beyond float64 it is not known.
    variance = solution.residual_variance * (high / 2 - low / 2) * (high / 2 - low / 2)
    return Model(
        tuple(columns), constant, None if fitted.rows_unknown else _known(solution.r2),
        fitted.schema, positions, width, clipped,
        guarantee, "logistic" if fitted.loss == "logistic" else "identity", fitted.loss,
        _known(variance),
    )  # fmt: skip


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
