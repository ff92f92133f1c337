"""SelectionRequest: a private selection whose arguments have been checked. Public.

`build_request` checks the arguments of :func:`dpsubset.select`. The price of a request is known
before a value is read. `SelectionRequest.run` reads the table and draws counts of unreadable cells,
a response range and a support, as far as the request has these steps. Models and private searches
use the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal, Self, TypeAlias, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from ..base.callers import in_search
from ..base.errors import ArgumentError, SearchLimitError
from ..base.validation import as_decimal_fraction, check_seed
from ..data.moments import Moments
from ..data.quantize import STEPS
from ..data.readers.passes import Passes
from ..data.type_checks import type_mismatches
from ..ledger.event import Event
from ..mechanisms import Data, Mechanism, Outcome, Sampler, Setting
from ..objective.losses import REGRESSION, loss_of
from ..objective.problem import Problem
from ..objective.sensitivity import Sensitivity
from ..privacy.class_share import BOUNDS, ClassShare, LabelCounts, ShareSampler
from ..privacy.guarantee import Guarantee, shown_cost
from ..privacy.missing_counts import ReadableCheck, readable_fraction
from ..privacy.quantiles import QuantileSampler, RangeInSteps
from ..privacy.random import Randomness
from ..privacy.relations import PUBLIC_N, Neighbours
from ..privacy.response_range import ResponseRange, check_response_range, default_response_range
from ..release.class_share import ReleasedShare
from ..release.readable import ReleasedReadable
from ..release.release import Release
from ..release.response_range import ReleasedRange
from ..schema.dates import today
from ..schema.encoding import Design
from ..schema.schema import SchemaLike
from .driver import Execution, Request
from .problem_spec import ProblemOptions, ProblemSpec, Rule, build_problem_spec, resolve_schema
from .sensitive_table import SensitiveTable
from .size import Size, is_chosen, largest_size, mechanism_of

SMALLEST_EPSILON = Fraction(1, 10**9)

#: The steps of a release, as guarantees name them.
SCALE, SELECTION = "the scale of the response", "the selection"
SHARE = "the class share"
CHECK = "the count of unreadable cells"


class MechanismOptions(ProblemOptions, total=False):
    """The options of a selection other than k, epsilon and the mechanism."""

    max_k: int | None
    delta: float | Fraction | Decimal
    options: Mapping[str, Any] | None
    allow_unproven: bool
    sensitivity: Rule
    response_range: Literal["private", "declared"] | ResponseRange | None
    check_readable: bool | float | Fraction | Decimal | None
    seed: int | None


class SelectionOptions(MechanismOptions, total=False):
    """The options of a selection other than k and epsilon; see :func:`dpsubset.select`."""

    mechanism: str | Mechanism | None


@dataclass(frozen=True)
class DefaultRange:
    """The default response range. It depends on the number of rows if that is public.

    ``range`` is the one for the number of rows known so far. Tables with different numbers of rows
    may get different ranges, so the guarantee does not cover them. ``fraction`` is the fraction of
    epsilon for the range if it does not depend on the number of rows.
    """

    range: ResponseRange
    fraction: Fraction | None = None

    def with_rows(self, epsilon: Fraction, n: int, k: int) -> DefaultRange:
        """Return the default for a table of n rows."""
        return DefaultRange(default_response_range(epsilon, n, k, self.fraction), self.fraction)


@dataclass(frozen=True)
class ChosenRange:
    """A response range, or the share of labels, that this release draws and pays for.

    With ``declared_only`` the guarantee states its cost only under the declared relation.
    """

    range: ResponseRange | ClassShare
    declared_only: bool = False


@dataclass(frozen=True)
class EarlierRange:
    """A response range, or the share of labels, that an earlier step releases and pays for."""

    range: ResponseRange | ClassShare


#: Where the response range comes from; None if the response keeps its declared bounds.
RangeSource: TypeAlias = DefaultRange | ChosenRange | EarlierRange | None

#: What is released before a selection: a range of the response, counts of its labels, or nothing.
ReleasedFirst: TypeAlias = RangeInSteps | LabelCounts | None

Output = TypeVar("Output")

#: Returns the guarantee of the whole release that contains a selection, or raises an error if it
#: costs more than was reserved.
PriceCheck: TypeAlias = "Callable[[SelectionRequest], Guarantee]"


@dataclass(frozen=True)
class SelectionRequest(Request[SensitiveTable, Release]):
    """A private selection whose arguments have been checked. Public.

    Attributes
    ----------
    spec : ProblemSpec
        Problem, schema, design and limits.
    mechanism : Mechanism
    epsilon : Fraction
        The budget of response range and selection, for one row.
    delta : Fraction
    seed : int, optional
    source : DefaultRange, ChosenRange, EarlierRange or None
        Where the response range comes from.
    readable_check : ReadableCheck, optional
        Which unreadable cells are counted, with a budget of its own.
    n : int, optional
        The number of rows, where it is public and known.
    diagnostics : bool
        Whether counts of the search, which are not private, are attached to the release.
    date : str
        The day of the request, in UTC. It is set before a value is read, so a release does not
        reveal running times.
    """

    spec: ProblemSpec
    mechanism: Mechanism
    epsilon: Fraction
    delta: Fraction
    seed: int | None
    source: RangeSource = None
    readable_check: ReadableCheck | None = None
    n: int | None = None
    diagnostics: bool = False
    date: str = field(default_factory=today, compare=False)

    # -- what follows from the fields ------------------------------------------------------------

    @property
    def problem(self) -> Problem:
        """The problem, with the prediction bound that the response range implies."""
        return self.spec.problem

    @property
    def neighbours(self) -> Neighbours:
        return self.problem.neighbours

    @property
    def n_is_public(self) -> bool:
        return self.problem.n_is_public

    @property
    def response_range(self) -> ResponseRange | ClassShare | None:
        """The response range, or the share of labels, that is released before the selection; None
        if there is none.
        """
        return None if self.source is None else self.source.range

    @cached_property
    def range_epsilon(self) -> Fraction:
        """The budget of the response range, for one row."""
        if self.source is None or isinstance(self.source, EarlierRange):
            return Fraction(0)
        return self.epsilon * self.source.range.budget_fraction

    @cached_property
    def setting(self) -> Setting:
        """The public setting of the mechanism. Its epsilon is what the response range leaves, for
        one row.
        """
        left = self.epsilon - self.range_epsilon
        return Setting(self.problem, self.spec.sensitivity, left, self.delta, self.n)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings that a released class share may lead to; `setting` alone without one.

        They are the same whatever was drawn.
        """
        if not isinstance(self.response_range, ClassShare) or self.spec.bound_is_given:
            return (self.setting,)
        widest = self.setting
        if widest.problem.prediction_bound < BOUNDS[-1]:
            problem = widest.problem.with_prediction_bound(BOUNDS[-1])
            widest = replace(
                widest, problem=problem, sensitivity=Sensitivity.of(problem, self.spec.rule)
            )
        return _settings_up_to(widest)

    @property
    def records_for(self) -> str | None:
        """Name what needs the records themselves; None if moments are enough."""
        return self.mechanism.name if self.mechanism.needs_records else self.spec.records_for

    @property
    def priced_item(self) -> str:
        """The mechanism: its cost may depend on the number of rows."""
        return self.mechanism.name

    @property
    def needs_rows(self) -> bool:
        return self.n is None and self.mechanism.priced_by_rows(self.setting)

    @property
    def division_needs_rows(self) -> bool:
        return self.n is None and self.n_is_public and isinstance(self.source, DefaultRange)

    @property
    def pass_count(self) -> int:
        """One pass for the selection, one each for unreadable cells and the response range."""
        return 1 + (self.readable_check is not None) + (self.source is not None)

    @cached_property
    def parts(self) -> dict[str, Guarantee]:
        """The guarantee of each step, for one row."""
        seeded = self.seed is not None
        parts = {}
        if self.source is not None and not isinstance(self.source, EarlierRange):
            of_range = self.source.range.rule.guarantee(
                self.range_epsilon, self.neighbours, seeded=seeded
            )
            by_rows = isinstance(self.source, DefaultRange) and self.n_is_public
            if by_rows or (isinstance(self.source, ChosenRange) and self.source.declared_only):
                of_range = of_range.limited_to(PUBLIC_N)
            parts[step_of(self.source.range)] = of_range
        if self.readable_check is not None:
            parts[CHECK] = self.readable_check.noise.guarantee(seeded=seeded)
        # The price must not depend on the share that is drawn.
        parts[SELECTION] = (
            self.mechanism.guarantee(self.setting, seeded=seeded)
            if len(self.settings) == 1
            else _largest_guarantee(self.mechanism, self.settings, seeded)
        )
        return parts

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee of the release for one unit, computed from the constants that its draws
        use.
        """
        parts = self.parts
        whole = Guarantee.compose(parts) if len(parts) > 1 else parts[SELECTION]
        return whole.group_privacy(self.spec.schema.rows_per_unit)

    # -- requests with more known facts ----------------------------------------------------------

    def with_rows(self, n: int | None, *, range_is_drawn: bool = False) -> SelectionRequest:
        """Return the request for a table of n rows, where their number is public.

        A default response range depends on the number of rows until it is drawn.
        """
        if n is None or n == self.n or not self.n_is_public:
            return self
        if not isinstance(self.source, DefaultRange):
            return replace(self, n=n)
        if range_is_drawn:
            return replace(self, n=n, source=ChosenRange(self.source.range, declared_only=True))
        chosen = self.source.with_rows(self.epsilon, n, self.problem.k)
        return replace(self, n=n).with_range(chosen)

    def with_range(self, source: DefaultRange | ChosenRange | EarlierRange) -> SelectionRequest:
        """Return the request with a response range, and the prediction bound that it implies."""
        bounded = self.spec.with_default_bound(source.range.prediction_bound)
        return replace(self, source=source, spec=bounded)

    def with_released(
        self, released: ReleasedFirst
    ) -> tuple[SelectionRequest, RangeInSteps | None]:
        """Return the request with the prediction bound, and the range of the response, that follow
        from what was released first.
        """
        if not isinstance(released, LabelCounts):
            return self, released
        assert isinstance(self.response_range, ClassShare)
        bound = self.response_range.rule.prediction_bound(released, self.epsilon)
        known = replace(self, spec=self.spec.with_default_bound(bound))
        # Without an intercept a model cannot make up for a centre beside the share.
        problem = known.problem
        reach = float(problem.prediction_bound) if problem.layout.has_intercept else 0.0
        return known, released.centred(reach)

    def check_mechanism(self) -> None:
        """Refuse what the mechanism does not support, whatever the class share will be."""
        for setting in self.settings:
            self.mechanism.check(setting)

    def with_check(self, epsilon: Fraction, data: Any) -> SelectionRequest:
        """Return the request with counts of unreadable cells, at this price for one row."""
        if not epsilon:
            return self
        if isinstance(data, Moments):
            raise ArgumentError("check_readable needs the table: moments do not contain cells")
        return replace(
            self, readable_check=ReadableCheck.of(self.spec.schema, epsilon, self.neighbours)
        )

    # -- the steps of a release ------------------------------------------------------------------

    def open(self, data: Any, y: Any = None) -> SensitiveTable:
        return self.spec.open(data, y, self.records_for)

    def type_mismatches(self, data: Any, y: Any = None) -> tuple[str, ...]:
        return type_mismatches(data, self.spec.schema, y)

    def describe(self, guarantee: Guarantee, what: str = "select") -> Event:
        schema, problem = self.spec.schema, self.problem
        return Event.of(
            what,
            self.mechanism.name,
            guarantee,
            unit=schema.privacy_unit,
            rows_per_unit=schema.rows_per_unit,
            schema=schema.fingerprint(),
            options={
                "loss": problem.loss,
                "k": problem.k,
                "p": problem.p,
                "declared": problem.neighbours,
                **self.mechanism.options(),
            },
        )

    def run(self, execution: Execution[SensitiveTable]) -> Release:
        """Read the table and draw all steps of a selection."""

        def check(known: SelectionRequest) -> Guarantee:
            return execution.check(known.guarantee)

        request, readable = count_unreadable(self, execution, check)
        drawn = draw_support(request, execution.table, execution.rng, execution.passes, check)
        work = drawn.sampler.diagnostics() if self.diagnostics else None
        return build_release(
            drawn, drawn.request.guarantee, diagnostics=work or None, readable=readable,
            column_warnings=execution.column_warnings,
        )  # fmt: skip

    def range_sampler(
        self, table: SensitiveTable, passes: Passes
    ) -> tuple[SelectionRequest, RangeSampler, NDArray[np.bool_], int]:
        """Read the response alone, and prepare draws of its range or of its class share.

        Returns four values: the request with the number of rows if that is public, the sampler,
        which values the response has, and the number of rows. The last three are private.
        """
        counts, n = table.count_response(passes)
        request = self.with_rows(n)
        assert request.response_range is not None
        sampler = sampler_of(
            request.response_range, counts, request.range_epsilon, request.neighbours
        )
        return request, sampler, counts > 0, n

    def read(
        self, table: SensitiveTable, passes: Passes | None, released: ReleasedFirst
    ) -> tuple[SelectionRequest, Data]:
        """Quantize all values, the response in its released range.

        Returns the request with the number of rows if that is public, and with the prediction bound
        that follows from a released class share; and the private data.
        """
        request, scale = self.with_released(released)
        images = None if scale is None else scale.images(STEPS)
        gram = table.read(self.problem, passes, images)
        request = request.with_rows(gram.n, range_is_drawn=scale is not None)
        return request, Data(gram, self.spec.limits)


@lru_cache(maxsize=64)
def _settings_up_to(widest: Setting) -> tuple[Setting, ...]:
    """The settings with each of the prediction bounds, given the one with the largest."""
    problems = [widest.problem.with_prediction_bound(bound) for bound in BOUNDS]
    rule = widest.sensitivity.rule
    return tuple(
        replace(widest, problem=each, sensitivity=Sensitivity.of(each, rule)) for each in problems
    )


@lru_cache(maxsize=64)
def _largest_guarantee(
    mechanism: Mechanism, settings: tuple[Setting, ...], seeded: bool
) -> Guarantee:
    """The guarantee that covers all settings; kept, because there are many of them."""
    return Guarantee.largest([mechanism.guarantee(each, seeded=seeded) for each in settings])


RangeSampler: TypeAlias = QuantileSampler | ShareSampler


def sampler_of(
    used: ResponseRange | ClassShare,
    counts: NDArray[np.int64],
    epsilon: Fraction,
    neighbours: Neighbours,
) -> RangeSampler:
    """Prepare draws of a response range, or of a class share, from the response's histogram."""
    if isinstance(used, ClassShare):
        return ShareSampler(counts, used.rule.noise(epsilon, neighbours))
    return QuantileSampler(counts, used.rule, epsilon, neighbours)


