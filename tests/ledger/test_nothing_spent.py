"""What spends nothing leaves the ledger alone that the environment names."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.audit.steps import audit_step
from dpsubset.cli import app
from dpsubset.release.verify import checks

ROOT = Path(__file__).parents[2]
SCHEMA = dps.Schema.from_bounds(dict.fromkeys("abcd", (0, 1)), ("y", 0, 1))
X = np.random.default_rng(0).uniform(0, 1, (40, 4))
Y = X[:, 0]

#: Commands that spend, and how a dry run of each is asked for.
SPENDING: dict[str, list[str]] = {
    "select": ["t.csv", "--schema", "s.yaml", "--k", "2", "--epsilon", "1", "--dry-run"],
    "fit": ["t.csv", "--schema", "s.yaml", "--k", "2", "--epsilon", "1", "--dry-run"],
    "tune": ["t.csv", "--schema", "s.yaml", "--grid", "k=1,2", "--epsilon", "1", "--dry-run"],
    "bounds suggest": ["t.csv", "--schema", "s.yaml", "--epsilon", "1", "--dry-run"],
}

_RELEASE = "00000000-0000-0000-0000-000000000000"
_SAID = ["--reason", "a test", "--name", "Ann"]

#: All others, and arguments with which each does its work.
FREE: dict[str, list[str]] = {
    "predict": ["m.json", "t.csv", "--out", "predicted.csv"],
    "plan": ["--n", "1000", "--p", "5", "--k", "1", "--epsilon", "1", "--tables", "2"],
    "power": ["--n", "1000", "--p", "5", "--k", "1", "--epsilon", "1", "--tables", "2"],
    "moments": ["t.csv", "--schema", "s.yaml", "--out", "new.npz", "--force"],
    "merge": ["part.npz", "--out", "all.npz", "--force"],
    "mechanisms": [],
    "statement": ["r.json", "--schema", "s.yaml"],
    "verify": ["r.json", "--schema", "s.yaml"],
    "compare": ["r.json", "r.json", "--schema", "s.yaml"],
    "audit": ["means", "--runs", "100"],
    "warmup": ["--loss", "least-squares", "--constraint", "box"],
    "schema init": ["t.csv", "--out", "template.yaml", "--force"],
    "schema check": ["s.yaml", "t.csv"],
    "schema fingerprint": ["s.yaml"],
    "schema try": ["s.yaml", "t.csv"],
    "ledger create": ["new.db", "--data-set", "new", "--owner", "Ann", "--purpose", "p",
                      "--epsilon", "1"],
    "ledger show": ["other.db"],
    "ledger cost": ["other.db", "t.csv", "--schema", "s.yaml", "--k", "2", "--epsilon", "1"],
    "ledger verify": ["other.db"],
    "ledger void": ["other.db", _RELEASE, *_SAID],
    "ledger refresh": ["other.db", *_SAID],
    "ledger debit": ["other.db", "--epsilon", "1", *_SAID],
    "ledger limit": ["other.db", "--epsilon", "20", *_SAID],
    "ledger export": ["other.db"],
}  # fmt: skip


def commands() -> dict[str, Any]:
    """Every command by its words."""

    def below(group: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from below(command, (*words, name))
            else:
                yield " ".join((*words, name)), command

    return dict(below(typer.main.get_command(app), ()))


def create(path: Path) -> dps.Ledger:
    return dps.Ledger.create(path, data_set="patients", owner="Ann", purpose="tests", epsilon=1000)


def held(path: Path) -> tuple[bytes, bytes]:
    """A ledger's file, and the lines that SQLite has yet to move there."""
    waiting = path.with_name(f"{path.name}-wal")
    return path.read_bytes(), waiting.read_bytes() if waiting.exists() else b""


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger that the environment names, in a folder with a table and what was released of it."""
    monkeypatch.chdir(tmp_path)
    SCHEMA.write("s.yaml")
    text = "\n".join(",".join(map(str, row)) for row in np.column_stack([X, Y]).tolist())
    Path("t.csv").write_text(f"a,b,c,d,y\n{text}\n")
    fitted = dps.fit("t.csv", SCHEMA, k=2, epsilon=1, ledger=False)
    Path("r.json").write_text(dps.select("t.csv", SCHEMA, k=2, epsilon=1, ledger=False).to_json())
    assert fitted.model is not None
    dps.moments("t.csv", SCHEMA).save("part.npz")
    Path("m.json").write_text(fitted.model.to_json())
    other = create(Path("other.db"))
    dps.select("t.csv", SCHEMA, k=2, epsilon=1, ledger=other)
    other.close()
    create(Path("ledger.db")).close()
    monkeypatch.setenv("DPSUBSET_LEDGER", str(tmp_path / "ledger.db"))
    return tmp_path / "ledger.db"


def test_every_command_spends_or_is_tried() -> None:
    spending = {name for name, command in commands().items() if "no_ledger" in
                {option.name for option in command.params}}  # fmt: skip
    assert spending == set(SPENDING)
    assert set(commands()) == {*SPENDING, *FREE}


@pytest.mark.parametrize("name", [*SPENDING, *FREE])
def test_no_command_without_a_release_touches_the_ledger(
    name: str, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = held(ledger)
    asked = [*name.split(), *{**SPENDING, **FREE}[name]]
    result = CliRunner().invoke(app, asked)
    # No entry of this number can be voided; that it was looked for in another ledger is enough.
    assert result.exit_code == 0 or name == "ledger void", result.output
    assert held(ledger) == before
    if name in FREE:  # a ledger that is not there is not missed, and not made
        nowhere = ledger.with_name("nowhere.db")
        monkeypatch.setenv("DPSUBSET_LEDGER", str(nowhere))
        for made in ("predicted.csv", "new.db"):
            Path(made).unlink(missing_ok=True)
        assert CliRunner().invoke(app, asked).exit_code == result.exit_code
        assert not nowhere.exists()


ASKED: dict[str, Any] = {"schema": SCHEMA, "y": Y, "k": 2}
DRAWN: dict[str, Any] = {**ASKED, "epsilon": 1}

#: Public functions that spend nothing.
CALLS: dict[str, Callable[[], Any]] = {
    "best_in_bucket": lambda: dps.best_in_bucket(X, **ASKED, anchor=[0, 1], mistakes=1),
    "best_subset": lambda: dps.best_subset(X, **ASKED),
    "cost_of_privacy": lambda: dps.cost_of_privacy(1000, 5, epsilon=1, delta=1e-6),
    "ledger_cost": lambda: dps.ledger_cost(
        dps.PrivateSubsetSelector(k=2, epsilon=1, bounds=dps.Bounds(x=(0, 1), y=(0, 1))), X, Y
    ),
    "mixing_steps": lambda: dps.mixing_steps(
        10, 2, 100, 1.0, 0.1, kappa_minus=1, kappa_plus=1, b_max=1, sigma=1
    ),
    "moments": lambda: dps.moments("t.csv", SCHEMA),
    "plan": lambda: dps.plan(p=5, k=1, n=1000, epsilon=1, tables=2),
    "power": lambda: dps.power(p=5, k=1, n=1000, epsilon=1, tables=2),
    "price": lambda: dps.price(X, **DRAWN),
    "price_fit": lambda: dps.price_fit(X, **DRAWN),
    "price_tune": lambda: dps.price_tune(X, schema=SCHEMA, y=Y, grid={"k": [1, 2]}, epsilon=1),
    "read_sample": lambda: dps.read_sample("t.csv", SCHEMA),
    "simulate": lambda: dps.simulate(X, **DRAWN, draws=3),
    "top_supports": lambda: dps.top_supports(X, **ASKED, count=2),
    "traces_not_private": lambda: dps.traces_not_private(X, **DRAWN, steps=10),
    "audit_step": lambda: audit_step("means", runs=100),
    "checks": lambda: checks("r.json", SCHEMA.fingerprint()),
    "statement": lambda: dps.Release.load("r.json", SCHEMA).statement(),
    "predict": lambda: dps.Model.load("m.json").predict("t.csv"),
}


#: Of a ledger, but without a debit: what a search would cost, and whether there is room.
LOOKING = {"ledger_cost"}


def test_every_function_spends_or_is_tried() -> None:
    functions = {name for name in dps.__all__ if inspect.isfunction(getattr(dps, name))}
    spending = {name for name in functions if "ledger" in _parameters(getattr(dps, name))}
    assert functions - (spending - LOOKING) <= set(CALLS)
    assert spending & set(CALLS) == LOOKING


def _parameters(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", CALLS)
def test_no_function_without_a_release_touches_the_ledger(
    name: str, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = held(ledger)
    CALLS[name]()
    assert held(ledger) == before
    if name not in LOOKING:
        nowhere = ledger.with_name("nowhere.db")
        monkeypatch.setenv("DPSUBSET_LEDGER", str(nowhere))
        CALLS[name]()
        assert not nowhere.exists()


def test_what_runs_on_made_up_data_names_no_ledger() -> None:
    """Calls of the package, its tools, benchmarks and experiments say which ledger they mean."""
    spending = {name for name in dps.__all__ if "ledger" in _parameters_of(name)}
    assert {"select", "fit", "private_mean", "PrivateSubsetSelector"} <= spending
    silent, found = [], 0
    for folder in ("src", "tools", "benchmarks", "experiments"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.parent.name == "ledger":  # where `select` is SQLAlchemy's
                continue
            for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if _calls(call, spending, folder == "src"):
                    found += 1
                    if not any(given.arg in ("ledger", None) for given in call.keywords):
                        silent.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    assert found > 10
    assert not silent


def _parameters_of(name: str) -> set[str]:
    thing = getattr(dps, name)
    spends = callable(thing) and name != "Ledger"
    spends &= not (isinstance(thing, type) and issubclass(thing, Exception))
    return _parameters(thing) if spends else set()


def _calls(node: ast.AST, names: set[str], inside: bool) -> bool:
    """Of the package by its short name; within the package also by the bare name."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if isinstance(function, ast.Attribute):
        of_package = isinstance(function.value, ast.Name) and function.value.id in (
            "dps",
            "dpsubset",
        )
        return of_package and function.attr in names
    return inside and isinstance(function, ast.Name) and function.id in names


def test_the_release_of_this_folder_is_real(ledger: Path) -> None:
    """Without `ledger=False` it would have been debited."""
    dps.select("t.csv", SCHEMA, k=2, epsilon=1)
    assert len(dps.Ledger(ledger).verify().entries) == 1
    assert json.loads(Path("r.json").read_text())["guarantee"]["private"]
