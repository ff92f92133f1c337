"""The sentences of statements: for a reader who signs, and knows no mathematics of the field."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import dpsubset as dps
from dpsubset.mechanisms import MECHANISMS
from dpsubset.privacy.guarantee import Cost, Guarantee
from dpsubset.release.statement.escape import plain_text

BOUNDS = {"age": (0, 1), "bmi": (0, 1), "dose": (0, 1)}
N = 60

#: What people who are not of the field stumbled over.
JARGON = (
    "falls with its largest", "decreases with its largest", "Supports are", "over all supports",
    "uniformly among equals", "noisy largest", "noisy best", "rank error", "relative to each other",
    "Whoever", "whoever", "picked blindly", "its kink", "reproducible stream", "at this price",
    "one draw for all", "is certified below", "coefficient set", "stays put", "(95 %)", "+-",
)  # fmt: skip


def frame() -> pd.DataFrame:
    x = np.random.default_rng(0).uniform(0, 1, (N, 3))
    table = pd.DataFrame(x, columns=list(BOUNDS)).assign(cost=x[:, 0])
    return table.assign(ill=np.where(x[:, 0] > 0.5, "yes", "no"))


def schema(**more: Any) -> dps.Schema:
    return dps.Schema.from_bounds(BOUNDS, ("cost", 0, 1), unit="one patient", **more)


LABELS = dps.Schema.from_bounds(BOUNDS, "ill", labels=("no", "yes"))
MADE: dict[str, Any] = {
    "select": lambda: dps.select(frame(), schema(), k=1, epsilon=1),
    "declared": lambda: dps.select(frame(), schema(), k=1, epsilon=1, response_range="declared"),
    "add-remove": lambda: dps.select(frame(), schema(), k=1, epsilon=1, neighbours="add-remove"),
    "hinge": lambda: dps.select(frame(), LABELS, k=1, epsilon=1, loss="hinge"),
    "seeded": lambda: dps.select(frame(), schema(), k=1, epsilon=1, seed=1),
    "readable": lambda: dps.select(
        frame(), schema(), k=1, epsilon=1, check_readable=Fraction(1, 10)
    ),
    "rows": lambda: dps.select(frame(), schema(rows_per_unit=3), k=1, epsilon=1),
    "fit": lambda: dps.fit(frame(), schema(), k=1, epsilon=1),
    "gaussian fit": lambda: dps.fit(frame(), schema(), k=1, epsilon=1, delta=1e-6),
    "huber fit": lambda: dps.fit(
        frame(), schema(), k=1, epsilon=1, fit_mechanism="objective-perturbation"
    ),
    "logistic fit": lambda: dps.fit(frame(), LABELS, k=1, epsilon=1, loss="logistic"),
    "hinge fit": lambda: dps.fit(frame(), LABELS, k=1, epsilon=1, loss="hinge"),
    "fit_released": lambda: dps.fit_released(
        dps.select(frame(), schema(), k=1, epsilon=1), frame(), epsilon=1
    ),
    "tune": lambda: dps.tune(frame(), schema(), {"k": [1, 2]}, epsilon=9),
}


@pytest.fixture(scope="module")
def releases() -> dict[str, dps.Release]:
    found = {name: make() for name, make in MADE.items()}
    delta = {"replace-one": Cost.concentrated(Fraction(1, 50), Fraction(1, 10**6))}
    plain = found["select"]
    found["rho"] = replace(plain, scale=None, guarantee=Guarantee("replace-one", delta))
    found["unproven"] = replace(plain, guarantee=Guarantee("replace-one", {}))
    return found


KINDS = (*MADE, "rho", "unproven")


@pytest.mark.parametrize("kind", KINDS)
def test_no_sentence_has_words_of_the_trade(releases: dict[str, dps.Release], kind: str) -> None:
    text = releases[kind].statement()
    assert [each for each in JARGON if each in text] == []


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_mechanism_is_described_in_words_of_the_trade(name: str) -> None:
    text = MECHANISMS[name].summary
    assert [each for each in JARGON if each in text] == []


@pytest.mark.parametrize("kind", [kind for kind in MADE if "fit" in kind])
def test_the_first_sentence_names_the_model(releases: dict[str, dps.Release], kind: str) -> None:
    release = releases[kind]
    first = release.statement().split("\n\n")[1]
    assert release.model is not None
    assert first.startswith("Released: the names of 1 of 3 variables")
    assert f"the coefficients of a {release.model.heading}" in plain_text(first)
    record = yaml.safe_load(release.statement(form="yaml"))["deployment"]["basic"]
    assert f"the coefficients of a {release.model.heading}" in record["description"]


def test_without_a_model_none_is_named(releases: dict[str, dps.Release]) -> None:
    assert "coefficients of a" not in releases["select"].statement().split("## ")[0]


# -- who approves, and what is signed -------------------------------------------------------------


@pytest.mark.parametrize("about", [None, dps.About(approver="B. Officer")], ids=["blank", "told"])
def test_nobody_has_approved_it_before_it_is_signed(
    releases: dict[str, dps.Release], about: dps.About | None
) -> None:
    for form in ("markdown", "html", "yaml"):
        text = releases["select"].statement(about, form=form)  # type: ignore[arg-type]
        assert not re.search(r"(?<!be )[Aa]pproved", text), form
        assert "To be approved by" in text


def test_the_signature_is_that_of_one_release(
    releases: dict[str, dps.Release], tmp_path: Path
) -> None:
    release = releases["select"]
    signed = release.statement().split("## Signature")[1]
    assert f"- Release: `{release.content_digest}`" in signed
    book = dps.Ledger.create(
        tmp_path / "l.db", data_set="d", owner="o", purpose="p", epsilon=3, unit="one patient"
    )
    release = dps.select(frame(), schema(), k=1, epsilon=1, ledger=book)
    assert release.receipt is not None
    signed = release.statement().split("## Signature")[1]
    assert f"- Release: `{release.receipt.to_dict()['release_id']}`" in signed
    assert "Left: epsilon = 2." in release.statement()


# -- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.3", "0.1", "1", "2.675", "0.000001"])
def test_a_record_of_the_registry_has_exact_decimals(epsilon: str) -> None:
    """The nearest float above 0.3 is 0.30000000000000004."""
    release = dps.select(
        frame(), schema(), k=1, epsilon=Fraction(epsilon), response_range="declared"
    )
    text = release.statement(form="yaml")
    record = yaml.load(text, yaml.BaseLoader)["deployment"]["privacy_loss"]
    assert Fraction(record["privacy_parameters"]["epsilon"]) == Fraction(epsilon)
    number = yaml.safe_load(text)["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"]
    assert isinstance(number, float)


def test_other_numbers_of_a_record_are_rounded_up(releases: dict[str, dps.Release]) -> None:
    release = releases["rho"]
    record = yaml.load(release.statement(form="yaml"), yaml.BaseLoader)["deployment"]
    written = record["privacy_loss"]["privacy_parameters"]
    g = release.guarantee
    for name, exact in (("epsilon", g.epsilon), ("delta", g.delta), ("rho", g.rho)):
        assert exact is not None
        assert 0 <= Fraction(written[name]) - exact <= exact / 10**15, name


def test_which_statements_show_both_relations(releases: dict[str, dps.Release]) -> None:
    """As README.md says."""
    shown = {kind: list(releases[kind].stated.costs) for kind in MADE if kind != "tune"}
    both = {kind for kind, costs in shown.items() if len(costs) == 2}
    assert both == {"declared", "add-remove", "hinge"}
    for kind in shown:
        text = releases[kind].statement()
        assert ("and epsilon = " in text and "under add-remove." in text) is (kind in both) or (
            kind in ("add-remove", "seeded")
        )
