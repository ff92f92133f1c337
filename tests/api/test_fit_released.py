"""fit_released: a model on an earlier release; release files, read back."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsubset as dps
from dpsubset.ledger.canonical import sha256_of_facts
from dpsubset.models.noisy_moments import NoisyMoments

SCHEMA = dps.Schema.from_dict({
    "response": {"name": "cost", "lo": 0, "hi": 100},
    "columns": {
        "age": {"lo": 0, "hi": 110},
        "ward": {"levels": ["surgery", "medicine", "other"]},
        "dose": {"lo": 1, "hi": 1000, "transform": "log", "group": "drug"},
        "times": {"lo": 0, "hi": 5, "group": "drug"},
        "noise": {"lo": -1, "hi": 1},
    },
})  # fmt: skip


def frame(n: int = 2000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "age": rng.uniform(20, 90, n), "ward": rng.choice(["surgery", "medicine", "other"], n),
        "dose": np.exp(rng.uniform(0, 6, n)), "times": rng.uniform(0, 5, n),
        "noise": rng.uniform(-1, 1, n),
    })  # fmt: skip
    table["cost"] = (20 + 0.4 * table["age"] + rng.normal(0, 4, n)).clip(0, 100)
    return table


def selected(**more: Any) -> dps.Release:
    return dps.select(frame(), SCHEMA, **{"k": 2, "epsilon": 2, **more})


@pytest.mark.parametrize("more", [{}, {"neighbours": "add-remove"}, {"response_range": "declared"}],
                         ids=str)  # fmt: skip
def test_only_the_fit_is_spent_and_the_sum_is_stated(more: Any) -> None:
    first = selected(**more)
    release = dps.fit_released(first, frame(), epsilon=3)
    assert release.support == first.support
    assert release.guarantee.epsilon == 5
    assert dict(release.guarantee.parts)["the fit"].epsilon == 3
    earlier = dict(first.guarantee.parts) or {"the selection": first.guarantee}
    relations = release.guarantee.costs  # a fit under replace-one tells the number of rows
    assert dict(release.guarantee.parts) == {
        **{name: part.limited_to(relations) for name, part in earlier.items()},
        "the fit": dict(release.guarantee.parts)["the fit"],
    }
    assert release.earlier == sha256_of_facts(first.to_dict())
    assert json.loads(release.to_json())["earlier"] == json.loads(first.to_json())["content_digest"]
    text = release.statement()
    assert release.earlier in text
    assert "The fit adds epsilon = 3 to the cost of that release" in text
    assert list(release.model.coefficients)
    assert set(release.guarantee.costs) == (
        {"replace-one", "add-remove"} if more.get("neighbours") else {"replace-one"}
    )


def test_without_noise_it_is_what_fit_would_have_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same support, the same scale, the same sums."""
    monkeypatch.setattr(NoisyMoments, "draw", lambda self, values, rng: list(values))
    whole = dps.fit(frame(), SCHEMA, k=1, epsilon=1000, response_range="declared")
    first = dps.select(frame(), SCHEMA, k=1, epsilon=400, response_range="declared")
    parts = dps.fit_released(first, frame(), epsilon=600)
    assert parts.features == whole.features == ["age"]
    assert parts.fit.released == whole.fit.released
    assert parts.model.coefficients == whole.model.coefficients


def test_a_file_will_do_for_the_release_and_for_the_table(tmp_path: Path) -> None:
    first = selected()
    (tmp_path / "r.json").write_text(first.to_json(), encoding="utf-8")
    frame().to_csv(tmp_path / "t.csv", index=False)
    SCHEMA.write(tmp_path / "s.yaml")
    release = dps.fit_released(tmp_path / "r.json", tmp_path / "t.csv", tmp_path / "s.yaml",
                               epsilon=1e4)  # fmt: skip
    other = dps.fit_released(first, frame(), epsilon=1e4)
    assert release.guarantee == other.guarantee
    assert release.earlier == other.earlier
    assert release.fit.clip == other.fit.clip
    for name, value in other.model.coefficients.items():
        assert release.model.coefficients[name] == pytest.approx(value, abs=0.1)


def test_moments_and_arrays_will_do() -> None:
    from dpsubset.data.readers import open_table

    first = selected()
    moments = dps.Moments.from_blocks(SCHEMA, open_table(frame(), SCHEMA).blocks())
    assert dps.fit_released(first, moments, epsilon=1).model.clipped is None
    x = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    bounds = dps.Bounds(x=1, y=2)
    names = dps.select(x, y=x[:, 1], bounds=bounds, k=1, epsilon=100)
    for more in ({}, {"bounds": bounds}):
        release = dps.fit_released(names, x, y=x[:, 1], epsilon=100, **more)
        assert release.model.coefficients["x1"] == pytest.approx(1, abs=0.2)


def test_units_of_several_rows_and_deltas() -> None:
    schema = dps.Schema.from_dict({**SCHEMA.to_dict(), "rows_per_unit": 4})
    first = dps.select(frame(), schema, k=1, epsilon=2)
    release = dps.fit_released(first, frame(), epsilon=2)
    assert release.guarantee.epsilon == 4
    assert release.fit.deviation == pytest.approx(
        4 * dps.fit_released(dps.select(frame(), SCHEMA, k=1, epsilon=1e4), frame(), epsilon=2)
        .fit.deviation, rel=0.7
    )  # fmt: skip
    with pytest.raises(dps.ArgumentError, match="rows_per_unit"):
        dps.fit_released(first, frame(), epsilon=2, delta=1e-6)
    x = np.random.default_rng(0).uniform(-1, 1, (200, 25))
    names = dps.select(x, y=x[:, 0], bounds=dps.Bounds(x=1, y=1), k=25, epsilon=1)
    release = dps.fit_released(names, x, y=x[:, 0], epsilon=1, delta=1e-6)
    assert release.guarantee.delta == Fraction(1, 10**6)
    assert release.guarantee.epsilon <= 2


