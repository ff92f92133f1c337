"""The sentences of statements: for a reader who signs, and knows no mathematics of the field."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from functools import partial
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
    return dps.Schema.from_bounds(BOUNDS, ("cost", 0, 1), privacy_unit="one patient", **more)


LABELS = dps.Schema.from_bounds(BOUNDS, "ill", labels=("no", "yes"))
FITTED = {
    "fit": {},
    "gaussian fit": {"delta": 1e-6},
    "perturbed fit": {"rule": dps.FitRule(mechanism="objective-perturbation")},
    "assumed fit": {
        "rule": dps.FitRule(mechanism="gaussian-ols"), "delta": 1e-6, "allow_unproven": True,
        "response_range": "declared",
    },
}  # fmt: skip
SELECTED: dict[str, dict[str, Any]] = {
    "select": {},
    "declared": {"response_range": "declared"},
    "add-remove": {"neighbours": "add-remove"},
    "seeded": {"seed": 1},
    "readable": {"check_readable": True},
    **{
        name: {
            "mechanism": name,
            "delta": 1e-6 if name in ("metropolis", "stability") else 0,
            "options": {"metropolis": {"steps": 40}, "mistakes": {"anchor": "private"}}.get(name),
        }
        for name in MECHANISMS
    },
}
MADE: dict[str, Any] = {
    **{
        name: partial(dps.select, frame(), schema(), k=1, epsilon=1, **asked)
        for name, asked in SELECTED.items()
    },
    "rows": lambda: dps.select(frame(), schema(rows_per_unit=3), k=1, epsilon=1),
    "hinge": lambda: dps.select(frame(), LABELS, k=1, epsilon=1, loss="hinge"),
    **{
        name: partial(dps.fit, frame(), schema(), k=1, epsilon=1, **asked)
        for name, asked in FITTED.items()
    },
    "logistic fit": lambda: dps.fit(frame(), LABELS, k=1, epsilon=1, loss="logistic"),
    "hinge fit": lambda: dps.fit(frame(), LABELS, k=1, epsilon=1, loss="hinge"),
    "fit_released": lambda: dps.fit_released(
        dps.select(frame(), schema(), k=1, epsilon=1), frame(), epsilon=1
    ),
    "tune": lambda: dps.tune(frame(), schema(), grid={"k": [1, 2]}, epsilon=9),
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


@pytest.mark.parametrize("kind", [kind for kind in MADE if "fit" in kind])
def test_the_first_sentence_names_the_model(releases: dict[str, dps.Release], kind: str) -> None:
    release = releases[kind]
    first = next(line for line in release.statement().splitlines() if line.startswith("Rel"))
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


def test_a_record_names_the_steps_as_the_statement_does(releases: dict[str, dps.Release]) -> None:
    text = releases["select"].statement(form="yaml")
    assert "the scale of the response" not in text
    record = yaml.safe_load(text)["deployment"]
    assert "the range of the response, the selection" in record["implementation"]["composition"]
    details = record["privacy_loss"]["privacy_parameters_details"]
    assert re.search(r"the selection \(epsilon = [\d.]+\)\. A reader who", details)


def test_other_numbers_of_a_record_are_rounded_up(releases: dict[str, dps.Release]) -> None:
    release = releases["rho"]
    record = yaml.load(release.statement(form="yaml"), yaml.BaseLoader)["deployment"]
    written = record["privacy_loss"]["privacy_parameters"]
    g = release.guarantee
    for name, exact in (("epsilon", g.epsilon), ("delta", g.delta), ("rho", g.rho)):
        assert exact is not None
        assert 0 <= Fraction(written[name]) - exact <= exact / 10**15, name


@pytest.mark.parametrize("kind", ["select", "fit", "declared", "hinge", "add-remove"])
def test_which_statements_show_both_relations(releases: dict[str, dps.Release], kind: str) -> None:
    """As README.md says."""
    both = kind not in ("select", "fit")
    text = releases[kind].statement()
    assert bool(re.search(r"The same release costs epsilon = .* and epsilon = ", text)) is both
    assert ("There is no guarantee for tables that differ by a row" in text) is not both
