"""The privacy statement: what it says of every kind of release, in each of its forms."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.base.text import escape_for_terminal
from dpsubset.cli import app
from dpsubset.ledger.canonical import sha256_of_facts
from dpsubset.privacy.guarantee import Cost, Guarantee
from dpsubset.release.files import facts_from_json
from dpsubset.release.statement.columns import markdown_table
from dpsubset.release.statement.escape import code_span, escape, plain_text
from dpsubset.release.statement.page import html_page, text_lines
from dpsubset.release.statement.posterior import percent, posterior_bound
from dpsubset.release.statement.registry import registry_schema
from dpsubset.release.statement.write import FORMAT, form_of_path
from dpsubset.schema import dates
from dpsubset.schema.column import Missing

FORMS = ("markdown", "html", "json", "yaml")
BOUNDS = {"age": (0, 1), "bmi": (0, 1), "dose": (0, 1)}
ABOUT = dps.About(
    data_set="visits", version="2024-05-01", curator="A. Keeper", operator="O. Perator",
    approver="B. Officer", purpose="cost drivers", recipient="Ministry", bounds_from="codebook 7",
    curator_type="Government", region="Atlantis", sector="Healthcare",
)  # fmt: skip
each_form = pytest.mark.parametrize("form", FORMS)


def frame(n: int = 40) -> pd.DataFrame:
    x = np.random.default_rng(0).uniform(0, 1, (n, 3))
    return pd.DataFrame(x, columns=list(BOUNDS)).assign(cost=x[:, 0])


def schema(**more: Any) -> dps.Schema:
    return dps.Schema.from_bounds(BOUNDS, ("cost", 0, 1), **{"unit": "one patient", **more})


def select(table: Any = None, declared: Any = None, **more: Any) -> dps.Release:
    table = frame() if table is None else table
    return dps.select(table, declared or schema(), **{"k": 1, "epsilon": 1, **more})


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dps.Release]:
    """One of each kind."""
    plain = select()
    ledger = dps.Ledger.create(
        tmp_path_factory.mktemp("ledger") / "l.db", data_set="visits 2024", owner="K. Eeper",
        purpose="costs", epsilon=3, unit="one patient", actor="clerk",
    )  # fmt: skip
    select(ledger=ledger)
    labels = dps.Schema.from_bounds(BOUNDS, "ill", labels=("no", "yes"))
    sick = frame().assign(ill=["no", "yes"] * 20)
    concentrated = Guarantee(
        "replace-one",
        {"replace-one": Cost.concentrated(Fraction(1, 50), Fraction(1, 10**6))},
    )
    return {
        "plain": plain,
        "declared scale": select(response_range="declared"),
        "add-remove": select(neighbours="add-remove"),
        "labels": select(sick, labels),
        "seeded": select(seed=1),
        "seeded model": dps.fit(frame(), schema(), k=1, epsilon=1, seed=1),
        "unproven": replace(plain, guarantee=Guarantee("replace-one", {})),
        "assuming": replace(plain, guarantee=replace(plain.guarantee, assumes="pigs have wings")),
        "delta": replace(plain, scale=None, guarantee=concentrated),
        "model": dps.fit(frame(), schema(), k=1, epsilon=1),
        "earlier": dps.fit_released(plain, frame(), epsilon=1),
        "ledger": select(ledger=ledger),
        "read back": dps.Release.from_json(plain.to_json(), plain.schema),
        "rows": select(declared=schema(rows_per_unit=3)),
    }


KINDS = ("plain", "declared scale", "add-remove", "labels", "seeded", "seeded model", "unproven",
         "assuming", "delta", "model", "earlier", "ledger", "read back", "rows")  # fmt: skip
NOT_PRIVATE = ("seeded", "seeded model", "unproven")
each_kind = pytest.mark.parametrize("kind", KINDS)


class Text(HTMLParser):
    """What a reader of a page sees, and which elements it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.elements, self.links = "", list[str](), list[str]()
        self._hidden = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self._hidden = tag == "style"
        self.links += [value or "" for key, value in attrs if key in ("src", "href", "action")]

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._hidden else data