def step_of(used: ResponseRange | ClassShare) -> str:
    """Return the name, in guarantees, of the step that releases a range or a class share."""
    return SHARE if isinstance(used, ClassShare) else SCALE


class SelectionBased(Request[SensitiveTable, Output]):
    """A request whose table, schema and relation are those of its selection.

    Subclasses are dataclasses with a field ``selection``.
    """

    selection: SelectionRequest

    @property
    def seed(self) -> int | None:  # type: ignore[override]
        return self.selection.seed

    @property
    def n_is_public(self) -> bool:
        return self.selection.n_is_public

    @property
    def neighbours(self) -> Neighbours:
        return self.selection.neighbours

    @property
    def priced_item(self) -> str:
        return self.selection.priced_item

    @property
    def needs_rows(self) -> bool:
        return self.selection.needs_rows

    def with_selection(self, selection: SelectionRequest) -> Self:
        """Return the request with a selection that has more known facts about the table."""
        if selection is self.selection:
            return self
        return replace(self, selection=selection)  # type: ignore[type-var]

    def with_rows(self, n: int | None) -> Self:
        return self.with_selection(self.selection.with_rows(n))

    def open(self, data: Any, y: Any = None) -> SensitiveTable:
        return self.selection.open(data, y)

    def type_mismatches(self, data: Any, y: Any = None) -> tuple[str, ...]:
        return self.selection.type_mismatches(data, y)


