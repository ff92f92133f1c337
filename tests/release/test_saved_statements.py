"""Statements of saved releases: written again, with digests that agree, and compared with files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app
from dpsubset.ledger.canonical import sha256_of_facts
from dpsubset.release.statement.write import form_of_path

ENDINGS = ("md", "html", "json", "yaml")
ABOUT = "data_set: visits\noperator: C. Analyst\nbounds_from: codebook 7\n"
BOUNDS = {"age": (0, 1), "bmi": (0, 1), "dose": (0, 1), "ward": {"levels": ["x", "y", "z"]}}
ASKED = ("t.parquet", "--schema", "s.yaml", "--epsilon", "1")
each_ending = pytest.mark.parametrize("ending", ENDINGS)


def frame(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.uniform(0, 1, (n, 3)), columns=["age", "bmi", "dose"])
    return x.assign(ward=rng.choice(["x", "y", "z"], n), cost=0.8 * x["age"])


def schema(**more: Any) -> dps.Schema:
    return dps.Schema.from_bounds(BOUNDS, ("cost", 0, 1), **{"privacy_unit": "one patient", **more})


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def done(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def sha256sum(path: Path | str) -> str:
    return subprocess.run(["sha256sum", path], capture_output=True, text=True).stdout.split()[0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frame().to_parquet("t.parquet")
    schema().write("s.yaml")
    Path("about.yaml").write_text(ABOUT)
    done("ledger", "create", "l.db", "--data-set", "visits", "--owner", "K. Eeper", "--purpose",
         "costs", "--epsilon", "5", "--unit", "one patient")  # fmt: skip
    return tmp_path


def select(*more: str) -> str:
    return done("select", *ASKED, "--k", "1", "--about", "about.yaml", *more)


# -- digests --------------------------------------------------------------------------------------


@each_ending
def test_digests_of_files_are_what_sha256sum_prints(folder: Path, ending: str) -> None:
    select("--out", "r.json", "--statement", f"page.{ending}")
    text = re.sub(r"\s+", " ", Path(f"page.{ending}").read_text())
    assert sha256sum("r.json") in text
    assert sha256sum("s.yaml") in text
    # Content digests are called so, and the command that checks them is named.
    content = json.loads(Path("r.json").read_text())["content_digest"]
    assert content in text
    assert "ontent digest" in text or "content_digest" in text
    assert "SHA-256: " not in text
    if ending != "yaml":
        assert "dpsubset verify" in text.replace("&#x27;", "'")
    assert content in done("verify", "r.json", "--schema", "s.yaml")


def test_without_files_only_content_digests_are_stated() -> None:
    release = dps.select(frame(), schema(), k=1, epsilon=1)
    text = release.statement()
    assert "SHA-256 of the" not in text
    assert f"`{release.content_digest}`" in text
    facts = json.loads(release.statement(form="json"))
    assert facts["release_file_sha256"] is facts["schema_file_sha256"] is None
    assert facts["release_content_digest"] == release.content_digest
    assert facts["schema_content_digest"] == schema().fingerprint()
    assert json.loads(release.to_json())["content_digest"] == release.content_digest


def test_files_of_earlier_versions_are_read(folder: Path) -> None:
    facts = dps.select(frame(), schema(), k=1, epsilon=1).to_dict()
    Path("old.json").write_text(json.dumps({**facts, "sha256": sha256_of_facts(facts)}))
    assert dps.Release.load("old.json", schema()).to_dict() == facts
    assert "NO" not in done("verify", "old.json", "--schema", "s.yaml")
    changed = {**facts, "features": ["bmi"], "sha256": sha256_of_facts(facts)}
    Path("old.json").write_text(json.dumps(changed))
    assert "NO  its content digest" in run("verify", "old.json", "--schema", "s.yaml").stdout


# -- releases with a model are read ----------------------------------------------------------------


def releases() -> dict[str, dps.Release]:
    table, declared = frame(), schema()
    labels = dps.Schema.from_bounds(BOUNDS, "ill", labels=("no", "yes"))
    sick = table.assign(ill=np.where(table["age"] > 0.5, "yes", "no"))
    missing = dps.Schema.from_bounds(BOUNDS, {"name": "cost", "lo": 1e-3, "hi": 1,
                                              "transform": "log"})  # fmt: skip
    plain = dps.select(table, declared, k=2, epsilon=1, check_readable=0.1)
    grid = {"k": [1, 2], "budget_fraction": [0.5, 0.123456789], "mechanism": ["exponential"]}
    return {
        "select": plain,
        "fit": dps.fit(table, declared, k=2, epsilon=3),
        "fit add-remove": dps.fit(table, declared, k=2, epsilon=3, neighbours="add-remove"),
        "fit log": dps.fit(table, missing, k=1, epsilon=3),
        "fit declared": dps.fit(table, declared, k=1, epsilon=3, response_range="declared"),
        "fit with delta": dps.fit(table, declared, k=1, epsilon=3, delta=1e-6),
        "fit logistic": dps.fit(sick, labels, k=1, epsilon=3, loss="logistic"),
        "fit of several rows": dps.fit(table, schema(rows_per_unit=3), k=1, epsilon=3),
        "fit with a width": dps.fit(table, declared, k=1, epsilon=3, rule=dps.FitRule(width=1.37)),
        "fit seeded": dps.fit(table, declared, k=1, epsilon=3, seed=3),
        "fit_released": dps.fit_released(plain, table, epsilon=1),
        "tune": dps.tune(table, declared, grid=grid, epsilon=6),
    }


def test_every_release_is_read_back_with_the_same_statement(tmp_path: Path) -> None:
    for kind, release in releases().items():
        path, bounds = tmp_path / "r.json", tmp_path / "s.yaml"
        path.write_text(release.to_json())
        release.schema.write(bounds)
        again = dps.Release.load(path, bounds)
        assert again.to_json() == release.to_json(), kind
        assert again.content_digest == release.content_digest, kind
        assert str(again) == str(release), kind
        assert dps.Release.from_json(release.to_json(), release.schema.to_dict()) == again, kind
        for form in ("markdown", "html", "json", "yaml"):
            assert again.statement(form=form) == release.statement(form=form), (kind, form)  # type: ignore[arg-type]
        if release.model is not None:
            assert again.model is not None
            np.testing.assert_array_equal(
                again.model.predict(frame(5)), release.model.predict(frame(5))
            )


def test_a_made_up_model_is_refused() -> None:
    release = dps.fit(frame(), schema(), k=1, epsilon=3)
    facts = json.loads(release.to_json())
    facts.pop("content_digest")
    for part, change in (
        ("fit", {"response_span": [0, 7]}), ("fit", {"sums": ["x"]}), ("model", {"terms": []}),
        ("model", {"target": "something else"}),
    ):  # fmt: skip
        wrong = {**facts, part: {**facts[part], **change}}
        text = json.dumps({**wrong, "content_digest": sha256_of_facts(wrong)})
        with pytest.raises(dps.ArgumentError, match="damaged"):
            dps.Release.from_json(text, schema())
    del facts["fit"]["clip"]
    text = json.dumps({**facts, "content_digest": sha256_of_facts(facts)})
    with pytest.raises(dps.ArgumentError, match="earlier version"):
        dps.Release.from_json(text, schema())


def test_what_is_no_path_and_no_schema_is_named(tmp_path: Path) -> None:
    release = dps.select(frame(), schema(), k=1, epsilon=1)
    path = tmp_path / "r.json"
    path.write_text(release.to_json())
    for schema_of_no_kind in (None, 3, ["age"]):
        with pytest.raises(dps.ArgumentError, match="schema must be"):
            dps.Release.load(path, schema_of_no_kind)  # type: ignore[arg-type]
    with pytest.raises(dps.ArgumentError, match="as a path, not NoneType"):
        dps.Release.load(None, schema())  # type: ignore[arg-type]
    with pytest.raises(dps.TableError, match=r"no release file \.$"):
        dps.Release.load(".", schema())
    with pytest.raises(dps.SchemaError, match=r"s\.yaml: this is a URL, and only local files"):
        dps.Release.load(path, "s3://bucket/s.yaml")


def test_patterns_lead_to_the_names_of_the_table(tmp_path: Path) -> None:
    bounds, path = tmp_path / "p.yaml", tmp_path / "r.json"
    bounds.write_text(
        "response: {name: cost, lo: 0, hi: 1}\n"
        "columns:\n  ward: {levels: [x, y, z]}\n  default: {lo: 0, hi: 1}\n"
    )
    path.write_text(dps.select(frame(), bounds, k=1, epsilon=1).to_json())
    with pytest.raises(dps.SchemaError, match=r"Schema\.read\(path, names\), or --table"):
        dps.Release.load(path, bounds)
    assert dps.Release.load(path, dps.Schema.read(bounds, list(frame().columns)))


# -- written again ---------------------------------------------------------------------------------


@each_ending
@pytest.mark.parametrize("command", ["select", "fit"])
def test_the_command_writes_the_same_statement(folder: Path, command: str, ending: str) -> None:
    made = done(command, *ASKED, "--k", "1", "--about", "about.yaml", "--ledger", "l.db",
                "--out", "r.json", "--statement", f"first.{ending}")  # fmt: skip
    select("--ledger", "l.db")  # the ledger moves on
    wanted = ("r.json", "--schema", "s.yaml", "--about", "about.yaml", "--ledger", "l.db")
    again = done("statement", *wanted, "--out", f"again.{ending}")
    assert Path(f"again.{ending}").read_text() == Path(f"first.{ending}").read_text()
    assert again == made.replace(f"first.{ending}", f"again.{ending}")
    refused = run("statement", *wanted, "--out", f"again.{ending}")
    assert refused.exit_code == 2
    printed = done("statement", *wanted)
    assert printed.endswith(done_markdown(wanted))


def done_markdown(wanted: tuple[str, ...]) -> str:
    done("statement", *wanted, "--out", "printed.md", "--force")
    return Path("printed.md").read_text()


def test_no_statement_of_a_release_that_the_ledger_does_not_have(folder: Path) -> None:
    select("--out", "r.json")
    result = run("statement", "r.json", "--schema", "s.yaml", "--ledger", "l.db", "--out", "s.md")
    assert result.exit_code == 1
    assert "names no entry in a ledger" in result.stderr
    assert not Path("s.md").exists()
    other = run("statement", "about.yaml", "--schema", "s.yaml")
    assert other.exit_code == 2
    assert "no release file" in other.stderr


def test_patterns_of_a_schema_need_the_table(folder: Path) -> None:
    Path("p.yaml").write_text(
        "response: {name: cost, lo: 0, hi: 1}\n"
        "columns:\n  ward: {levels: [x, y, z]}\n  default: {lo: 0, hi: 1}\n"
    )
    asked = ["t.parquet", "--schema", "p.yaml", "--epsilon", "1", "--k", "1"]
    done("select", *asked, "--out", "r.json", "--statement", "s.md")
    verify = ["verify", "r.json", "--schema", "p.yaml", "--statement", "s.md"]
    assert run(*verify).exit_code == 2
    done(*verify, "--table", "t.parquet")
    done("statement", "r.json", "--schema", "p.yaml", "--table", "t.parquet")


# -- compared --------------------------------------------------------------------------------------


def verify(file: str, *more: str) -> Any:
    return run("verify", "r.json", "--schema", "s.yaml", "--statement", file, *more)


def test_what_was_not_checked_is_not_called_ok(folder: Path) -> None:
    select("--ledger", "l.db", "--out", "r.json")
    lines = done("verify", "r.json", "--schema", "s.yaml").splitlines()
    unchecked = [line for line in lines if line.startswith("not checked: ")]
    assert "whether its cost was debited" in unchecked[0]
    assert "a statement" in unchecked[1]
    assert not any("ledger" in line or "statement" in line for line in lines if line[:2] == "ok")
    whole = done("verify", "r.json", "--schema", "s.yaml", "--ledger", "l.db")
    assert "whether its cost was debited" not in whole


@each_ending
def test_an_honest_statement_agrees_and_a_changed_one_does_not(folder: Path, ending: str) -> None:
    name = f"page.{ending}"
    done("fit", *ASKED, "--k", "1", "--about", "about.yaml", "--ledger", "l.db",
         "--out", "r.json", "--statement", name)  # fmt: skip
    select("--ledger", "l.db")  # the ledger moves on
    known = ("--about", "about.yaml", "--ledger", "l.db")
    honest = verify(name, *known)
    assert honest.exit_code == 0, honest.output
    assert "not checked" not in honest.stdout or ending == "yaml" or "filled in" in honest.stdout
    assert "ok  the statement, every sentence" in honest.stdout
    text = Path(name).read_text()
    for old, new in (
        ("epsilon = 1", "epsilon = 0.1"), ("73.2", "52.5"), ("visits", "other"),
        ("C. Analyst", "N. Obody"), (sha256sum("r.json"), "0" * 64),
        (sha256sum("s.yaml"), "0" * 64), ("codebook 7", "codebook 8"), ("0.1.0", "0.1.1"),
    ):  # fmt: skip
        if ending == "yaml" and old not in text:
            continue  # the registry has no place for it
        assert old in text, old
        Path(name).write_text(text.replace(old, new, 1))
        result = verify(name, *known)
        assert result.exit_code == 1, (old, result.output)
        if len(old) < 30:
            assert "stated:" in result.stdout
            assert "expected:" in result.stdout
    Path(name).write_text(text + "Epsilon is 0.\n")
    assert verify(name, *known).exit_code == 1
    lines = text.splitlines(keepends=True)
    kept = next(i for i, line in enumerate(lines) if "ower draw" in line or "every other" in line)
    Path(name).write_text("".join(lines[:kept] + lines[kept + 1 :]))
    assert verify(name, *known).exit_code == 1


def test_a_style_that_hides_a_warning_is_found(folder: Path) -> None:
    select("--seed", "1", "--out", "r.json", "--statement", "page.html")
    page = Path("page.html")
    text = page.read_text()
    honest = verify("page.html", "--about", "about.yaml").stdout
    assert "ok  the statement, every sentence" in honest
    page.write_text(text.replace("</style>", ".alarm { display: none }\n</style>"))
    assert "NO  the statement differs" in verify("page.html", "--about", "about.yaml").stdout


def test_what_looks_the_same_is_written_out(folder: Path) -> None:
    select("--out", "r.json", "--statement", "page.html")
    page = Path("page.html")
    text = page.read_text()
    page.write_text(text.replace("<li>A reader", "<li hidden>A reader"))
    hidden = verify("page.html", "--about", "about.yaml")
    assert hidden.exit_code == 1
    assert "stated:   <li hidden>A reader" in hidden.stdout
    assert "expected: <li>A reader" in hidden.stdout
    page.write_text(text.replace("at most", "\u0430t most"))
    lookalike = verify("page.html", "--about", "about.yaml")
    assert lookalike.exit_code == 1
    assert "become \\u0430t most" in lookalike.stdout


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_rows_that_were_joined_are_found(folder: Path, separator: str) -> None:
    """Readers of Markdown end a line at line feeds only, and drop cells beyond the last column."""
    select("--out", "r.json", "--statement", "page.md")
    page = Path("page.md")
    text = page.read_text()
    joined = text.replace("|\n| bmi", f"|{separator}| bmi", 1)
    assert joined != text
    page.write_text(joined)
    result = verify("page.md", "--about", "about.yaml")
    assert result.exit_code == 1
    assert separator not in result.stdout
    page.write_bytes(text.replace("\n", "\r\n").encode())
    assert verify("page.md", "--about", "about.yaml").exit_code == 0


def test_a_page_under_another_ending_says_so(folder: Path) -> None:
    select("--out", "r.json", "--statement", "page.html")
    Path("page.html").rename("page.txt")
    result = verify("page.txt", "--about", "about.yaml")
    assert result.exit_code == 1
    assert "It is HTML: let its name end in .html" in result.stdout


def test_tags_are_not_filled_in_by_hand(folder: Path) -> None:
    select("--out", "r.json", "--statement", "page.md")
    page = Path("page.md")
    text = page.read_text()
    for name, code in (
        ("B. Officer", 0), (r"B. \<b@x.org\> \\", 0), ("<style>ul{display:none}</style>", 1),
        (r"\\<!--", 1), (r"B. Officer \\\\<style>", 1),
    ):  # fmt: skip
        page.write_text(text.replace("- Signature: " + "_" * 24, f"- Signature: {name}"))
        result = verify("page.md", "--about", "about.yaml")
        assert result.exit_code == code, (name, result.output)


def test_escapes_of_a_terminal_are_not_printed(folder: Path) -> None:
    select("--out", "r.json", "--statement", "page.md")
    page = Path("page.md")
    page.write_text(page.read_text().replace("Guarantee", "\x1b[31mGuarantee"))
    result = verify("page.md", "--about", "about.yaml")
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("ending", ["md", "html"])
def test_fields_may_be_filled_in_by_hand(folder: Path, ending: str) -> None:
    name = f"page.{ending}"
    select("--out", "r.json", "--statement", name)
    text = Path(name).read_text()
    if ending == "md":
        signed = text.replace("- Signature: " + "_" * 24, "- Signature: B. Officer")
    else:
        signed = text.replace(
            '<dt>Signature</dt><dd class="blank"></dd>', "<dt>Signature</dt><dd>B. Officer</dd>"
        )
    assert signed != text
    Path(name).write_text(signed)
    result = verify(name, "--about", "about.yaml")
    assert result.exit_code == 0, result.output
    assert "not checked: what was filled in" in result.stdout
    assert "B. Officer" in result.stdout
    # What stands in a blank may not start another sentence.
    more = "\n- Epsilon: 0" if ending == "md" else "<p>Epsilon is 0</p>"
    Path(name).write_text(signed.replace("B. Officer", f"B. Officer{more}"))
    assert verify(name, "--about", "about.yaml").exit_code == 1


def test_what_was_declared_counts_as_filled_in_where_it_is_not_given(folder: Path) -> None:
    Path("about.yaml").write_text("operator: C. Analyst\n")
    select("--out", "r.json", "--statement", "page.md")
    result = verify("page.md")
    assert result.exit_code == 0, result.output
    assert "C. Analyst (declared by the caller)" in result.stdout
    Path("about.yaml").write_text(ABOUT)
    select("--out", "q.json", "--statement", "other.md")
    other = run("verify", "q.json", "--schema", "s.yaml", "--statement", "other.md")
    assert other.exit_code == 1
    assert "give the same file here" in other.stdout


def test_a_release_file_that_was_formatted_anew_still_agrees(folder: Path) -> None:
    select("--out", "r.json", "--statement", "page.html")
    path = Path("r.json")
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert verify("page.html", "--about", "about.yaml").exit_code == 0
    # A statement that is written now names the file as it is now.
    done("statement", "r.json", "--schema", "s.yaml", "--out", "now.md")
    assert sha256sum("r.json") in Path("now.md").read_text()
    assert run("verify", "r.json", "--schema", "s.yaml", "--statement", "now.md").exit_code == 0
    # Another bounds file with the same content is not the file that the statement names.
    shutil.copy("s.yaml", "t.yaml")
    with Path("t.yaml").open("a") as file:
        file.write("# a remark\n")
    changed = run("verify", "r.json", "--schema", "t.yaml", "--statement", "now.md")
    assert changed.exit_code == 1
    assert "NO  the SHA-256 of the bounds file" in changed.stdout


def test_a_statement_of_another_release_is_found(folder: Path) -> None:
    select("--out", "r.json", "--statement", "page.md")
    select("--out", "q.json", "--statement", "other.md")
    assert verify("other.md", "--about", "about.yaml").exit_code == 1


def test_what_is_no_statement_is_refused(folder: Path) -> None:
    select("--out", "r.json")
    assert verify("nowhere.md").exit_code == 2
    assert verify("page.pdf").exit_code == 2
    assert run("statement", "r.json", "--schema", "s.yaml", "--out", "page.pdf").exit_code == 2
    Path("binary.md").write_bytes(b"\xff\xfe\xff")
    assert verify("binary.md").exit_code == 2
    Path("odd.json").write_text("[]")
    assert verify("odd.json").exit_code == 1
    assert run("verify", "r.json", "--schema", "s.yaml", "--about", "about.yaml").exit_code == 2


def test_forms_of_statements_follow_the_ending() -> None:
    assert [form_of_path(Path(f"x.{end}")) for end in ENDINGS] == [
        "markdown", "html", "json", "yaml"
    ]  # fmt: skip