def readable(release: dps.Release, form: str, about: dps.About | None = ABOUT) -> str:
    """The words of a form, without its marks."""
    text = release.statement(about, form=form)  # type: ignore[arg-type]
    if form == "html":
        return Text(text).text
    if form in ("json", "yaml"):
        return json.dumps(yaml.safe_load(text), ensure_ascii=False)
    return text


# -- how sure somebody can become ---------------------------------------------------------------


def exp_between(x: Fraction, terms: int = 200) -> tuple[Fraction, Fraction]:
    """Rationals around e^x, x >= 0, from its series and a bound on the rest."""
    term, total = Fraction(1), Fraction(0)
    for i in range(terms):
        total += term
        term = term * x / (i + 1)
    assert x < terms / 2  # so that what is left is less than twice its first term
    return total, total + 2 * term


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 1000), Fraction(1)])
@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 10**9), Fraction(1, 10), Fraction(1), Fraction(22, 7), Fraction(40)]
)
def test_the_figure_is_never_below_the_exact_one(epsilon: Fraction, delta: Fraction) -> None:
    low, high = exp_between(epsilon)
    # (e + delta) / (1 + e) grows with e.
    least, most = ((e + delta) / (1 + e) for e in (low, high))
    found = posterior_bound(epsilon, delta)
    assert least <= found <= most + Fraction(1, 10**30)
    assert found <= 1


def test_the_figure_for_people_is_rounded_up() -> None:
    assert percent(posterior_bound(Fraction(1))) == "73.2"  # 73.1058...
    assert percent(posterior_bound(Fraction(0))) == "50"
    assert percent(posterior_bound(Fraction(1, 10**9))) == "50.1"
    assert percent(posterior_bound(Fraction(10**6))) == "100"
    assert percent(Fraction(3, 4)) == "75"
    assert posterior_bound(Fraction(0), Fraction(1)) == 1
    # ln 3 lies above 1.0986122886681 and below 1.0986122886682.
    assert percent(posterior_bound(Fraction("1.0986122886681"))) == "75"
    assert percent(posterior_bound(Fraction("1.0986122886682"))) == "75.1"


def test_each_relation_has_its_own_figure(releases: dict[str, dps.Release]) -> None:
    release = releases["add-remove"]
    text = release.statement()
    at_all, fact = text.index("is in the table at all"), text.index("of a fact about one patient")
    assert at_all < fact  # the declared relation comes first
    for relation, cost in release.guarantee.costs.items():
        figure = percent(posterior_bound(cost.epsilon))
        assert re.search(rf"at most {re.escape(figure)} % sure of it from this release "
                         rf"\({relation}\)", text)  # fmt: skip
    beliefs = json.loads(release.statement(form="json"))["beliefs"]
    assert [each["relation"] for each in beliefs] == ["add-remove", "replace-one"]
    assert "at all" not in releases["plain"].statement().split("## Record")[0]


@each_form
def test_a_delta_is_not_passed_over(releases: dict[str, dps.Release], form: str) -> None:
    text = readable(releases["delta"], form)
    cost = releases["delta"].guarantee.costs["replace-one"]
    if form != "json":
        assert "because of delta" in text
        assert "can become at most" not in text
    assert percent(posterior_bound(cost.epsilon, cost.delta)) in text


# -- what is in it --------------------------------------------------------------------------------


@each_kind
@each_form
def test_everything_declared_is_in_every_form(
    releases: dict[str, dps.Release], kind: str, form: str
) -> None:
    text = readable(releases[kind], form)
    # A record of the registry has one curator: the ledger's, if there is one.
    differ = {"curator", "operator"} if (kind, form) == ("ledger", "yaml") else set()
    for key in {"version", "curator", "operator", "recipient"} - differ:
        assert getattr(ABOUT, key) in text, key
    if kind not in NOT_PRIVATE or form in ("json", "yaml"):
        assert "B. Officer" in text
    for feature in releases[kind].features:
        assert feature in text
    assert "dpsubset/proofs/permute_and_flip.md" in text
    assert "dpsubset audit permute-and-flip" in text
    assert "codebook 7" in text


