"""The command line: what it prints, writes, refuses, and how it ends."""

from __future__ import annotations

import itertools
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app
from dpsubset.mechanisms import MECHANISMS
from dpsubset.objective.losses import CLASSIFICATION

HEAVY = ("numba", "scipy", "sklearn", "pyarrow", "numpy", "pandas", "narwhals", "flint",
         "sqlalchemy")  # fmt: skip
COMMAND = (sys.executable, "-c", "from dpsubset.cli import main; main()")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with table.csv and schema.yaml; b is the true variable."""
    rows = [
        f"{i % 7 / 7:.4f},{i % 11 / 11:.4f},{i % 5 / 5:.4f},{i % 11 / 11:.4f}" for i in range(800)
    ]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,c,cost", *rows]) + "\n")
    schema = dps.Schema.from_bounds(
        dict.fromkeys("abc", (0, 1)), ("cost", 0, 1), privacy_unit="one person"
    )
    schema.write(tmp_path / "schema.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def select(*arguments: str, epsilon: str = "1e6", k: str = "1") -> Any:
    return run(
        "select", "table.csv", "--schema", "schema.yaml", "--k", k, "--epsilon", epsilon, *arguments
    )


def without_epsilon_warning(stderr: str) -> str:
    """Standard error after its first line, the warning of a large epsilon."""
    first, _, rest = stderr.partition("\n")
    assert re.match(r"Warning: epsilon = \S+ protects little", first), stderr
    return rest


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_prints_the_release_its_guarantee_and_the_statement(folder: Path) -> None:
    result = select("--response-scale", "declared", epsilon="3000")
    assert result.exit_code == 0
    assert without_epsilon_warning(result.stderr) == ""
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "Selected 1 of 3 variables to explain cost:",
        "  b",
        "Guarantee: pure epsilon = 3000, delta = 0, replace-one neighbours; "
        "unit of privacy: one person",
    ]
    # Half, and what the numerical error of a score costs.
    cost = re.fullmatch(
        r"Cost: epsilon = 3000 under replace-one, epsilon = (\S+) under add-remove", lines[3]
    )
    assert cost is not None
    assert float(cost[1]) == pytest.approx(1500, rel=1e-3)
    assert lines[4] == "Privacy statement: below"
    assert "# Privacy statement" in lines
    assert files(folder) == {"table.csv", "schema.yaml"}


def test_writes_the_release_and_the_statement(folder: Path) -> None:
    result = select("--out", "release.json", "--statement", "statement.md")
    assert result.exit_code == 0
    assert "Release: release.json" in result.stdout
    assert "Privacy statement: statement.md" in result.stdout
    assert "# Privacy statement" not in result.stdout
    release = json.loads((folder / "release.json").read_text())
    assert release["features"] == ["b"]
    assert release["guarantee"]["private"] is True
    assert (folder / "statement.md").read_text().startswith("# Privacy statement")
    assert files(folder) == {"table.csv", "schema.yaml", "release.json", "statement.md"}


def test_epsilon_is_taken_exactly_as_written(folder: Path) -> None:
    assert select("--out", "release.json", epsilon="0.1").exit_code == 0
    assert json.loads((folder / "release.json").read_text())["guarantee"]["epsilon_exact"] == "1/10"


def test_options_reach_the_release(folder: Path) -> None:
    result = select(
        "--mechanism", "exponential", "--constraint", "ball", "--radius", "0.25", "--ridge", "2",
        "--neighbours", "add-remove", "--sensitivity", "published", "--always-include", "a",
        "--always-include", "c", "--loss", "least-squares", "--out", "release.json", k="3",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    release = json.loads((folder / "release.json").read_text())
    assert release["mechanism"] == "exponential"
    assert release["guarantee"]["neighbours"] == "add-remove"
    expected = {
        "constraint": "ball",
        "radius": 0.25,
        "ridge": 2.0,
        "sensitivity": "published",
        "always_include": [0, 2],
    }
    assert release["parameters"] | expected == release["parameters"]
    assert select("--reach", "0.5", "--out", "release.json", "--force").exit_code == 0
    assert json.loads((folder / "release.json").read_text())["parameters"]["reach"] == 0.5


def test_a_threshold_reaches_the_release(folder: Path) -> None:
    asked = ("--loss", "huber", "--threshold", "0.5", "--out", "release.json")
    result = select(*asked, "--statement", "statement.md")
    assert result.exit_code == 0, result.output
    stated = json.loads((folder / "release.json").read_text())["parameters"]
    assert (stated["loss"], stated["threshold"]) == ("huber", 0.5)
    assert "huber objective (threshold 0.5)" in (folder / "statement.md").read_text()


def test_labels_from_the_template_to_the_release(folder: Path) -> None:
    lines = (folder / "table.csv").read_text().splitlines()
    rows = [line.rsplit(",", 1)[0] for line in lines[1:]]
    classes = ["ill" if float(row.split(",")[1]) > 0.5 else " well" for row in rows]
    named = zip(["a,b,c", *rows], ["state", *classes], strict=True)
    (folder / "table.csv").write_text("\n".join(map(",".join, named)) + "\n")
    assert "labels" in run("schema", "init", "table.csv", "--out", "new.yaml").stdout
    text = (folder / "new.yaml").read_text()
    text = text.replace("{name: null, lo: null", "{name: state, labels: [well, ill], lo: null")
    for name in "abc":
        text = text.replace(f"{name}: {{lo: null, hi: null}}", f"{name}: [0, 1]")
    (folder / "schema.yaml").write_text(text)
    checked = run("schema", "check", "schema.yaml", "table.csv")
    assert "response 'state' (well counts as -1, ill as 1)" in checked.stdout
    result = select("--out", "release.json")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1] == "  b"
    assert "well counts as -1, ill as 1" in result.stdout
    stated = json.loads((folder / "release.json").read_text())["parameters"]
    assert stated["loss"] == CLASSIFICATION
    assert stated["labels"][0] == {"label": "well", "counts_as": -1}


def test_mechanisms_take_options_and_a_delta(folder: Path) -> None:
    for arguments, options in [
        (["top-r", "--option", "R=2", "--option", "form=permute-and-flip"], {"R": 2, "T": None}),
        (["mistakes", "--option", "anchor=c", "--option", "share=0.25"], {"anchor": [2]}),
        (["penalised", "--option", "phi=0.5"], {"phi": "1/2"}),
        (["peeling", "--delta", "1e-6"], {}),
    ]:
        result = select("--out", "release.json", "--force", "--mechanism", *arguments)
        assert result.exit_code == 0, result.output
        release = json.loads((folder / "release.json").read_text())
        assert release["mechanism"] == arguments[0]
        assert release["mechanism_options"] | options == release["mechanism_options"]
        assert release["guarantee"]["private"] is True


@pytest.mark.parametrize("value", ["1e999999999", "nan", "1/0", "9" * 5000, "-1"])
def test_options_that_are_no_sensible_numbers(folder: Path, value: str) -> None:
    result = select("--mechanism", "top-r", "--option", f"R={value}")
    assert result.exit_code == 2
    assert "Error: " in result.output


def test_a_mechanism_may_release_nothing(folder: Path) -> None:
    result = select(
        "--mechanism",
        "stability",
        "--delta",
        "1e-12",
        "--option",
        "blocks=2",
        "--out",
        "release.json",
    )
    assert result.exit_code == 0, result.output
    assert "Released nothing" in result.stdout
    assert "no set of variables could be named to explain cost:" in result.stdout
    release = json.loads((folder / "release.json").read_text())
    assert release["support"] is None
    assert release["features"] == []
    assert 0 < release["guarantee"]["delta"] <= 1e-12


def test_what_has_no_guarantee_has_to_be_allowed(folder: Path) -> None:
    published = ["--mechanism", "mistakes", "--option", "anchor=data", "--out", "release.json"]
    refused = select(*published)
    assert refused.exit_code == 2
    assert "no privacy guarantee" in refused.stderr
    assert not (folder / "release.json").exists()
    result = select(*published, "--allow-unproven")
    assert result.exit_code == 0, result.output
    assert "NO PRIVACY GUARANTEE" in result.stdout
    release = json.loads((folder / "release.json").read_text())
    assert release["guarantee"]["private"] is False
    assert "NO PRIVACY GUARANTEE" in release["warning"]


def test_mechanisms_are_listed_with_their_options() -> None:
    result = CliRunner().invoke(app, ["mechanisms"])
    assert result.exit_code == 0
    for name in MECHANISMS:
        assert f"{name}: " in result.stdout
    assert "options: R=None, T=None, form=exponential" in result.stdout


def test_quiet_prints_names_only(folder: Path) -> None:
    result = select("--quiet", k="3", epsilon="10")
    assert (result.stdout, result.stderr) == ("a\nb\nc\n", "")


def test_a_seeded_run_is_marked_everywhere(folder: Path) -> None:
    result = select("--seed", "4", "--out", "release.json", "--statement", "statement.md")
    assert "NOT PRIVATE" in result.stdout
    assert "NOT PRIVATE" in result.stderr
    assert "NOT PRIVATE" in (folder / "statement.md").read_text()
    assert json.loads((folder / "release.json").read_text())["guarantee"]["private"] is False
    quiet = select("--seed", "4", "--quiet")
    assert "NOT PRIVATE" in quiet.stderr
    assert quiet.stdout == "b\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", "0"], "k must be at least 1"),
        (["--k", "4"], "k must be at most p"),
        (["--epsilon", "0"], "epsilon must be"),
        (["--epsilon", "-1"], "epsilon must be"),
        (["--epsilon", "nan"], "epsilon must be"),
        (["--epsilon", "inf"], "epsilon must be a finite"),
        (["--epsilon", "1e-999999999"], "It must lie"),
        (["--epsilon", "much"], "epsilon must be a number"),
        (["--delta", "1"], "delta must be"),
        (["--delta", "1e-6"], "leave delta at 0"),
        (["--mechanism", "stability"], "needs a delta"),
        (["--mechanism", "top-r", "--option", "Q=3"], "top-r has no option 'Q'; it has R, T, form"),
        (["--option", "R=3"], "it has none"),
        (["--mechanism", "top-r", "--option", "R"], "given as NAME=VALUE"),
        (["--mechanism", "mistakes", "--option", "anchor=d"], "declares no feature 'd'"),
        (["--mechanism", "peeling", "--seed", "1"], "has no seeds"),
        (["--mechanism", "loud"], "mechanism must be one of permute-and-flip, exponential"),
        (["--loss", "loud"], "loss must be one of"),
        (["--threshold", "0.5"], "threshold goes with loss='huber'"),
        (["--loss", "huber", "--threshold", "0"], "threshold must be greater than 0"),
        (["--loss", "huber", "--threshold", "3"], "threshold must lie between 0.01 and 1"),
        (["--constraint", "cube"], "constraint must be one of"),
        (["--reach", "1", "--radius", "1"], "not both"),
        (["--ridge", "-1"], "ridge must lie"),
        (["--neighbours", "friends"], "neighbours must be one of"),
        (["--sensitivity", "low"], "sensitivity must be one of"),
        (["--always-include", "d"], "declares no feature 'd'"),
        (["--schema", "missing.yaml"], "cannot read the schema file missing.yaml"),
        (["--out", "nowhere/release.json"], "its folder does not exist"),
        (["--statement", "nowhere/statement.md"], "its folder does not exist"),
        (["--out", "."], "not an ordinary file"),
        (["--out", "table.csv"], "different files"),
        (["--out", "schema.yaml"], "different files"),
        (["--out", "same", "--statement", "same"], "different files"),
    ],
)
def test_wrong_arguments_are_one_clear_line_and_nothing_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    def explode(*_: Any) -> None:
        raise AssertionError("the table was opened")

    monkeypatch.setattr("dpsubset.api.sensitive_table.open_table", explode)
    before = (folder / "table.csv").read_bytes()
    result = select(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert files(folder) == {"table.csv", "schema.yaml"}  # no drafts left behind
    assert (folder / "table.csv").read_bytes() == before


def test_a_missing_option_is_a_usage_error(folder: Path) -> None:
    result = run("select", "table.csv", "--schema", "schema.yaml", "--k", "1")
    assert result.exit_code == 2
    assert "--epsilon" in result.stderr


def test_a_failed_run_leaves_an_older_release_alone(folder: Path) -> None:
    (folder / "release.json").write_text("older")
    (folder / "table.csv").write_text("a,b\n1,2\n")
    assert select("--out", "release.json", "--force").exit_code == 2
    assert (folder / "release.json").read_text() == "older"
    assert files(folder) == {"table.csv", "schema.yaml", "release.json"}


def test_output_through_a_link_replaces_the_file_it_points_to(folder: Path) -> None:
    (folder / "real.json").write_text("older")
    (folder / "link.json").symlink_to("real.json")
    assert select("--out", "link.json").exit_code == 2
    assert (folder / "real.json").read_text() == "older"
    assert select("--out", "link.json", "--force").exit_code == 0
    assert (folder / "link.json").is_symlink()
    assert json.loads((folder / "real.json").read_text())["features"] == ["b"]


def test_a_special_file_is_not_replaced(folder: Path) -> None:
    result = select("--out", "/dev/null")
    assert result.exit_code == 2
    assert not Path("/dev/null").is_file()


def test_when_writing_fails_the_paid_release_is_still_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, *_: Any, **__: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    result = select("--out", "release.json")
    assert result.exit_code == 1
    assert "  b" in result.stdout.splitlines()
    assert "release.json: No space left on device" in result.stderr
    assert files(folder) == {"table.csv", "schema.yaml"}


def test_an_unexpected_error_shows_its_type_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("cell 7319.4177")

    monkeypatch.setattr("dpsubset.api.sensitive_table.Moments.from_blocks", fail)
    result = select()
    assert result.exit_code == 1
    assert "RuntimeError" in result.stderr
    assert "7319" not in result.output
    assert "Traceback" not in result.output


def test_ctrl_c_ends_cleanly(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dpsubset.api.sensitive_table.Moments.from_blocks", interrupt)
    result = select("--out", "release.json")
    assert result.exit_code == 130
    assert without_epsilon_warning(result.stderr) == "Error: interrupted\n"
    assert files(folder) == {"table.csv", "schema.yaml"}


def test_a_real_sigint_ends_cleanly(folder: Path) -> None:
    # Reading takes a minute here, so that the signal is sure to meet the command at work.
    script = (
        "import dpsubset.data.moments as m\n"
        "def work(*_):\n"
        "    print('working', flush=True)\n"
        "    import time; time.sleep(60)\n"
        "m.Moments.from_blocks = work\n"
        "from dpsubset.cli import main; main()"
    )
    arguments = ["select", "table.csv", "--schema", "schema.yaml", "--k", "1", "--epsilon", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "Error: interrupted\n")


def started(*arguments: str) -> tuple[subprocess.Popen[str], int]:
    """The command with its progress bar on a terminal, and the other end of the terminal."""
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "select", "table.csv", "--schema", "schema.yaml", "--k", "1", "--epsilon", "1",
         "--out", "release.json", "--statement", "statement.md", *arguments],
        stdout=subprocess.PIPE, stderr=terminal, text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(terminal)
    return process, master


def seen_until(master: int, word: bytes | None) -> bytes:
    seen = b""
    while word is None or word not in seen:
        try:
            piece = os.read(master, 4096)
        except OSError:  # how Linux reports that the other end is closed
            break
        seen += piece
    return seen


def plain(seen: bytes) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


#: Both take minutes. What a bar says tells that the command is at work on it.
LONG = {
    b"Reading": ("--mechanism", "permute-and-flip"),
    b"Selecting": ("--mechanism", "metropolis", "--option", "steps=10000000000", "--delta", "1e-3"),
}


def lengthen(folder: Path, word: bytes) -> None:
    if word == b"Reading":
        rows = (folder / "table.csv").read_text().splitlines()
        (folder / "table.csv").write_text("\n".join([rows[0], *rows[1:] * 4000]) + "\n")


@pytest.mark.parametrize("word", LONG)
@pytest.mark.parametrize("name", ["SIGTERM", pytest.param("SIGHUP", marks=pytest.mark.statistical)])
def test_signals_leave_nothing_behind(folder: Path, name: str, word: bytes) -> None:
    number = getattr(signal, name)
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("ignored where the tests run, under nohup, and so in what they start")
    lengthen(folder, word)
    process, master = started(*LONG[word])
    seen = seen_until(master, word)
    assert word in seen
    process.send_signal(number)
    said = plain(seen_until(master, None))
    out = process.communicate(timeout=60)[0]
    os.close(master)
    assert (process.returncode, out) == (128 + number, "")
    assert said.splitlines()[-1].strip() == f"Error: ended by {name}"
    assert "Traceback" not in said
    assert files(folder) == {"table.csv", "schema.yaml"}


@pytest.mark.parametrize("word", LONG)
def test_a_kill_leaves_nothing_behind_while_the_release_is_made(folder: Path, word: bytes) -> None:
    lengthen(folder, word)
    process, master = started(*LONG[word])
    assert word in seen_until(master, word)
    process.kill()
    process.communicate(timeout=60)
    os.close(master)
    assert files(folder) == {"table.csv", "schema.yaml"}


def test_a_signal_whose_exception_gets_lost_is_raised_again(folder: Path) -> None:
    """As it may while numba compiles: what a finaliser raises is ignored."""
    script = (
        "import os, signal, time, dpsubset.cli.signals as s, dpsubset.api.request as request\n"
        "s._REPEAT_AFTER = 0.3\n"
        "class Careless:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(0.01)\n"
        "def lost(*_):\n"
        "    Careless()\n"
        "    time.sleep(30)\n"
        "request.SelectionRequest.open = lost\n"
        "from dpsubset.cli import main; main()"
    )
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script, *SELECT, "--out", "release.json"],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 143
    assert done.stderr.endswith("Error: ended by SIGTERM\n")
    assert time.monotonic() - start < 25
    assert files(folder) == {"table.csv", "schema.yaml"}


def test_a_signal_while_the_release_is_written_waits_for_it(folder: Path) -> None:
    # The command sends it to itself, between the draft and its new name.
    script = (
        "import os, signal, dpsubset.cli.outputs as o\n"
        "publish = o.Output.publish\n"
        "def signalled(self):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    publish(self)\n"
        "o.Output.publish = signalled\n"
        "from dpsubset.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *SELECT, "--out", "release.json", "--statement", "s.md"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 143
    assert without_epsilon_warning(done.stderr) == "Error: ended by SIGTERM\n"
    assert json.loads((folder / "release.json").read_text())["features"] == ["b"]
    assert (folder / "s.md").read_text().startswith("# Privacy statement")
    assert files(folder) == {"table.csv", "schema.yaml", "release.json", "s.md"}


SELECT = ("select", "table.csv", "--schema", "schema.yaml", "--k", "1", "--epsilon", "1e6")


def without_stdout(kind: str, *arguments: str, stderr: Any = subprocess.PIPE) -> Any:
    """Run the command where it cannot print."""
    command: tuple[str, ...] = (*COMMAND, *arguments)
    if kind == "closed":
        command = ("sh", "-c", 'exec "$@" >&-', "sh", *command)
    read, pipe = os.pipe()
    os.close(read)
    try:
        with open("/dev/full", "w") as full:
            out = {"full": full, "pipe": pipe, "closed": None}[kind]
            return subprocess.run(command, stdout=out, stderr=stderr, text=True, check=False)
    finally:
        os.close(pipe)


REASONS = {"full": "No space left on device", "pipe": "Broken pipe", "closed": "it is closed"}


def combinations(*others: tuple[str, ...]) -> pytest.MarkDecorator:
    """Each reason with each of these; in `make test` only so many that each occurs.

    A process takes seconds to start.
    """
    cases = []
    for number, (kind, other) in enumerate(itertools.product(REASONS, others)):
        first, second = divmod(number, len(others))
        usual = first % len(others) == second or second % len(REASONS) == first
        cases.append(pytest.param(kind, other, marks=[] if usual else pytest.mark.statistical))
    return pytest.mark.parametrize(("kind", "more"), cases)


@combinations((), ("--quiet",))
def test_what_cannot_be_printed_is_in_the_files(
    folder: Path, kind: str, more: tuple[str, ...]
) -> None:
    done = without_stdout(kind, *SELECT, *more, "--out", "release.json", "--statement", "s.md")
    assert done.returncode == 1
    assert without_epsilon_warning(done.stderr) == (
        "Error: the release was made, but not all of it was written: standard output: "
        f"{REASONS[kind]}\n"
    )
    assert json.loads((folder / "release.json").read_text())["features"] == ["b"]
    assert (folder / "s.md").read_text().startswith("# Privacy statement")


@combinations((), ("--quiet",), ("--statement", "s.md"), ("--seed", "1"))
def test_what_cannot_be_printed_and_has_no_file_is_in_the_errors(
    folder: Path, kind: str, more: tuple[str, ...]
) -> None:
    done = without_stdout(kind, *SELECT, *more)
    assert done.returncode == 1
    start, end = done.stderr.index("{"), done.stderr.rindex("}") + 1
    assert json.loads(done.stderr[start:end])["features"] == ["b"]
    assert done.stderr[end:].splitlines()[1:] == [
        f"Error: the release was made, but not all of it was written: standard output: "
        f"{REASONS[kind]}"
    ]


@combinations(("--seed", "1"), ("--out", "r.json"))
def test_when_nothing_can_be_said_the_exit_code_says_so(
    folder: Path, kind: str, more: tuple[str, ...]
) -> None:
    with open("/dev/full", "w") as full:
        assert without_stdout(kind, *SELECT, *more, stderr=full).returncode == 1
    assert (folder / "r.json").exists() is ("--out" in more)


def test_full_errors_do_not_stop_a_release(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *SELECT, "--seed", "1"], stdout=subprocess.PIPE, stderr=full, text=True,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0
    assert "  b" in done.stdout.splitlines()


def test_names_that_standard_output_cannot_encode_are_not_lost(folder: Path) -> None:
    for name in ("table.csv", "schema.yaml"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("b:", '"\u017c":').replace("a,b,c", "a,\u017c,c"))
    done = subprocess.run(
        [*COMMAND, *SELECT], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )  # fmt: skip
    assert done.returncode == 1
    assert "\\u017c" in done.stderr  # as standard error writes what it has no letter for
    assert "UnicodeEncodeError" in done.stderr


@pytest.mark.parametrize(
    "arguments", [["mechanisms"], ["--help"], ["--version"], ["schema", "check", "schema.yaml"]]
)
def test_whatever_cannot_be_printed_is_an_error(folder: Path, arguments: list[str]) -> None:
    done = without_stdout("full", *arguments)
    assert done.returncode == 1
    assert done.stderr == "Error: the system refused to read or write: No space left on device\n"


def test_the_installed_command_works(folder: Path) -> None:
    command = Path(sys.executable).with_name("dpsubset")
    done = subprocess.run(
        [command, "select", "table.csv", "--schema", "schema.yaml", "--k", "1", "--epsilon", "1e6",
         "--quiet"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "b\n")
    assert without_epsilon_warning(done.stderr) == ""
    failed = subprocess.run(
        [command, "select", "none.csv", "--schema", "schema.yaml", "--k", "1", "--epsilon", "1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (failed.returncode, failed.stderr) == (2, "Error: there is no file none.csv\n")


@pytest.mark.parametrize("arguments", [["--help"], ["select", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from dpsubset.cli import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        f"print('heavy:', sorted(set(sys.modules) & set({HEAVY!r})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("heavy: []\n")


def test_help_is_quick() -> None:
    def seconds() -> float:
        start = time.perf_counter()
        subprocess.run([*COMMAND, "--help"], check=True, capture_output=True)
        return time.perf_counter() - start

    seconds()  # warm
    assert min(seconds() for _ in range(3)) < 1


def test_progress_bar_shows_percentages_and_no_counts(folder: Path) -> None:
    rows = (folder / "table.csv").read_text().splitlines()
    (folder / "table.csv").write_text("\n".join([rows[0], *rows[1:] * 500]) + "\n")
    process, master = started()
    seen = seen_until(master, None)
    os.close(master)
    out = process.communicate()[0]
    assert process.returncode == 0
    text = plain(seen)
    assert "Reading" in text
    assert "100%" in text
    assert re.findall(r"\d{4,}", text) == []  # 400000 rows, or bytes
    assert "Reading" not in out


def test_no_bar_when_not_on_a_terminal(folder: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "select", "table.csv", "--schema", "schema.yaml", "--k", "1", "--epsilon", "1"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""


def test_schema_init_writes_names_and_empty_bounds(folder: Path) -> None:
    result = run("schema", "init", "table.csv", "--out", "new.yaml")
    assert result.exit_code == 0, result.output
    facts = yaml.safe_load((folder / "new.yaml").read_text())
    assert facts["columns"] == {name: {"lo": None, "hi": None} for name in ("a", "b", "c", "cost")}
    assert facts["response"] == {"name": None, "lo": None, "hi": None}
    assert "0.1" not in (folder / "new.yaml").read_text()


def test_schema_init_and_check_lead_to_a_selection(folder: Path) -> None:
    assert run("schema", "init", "table.csv", "--out", "new.json").exit_code == 0
    unfilled = run("schema", "check", "new.json")
    assert unfilled.exit_code == 2
    facts = json.loads((folder / "new.json").read_text())
    facts["columns"] = {name: {"lo": 0, "hi": 1} for name in "abc"}
    facts["response"] = {"name": "cost", "lo": 0, "hi": 1}
    (folder / "new.json").write_text(json.dumps(facts))
    checked = run("schema", "check", "new.json", "table.csv")
    assert checked.exit_code == 0, checked.output
    assert "3 features, response 'cost'" in checked.stdout
    result = run(
        "select", "table.csv", "--schema", "new.json", "--k", "1", "--epsilon", "1e6", "--quiet"
    )
    assert result.stdout == "b\n"


def test_schema_init_does_not_overwrite(folder: Path) -> None:
    before = (folder / "schema.yaml").read_text()
    result = run("schema", "init", "table.csv")
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert (folder / "schema.yaml").read_text() == before
    assert run("schema", "init", "table.csv", "--out", "table.csv", "--force").exit_code == 2
    assert (folder / "table.csv").read_text().startswith("a,b,c,cost\n")
    assert run("schema", "init", "table.csv", "--force").exit_code == 0
    assert (folder / "schema.yaml").read_text() != before


@pytest.mark.parametrize(
    ("header", "message"),
    [("0.5,1.5,x", "looks like data"), ("a,b,a", "unique"), ("a,,b", "looks like data")],
)
def test_schema_init_refuses_a_header_that_is_none(folder: Path, header: str, message: str) -> None:
    (folder / "odd.csv").write_text(header + "\n1,2,3\n")
    result = run("schema", "init", "odd.csv", "--out", "odd.yaml")
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (folder / "odd.yaml").exists()


def test_schema_check_compares_the_header_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: Any) -> None:
        raise AssertionError("rows were read")

    monkeypatch.setattr("dpsubset.data.readers.delimited.DelimitedTable.blocks", explode)
    assert run("schema", "check", "schema.yaml", "table.csv").exit_code == 0
    (folder / "table.csv").write_text("a,b,cost\n1,2,3\n")
    result = run("schema", "check", "schema.yaml", "table.csv")
    assert result.exit_code == 2
    assert "has no column 'c'" in result.stderr
