"""select, simulate and price: private selections of variables, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any, Unpack

from ..base.errors import ArgumentError
from ..base.validation import check_int, check_progress
from ..data.quantize import STEPS
from ..data.readers import Progress
from ..data.readers.passes import Passes
from ..ledger.event import Event
from ..ledger.spending import LedgerLike
from ..mechanisms import Data, Outcome
from ..privacy.quantiles import RangeInSteps
from ..privacy.random import Randomness
from ..release.release import Release
from ..schema.schema import SchemaLike
from .driver import Price, event_of, make_release, open_randomness, price_of
from .problem_spec import build_problem_spec, with_keywords_of
from .request import SelectionOptions, SelectionRequest, build_request
from .sensitive_table import SensitiveTable
from .support_counts import SupportCounts

__all__ = ["Price", "price", "select", "simulate"]


@with_keywords_of(build_request, build_problem_spec)
def select(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    diagnostics: str | None = None,
    progress: Progress | None = None,
    ledger: LedgerLike = None,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> Release:
    """Select k of p variables under differential privacy; pure epsilon by default.

    Parameters
    ----------
    data : path, data frame, array or Moments
        The sensitive table: a Parquet, Arrow, Feather, CSV or TSV file, a frame of pandas, polars
        or PyArrow, an array X.
    schema : Schema, path of a bounds file or dict of the same form, optional
        The table's public description. Arrays may give ``bounds`` instead.
    k : int
        How many variables to select, those always included among them.
    epsilon : number
        The privacy budget this release may cost; taken exactly as given.
    y : array, optional
        The response, for arrays and for frames that do not hold it.
    bounds : Bounds, optional
        Public bounds of X and y, instead of a schema.
    delta : number
        For mechanisms whose guarantee has one; 0, hence pure privacy, for all others.
    mechanism : str or Mechanism
        How the support is drawn: a name from `dpsubset.MECHANISMS`, or such an object with its
        options. The default is exact, and as good as any at the same epsilon.
    options : mapping, optional
        Options of a mechanism given by its name.
    allow_unproven : bool
        Needed for mechanisms without a privacy guarantee, which exist to reproduce figures.
    loss : {"least-squares", "logistic", "hinge", "huber"}, optional
        What a support is judged by: by default least squares, also of labels, which count as -1
        and 1. "logistic" and "hinge" are for labels: where the response has bounds, these are the
        two labels, and a cell counts as the nearer one (the upper one from the middle).
    threshold : float, optional
        For "huber" alone, in units of the response's half-range: residuals beyond it count by
        their size, not by their square. From 0.01 to 1; 1/4 by default.
    constraint : {"box", "ball", "l1"}
        Which coefficients are allowed.
    prediction_bound, radius : float, optional
        Size of the coefficient set: the largest prediction, in units of the response's half-range,
        or the set's own radius. By default 1.25 half-widths of a private scale, 1 of a median's;
        otherwise a prediction bound of 1, for labels 1.25, and 2 under "logistic" and "hinge".
    ridge : float
        Weight of the squared coefficients, in scaled units.
    intercept : bool
        Whether every model has an intercept, beside the k variables and under the same bound on
        its coefficient. Without one, the middle of the bounds stands for the mean.
    neighbours : {"replace-one", "add-remove"}
        Whose data the guarantee protects against: a row replaced (n is public), or a row added or
        removed (n is private).
    sensitivity : {"sharp", "published", "lemma-2"}
        How far one row moves the scores; all but "sharp" are looser and reproduce published
        figures.
    response_range : {"private", "declared"} or ResponseRange, optional
        What the response is scaled by. "private", the default: quantiles of its own are released
        first, with a part of epsilon, and it is centred and clipped by them; the released numbers
        are part of the release. "declared": its bounds, which is as good where values fill them.
        Labels and moments have no other.
    check_readable : bool or number, optional
        Whether noisy counts of the cells that hold no value, missing or unreadable, are released
        too: True for a hundredth of epsilon, or a share of it. They tell whether the schema goes
        with how cells are written, and a warning follows if most of a column seems unreadable.
    always_include : names or positions
        Variables that are part of every support.
    seed : int, optional
        For tests only: makes the draw reproducible, hence not private, and the release says so.
    node_limit : int, optional
    time_limit : float, optional
        Most splits of the search, most seconds it may take. Passing one raises `SearchLimitError`:
        nothing is released, and because the event depends on the data, what this release would
        have cost must be counted as spent, a scale of the response included.
    diagnostics : "not-private", optional
        Attach counts of the search to the release object. They depend on the data, are never
        written to a file, and are not to be passed on.
    progress : callable, optional
        Called with the fraction of the work done so far, in steps that are the same for
        neighbouring tables: hundredths where the number of rows is public and known beforehand,
        and else the ends of passes over the table.
    ledger : path, URL or Ledger, optional
        Where the cost is debited before a value is read; a release that it has no room for is
        refused. By default what the environment variable DPSUBSET_LEDGER names; False for none.

    Returns
    -------
    Release
        The support, its guarantee, and what else may be published.

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, or a name or type in the table is wrong. Nothing is spent.
    BudgetExceeded, LedgerError
        If the ledger has no room for the release, or cannot be used.
    SearchLimitError
        If a node or time limit is passed. Nothing is released, and epsilon is spent.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.tile([[-1.0, 1.0], [1.0, 1.0]], (500, 1))
    >>> release = dps.select(X, y=X[:, 0], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=5)
    >>> release.features, release.guarantee.epsilon
    (['x0'], Fraction(5, 1))
    """
    if diagnostics not in (None, "not-private"):
        raise ArgumentError("diagnostics must be None or 'not-private', which says what they are")
    request = build_request(data, schema, k=k, epsilon=epsilon, y=y, **options)
    request = replace(request, diagnostics=diagnostics is not None)
    return make_release(request, data, y, progress, ledger)


@with_keywords_of(build_request, build_problem_spec)
def event_of_select(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> Event:
    """What a ledger would note of :func:`select` with these arguments. Reads no value."""
    request = build_request(data, schema, k=k, epsilon=epsilon, y=y, **options)
    return event_of(request, data, y)


@with_keywords_of(build_request, build_problem_spec)
def simulate(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    draws: int = 1000,
    progress: Progress | None = None,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> SupportCounts:
    """Count how often each support would be released. NOT PRIVATE: each draw costs epsilon.

    For synthetic data, planning and tests.

    Parameters
    ----------
    data, schema, k, epsilon
        As for :func:`select`, and so are all other arguments that are not listed here.
    draws : int
        How many selections to draw.
    progress : callable, optional
        Called with the fraction of the work done so far.

    Returns
    -------
    SupportCounts
        A Counter of the draws of each support, by positions; None stands for a draw that released
        nothing. Its ``features`` is the same Counter by names.

    Raises
    ------
    ArgumentError
        If an argument is wrong.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.tile([[-1.0, 1.0], [1.0, 1.0]], (500, 1))
    >>> bounds = dps.Bounds(x=1, y=1)
    >>> counts = dps.simulate(X, y=X[:, 0], bounds=bounds, k=1, epsilon=5, draws=10)
    >>> counts.most_common(1), counts.features.most_common(1)
    ([((0,), 10)], [(('x0',), 10)])
    """
    draws = check_int(draws, "draws")
    if draws < 1:
        raise ArgumentError("draws must be at least 1")
    check_progress(progress)
    request = build_request(data, schema, k=k, epsilon=epsilon, y=y, **options)
    table, rng = request.open(data, y), open_randomness(request.seed)
    # One pass, and draws: how many more passes these take depends on what is drawn.
    passes, private = Passes(progress, request.n_is_public, 2), None
    scales_by_effect: dict[bytes, list[RangeInSteps | None]] = {b"": [None] * draws}
    if request.source is None:
        request, private = request.read(table, passes, None)
    else:
        request, ranges, present, n = request.range_sampler(table, passes)
        _ = request.guarantee  # what `select` would refuse is refused here too
        scales_by_effect = {}
        for scale in (ranges.draw(rng) for _ in range(draws)):
            # Ranges that map all responses of the table in the same way share its quantised form.
            effect = scale.images(STEPS)[present].tobytes()
            scales_by_effect.setdefault(sha256(effect).digest(), []).append(scale)
        if len(scales_by_effect) > 1:
            table.keep(n)
    counts = SupportCounts(names=[choice.name for choice in request.spec.design.choices])
    for scales in passes.over(scales_by_effect.values(), draws):
        counts.update(_drawn(request, table, private, scales, rng))
    return counts


def _drawn(
    request: SelectionRequest,
    table: SensitiveTable,
    private: Data | None,
    scales: list[RangeInSteps | None],
    rng: Randomness,
) -> list[Outcome]:
    """One support for each of some response ranges that make the same table."""
    if private is None:
        request, private = request.read(table, None, scales[0])
    sampler = request.mechanism.prepare(private, request.setting)
    return [sampler.draw(rng) for _ in scales]


@with_keywords_of(build_request, build_problem_spec)
def price(
    data: Any = None,
    schema: SchemaLike | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> Price:
    """Price :func:`select` with these arguments. Costs nothing: no value is read.

    Parameters
    ----------
    data : path, data frame, array or Moments, optional
        With it, names and types of its columns are compared with the schema; without it the
        arguments are checked and priced alone.
    schema, k, epsilon
        As for :func:`select`, and so are all other arguments.

    Returns
    -------
    Price

    Raises
    ------
    ArgumentError, SchemaError, TableError
        What :func:`select` would raise before it reads a value.

    Examples
    --------
    >>> import dpsubset as dps
    >>> schema = dps.Schema.from_bounds({"age": (0, 110), "sex": (0, 1)}, ("cost", 0, 1000))
    >>> print(dps.price(None, schema, k=1, epsilon=0.5).guarantee.epsilon)
    1/2
    """
    request = build_request(data, schema, k=k, epsilon=epsilon, y=y, **options)
    return price_of(request, data, y, request.mechanism.name, request.spec.schema)
