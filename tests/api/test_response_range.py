"""A private scale of the response on the whole way: arguments, price, reading, release."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.api.request import build_request
from dpsubset.cli import app
from dpsubset.data.moments import Moments
from dpsubset.data.quantize import STEPS
from dpsubset.data.readers import delimited, open_table, parquet
from dpsubset.privacy import response_range as response_range
from dpsubset.privacy.class_share import ClassShare
from dpsubset.privacy.quantiles import QuantileRule, RangeInSteps, histogram
from dpsubset.privacy.response_range import ResponseRange, default_response_range
from mechanisms.test_every_mechanism import options

NAMES = ["a", "b", "c"]
SCHEMA = dps.Schema.from_bounds(dict.fromkeys(NAMES, (-1, 1)), ("y", 0, 2000))
LABELLED = dps.Schema.from_bounds(dict.fromkeys(NAMES, (-1, 1)), "y", labels=("no", "yes"))
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 3))
Y = np.exp(X @ [1.0, 0.0, 2.0] + RNG.normal(0, 0.3, 400))
FRAME = pd.DataFrame(X, columns=NAMES).assign(y=Y)
ASKED: dict[str, Any] = {"k": 1, "epsilon": 1, "response_range": "private"}
QUARTILES = ResponseRange(QuantileRule.quartiles(Fraction(3, 2), 3), Fraction(1, 10))


def moments() -> Moments:
    return Moments.from_blocks(SCHEMA, open_table(FRAME, SCHEMA).blocks())


# -- arguments -----------------------------------------------------------------------------------


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: Any, **__: Any) -> None:
        raise AssertionError("values were read")

    for name in ("read", "count_response"):
        monkeypatch.setattr(f"dpsubset.api.sensitive_table.SensitiveTable.{name}", explode)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("asked", ["private", QUARTILES], ids=["private", "quartiles"])
def test_what_has_no_scale_is_refused_before_a_value_is_read(asked: Any) -> None:
    given = ASKED | {"response_range": asked}
    if asked != "private":  # which is the class share of labels
        with pytest.raises(dps.ArgumentError, match="two labels has no range"):
            dps.select(FRAME, LABELLED, **given)
    for loss in ("hinge", "logistic"):
        with pytest.raises(dps.ArgumentError, match="two labels has no range"):
            dps.select(FRAME, SCHEMA, loss=loss, **given)
    with pytest.raises(dps.ArgumentError, match="moments hold the response"):
        dps.select(moments(), SCHEMA, **given)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize(
    "wrong", ["Private", "", 1, 0.05, True, QuantileRule.median(), ["private"]]
)
def test_other_words_are_refused(wrong: Any) -> None:
    with pytest.raises(dps.ArgumentError, match="'private', 'declared' or a ResponseRange"):
        dps.select(FRAME, SCHEMA, **ASKED | {"response_range": wrong})


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, "0.1", None, True, float("nan"), 1e-4, 0.9999])
def test_shares_that_leave_nothing_are_refused(share: Any) -> None:
    with pytest.raises(dps.ArgumentError, match=r"between 0\.001 and 0\.999"):
        ResponseRange(QuantileRule.median(), share)


def test_a_scale_needs_a_rule() -> None:
    with pytest.raises(dps.ArgumentError, match="must be a QuantileRule"):
        ResponseRange("median")  # type: ignore[arg-type]


def test_a_share_is_the_decimal_that_was_written() -> None:
    assert dps.ResponseRange(dps.QuantileRule.median(), 0.1).budget_fraction == Fraction(1, 10)  # type: ignore[arg-type]


@pytest.mark.parametrize("default", ["declared", "private"])
def test_one_constant_says_what_holds_if_nobody_does(
    monkeypatch: pytest.MonkeyPatch, default: str
) -> None:
    monkeypatch.setattr(response_range, "DEFAULT", default)
    given = {"k": 1, "epsilon": 1}
    built = build_request(FRAME, SCHEMA, **given)
    assert (built.response_range is not None) == (default == "private")
    assert build_request(FRAME, SCHEMA, **given, response_range="declared").response_range is None
    # Labels have a share under least squares. Neither of the others has a range to release.
    labelled = build_request(FRAME, LABELLED, **given).response_range
    assert isinstance(labelled, ClassShare) == (default == "private")
    assert build_request(FRAME, SCHEMA, **given, loss="hinge").response_range is None
    assert build_request(moments(), SCHEMA, **given).response_range is None


def test_private_is_what_the_rule_says_for_the_rows_that_are_public(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def noted(
        epsilon: Fraction, n: int | None, k: int, fraction: Fraction | None = None
    ) -> ResponseRange:
        seen.append((epsilon, n, k))
        return ResponseRange(QuantileRule.median(), Fraction(1, 10) if n else Fraction(1, 5))

    monkeypatch.setattr("dpsubset.api.request.default_response_range", noted)
    release = dps.select(FRAME, SCHEMA, **ASKED)
    assert release.guarantee.epsilon == 1
    assert release.guarantee.parts[0][1].epsilon == Fraction(1, 10)
    assert seen[-1] == (1, 400, 1)
    seen.clear()
    release = dps.select(FRAME, SCHEMA, **ASKED, neighbours="add-remove")
    assert release.guarantee.parts[0][1].epsilon == Fraction(1, 5)
    assert {n for _, n, _ in seen} == {None}


# -- price ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("asked", ["private", QUARTILES], ids=["private", "quartiles"])
def test_parts_add_up_to_epsilon(asked: Any, neighbours: str) -> None:
    given = ASKED | {"response_range": asked, "neighbours": neighbours, "epsilon": 0.7}
    rows = 400 if neighbours == "replace-one" else None  # private otherwise
    share = (
        default_response_range(Fraction(7, 10), rows, 1) if asked == "private" else asked
    ).budget_fraction
    priced = dps.price(FRAME, SCHEMA, **given)
    assert priced.guarantee is not None
    (first, scale), (second, selection) = priced.guarantee.parts
    assert (first, second) == ("the scale of the response", "the selection")
    assert scale.epsilon == Fraction(7, 10) * share
    assert selection.epsilon == Fraction(7, 10) * (1 - share)
    assert priced.guarantee.epsilon == Fraction(7, 10)
    assert "the range of the response (epsilon = " in str(priced)
    assert dps.select(FRAME, SCHEMA, **given).guarantee == priced.guarantee


def test_a_price_with_a_scale_reads_no_value(unread: None) -> None:
    assert dps.price(FRAME, SCHEMA, **ASKED).guarantee is not None
    assert dps.price(schema=SCHEMA, **ASKED).guarantee is not None


def test_mechanisms_with_a_delta_have_a_scale_too() -> None:
    release = dps.select(FRAME, SCHEMA, **ASKED | {"k": 2}, mechanism="peeling", delta=1e-6)
    guarantee = release.guarantee
    assert guarantee.epsilon is not None
    assert guarantee.parts[0][1].delta == 0
    assert guarantee.epsilon <= 1
    assert guarantee.delta <= Fraction(1, 10**6)


@pytest.mark.parametrize("name", dps.MECHANISMS)
@pytest.mark.parametrize("asked", ["private", QUARTILES], ids=["private", "quartiles"])
def test_every_mechanism_has_what_is_left(name: str, asked: Any) -> None:
    chance = Fraction(0 if dps.MECHANISMS[name].takes_delta == "no" else Fraction(1, 1000))
    given: dict[str, Any] = ASKED | {"response_range": asked, "mechanism": name, "delta": chance,
                                     "options": options(name), "allow_unproven": True}  # fmt: skip
    release = dps.select(FRAME, SCHEMA, **given)
    guarantee = release.guarantee
    assert release.scale is not None
    if guarantee.proven:
        (_, scale), (_, selection) = guarantee.parts
        assert scale.epsilon is not None
        assert selection.epsilon is not None
        assert guarantee.epsilon is not None
        # Two pure steps may cost less as concentrated ones; mechanisms may leave some of theirs.
        assert guarantee.epsilon <= scale.epsilon + selection.epsilon <= 1
        assert guarantee.delta <= chance
    assert (
        "Range of the response: each released quantile was drawn at random" in release.statement()
    )


def test_what_has_no_guarantee_has_none_with_a_scale() -> None:
    asked = {"mechanism": "mistakes", "options": {"anchor": "data"}, "allow_unproven": True}
    release = dps.select(FRAME, SCHEMA, **ASKED, **asked)
    assert not release.guarantee.proven
    assert "NO PRIVACY GUARANTEE" in release.statement()


def test_a_passed_limit_costs_the_scale_too() -> None:
    x = RNG.uniform(-1, 1, (100, 30))
    given = ASKED | {"k": 4, "epsilon": 0.7}
    with pytest.raises(dps.SearchLimitError, match=r"is spent: epsilon = 0\.7$") as caught:
        dps.select(
            x, y=x[:, 0], bounds=dps.Bounds(x=1, y=1), node_limit=1, mechanism="top-r", **given
        )
    assert "median" not in str(caught.value)


# -- reading -------------------------------------------------------------------------------------


def clothes(folder: Path, frame: pd.DataFrame) -> dict[str, tuple[Any, Any]]:
    """One table in many clothes, each with the y that goes with it."""
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv.gz", index=False, sep="\t")
    frame.to_parquet(folder / "t.parquet", row_group_size=97)
    frame.assign(y=frame.y.astype(str)).to_parquet(folder / "text.parquet", row_group_size=97)
    x = frame[NAMES]
    return {
        "csv": (folder / "t.csv", None),
        "tsv": (folder / "t.tsv.gz", None),
        "parquet": (folder / "t.parquet", None),
        "parquet of text": (folder / "text.parquet", None),
        "pandas": (frame, None),
        "pandas and y": (x, frame.y),
        "polars": (pl.from_pandas(frame), None),
        "arrow": (pa.Table.from_pandas(frame), None),
        "array": (x.to_numpy(), frame.y.to_numpy()),
        "list": (x.to_numpy().tolist(), frame.y.tolist()),
    }


KINDS = ["csv", "tsv", "parquet", "parquet of text", "pandas", "pandas and y", "polars", "arrow",
         "array", "list"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_response_alone_is_that_of_the_blocks(tmp_path: Path, kind: str) -> None:
    frame = FRAME.assign(y=np.where(np.arange(400) % 7 == 3, np.nan, Y))
    data, y = clothes(tmp_path, frame)[kind]
    table = open_table(data, SCHEMA, y)
    alone = np.concatenate(list(table.responses()))
    beside = np.concatenate([y for _, y in table.blocks()])
    np.testing.assert_array_equal(alone, beside)
    assert np.isnan(alone).sum() == np.isnan(frame.y).sum()
    sealed = build_request(data, SCHEMA, k=1, epsilon=1, y=y).open(data, y)
    counts, n = sealed.count_response()
    assert (n, counts.sum()) == (400, 400 - np.isnan(frame.y).sum())


@pytest.mark.parametrize(("kind", "module"), [("parquet", parquet), ("csv", delimited)])
def test_other_columns_are_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, module: ModuleType
) -> None:
    """Of a file the first pass reads one column."""
    table = open_table(clothes(tmp_path, FRAME)[kind][0], SCHEMA)
    parsed, real = [], module.from_arrow

    def counting(column: Any, read: Any) -> Any:
        parsed.append(len(column))
        return real(column, read)

    monkeypatch.setattr(module, "from_arrow", counting)
    list(table.responses())
    assert sum(parsed) == 400


@given(
    st.integers(1, 40).flatmap(lambda m: st.tuples(st.just(m), st.integers(-2 * m, 2 * m))),
    st.fractions(Fraction(1, 10**6), 90),
)
def test_images_are_the_nearest_integers(grid: tuple[int, int], width: Fraction) -> None:
    steps, centre = grid[0], Fraction(grid[1], 2)
    found = RangeInSteps(centre, width).images(steps)
    for q, image in zip(range(-steps, steps + 1), found, strict=True):
        exact = min(max((q - centre) * steps / width, Fraction(-steps)), Fraction(steps))
        assert abs(int(image) - exact) <= Fraction(1, 2)
    assert np.array_equal(RangeInSteps(-centre, width).images(steps), -found[::-1])


def test_images_of_the_whole_grid() -> None:
    assert np.array_equal(
        RangeInSteps(Fraction(0), Fraction(STEPS)).images(STEPS), np.arange(-STEPS, STEPS + 1)
    )
    for centre in (-STEPS, 7, STEPS):  # by the side, and 0 between
        sides = RangeInSteps(Fraction(centre), Fraction(1)).images(STEPS)
        assert np.array_equal(sides, STEPS * np.sign(np.arange(-STEPS, STEPS + 1) - centre))


@pytest.mark.parametrize("rule", ["middle", "low", "high", "drop", None])
@pytest.mark.parametrize("loss", ["least-squares", "huber"])
def test_a_table_is_read_in_its_scale(rule: Any, loss: Any) -> None:
    missing = None if rule is None else {"as": rule}
    explained = {"name": "y", "lo": -STEPS, "hi": STEPS, "missing": missing}
    schema = dps.Schema.from_bounds(dict.fromkeys(NAMES, (-1, 1)), explained)
    y = RNG.integers(-STEPS - 9, STEPS + 9, 400).astype(np.float64)
    y[::11] = np.nan
    scale = RangeInSteps(Fraction(-31, 2), Fraction(4001, 3))
    planned = build_request(X, schema, y=y, k=1, epsilon=1, loss=loss, intercept=False)
    table, problem = planned.open(X, y), planned.spec.problem
    before, after = table.read(problem), table.read(problem, None, scale.images(STEPS))
    bad = {"low": -STEPS, "high": STEPS}.get(rule, 0)
    images = scale.images(STEPS).tolist()
    expected = [
        bad if np.isnan(cell) else images[int(np.clip(cell, -STEPS, STEPS)) + STEPS] for cell in y
    ]
    assert after.yy == sum(q * q for q in expected)
    assert after.n == before.n
    assert np.array_equal(after.diagonal, before.diagonal)
    cells = np.rint(X * STEPS).astype(np.int64)
    assert np.array_equal(after.c, cells.T @ np.array(expected))
    # Nobody may take these for moments of the schema.
    assert before.fingerprint == schema.fingerprint() != after.fingerprint
    if loss == "huber":
        assert after.response.tolist() == expected
        assert np.array_equal(after.records, before.records)
    counts, _ = table.count_response()
    good = y[~np.isnan(y)]
    assert np.array_equal(counts, histogram(np.clip(good, -STEPS, STEPS), STEPS))


def test_an_empty_table_and_one_of_bad_cells_are_ordinary() -> None:
    for x, y in ((X[:0], Y[:0]), (X, np.full(400, np.nan))):
        release = dps.select(x, SCHEMA, y=y, **ASKED, neighbours="add-remove")
        assert release.scale is not None
        assert len(release.features) == 1


# -- draws and releases --------------------------------------------------------------------------


def test_a_seed_gives_the_same_release_and_simulation() -> None:
    one, other = (dps.select(FRAME, SCHEMA, **ASKED, seed=5) for _ in range(2))
    assert one == other
    assert one.to_json() == other.to_json()
    # The scale and the support are drawn from one stream, one after the other.
    assert list(dps.simulate(FRAME, SCHEMA, **ASKED, seed=5, draws=1)) == [one.support]
    scales = {dps.select(FRAME, SCHEMA, **ASKED, seed=s).scale.exact for s in range(4)}  # type: ignore[union-attr]
    assert len(scales) > 1


def test_simulations_tell_how_far_they_are() -> None:
    told: list[float] = []
    found = dps.simulate(FRAME, SCHEMA, **ASKED, draws=20, progress=told.append)
    assert found.total() == 20
    assert told == sorted(told)
    assert told[-1] == 1
    told.clear()
    dps.select(FRAME, SCHEMA, **ASKED, progress=told.append)
    assert told == [step / 200 for step in range(1, 201)]


def test_a_scale_is_worth_its_price_where_bounds_are_wide() -> None:
    given = ASKED | {"draws": 60, "seed": 1}
    wide = dps.simulate(FRAME, SCHEMA, **given | {"response_range": "declared"})
    assert dps.simulate(FRAME, SCHEMA, **given)[(2,)] > wide[(2,)]


@pytest.mark.parametrize("asked", ["private", QUARTILES], ids=["private", "quartiles"])
def test_a_release_says_what_was_released_first(asked: Any) -> None:
    release = dps.select(FRAME, SCHEMA, **ASKED | {"response_range": asked})
    scale = release.scale
    assert scale is not None
    facts = json.loads(release.to_json())
    shown = facts["scale"]
    steps = [entry["step"] for entry in shown["quantiles"]]
    assert tuple(steps) == scale.exact.quantiles
    for step, value in zip(steps, scale.quantiles, strict=True):
        assert value == pytest.approx(1000 + 1000 * step / STEPS)
    assert scale.exact == scale.rule.range_of(steps)
    assert Fraction(shown["centre_in_steps"]) == scale.exact.centre
    assert Fraction(shown["half_width_in_steps"]) == scale.exact.half_width
    assert shown["half_width"] == pytest.approx(1000 * float(scale.exact.half_width) / STEPS)
    assert [part["name"] for part in facts["guarantee"]["parts"]] == [
        "the scale of the response", "the selection",
    ]  # fmt: skip
    for text in (release.statement(), str(release), release._repr_html_()):
        assert scale.listed in text
    for value in scale.quantiles:
        assert re.search(rf"(median|quartile) {re.escape(f'{value:.6g}')}( and|$)", scale.listed)
    (sentence,) = [s for s in release.statement().splitlines() if s.startswith("The range")]
    first, second = (part["epsilon"] for part in facts["guarantee"]["parts"])
    costs = (
        f"The range of the response costs epsilon = {first:g}; the selection costs epsilon = "
        f"{second:g}; in all "
    )
    assert costs in sentence
    assert sentence.endswith("in all epsilon = 1.")


def test_a_release_without_a_scale_speaks_of_none() -> None:
    release = dps.select(FRAME, SCHEMA, k=1, epsilon=1, response_range="declared")
    assert release.scale is None
    assert "scale" not in json.loads(release.to_json())
    assert "The range of the response was released" not in release.statement()
    assert "given by the caller" in release.statement()
    assert "not read from the data" not in release.statement()


def test_the_selector_passes_it_on() -> None:
    chosen = dps.PrivateSubsetSelector(
        k=1, epsilon=3, schema=SCHEMA, response_range="private", seed=1
    )
    assert chosen.fit(X, Y).release_.scale is not None


def test_the_command_line_has_it(tmp_path: Path) -> None:
    table, _ = clothes(tmp_path, FRAME)["csv"]
    SCHEMA.write(tmp_path / "schema.yaml")
    asked = ["select", str(table), "--schema", str(tmp_path / "schema.yaml"), "--k", "1",
             "--epsilon", "1", "--response-scale"]  # fmt: skip
    result = CliRunner().invoke(app, [*asked, "private", "--out", str(tmp_path / "r.json")])
    assert result.exit_code == 0, result.output
    assert "Released first: of y the median" in result.stdout
    assert "scale" in json.loads((tmp_path / "r.json").read_text())
    result = CliRunner().invoke(app, [*asked, "private", "--dry-run"])
    # Of a text file the rows are not counted yet, and the rule depends on them.
    assert "pure epsilon = 1" in result.stdout
    assert "the range of the response" not in result.stdout
    result = CliRunner().invoke(app, [*asked, "both"])
    assert result.exit_code == 2
    assert "response_range must be" in result.stderr


@pytest.mark.parametrize(
    ("transform", "back"), [("log", np.exp), ("sqrt", np.square), (None, np.asarray)]
)
def test_a_scale_is_told_in_the_units_of_the_cells(transform: Any, back: Any) -> None:
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, 4000)
    y = 3 + x + rng.uniform(-1, 1, 4000)  # what is normal is what the transform makes
    column = {"name": "y", "lo": float(back(1.0)), "hi": float(back(9.0)), "transform": transform}
    schema = dps.Schema.from_bounds({"x": (-1, 1)}, response=column)
    release = dps.select(pd.DataFrame({"x": x, "y": back(y)}), schema, k=1, epsilon=25, seed=1)
    scale = release.scale
    assert scale is not None
    assert scale.quantiles == pytest.approx(np.quantile(back(y), [0.1, 0.9]), rel=0.01)
    low, high = scale.clipped
    assert scale.quantiles[0] < low < scale.centre < high < scale.quantiles[1]
    assert f"clipped to between {low:.6g} and {high:.6g}" in release.statement()
    assert f"lower decile {scale.quantiles[0]:.6g} and upper decile" in str(release)


def test_a_scale_of_dates_is_told_in_dates() -> None:
    days = np.arange("2020-01-01", "2024-01-01", dtype="datetime64[D]")
    schema = dps.Schema.from_bounds({"x": (0, 1)}, response=("y", "1990-01-01", "2030-01-01"))
    frame = pd.DataFrame({"x": 0.5, "y": days.astype("datetime64[s]")})
    release = dps.select(frame, schema, k=1, epsilon=100, seed=1)
    assert re.search(r"lower decile 2020-\d\d-\d\d and upper decile 2023-", str(release))
    assert re.search(r"clipped to between 202[01]-\d\d-\d\d and 202[23]-", release.statement())


def test_a_rule_that_rows_decide_on_promises_nothing_to_tables_that_differ_in_them() -> None:
    """One row more can change which quantiles are released: no epsilon would bound that."""
    rows = 1800  # the last number at which a response counts by its side of the median, or the next
    rules = []
    for n in (rows - 1, rows):
        planned = build_request(None, SCHEMA, k=1, epsilon=1).with_rows(n)
        rules.append(planned.response_range)
        assert set(planned.guarantee.costs) == {"replace-one"}
    assert rules[0] != rules[1]
    for fixed in ({"neighbours": "add-remove"}, {"response_range": rules[0]}):
        planned = build_request(None, SCHEMA, k=1, epsilon=1, **fixed).with_rows(rows)
        assert planned.with_rows(rows - 1).response_range == planned.response_range
        assert set(planned.guarantee.costs) == {"replace-one", "add-remove"}
