"""The page of a statement in a real browser: wide, narrow, dark and printed.

Run by `.ci/run`, which installs Chromium where it may; skipped where there is none.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsubset as dps
from support.chromium import Browser, program, started

pytestmark = pytest.mark.browser

LONG = "a_name_without_a_blank_" * 8
NAMES = ["age", LONG, "</style><script>document.title = 'taken over'</script>", "日付"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = program()
    if path is None:
        pytest.skip("there is no Chromium on this machine")
    with started(path) as found:
        yield found


@pytest.fixture(scope="module", params=["model", "seeded"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    x = pd.DataFrame(np.random.default_rng(0).uniform(0, 1, (60, len(NAMES))), columns=NAMES)
    declared = dps.Schema.from_bounds(
        dict.fromkeys(NAMES, (0, 1)), ("cost", 0, 1), privacy_unit=LONG
    )
    asked = {"y": x["age"], "k": len(NAMES), "epsilon": 1}
    if request.param == "model":
        release = dps.fit(x, declared, **asked)
    else:
        release = dps.select(x, declared, **asked, seed=1)
    about = dps.About(data_set=LONG, purpose="p" * 300, approver="B. Officer")
    path = tmp_path_factory.mktemp("page") / "statement.html"
    path.write_text(release.statement(about, form="html"), encoding="utf-8")
    return path.as_uri()


def overflowing(browser: Browser, width: int) -> list[str]:
    """Elements that end right of the window, but for tables within a box that scrolls; and the
    document itself if any text does.
    """
    found: list[str] = browser.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => !e.closest('.wide table') && "
        f"e.getBoundingClientRect().right > {width} + 0.5).map(e => e.tagName)"
        f".concat(document.documentElement.scrollWidth > {width} ? ['HTML'] : [])"
    )
    return found


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_overflows(browser: Browser, page: str, width: int) -> None:
    browser.screen(width)
    browser.open(page)
    assert browser.evaluate("innerWidth") == width
    assert overflowing(browser, width) == []


#: Words of cells, without those of the first column, that do not stand on one line.
BROKEN = """[...document.querySelectorAll('td:not(:first-child)')].flatMap(cell =>
    [...cell.innerText.matchAll(/\\S+/g)].filter(word => {
        const range = document.createRange();
        range.setStart(cell.firstChild, word.index);
        range.setEnd(cell.firstChild, word.index + word[0].length);
        return new Set([...range.getClientRects()].map(e => e.top)).size > 1;
    }).map(word => word[0]))"""


def test_a_model_fits_a_telephone_and_no_row_is_printed_alone(
    browser: Browser, tmp_path: Path
) -> None:
    x = np.random.default_rng(0).uniform(0, 1, (200, 3))
    y = 2e5 * x[:, 0]
    release = dps.fit(x, y=y, bounds=dps.Bounds(x=(0, 1), y=(0, 2e5)), k=2, epsilon=1, seed=1)
    path = tmp_path / "statement.html"
    path.write_text(release.statement(form="html"), encoding="utf-8")
    browser.screen(400)
    browser.open(path.as_uri())
    assert browser.evaluate("document.querySelector('th').innerText") == "column"
    assert browser.evaluate("[...document.querySelectorAll('.wide')]"
                            ".every(e => e.scrollWidth <= e.clientWidth)")  # fmt: skip
    assert browser.evaluate("document.querySelector('tbody').innerText.includes('e+0')")
    assert browser.evaluate(BROKEN) == []
    browser.screen(673, media="print")
    rows = browser.evaluate("[...document.querySelector('tbody').rows]"
                            ".map(e => getComputedStyle(e).breakAfter)")  # fmt: skip
    assert rows == ["avoid", "avoid", "auto"]


def test_nobody_is_asked_for_anything_and_no_name_is_run(browser: Browser, page: str) -> None:
    browser.screen(800)
    browser.open(page)
    assert browser.requests == [page]
    assert browser.evaluate("document.title").startswith("Privacy statement")
    assert browser.evaluate("document.scripts.length") == 0
    assert browser.evaluate("document.body.innerText.includes('taken over')") is True


COLOURS = """[document.body, document.querySelector('dt'), document.querySelector('.alarm')]
.filter(Boolean).map(e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor])"""


def luminance(colour: str) -> float:
    """Of WCAG 2, from 'rgb(r, g, b)'."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_dark_is_dark_and_both_can_be_read(browser: Browser, page: str) -> None:
    browser.open(page)
    papers = {}
    for scheme in ("light", "dark"):
        browser.screen(800, scheme=scheme)
        (_, paper), *_ = colours = browser.evaluate(COLOURS)
        papers[scheme] = luminance(paper)
        for ink, ground in colours:
            ground = paper if ground.startswith("rgba") else ground
            low, high = sorted((luminance(ink), luminance(ground)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (scheme, ink, ground)
    assert papers["dark"] < 0.05 < 0.9 < papers["light"]


def test_print_is_black_on_white_and_fits_the_sheet(browser: Browser, page: str) -> None:
    browser.screen(800, scheme="dark", media="print")
    browser.open(page)
    (ink, paper), *_ = browser.evaluate(COLOURS)
    assert (ink, paper) == ("rgb(0, 0, 0)", "rgb(255, 255, 255)")
    # As wide as what is between the margins of A4.
    browser.screen(673, media="print")
    assert overflowing(browser, 673) == []
    browser.screen(800, media="")
    printed = browser.call("Page.printToPDF", preferCSSPageSize=True)
    sheet = base64.b64decode(printed["data"])
    assert sheet.startswith(b"%PDF")
    assert sheet.count(b"/Type /Page\n") in range(3, 8)


def test_a_page_that_is_wrong_is_noticed(browser: Browser, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text(
        '<!DOCTYPE html><meta name="viewport" content="width=device-width"><body>'
        f'<p>{"x" * 400}</p><img src="missing.png"><script>document.title = "taken over"</script>'
    )
    browser.screen(360)
    browser.open(wrong.as_uri())
    assert overflowing(browser, 360)
    assert len(browser.requests) == 2
    assert browser.evaluate("document.title") == "taken over"