def other_schema() -> dps.Schema:
    facts = SCHEMA.to_dict()
    facts["columns"]["age"]["hi"] = 111
    return dps.Schema.from_dict(facts)


@pytest.mark.parametrize(
    ("more", "asked", "match"),
    [
        ({}, {"schema": other_schema()}, "not made from this schema"),
        ({"seed": 3}, {}, "seed"),
        (
            {"mechanism": "mistakes", "options": {"anchor": "data"}, "allow_unproven": True},
            {},
            "no privacy",
        ),
        ({}, {"epsilon": 0}, "epsilon"),
        ({}, {"rule": 3}, "FitRule"),
        ({}, {"bounds": dps.Bounds(x=1, y=1), "schema": SCHEMA}, "not both"),
    ],
)
def test_what_cannot_be_built_upon_is_refused_before_a_value_is_read(
    more: Any, asked: Any, match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = selected(**more)

    def explode(*_: Any, **__: Any) -> None:
        raise AssertionError("values were read")

    monkeypatch.setattr("dpsubset.api.fit_released.SensitiveTable", explode)
    with pytest.raises(dps.DpsubsetError, match=match):
        dps.fit_released(first, frame(), **{"epsilon": 1, **asked})


def test_releases_without_names_and_with_a_model_are_refused() -> None:
    nothing = dps.select(frame(50), SCHEMA, k=2, epsilon=0.01, delta=1e-9, mechanism="stability")
    assert nothing.support is None
    with pytest.raises(dps.ArgumentError, match="names no variables"):
        dps.fit_released(nothing, frame(), epsilon=1)
    with pytest.raises(dps.ArgumentError, match="model already"):
        dps.fit_released(dps.fit_released(selected(), frame(), epsilon=1), frame(), epsilon=1)
    with pytest.raises(dps.ArgumentError, match=r"dpsubset\.Release"):
        dps.fit_released({"support": [0]}, frame(), SCHEMA, epsilon=1)


# -- release files -------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", sorted(dps.MECHANISMS))
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_releases_of_every_mechanism_are_read_back(mechanism: str, neighbours: Any) -> None:
    table, schema = frame(60), SCHEMA
    asked: dict[str, Any] = {"k": 2, "epsilon": 1, "neighbours": neighbours, "mechanism": mechanism,
                             "allow_unproven": True, "ridge": 0.5,
                             "always_include": ["age"]}  # fmt: skip
    if dps.MECHANISMS[mechanism].takes_delta != "no":
        asked["delta"] = 1e-6
    for changes in ({}, {"options": {"rows": 60}}, {"always_include": ()},
                    {"schema": True, "intercept": False}):  # fmt: skip
        if changes.get("schema"):
            # Some take plain columns alone.
            table = frame(60)[["age", "times", "noise", "cost"]]
            facts = SCHEMA.to_dict()
            facts["columns"] = {
                n: {"lo": c["lo"], "hi": c["hi"]} for n, c in facts["columns"].items()
                if n in table.columns
            }  # fmt: skip
            schema = dps.Schema.from_dict(facts)
        more = {name: value for name, value in changes.items() if name != "schema"}
        try:
            release = dps.select(table, schema, **{**asked, **more})
        except dps.DpsubsetError:
            continue
        break
    else:
        pytest.skip("none of these releases can be made")
    again = dps.Release.from_json(release.to_json(), schema)
    assert again.to_json() == release.to_json()
    assert again.guarantee == release.guarantee
    assert again.statement() == release.statement()
    assert again.scale == release.scale


def test_foreign_and_changed_release_files_are_refused(tmp_path: Path) -> None:
    text = selected().to_json()
    facts = json.loads(text)
    for wrong in (
        "",
        "{}",
        "[]",
        b"\xff",
        dps.fit(frame(50), SCHEMA, k=1, epsilon=1).model.to_json(),
    ):
        with pytest.raises(dps.ArgumentError, match="no release file"):
            dps.Release.from_json(wrong, SCHEMA)
    for changes in ({"support": [0, 4]}, {"content_digest": None}, {"more": 1}):
        with pytest.raises(dps.ArgumentError, match="changed"):
            dps.Release.from_json(json.dumps({**facts, **changes}), SCHEMA)

    def made_up(**changes: Any) -> str:
        found = {**facts, **changes}
        found.pop("content_digest")
        return json.dumps({**found, "content_digest": sha256_of_facts(found)})

    cheap = json.loads(text)["guarantee"]
    cheap["epsilon"] = 0.1
    centred = {**facts["scale"], "centre_in_steps": "17"}
    wrongs = ({"features": ["age", "noise"], "support": [0, 1]}, {"guarantee": cheap},
              {"scale": centred}, {"support": [0, 99]}, {"guarantee": {}}, {"parameters": {}},
              {"support": [-1, 0], "features": ["noise", "age"]})  # fmt: skip
    for changes in wrongs:
        with pytest.raises(dps.ArgumentError, match="damaged"):
            dps.Release.from_json(made_up(**changes), SCHEMA)
    with pytest.raises(dps.ArgumentError, match="not made from this schema"):
        dps.Release.from_json(text, other_schema())
    with pytest.raises(dps.TableError, match="no release file"):
        dps.Release.load(tmp_path / "none.json", SCHEMA)