@dataclass(frozen=True)
class DrawnSelection:
    """A response range or counts of labels, and a support, as they were drawn; the sampler is
    private.
    """

    request: SelectionRequest
    outcome: Outcome
    scale: ReleasedFirst
    sampler: Sampler = field(repr=False)


def count_unreadable(
    request: SelectionRequest, execution: Execution[SensitiveTable], check: PriceCheck
) -> tuple[SelectionRequest, ReleasedReadable | None]:
    """Count the cells without a value, with noise, if the request asks for that."""
    counting = request.readable_check
    if counting is None:
        return request, None
    bad, n = execution.table.count_bad(execution.passes)
    request = request.with_rows(n)
    check(request)
    drawn = counting.draw(bad, n, execution.rng)
    rows = None if counting.counts_rows else n
    return request, ReleasedReadable.of(counting.names, drawn, rows, counting.noise.epsilon)


def draw_support(
    request: SelectionRequest,
    table: SensitiveTable,
    rng: Randomness,
    passes: Passes,
    check: PriceCheck,
    scale: ReleasedFirst = None,
) -> DrawnSelection:
    """Draw a response range or a class share, if the request has one, and a support.

    Parameters
    ----------
    passes : Passes
        All passes of the release over the table.
    check : callable
        Checks the cost of the whole release against the reserved cost. It is called before each
        draw, with the number of rows that was read.
    scale : RangeInSteps or LabelCounts, optional
        The response range, or the counts of labels, that an earlier step has released.
    """
    if request.source is not None and not isinstance(request.source, EarlierRange):
        request, ranges, _, n = request.range_sampler(table, passes)
        check(request)
        scale = ranges.draw(rng)
        if passes.count > 2:
            table.keep(n)
    request, data = request.read(table, passes, scale)
    guarantee = check(request)
    with _stating_cost(guarantee):
        sampler = request.mechanism.prepare(data, request.setting)
        outcome = sampler.draw(rng)
    return DrawnSelection(request, outcome, scale, sampler)


