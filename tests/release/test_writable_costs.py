"""What was paid for can be written down: every mechanism, from the smallest epsilon on."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.base.rounding import round_up_to_writable
from dpsubset.ledger.event import Event
from dpsubset.mechanisms import MECHANISMS
from dpsubset.privacy.guarantee import Cost
from dpsubset.release.verify import checks

EPSILONS = ["1e-9", "1e-6", "1", "1e3", "1e5", "1e6"]
BOUNDS = dps.Bounds(x=(-1, 1), y=(-1, 1))
X = np.random.default_rng(0).uniform(-1, 1, (12, 4))
#: Of the walks, and of those that need it where the number of rows is private.
OPTIONS: dict[str, dict[str, Any]] = {"metropolis": {"steps": 40}}
PRIVATE_N = {"sample-aggregate": {"blocks": 3}, "hard-thresholding": {"rows": 5}}


def asked(name: str, neighbours: str, scale: str) -> dict[str, Any]:
    options = {**OPTIONS.get(name, {}), **(PRIVATE_N.get(name, {}) if neighbours != "replace-one"
               else {})}  # fmt: skip
    return {
        "y": X[:, 0], "bounds": BOUNDS, "k": 2, "mechanism": name, "options": options,
        "neighbours": neighbours, "response_range": scale,
    }  # fmt: skip


def ledger(path: Path, neighbours: Any, delta: Fraction) -> dps.Ledger:
    limit = {"epsilon": 10**15, "delta": Fraction(9, 10)} if delta else {"epsilon": 10**9}
    return dps.Ledger.create(
        path, data_set="made up", owner="Ann", purpose="tests", neighbours=neighbours, **limit
    )


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_every_release_is_written_and_read_back(name: str, neighbours: str, tmp_path: Path) -> None:
    must = MECHANISMS[name].takes_delta == "must"
    for scale in ("declared", "private"):
        delta = Fraction(1, 10**100) if must else Fraction(0)
        book = ledger(tmp_path / f"{scale}.db", neighbours, delta)
        for epsilon in EPSILONS:
            release = dps.select(
                X, epsilon=Decimal(epsilon), delta=delta, ledger=book,
                **asked(name, neighbours, scale),
            )  # fmt: skip
            text = release.to_json()
            for form in ("markdown", "html", "json", "yaml"):
                assert release.statement(form=form)
            assert str(release)
            assert release._repr_html_()
            assert dps.Release.from_json(text, release.schema).guarantee == release.guarantee
            (tmp_path / "r.json").write_text(text)
            found = checks(tmp_path / "r.json", release.schema.fingerprint(), book)
            assert [each.says for each in found if not each.holds and "not private" not in
                    each.says] == []  # fmt: skip
        assert len(book.verify().entries) == len(EPSILONS)


def huge(bits: int) -> Fraction:
    """A number below 1 whose denominator has so many bits."""
    return Fraction(3 ** int(bits / 1.585), 2**bits + 1)


@pytest.mark.parametrize("bits", [20_000, 200_000])
def test_costs_are_rounded_up_to_what_can_be_written(bits: int) -> None:
    x = huge(bits)
    found = round_up_to_writable(x)
    assert x < found < x + Fraction(1, 2**10_000)
    assert round_up_to_writable(found) == found
    assert len(str(found)) < 8000
    for cost in (
        Cost(x), Cost(x, x), Cost(Fraction(1), x), Cost.concentrated(x, x / 2),
        Cost(x) + Cost.concentrated(x, Fraction(1, 1000)), Cost(x, x) + Cost(x),
        Cost(x, bounded_range=True),
    ):  # fmt: skip
        for number in (cost.epsilon, cost.delta, cost.rho or Fraction(0), cost.as_rho):
            assert len(str(number)) < 8000
        event = Event("select", "top-r", {}, {"replace-one": cost}, "one row", 1, "0" * 64)
        assert Event.from_dict(event.to_dict()) == event


def test_what_can_be_written_stays_as_it_is() -> None:
    for x in (Fraction(0), Fraction(1, 3), Fraction(10**6), Fraction(1, 10**1300)):
        assert round_up_to_writable(x) is x
        assert Cost(x).epsilon == x


def test_the_delta_of_a_long_walk_is_not_lost() -> None:
    """At epsilon 1e6 it is exp(-500,000) under the relation that was not asked for."""
    release = dps.select(
        X, epsilon=10**6, delta=Fraction(1, 1000), **asked("metropolis", "replace-one", "declared")
    )
    other = release.guarantee.costs["add-remove"]
    assert 0 < other.delta <= Fraction(1, 2**10_000)
    assert release.guarantee.delta <= Fraction(1, 1000)
