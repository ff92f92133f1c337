"""Running an experiment: trials on all cores, a bar, what was interrupted goes on."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import joblib
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .experiment import Experiment, Line, Lines, Trial
from .results import Results

OUTPUT = Path("experiments-output")


def command(experiment: Experiment, arguments: list[str] | None = None) -> int:
    """``python -m experiments.NAME``: run, draw, check. 1 if a claim turned out otherwise."""
    parser = argparse.ArgumentParser(
        prog=f"experiments.{experiment.name}",
        description=f"{experiment.title}. A full run takes {experiment.full}.",
    )
    add_options(parser)
    options = parser.parse_args(arguments)
    console = Console(width=120)
    lines = run(experiment, options.quick, options.out, options.jobs, options.fresh, console)
    figure(experiment, lines, options.out / f"{experiment.name}.png")
    return 0 if report(experiment, lines, console) else 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """What one experiment and all of them are told."""
    parser.add_argument("--quick", action="store_true", help="under two minutes each")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores unless told")
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier run measured")
    parser.add_argument("--out", type=Path, default=OUTPUT, help="folder for results and figures")


def run(
    experiment: Experiment, quick: bool, out: Path, jobs: int, fresh: bool, console: Console
) -> Lines:
    """Measure the trials that have no line yet. All lines of the file."""
    path = out / f"{experiment.name}.csv"
    if fresh:
        path.unlink(missing_ok=True)
    results = Results(path)
    results.keep(experiment.trials(False))
    trials = experiment.trials(quick)
    # Repetitions last: a run that is interrupted has some of everything.
    missing = sorted(results.missing(trials), key=lambda trial: trial.get("seed", 0))
    bar = Progress(
        TextColumn(experiment.name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=console,
    )  # fmt: skip
    with bar:
        task = bar.add_task(
            experiment.name, total=len(trials), completed=len(trials) - len(missing)
        )
        pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        for lines in pool(joblib.delayed(timed)(experiment.measure, trial) for trial in missing):
            results.add(lines)
            bar.advance(task)
    return results.lines


def timed(measure: Callable[[Trial], Line | list[Line]], trial: Trial) -> list[Line]:
    """The lines of a trial, with what it was about and the processor seconds it took."""
    start = time.process_time()
    found = measure(trial)
    seconds = time.process_time() - start
    lines = found if isinstance(found, list) else [found]
    each = round(seconds / max(1, len(lines)), 4)
    return [{**trial, **line, "trial_seconds": each} for line in lines]


def figure(experiment: Experiment, lines: Lines, path: Path) -> None:
    """The figure of an experiment."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn = pyplot.figure(figsize=experiment.size, layout="constrained")
    experiment.draw(lines, drawn)
    drawn.savefig(path, dpi=110)
    pyplot.close(drawn)


def report(experiment: Experiment, lines: Lines, console: Console) -> bool:
    """Print what became of the claims. Whether each turned out as is known."""
    good = True
    for claim in experiment.claims:
        verdict = claim.check(lines)
        good &= verdict.holds == claim.expected
        word = "holds" if verdict.holds else "does not hold"
        known = "" if verdict.holds == claim.expected else " (UNEXPECTED)"
        console.print(f"  {word}{known}: {claim.text} [{verdict.figures}]", markup=False)
    return good
