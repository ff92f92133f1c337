"""All experiments, and the page: ``python -m experiments [--quick] [NAME ...]``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import time

from rich.console import Console

import experiments

from .experiment import Experiment
from .page import DOCS, ORDER, publish
from .running import add_options, figure, report, run


def found() -> list[Experiment]:
    """Every module of this folder that has one, in the order of the page."""
    modules = (
        importlib.import_module(f"experiments.{module.name}")
        for module in pkgutil.iter_modules(experiments.__path__)
        if module.name != "__main__"
    )
    listed: list[Experiment] = [
        module.EXPERIMENT for module in modules if hasattr(module, "EXPERIMENT")
    ]
    return sorted(listed, key=lambda experiment: ORDER.index(experiment.name))


def main(arguments: list[str] | None = None) -> int:
    """Run, draw, check, publish. 1 if a claim turned out otherwise than is known."""
    parser = argparse.ArgumentParser(prog="experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="some of them alone")
    add_options(parser)
    options = parser.parse_args(arguments)
    listed = found()
    unknown = set(options.names) - {experiment.name for experiment in listed}
    if unknown:
        parser.error(f"there is no experiment {', '.join(sorted(unknown))}: {', '.join(ORDER)}")
    console = Console(width=120)
    good = True
    for experiment in listed:
        if options.names and experiment.name not in options.names:
            continue
        start = time.perf_counter()
        lines = run(experiment, options.quick, options.out, options.jobs, options.fresh, console)
        figure(experiment, lines, options.out / f"{experiment.name}.png")
        good &= report(experiment, lines, console)
        console.print(f"  {time.perf_counter() - start:.0f} s")
    console.print(f"Page: {publish(listed, options.out, DOCS)}")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