@contextmanager
def _stating_cost(guarantee: Guarantee) -> Iterator[None]:
    """Add the cost to the error of an exceeded limit, because whether it is exceeded depends on the
    data.
    """
    try:
        yield
    except SearchLimitError as error:
        cost = "as there is no guarantee, no epsilon bounds it"
        if guarantee.proven:
            cost = shown_cost(guarantee.costs[guarantee.neighbours])
        raise SearchLimitError(f"{error}: {cost}") from None


def build_release(drawn: DrawnSelection, guarantee: Guarantee, **more: Any) -> Release:
    """Build the release from what was drawn and from public facts. ``more`` are further fields."""
    request, chosen = drawn.request, drawn.request.mechanism
    schema, setting, used = request.spec.schema, request.setting, request.response_range
    released = share = None
    if isinstance(drawn.scale, LabelCounts):
        _, centred = request.with_released(drawn.scale)
        assert centred is not None
        share = ReleasedShare(drawn.scale, centred, schema.response)
    elif drawn.scale is not None and isinstance(used, ResponseRange):
        released = ReleasedRange(used.rule, drawn.scale, schema.response)
    return Release(
        support=drawn.outcome,
        features=request.spec.design.names(drawn.outcome),
        guarantee=guarantee,
        mechanism=chosen.name,
        mechanism_summary=chosen.summary,
        schema=schema,
        problem=setting.problem,
        sensitivity=setting.sensitivity,
        options=chosen.options(),
        details=chosen.details(setting),
        randomness=chosen.randomness,
        scale=released,
        class_share=share,
        made_in_search=in_search(),
        rows=setting.n if guarantee.tells_rows else None,
        date=request.date,
        **more,
    )


