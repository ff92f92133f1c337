# make demo, make test and make bench each work alone on a fresh clone, and in any order: they create
# .venv and install what they need. The demo needs the package alone, the rest solvers and tools too.
PYTHON ?= python3
BIN := .venv/bin
# Modules are compiled to bytecode when they are imported: most that are installed never are.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check

.PHONY: demo test statistical faults faults-sample browser lint bench experiments real peers clean

.venv/.made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpsubset needs Python 3.11 or newer: make PYTHON=python3.x ...")'
	$(PYTHON) -m venv .venv
	touch $@

.venv/.demo: pyproject.toml | .venv/.made
	$(PIP_INSTALL) -e .
	touch $@

# What the demo needs is part of it.
.venv/.dev: pyproject.toml | .venv/.made
	$(PIP_INSTALL) -e '.[dev,plot]'
	touch .venv/.demo $@

demo: .venv/.demo
	$(BIN)/python tools/demo.py

lint: .venv/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# The kernels are compiled before the tests start, by halves: two test workers would each compile
# what the other one compiles. mypy runs at the same time.
test: .venv/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/dpsubset warmup --loss least-squares --loss hinge >/dev/null & \
	$(BIN)/dpsubset warmup --loss logistic --loss huber >/dev/null & \
	$(BIN)/mypy; typed=$$?; wait; exit $$typed
	$(BIN)/pytest -m "not statistical and not faults and not browser" -n 2 --dist worksteal

statistical: .venv/.dev
	$(BIN)/pytest -m statistical -n 2 --dist worksteal

# Ledgers whose processes are killed, whose disks are full and whose servers are lost, on SQLite and
# on a PostgreSQL server that runs as long as the tests do. All 2,000 kills take some minutes.
faults: .venv/.dev
	DPSUBSET_FAULTS=full $(BIN)/python tools/postgres.py $(BIN)/pytest -m faults
	$(BIN)/python tools/postgres.py $(BIN)/python -m benchmarks.ledger

# A hundred kills, all other faults, and what is tested of ledgers on SQLite alone by `make test`.
faults-sample: .venv/.dev
	$(BIN)/python tools/postgres.py $(BIN)/pytest -m faults
	$(BIN)/python tools/postgres.py $(BIN)/pytest tests/ledger/test_ledger.py -k postgresql

# The page of a statement in Chromium, which is installed if that can be done; skipped without it.
browser: .venv/.dev
	command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null \
		|| { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core; } >/dev/null \
		|| echo "Chromium could not be installed"
	$(BIN)/pytest -m browser -rs

bench: .venv/.dev
	$(BIN)/python -m benchmarks

# Quick versions of the papers' experiments and ours, and docs/experiments from them.
experiments: .venv/.dev
	$(BIN)/python -m experiments --quick

# A third of the tables is for a last look alone: `python -m benchmarks.real --split report`.
real: .venv/.dev
	$(BIN)/python -m benchmarks.real
	$(BIN)/python -m benchmarks.real.models
	$(BIN)/python -m benchmarks.real.sizes

# Other solvers for `make bench` to compare with, in an environment of their own: OKRidge holds
# numpy below 2. Without them those rows say so.
peers:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet -e '.[peers]'

clean:
	rm -rf .venv .venv-peers build dist demo-output bench-output experiments-output
