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
from ..privacy.random import Randomness
from ..release.release import Release
from ..schema.schema import SchemaLike
from .driver import Price, event_of, make_release, open_randomness, price_of
from .problem_spec import build_problem_spec, with_keywords_of
from .request import ReleasedFirst, SelectionOptions, SelectionRequest, build_request
from .sensitive_table import SensitiveTable
from .size import Size
from .support_counts import SupportCounts

__all__ = ["Price", "price", "select", "simulate"]


@with_keywords_of(build_request, build_problem_spec)
def select(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: Size = None,
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
    data : path, list of paths, pyarrow dataset, data frame, array or Moments
        The sensitive table: a Parquet, Arrow, Feather, CSV or TSV file, a folder, pattern or list
        of such files, a data frame of pandas, polars or PyArrow, or an array X.
    schema : Schema, path of a bounds file or dict of the same form, optional
        The table's public description. For arrays, ``bounds`` may be given instead.
    k : int or "auto"
        Number of variables to select, including those of ``always_include``. With "auto" it is
        chosen privately among all numbers up to ``max_k``.
    max_k : int, optional
        The largest number of variables with ``k="auto"``, which may be left out then. The default
        is 5, or the number of variables if that is smaller.
    epsilon : number
        The privacy budget of this release, taken exactly as given.
    y : array, optional
        The response, for arrays and for data frames without a response column.
    bounds : Bounds, optional
        Public bounds of X and y, instead of a schema.
    delta : number
        For mechanisms whose guarantee has a delta. It must be 0 for all others, which are purely
        private.
    mechanism : str or Mechanism
        The mechanism that draws the support: a name from `dpsubset.MECHANISMS`, or such an object
        with its options. The default is permute-and-flip, drawn exactly. With ``k="auto"`` it is
        penalised, and may be choose-size.
    options : mapping, optional
        Options of a mechanism given by its name.
    allow_unproven : bool
        Required for mechanisms without a privacy guarantee, which exist to reproduce published
        figures.
    loss : {"least-squares", "logistic", "hinge", "huber"}, optional
        The loss that scores a support. The default is least squares, also for labels, which are
        centred by their class share, released first. "logistic" and "hinge" are for labels. If the
        response has bounds, the two bounds are the labels, and a cell counts as the nearer one (the
        upper one from the middle on).
    threshold : float, optional
        Only for "huber", in half-ranges of the response: the loss is linear in residuals beyond it.
        From 0.01 to 1; 1/4 by default.
    constraint : {"box", "ball", "l1"}
        Which coefficients are allowed.
    prediction_bound, radius : float, optional
        Size of the coefficient set: the largest absolute prediction, in half-ranges of the
        response, or the radius of the set. With the default response range the default is a
        prediction bound of 1.25 that widens if epsilon times the number of rows is large (1 if the
        range is made of a median). It is 1.25 with a `ResponseRange` that names no other, 1 with
        declared bounds, 1.25 for labels, and 2 for "logistic" and "hinge".
    ridge : float
        Weight of the squared coefficients, in scaled units.
    intercept : bool
        Whether every model has an intercept in addition to the k variables, with the same bound on
        its coefficient. Without an intercept, models are centred at the middle of the bounds.
    neighbours : {"replace-one", "add-remove"}
        The neighbour relation: one row is replaced (n is public), or one row is added or removed (n
        is private).
    sensitivity : {"sharp", "published", "lemma-2"}
        The rule for the sensitivity of the scores. All but "sharp" are looser and reproduce
        published figures.
    response_range : {"private", "declared"} or ResponseRange, optional
        The range to which the response is clipped and scaled. "private", the default, releases
        quantiles of the response first, with a part of epsilon, and derives the range from them;
        the quantiles are part of the release. Where the number of rows is public, the range widens
        with epsilon times that number, up to the declared bounds. "declared" uses the bounds, which
        is as good if the values fill them. For labels under least squares "private" releases noisy
        counts of both labels, and derives the centre and the prediction bound from them. Labels
        under other losses and moments can only use "declared".
    check_readable : bool or number, optional
        Whether noisy counts of missing and unreadable cells are released too: True for a hundredth
        of epsilon, or a fraction of it. They show whether the declared format fits the cells. A
        warning follows if most of a column seems unreadable.
    always_include : names or positions
        Variables that are part of every support.
    seed : int, optional
        For tests only: with a seed the draw is reproducible and therefore not private, as the
        release states.
    node_limit : int, optional
    time_limit : float, optional
        Largest number of nodes of the search, and largest number of seconds. Exceeding a limit
        raises `SearchLimitError` and releases nothing. Whether it is exceeded depends on the data,
        so the full cost of the release, including its response range, counts as spent.
    diagnostics : "not-private", optional
        Attach counts of the search to the release object. They depend on the data, are never
        written to a file, and must not be published.
    progress : callable, optional
        Called with the fraction of the work done so far. The fractions are the same for
        neighbouring tables: hundredths if the number of rows is public and known beforehand, and
        otherwise the ends of passes over the table.
    ledger : path, URL or Ledger, optional
        The ledger to which the cost is debited before a value is read. A release beyond its limit
        is refused. By default the ledger that the environment variable DPSUBSET_LEDGER names; False
        for none.

    Returns
    -------
    Release
        The support, its guarantee, and what else may be published.

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, or a name or type in the table is wrong. Nothing is spent.
    BudgetExceeded, LedgerError
        If the limit of the ledger does not allow the release, or the ledger cannot be used.
    SearchLimitError
        If a node or time limit is exceeded. Nothing is released, and epsilon is spent.

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
    k: Size = None,
    epsilon: float | Fraction | Decimal,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> Event:
    """Return the ledger entry of :func:`select` with these arguments. Reads no value."""
    request = build_request(data, schema, k=k, epsilon=epsilon, y=y, **options)
    return event_of(request, data, y)


@with_keywords_of(build_request, build_problem_spec)
def simulate(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: Size = None,
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
        As for :func:`select`. All its other arguments are accepted as well.
    draws : int
        Number of selections to draw.
    progress : callable, optional
        Called with the fraction of the work done so far.

    Returns
    -------
    SupportCounts
        A Counter of the supports, as tuples of positions. None stands for a draw that released
        nothing. ``features`` is the same Counter with names in place of positions.

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
    # One pass is reported. How many more passes the draws take depends on what is drawn.
    passes, private = Passes(progress, request.n_is_public, 2), None
    scales_by_effect: dict[bytes, list[ReleasedFirst]] = {b"": [None] * draws}
    if request.source is None:
        request, private = request.read(table, passes, None)
    else:
        request, ranges, present, n = request.range_sampler(table, passes)
        _ = request.guarantee  # what `select` would refuse is refused here too
        scales_by_effect = {}
        for scale in (ranges.draw(rng) for _ in range(draws)):
            # Ranges that map all responses of the table in the same way share its quantized form,
            # and with it the search if they have the same prediction bound.
            known, used = request.with_released(scale)
            assert used is not None
            effect = used.images(STEPS)[present].tobytes()
            bound = str(known.problem.radius).encode()
            scales_by_effect.setdefault(sha256(bound + effect).digest(), []).append(scale)
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
    scales: list[ReleasedFirst],
    rng: Randomness,
) -> list[Outcome]:
    """Draw one support for each of several response ranges that result in the same quantized
    table.
    """
    if private is None:
        request, private = request.read(table, None, scales[0])
    sampler = request.mechanism.prepare(private, request.setting)
    return [sampler.draw(rng) for _ in scales]


@with_keywords_of(build_request, build_problem_spec)
def price(
    data: Any = None,
    schema: SchemaLike | None = None,
    *,
    k: Size = None,
    epsilon: float | Fraction | Decimal,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> Price:
    """Price :func:`select` with these arguments. Costs nothing: no value is read.

    Parameters
    ----------
    data : path, list of paths, pyarrow dataset, data frame, array or Moments, optional
        A table, whose column names and types are compared with the schema. Without it only the
        arguments are checked and priced.
    schema, k, epsilon
        As for :func:`select`, and so are all other arguments.

    Returns
    -------
    Price

    Raises
    ------
    ArgumentError, SchemaError, TableError
        The errors that :func:`select` would raise before it reads a value.

    Examples
    --------
    >>> import dpsubset as dps
    >>> schema = dps.Schema.from_bounds({"age": (0, 110), "sex": (0, 1)}, ("cost", 0, 1000))
    >>> print(dps.price(None, schema, k=1, epsilon=0.5).guarantee.epsilon)
    1/2
    """
    request = build_request(data, schema, k=k, epsilon=epsilon, y=y, **options)
    return price_of(request, data, y, request.mechanism.name, request.spec.schema)
