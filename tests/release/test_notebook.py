"""What notebooks show of a release with a model: a table, with escaped names."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import dpsubset as dps

NAMES = ["<b>age</b>", "stay & more", '"quoted"']
X = pd.DataFrame(np.random.default_rng(0).uniform(0, 1, (400, 3)), columns=NAMES)
SCHEMA = dps.Schema.from_bounds(dict.fromkeys(NAMES, (0, 1)), ("cost <i>", 0, 1))


class Cells(HTMLParser):
    """The rows of the tables of a page, all of its tags, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: list[str] = []
        self.text, self._cell = "", False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        self._cell = tag in ("th", "td")
        if self._cell:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._cell = False

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._cell:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def release() -> dps.Release:
    return dps.fit(X, SCHEMA, y=X[NAMES[0]], k=2, epsilon=5, seed=1)


@pytest.mark.parametrize("of", ["model", "release"])
def test_a_model_is_a_table_with_units(release: dps.Release, of: str) -> None:
    model = release.model
    assert model is not None
    page = Cells((model if of == "model" else release)._repr_html_())
    heads, *rows = page.rows
    assert heads == ["", "coefficient", "95 % interval", "standardised"]
    assert [tuple(row) for row in rows] == model.rows()
    assert rows[-1][0] == "(intercept)"
    assert "in units of cost <i>, per unit of the column" in page.text
    assert model.target in page.text
    assert not {"b", "i", "script"} & set(page.tags)


def test_a_release_names_the_model_once(release: dps.Release) -> None:
    assert release.model is not None
    text = Cells(release._repr_html_()).text
    heading = release.model.heading
    assert text.count(heading[1:]) == 1
    assert "NOT PRIVATE" in text
    assert "Fitted on" in text


def test_a_release_without_a_model_has_no_table() -> None:
    page = Cells(dps.select(X, SCHEMA, y=X[NAMES[0]], k=1, epsilon=1, seed=1)._repr_html_())
    assert "table" not in page.tags
    assert "li" in page.tags


def test_labels_and_rows_without_a_sign_say_their_units() -> None:
    bounds = dps.Bounds(x=1, labels=(0, 1))
    labels = (X[NAMES[0]] > 0.5).astype(int).rename("above")
    for loss in ("least-squares", "logistic"):
        fitted = dps.fit(X, y=labels, bounds=bounds, k=1, epsilon=1, loss=loss, seed=1)
        assert fitted.model is not None
        text = Cells(fitted.model._repr_html_()).text
        assert ("log-odds" if loss == "logistic" else "the label counted as -1 and 1") in text