def build_request(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: Size = None,
    epsilon: float | Fraction | Decimal,
    max_k: int | None = None,
    delta: float | Fraction | Decimal = 0,
    mechanism: str | Mechanism | None = None,
    options: Mapping[str, Any] | None = None,
    allow_unproven: bool = False,
    sensitivity: Rule = "sharp",
    response_range: Literal["private", "declared"] | ResponseRange | None = None,
    check_readable: bool | float | Fraction | Decimal | None = None,
    seed: int | None = None,
    y: Any = None,
    **problem: Unpack[ProblemOptions],
) -> SelectionRequest:
    """Check everything that can be checked without opening the table."""
    budget, chance = exact_epsilon(epsilon), exact_delta(delta)
    chosen = mechanism_of(k, max_k, mechanism, options)
    if seed is not None:
        seed = check_seed(seed)
        if not chosen.seedable:
            raise ArgumentError(
                f"{chosen.name} uses noise from OpenDP, which has no seeds: leave seed out"
            )
    if not chosen.proven and allow_unproven is not True:
        raise ArgumentError(
            f"{chosen.name} with these options has no privacy guarantee. To use it on data that "
            "are not sensitive, pass allow_unproven=True"
        )
    if is_chosen(k, max_k):
        schema = resolve_schema(data, y, schema, problem.pop("bounds", None))
        k = largest_size(max_k, len(Design.of(schema).choices))
    spec = build_problem_spec(data, schema, k=k, y=y, **problem)  # type: ignore[arg-type]
    spec = replace(spec, rule=sensitivity)
    chosen = chosen.named(spec.design.position)
    budget = _of_one_row(budget, chance, spec.schema.rows_per_unit)
    check_fraction = readable_fraction(check_readable)
    left = budget * (1 - check_fraction)
    labels = spec.schema.response.labels is not None
    # The Huber loss keeps labels of -1 and 1: its threshold is in their units.
    centred = labels and spec.problem.loss == REGRESSION
    wanted = check_response_range(
        response_range,
        labels=labels or loss_of(spec.problem).labels,
        moments=isinstance(data, Moments),
        centred=centred,
    )
    request = SelectionRequest(spec, chosen, left, chance, seed)
    if isinstance(wanted, ResponseRange):
        request = request.with_range(ChosenRange(wanted))
    elif wanted == "private" and centred:
        request = request.with_range(ChosenRange(ClassShare()))
    elif wanted == "private":
        default = default_response_range(left, None, spec.problem.k)
        request = request.with_range(DefaultRange(default))
    request = request.with_check(budget * check_fraction, data)
    request.check_mechanism()
    return request