@each_form
def test_without_a_word_from_the_caller(releases: dict[str, dps.Release], form: str) -> None:
    text = releases["plain"].statement(form=form)
    if form == "markdown":
        assert re.search(r"^- To be approved by: ________+$", text, re.MULTILINE)
        assert re.search(r"^- Data set: ________+$", text, re.MULTILINE)
    if form == "html":
        assert '<dt>To be approved by</dt><dd class="blank"></dd>' in text
    if form == "json":
        record = json.loads(text)["record"]
        assert record["approver"] == {"value": None, "source": None}
    if form == "yaml":
        assert "# To be filled in: Data set," in text


def test_plain_words_come_first(releases: dict[str, dps.Release]) -> None:
    for form in ("markdown", "html"):
        text = releases["plain"].statement(form=form)
        order = ["Released:", "In plain words", "50 % sure", "Record", "Guarantee", "exp(epsilon)",
                 "Mechanism", "Not protected", "Provenance", "Signature"]  # fmt: skip
        found = [text.index(each) for each in order]
        assert found == sorted(found)


@each_kind
def test_what_the_release_knows_is_filled_in(releases: dict[str, dps.Release], kind: str) -> None:
    release = releases[kind]
    facts = facts_from_json(release.statement(form="json"), FORMAT, "statement")
    record = facts["record"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"]["value"])
    if kind == "ledger":
        assert record["release_id"]["value"] == release.receipt.entry
    else:
        assert record["release_id"]["value"] == sha256_of_facts(release.to_dict())
    assert facts["rows"] == (None if "add-remove" in release.guarantee.costs else 40)
    assert facts["private"] is release.guarantee.private
    names = [*BOUNDS, release.schema.response.name]
    assert [each["name"] for each in facts["bounds"]] == names
    assert {each["source"] for each in facts["bounds"]} == {"given by the caller"}
    assert facts["bounds"][0]["low"] == "0"
    assert facts["versions"] == dict(release.versions)


def test_rows_are_in_no_form_where_they_are_private() -> None:
    release = select(frame(1234), neighbours="add-remove")
    for text in (release.to_json(), *(release.statement(form=form) for form in FORMS)):
        assert "1234" not in text.replace(release.schema.fingerprint(), "")
    assert release.rows is None
    assert select(frame(1234)).rows == 1234


def test_the_date_is_that_of_asking_not_of_having_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A date after the table was read would tell, now and then, how long that took."""

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls(2099, 1, 1, tzinfo=tz)

    plain = select()
    for make in (
        lambda **more: select(**more),
        lambda **more: dps.fit(frame(), schema(), k=1, epsilon=1, **more),
        lambda **more: dps.fit_released(plain, frame(), epsilon=1, **more),
    ):
        with monkeypatch.context() as changed:
            release = make(progress=lambda _: changed.setattr(dates, "datetime", Later))
            assert dates.today() == "2099-01-01"
        assert release.date is not None
        assert "2099" not in release.statement()


def test_the_ledger_fills_in_what_it_knows(releases: dict[str, dps.Release]) -> None:
    release = releases["ledger"]
    text = release.statement()
    for line in (
        f"- Date: {release.receipt.reserved.time[:10]} (from the ledger)",
        f"- Release: `{release.receipt.entry}` (from the ledger)",
        "- Data set: visits 2024 (from the ledger)",
        "- Curator of the data set: K. Eeper (from the ledger)",
        "- Released by: clerk (from the ledger: as declared; operating system account ",
        "- Purpose: costs (from the ledger)",
        "Ledger: before this release epsilon = 1 was spent, with it epsilon = 2, of a limit of "
        "epsilon = 3, counted under replace-one. Left: epsilon = 1. Ever counted in this ledger: "
        "epsilon = 2.",
        f"the figure is {percent(posterior_bound(Fraction(2)))} % (replace-one)",
    ):
        assert line in text, line
    # The caller is heard as well, and does not overwrite it.
    told = release.statement(dps.About(data_set="others", version="7"))
    assert "- Data set: visits 2024 (from the ledger; the caller says others)" in told
    assert "- Version of the data set: 7 (declared by the caller)" in told
    facts = json.loads(release.statement(form="json"))
    assert facts["ledger"]["spent_before"] == release.receipt.before.to_dict()
    assert facts["ledger"]["limit"] == {"epsilon": "3"}
    again = dps.Release.from_json(release.to_json(), release.schema)
    for form in FORMS:
        assert again.statement(ABOUT, form=form) == release.statement(ABOUT, form=form)


def test_the_figure_of_a_ledger_is_worded_by_the_delta_of_its_sum(tmp_path: Path) -> None:
    ledger = dps.Ledger.create(
        tmp_path / "l.db", data_set="d", owner="o", purpose="p", epsilon=1, delta=1e-6,
        unit="one patient",
    )  # fmt: skip
    for _ in range(
        20
    ):  # their epsilons add up to the limit, and this is the last sum without delta
        last = select(epsilon=0.05, ledger=ledger)
    assert "the figure is" in last.statement()
    assert "the figure is about guesses" not in last.statement()
    belief = json.loads(last.statement(form="json"))["ledger"]["belief_with_this"]
    assert belief == {
        "relation": "replace-one", "from_percent": 50, "of": "every release",
        "to_at_most_percent": float(percent(posterior_bound(Fraction(1)))),
    }  # fmt: skip
    beyond = select(epsilon=0.001, ledger=ledger)
    assert "sure of it from this release" in beyond.statement()
    assert "a guess is right at most" in beyond.statement()
    (own,) = {each["of"] for each in json.loads(beyond.statement(form="json"))["beliefs"]}
    of_all = json.loads(beyond.statement(form="json"))["ledger"]["belief_with_this"]
    assert (own, of_all["of"]) == ("every release", "guesses, on average")


@pytest.mark.parametrize("transform", [None, "sqrt"])
def test_a_record_of_a_model_says_what_it_is_of(transform: str | None) -> None:
    declared = schema()
    response = replace(declared.response, transform=transform, missing=Missing(rule="middle"))
    declared = replace(declared, response=response)
    rule = dps.FitRule(mechanism="noisy-moments")
    release = dps.fit(frame(), declared, k=1, epsilon=1, rule=rule)
    record = yaml.safe_load(release.statement(form="yaml"))["deployment"]
    assert release.model.target in record["basic"]["description"]
    assert "Released too: sums of products" in record["basic"]["description"]
    assert "table below" in release.statement()
    assert "table below" not in release.statement(form="yaml")


def test_a_receipt_that_cannot_be_read_is_told(releases: dict[str, dps.Release]) -> None:
    receipt = releases["ledger"].receipt
    assert receipt is not None
    facts = {**receipt.to_dict(), "limit": {"wishes": "3"}}
    from dpsubset.ledger.receipt import KeptReceipt

    text = replace(releases["ledger"], receipt=KeptReceipt(facts)).statement()
    assert "the receipt of the ledger cannot be read" in text
    assert "no ledger was used" not in text


def test_several_rows_a_unit(releases: dict[str, dps.Release]) -> None:
    text = releases["rows"].statement()
    assert "of a fact about one patient, with all of its up to 3 rows, can become" in text
    record = yaml.safe_load(releases["rows"].statement(form="yaml"))["deployment"]
    assert "number_of_privacy_units" not in record["privacy_loss"]
    plain = yaml.safe_load(releases["plain"].statement(form="yaml"))["deployment"]
    assert plain["privacy_loss"]["number_of_privacy_units"] == 40


def test_bounds_that_were_paid_for(tmp_path: Path) -> None:
    dps.suggest_bounds(frame(), schema(), epsilon=1, columns=["age"]).write(tmp_path / "b.yaml")
    release = select(declared=dps.Schema.read(tmp_path / "b.yaml"))
    bounds = json.loads(release.statement(form="json"))["bounds"]
    sources = {each["name"]: each["source"] for each in bounds}
    assert sources == {
        "age": "according to the schema, released before for epsilon = 1 under replace-one",
        **dict.fromkeys(["bmi", "dose", "cost"], "given by the caller"),
    }


def test_an_assumption_goes_with_the_figure(releases: dict[str, dps.Release]) -> None:
    text = releases["assuming"].statement()
    assert "- Only if the assumption that is stated above holds: A reader who was 50 % sure" in text
    assert "The guarantee holds only if pigs have wings." in text.split("## ")[0]


def test_versions_are_those_it_was_made_with(releases: dict[str, dps.Release]) -> None:
    release = replace(releases["plain"], versions={"python": "2.7"}, date="2001-02-03")
    again = dps.Release.from_json(release.to_json(), release.schema)
    for each in (release, again):
        assert "Versions: python 2.7\n" in each.statement()
        assert "- Date: 2001-02-03 (of the release)" in each.statement()
        assert f"`{json.loads(release.to_json())['content_digest']}`" in each.statement()


# -- not private ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NOT_PRIVATE)
@each_form
def test_what_is_not_private_never_reads_as_if(
    releases: dict[str, dps.Release], kind: str, form: str
) -> None:
    release = releases[kind]
    text = readable(release, form)
    assert "NOT PRIVATE" in text or "NO PRIVACY GUARANTEE" in text
    assert "can become at most" not in text
    assert "of the time" not in text
    if form == "json":
        facts = json.loads(text)
        assert facts["private"] is False
        assert facts["guarantee"] is None
        assert facts["beliefs"] == []
    if form == "yaml":
        record = yaml.safe_load(text)["deployment"]
        assert not {"dp_variant", "privacy_loss"} & set(record)
        assert record["basic"]["name"].startswith("NOT PRIVATE")
        assert record["administrative"]["tier"] == 1
    if form in ("markdown", "html"):
        assert "This release protects NOBODY" in text
        assert "Not to be signed" in text
        assert "approved by" not in text
        for line in text.splitlines():
            if "ifferential privacy" in line or "epsilon = " in line:
                assert "ithout a seed" in line, line
    if form == "html":
        assert "<title>Privacy statement: NOT PRIVATE</title>" in release.statement(form="html")


# -- names from outside ---------------------------------------------------------------------------

ODD = ["</style><script>alert(1)</script>", "a|b", "`c`", "<img src=x onerror=1>", "&amp;", "d\ne",
       "\x1b[31m", "\u202eright to left", "\ue000f\ue002", "]]>", "-->", "'\""]  # fmt: skip


@pytest.fixture(scope="module")
def odd() -> dps.Release:
    x = pd.DataFrame(np.zeros((5, len(ODD))), columns=ODD)
    declared = dps.Schema.from_bounds(
        dict.fromkeys(ODD, (0, 1)), ("<y>", 0, 1), privacy_unit="<u>one"
    )
    return dps.select(x, declared, y=np.zeros(5), k=len(ODD), epsilon=1)


def test_odd_names_are_text_and_nothing_else(odd: dps.Release) -> None:
    about = dps.About(data_set="<script>", purpose="&lt;", approver="<a href=x>")
    page = odd.statement(about, form="html")
    seen = Text(page)
    assert set(seen.elements) == {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "section", "ul",
        "li", "code", "dl", "dt", "dd", "div", "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    assert seen.links == []
    assert page.count("</style>") == 1
    for each in (*ODD, "<y>", "<u>one", "<script>", "&lt;", "<a href=x>"):
        assert escape_for_terminal(each) in seen.text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e\ue000-\ue002]", page)


def test_odd_names_in_the_other_forms(odd: dps.Release) -> None:
    facts = json.loads(odd.statement(form="json"))
    assert facts["features"] == ODD
    record = yaml.safe_load(odd.statement(form="yaml"))
    jsonschema.validate(record, registry_schema())
    assert escape_for_terminal(ODD[0]) in record["deployment"]["basic"]["description"]


#: Characters that mean something to Markdown, HTML, terminals or readers of text.
HOSTILE = st.text(
    st.one_of(
        st.sampled_from("\\`*_|<>&~[]()!#+-=.:/@\"' \t\n\r\x00\x1b"),
        st.sampled_from("\u00a0\u2028\u202e\ue000\U000e0041019aw"),
        st.characters(),
    ),
    max_size=30,
) | st.sampled_from(
    ["http://a.b", "www.a.b", "a@b.c", "![a](b)", "[a](b 'c')", "[a]: b", "<http://a.b>", "---",
     "# a", "- a", "1. a", "1) a", "> a", "```a", "~~~", "|-|-|", "    a", "\\", "\\|", "`` ` ``",
     "&lt;b&gt;", "&#60;", "<!-- -->", "</style>", "**a**", "__a__", "===", "a  ", "\ta"]
)  # fmt: skip


def markdown_with(text: str) -> str:
    """Untrusted text in every place where a statement may have it."""
    return "\n".join([
        f"said {escape(text)}.", "", f"- {escape(text)}", f"- {code_span(text)}, {code_span(text)}",
        f"- a: {escape(text)} (b)", f"- {escape(text)}", "", f"> **{escape(text)}**", "",
        markdown_table(["a", "b"], [[text, text], ["x", text]]), "", "## Record", "",
        f"- Title: {escape(text)} (s)", f"- Title: {code_span(text)} (s)", "",
    ])  # fmt: skip


@given(HOSTILE, HOSTILE)
def test_escaped_text_reads_as_itself(first: str, second: str) -> None:
    shown, other = escape_for_terminal(first), escape_for_terminal(second)
    assert plain_text(f"a {code_span(first)} b {escape(second)}.") == f"a {shown} b {other}."
    assert plain_text(escape(first)) == shown


@given(HOSTILE.filter(bool))
def test_escaped_text_is_nothing_but_text(text: str) -> None:
    shown = escape_for_terminal(text)
    ours = lambda each: html_page("t", markdown_with(each))  # noqa: E731
    # Another reader of Markdown, for whom HTML, links and images are in force.
    another = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render
    for reader in (ours, lambda each: another(markdown_with(each))):
        found, harmless = Text(reader(text)), Text(reader("x"))
        assert found.elements == harmless.elements
        assert found.links == []
        for line in (f"said {shown}.", f"a: {shown} (b)", f"{shown} (s)", f"{shown}, {shown}"):
            assert line in found.text
        assert found.text.count(f"\n{shown}\n") >= 3  # items and cells, blanks at ends included
    lines = text_lines(markdown_with(text))
    assert lines[:3] == [f"said {shown}.", shown, f"{shown}, {shown}"]
    assert lines[-4:] == [f"{shown}, {shown}", f"x, {shown}",
                          f"Title: {shown} (s)", f"Title: {shown} (s)"]  # fmt: skip


def test_the_page_asks_nobody_for_anything(releases: dict[str, dps.Release]) -> None:
    page = releases["model"].statement(ABOUT, form="html")
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|url\(|@import|<script|<link", page)


# -- the registry ---------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("about", [None, ABOUT], ids=["blank", "told"])
def test_records_are_valid(
    releases: dict[str, dps.Release], kind: str, about: dps.About | None
) -> None:
    record = yaml.safe_load(releases[kind].statement(about, form="yaml"))
    validator = jsonschema.Draft7Validator(
        registry_schema(), format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER
    )
    assert [error.message for error in validator.iter_errors(record)] == []


def test_what_the_schema_refuses(releases: dict[str, dps.Release]) -> None:
    record = yaml.safe_load(releases["plain"].statement(ABOUT, form="yaml"))
    jsonschema.Draft7Validator.check_schema(registry_schema())
    basic = record["deployment"]["basic"]
    for changed in (
        {**basic, "surprise": 1},
        {**basic, "data_product_type": "surprise"},
        {**basic, "publication_date": 1},
        {key: value for key, value in basic.items() if key != "name"},
    ):
        wrong = {**record, "deployment": {**record["deployment"], "basic": changed}}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, registry_schema())


def test_parameters_of_a_record(releases: dict[str, dps.Release]) -> None:
    def loss(kind: str) -> Any:
        record = yaml.safe_load(releases[kind].statement(form="yaml"))["deployment"]
        return record["dp_variant"]["variant_name"], record["privacy_loss"]["privacy_parameters"]

    assert loss("plain") == ("Pure DP", {"epsilon": 1.0})
    variant, numbers = loss("delta")
    assert variant == "Approximate DP"
    assert set(numbers) == {"epsilon", "delta", "rho"}
    exact = releases["delta"].guarantee
    assert exact.epsilon is not None
    # As written: the nearest float may be below a decimal.
    text = yaml.load(releases["delta"].statement(form="yaml"), yaml.BaseLoader)["deployment"]
    written = text["privacy_loss"]["privacy_parameters"]
    assert Fraction(written["epsilon"]) >= exact.epsilon
    assert Fraction(written["delta"]) == exact.delta


# -- what the caller says -------------------------------------------------------------------------


def test_about_files(tmp_path: Path) -> None:
    path = tmp_path / "about.yaml"
    path.write_text("data_set: visits\nversion: 1.10\napprover:\npurpose: 2024-05-01\n")
    assert dps.About.load(path) == dps.About(
        data_set="visits", version="1.10", purpose="2024-05-01"
    )
    path.write_text('{"curator": "A. Keeper"}')
    assert dps.About.load(path) == dps.About(curator="A. Keeper")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("owner: me", "must have a line each for some of data_set"),
        ("- a\n- b", "must have a line each"),
        ("data_set: {a: b}", "data_set must be given, in words"),
        ("data_set: [", "cannot be read as YAML"),
        ('purpose: "a\\nb"', "must be one line"),
        ("sector: Fishing", "sector must be one of"),
        ("curator_type: Person", "curator_type must be one of"),
    ],
)
def test_about_files_that_are_refused(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "about.yaml"
    path.write_text(text)
    with pytest.raises(dps.ArgumentError, match=match):
        dps.About.load(path)
    with pytest.raises(dps.ArgumentError, match="there is no file"):
        dps.About.load(tmp_path / "nowhere.yaml")


def test_wrong_arguments(releases: dict[str, dps.Release]) -> None:
    with pytest.raises(dps.ArgumentError, match="form must be one of markdown, html, json, yaml"):
        releases["plain"].statement(form="pdf")  # type: ignore[arg-type]
    with pytest.raises(dps.ArgumentError, match=r"about must be a dpsubset\.About"):
        releases["plain"].statement({"data_set": "x"})  # type: ignore[arg-type]


# -- the command line -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "begins"),
    [
        ("s.md", "# Privacy statement"), ("s.txt", "# Privacy statement"), ("s", "# Privacy"),
        ("s.html", "<!DOCTYPE html>"), ("s.HTM", "<!DOCTYPE html>"), ("s.json", "{"),
        ("s.yaml", "# A draft for the deployments registry"), ("s.yml", "# A draft for the"),
    ],
)  # fmt: skip
def test_the_ending_chooses_the_form(
    releases: dict[str, dps.Release], file: str, begins: str
) -> None:
    assert releases["plain"].statement(form=form_of_path(Path(file))).startswith(begins)


def test_statement_and_about_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame().to_parquet("t.parquet")
    schema().write("s.yaml")
    Path("about.yaml").write_text("approver: B. Officer\n")
    asked = ["t.parquet", "--schema", "s.yaml", "--k", "1", "--epsilon", "1"]
    for command, file in (("select", "s.html"), ("select", "s.json"), ("fit", "f.html")):
        result = CliRunner().invoke(
            app, [command, *asked, "--about", "about.yaml", "--statement", file]
        )
        assert result.exit_code == 0, result.output
        assert "B. Officer" in Path(file).read_text()
    printed = CliRunner().invoke(app, ["select", *asked, "--about", "about.yaml"])
    assert "- To be approved by: B. Officer (declared by the caller)" in printed.stdout
    # What is wrong with it is found before anything is read.
    Path("about.yaml").write_text("who: me\n")
    refused = CliRunner().invoke(app, ["select", "nowhere.parquet", *asked[1:], "--about",
                                       "about.yaml"])  # fmt: skip
    assert refused.exit_code == 2
    assert "must have a line each" in refused.stderr