def _of_one_row(epsilon: Fraction, delta: Fraction, rows: int) -> Fraction:
    """Divide the budget of a privacy unit by its largest number of rows."""
    if rows > 1 and delta:
        raise ArgumentError(
            "rows_per_unit is above 1, which is not supported with a delta: the delta of a group "
            "of rows grows faster than their number. Choose a mechanism with pure differential "
            "privacy, with delta = 0"
        )
    if epsilon < SMALLEST_EPSILON * rows:
        raise ArgumentError("epsilon must be at least 1e-9 for each of rows_per_unit rows")
    return epsilon / rows


def exact_epsilon(value: Any) -> Fraction:
    """Return epsilon as the exact rational that was written; a float stands for its shortest
    decimal.
    """
    epsilon = as_decimal_fraction(value)
    if epsilon is None:  # also numbers that are too long or too far from 1 to be written out
        is_number = isinstance(value, (int, float, Fraction, Decimal, np.number))
        other = "" if is_number else f", not {type(value).__name__}"
        raise ArgumentError(
            f"epsilon must be a finite number{other}. It must lie between 1e-9 and 1e6"
        )
    if epsilon <= 0:
        raise ArgumentError("epsilon must be a finite number greater than 0")
    # Beyond these limits a guarantee has no practical meaning, and float64 bounds do not guide the
    # search.
    if not SMALLEST_EPSILON <= epsilon <= 10**6:
        raise ArgumentError("epsilon must lie between 1e-9 and 1e6")
    return epsilon


def exact_delta(value: Any) -> Fraction:
    """Return delta as the exact rational that was written; 0 for pure privacy."""
    delta = as_decimal_fraction(value)
    if delta is None or not 0 <= delta < 1:
        raise ArgumentError(
            "delta must be at least 0 and below 1. Choose 0, or a delta much smaller than 1/n"
        )
    if 0 < delta < Fraction(1, 10**100):
        raise ArgumentError("delta must be 0 or at least 1e-100")
    return delta
