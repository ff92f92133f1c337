"""Four choices beside the mechanism: the rows that each needs, all else being the same."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from benchmarks.data import PUBLISHED, SETTINGS, Shape

from .experiment import Claim, Experiment, Line, Lines, Trial, Verdict
from .figures import CYCLE, where
from .running import command
from .smallest import line, needed, recovery, smallest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASE = {"p": 100, "s": 5, "epsilon": 1.0, "rho": 0.1}
#: A mark each.
CASES: dict[str, dict[str, float]] = {
    "p 100, s 5, epsilon 1, rho 0.1": BASE,
    "p 1000": {**BASE, "p": 1000},
    "s 8": {**BASE, "s": 8},
    "epsilon 0.5": {**BASE, "epsilon": 0.5},
    "rho 0.5": {**BASE, "rho": 0.5},
}
QUICK_CASES = ("p 100, s 5, epsilon 1, rho 0.1", "s 8", "rho 0.5")
REPEATS, TABLES, DRAWS = 6, 3, 100

PAF, EM = "permute-and-flip", "exponential"
BALL: dict[str, Any] = {**PUBLISHED, "constraint": "ball", "radius": 1.1}
#: Of a ball with that radius: 1.1 sqrt(s), set where s is known.
WIDE: dict[str, Any] = {**PUBLISHED, "constraint": "box", "prediction_bound": None}
LOW: dict[str, Any] = {**PUBLISHED, "constraint": "box", "prediction_bound": 0.5}

#: What is compared: the name of the whole, how it is released, and rows to begin with.
VARIANTS: dict[str, tuple[str, dict[str, Any], dict[str, Any], float]] = {
    "box, reach 1": (PAF, {}, SETTINGS["box"], 1100),
    "exponential": (EM, {}, SETTINGS["box"], 1200),
    "top-r by permute-and-flip": ("top-r", {"form": PAF}, SETTINGS["box"], 1600),
    "top-r by exponential": ("top-r", {}, SETTINGS["box"], 1700),
    "ball, reach 1": (PAF, {}, {**PUBLISHED, "constraint": "ball", "prediction_bound": 1}, 1400),
    "box, reach of the ball": (PAF, {}, WIDE, 2500),
    "ball, radius 1.1": (PAF, {}, BALL, 2500),
    "ball, radius 1.1, ridge 480": (PAF, {}, SETTINGS["ball"], 3000),
    "ball, radius 1.1, Lemma 2": (PAF, {}, {**BALL, "sensitivity": "lemma-2"}, 2800),
    "reach 0.5": (PAF, {}, LOW, 900),
    "reach 0.5, (1 + B)^2": (PAF, {}, {**LOW, "sensitivity": "published"}, 1000),
    "reach 0.5, Lemma 2": (PAF, {}, {**LOW, "sensitivity": "lemma-2"}, 1100),
    "box, add-remove": (PAF, {}, {**SETTINGS["box"], "neighbours": "add-remove"}, 550),
    "ball, add-remove": (PAF, {}, {**BALL, "neighbours": "add-remove"}, 1400),
}
#: The panels: rows with what they are called there.
PANELS: dict[str, dict[str, str]] = {
    "how it is drawn": {
        "box, reach 1": "permute-and-flip", "exponential": "exponential",
        "top-r by permute-and-flip": "top-r by\npermute-and-flip",
        "top-r by exponential": "top-r by\nexponential",
    },
    "coefficients": {
        "box, reach 1": "box, reach 1", "ball, reach 1": "ball, reach 1",
        "box, reach of the ball": "box, reach\n1.1 sqrt(s)",
        "ball, radius 1.1": "ball, radius 1.1\n(the same reach)",
        "ball, radius 1.1, ridge 480": "ball, radius 1.1,\nridge 480",
    },
    "range of a record": {
        "reach 0.5": "reach 0.5, sharp", "reach 0.5, (1 + B)^2": "reach 0.5,\n(1 + B)^2",
        "reach 0.5, Lemma 2": "reach 0.5,\nLemma 2", "ball, radius 1.1": "ball, sharp",
        "ball, radius 1.1, Lemma 2": "ball, Lemma 2",
    },
    "neighbours": {
        "box, reach 1": "box,\nreplace-one", "box, add-remove": "box,\nadd-remove",
        "ball, radius 1.1": "ball,\nreplace-one", "ball, add-remove": "ball,\nadd-remove",
    },
}  # fmt: skip


def trials(quick: bool) -> list[Trial]:
    """Searches for each variant in each case, each on tables of its own."""
    cases = [CASES[case] for case in (QUICK_CASES if quick else CASES)]
    return [
        {"variant": variant, **case, "seed": seed}
        for case, variant, seed in itertools.product(
            cases, VARIANTS, range(2 if quick else REPEATS)
        )
    ]


def measure(trial: Trial) -> Line:
    """The smallest n of one variant in one case."""
    name, options, said, rows = VARIANTS[trial["variant"]]
    shape = Shape(1, trial["p"], trial["s"], trial["rho"], trial["seed"])
    if said.get("prediction_bound", 1) is None:
        said = {**said, "prediction_bound": BALL["radius"] * math.sqrt(shape.k)}
    guess = rows * (math.log(shape.p) / math.log(100)) * (shape.k / 5) ** 1.5
    guess *= trial["epsilon"] ** -0.9 * (1 + (shape.rho - 0.1))

    def often(n: int) -> float:
        return recovery(replace(shape, n=n), TABLES, DRAWS, name, options,
                        epsilon=trial["epsilon"], **said)  # fmt: skip

    return line(smallest(often, guess))


def draw(lines: Lines, figure: Figure) -> None:
    """A panel for each choice, a row for each way, a mark for each case."""
    panels = figure.subplots(1, len(PANELS))
    for panel, (title, rows) in zip(panels, PANELS.items(), strict=True):
        for (case, setting), colour, marker in zip(
            CASES.items(), CYCLE, ("o", "s", "^", "D", "v"), strict=False
        ):
            here = where(lines, **setting)
            if here:
                found = [needed(here, variant=variant) for variant in rows]
                panel.plot(found, range(len(rows)), marker, color=colour, label=case,
                           markersize=5, alpha=0.9)  # fmt: skip
        _finish(panel, title, list(rows.values()))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center",
                  ncols=len(CASES), fontsize=8, frameon=False)  # fmt: skip


def _finish(panel: Axes, title: str, names: list[str]) -> None:
    panel.set_title(title, fontsize=10)
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_xscale("log")
    panel.set_xlim(350, 11_000)
    panel.set_xlabel("rows needed for recovery 0.9", fontsize=9)
    ticks = (500, 1000, 2000, 4000, 8000)
    panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks], fontsize=8)
    panel.minorticks_off()
    panel.grid(alpha=0.3)


def ratios(lines: Lines, variant: str, other: str) -> list[float]:
    """Rows of the one over those of the other, in each case."""
    return [
        needed(lines, variant=variant, **case) / needed(lines, variant=other, **case)
        for case in CASES.values()
        if where(lines, **case)
    ]


def _span(found: list[float]) -> str:
    return f"{min(found):.2f} to {max(found):.2f} times the rows"


def flips(lines: Lines) -> Verdict:
    """Permute-and-flip against exponential, over all supports and over those of top-r."""
    found = ratios(lines, "box, reach 1", "exponential")
    beside = ratios(lines, "top-r by permute-and-flip", "top-r by exponential")
    # A place of the grid either way is noise.
    holds = max(*found, *beside) < 1.1 and sum(found) <= len(found)
    return Verdict(holds, f"{_span(found)}; of top-r {_span(beside)}")


def box(lines: Lines) -> Verdict:
    """The box against the ball at reach 1."""
    found = ratios(lines, "box, reach 1", "ball, reach 1")
    return Verdict(max(found) < 1, _span(found))


def prediction_bound(lines: Lines) -> Verdict:
    """The default reach against the papers' radius, with and without the ridge."""
    found = ratios(lines, "box, reach 1", "ball, radius 1.1")
    ridge = ratios(lines, "ball, radius 1.1, ridge 480", "ball, radius 1.1")
    return Verdict(max(found) < 0.7 and min(ridge) > 1,
                   f"{_span(found)}; the ridge {_span(ridge)}")  # fmt: skip


def sharp(lines: Lines) -> Verdict:
    """The sharp range against the published ones."""
    small = ratios(lines, "reach 0.5", "reach 0.5, Lemma 2")
    large = ratios(lines, "ball, radius 1.1", "ball, radius 1.1, Lemma 2")
    return Verdict(max(*small, *large) < 1.05 and sum(small) < 0.95 * len(small),
                   f"reach 0.5 {_span(small)}; radius 1.1 {_span(large)}")  # fmt: skip


def half(lines: Lines) -> Verdict:
    """Add-remove against replace-one; more than half where few rows say little without noise."""
    found = [
        *ratios(lines, "box, add-remove", "box, reach 1"),
        *ratios(lines, "ball, add-remove", "ball, radius 1.1"),
    ]
    average = sum(found) / len(found)
    return Verdict(
        0.4 < average < 0.65 and max(found) < 0.85, f"{_span(found)}, {average:.2f} in the mean"
    )


EXPERIMENT = Experiment(
    name="mechanisms",
    title="Four choices beside the mechanism",
    source="ours",
    published=(
        "Each paper settles on one way: exponential weights, a ball or an l1 ball, a bound on how "
        "far a record moves a score, replace-one (Behdin, Prastakos and Mazumder) or add-remove "
        "(Roy, Wang and Tewari) neighbours. None compares them."
    ),
    caption=(
        "The measure is that of the previous experiment: the smallest n with recovery 0.9, by "
        "bisection on a grid with ratio 1.1, as the geometric mean over six searches with three "
        "tables and 100 draws each. The mechanism is permute-and-flip unless the row says "
        "otherwise. *Reach* is the prediction bound B, the largest prediction of a model in units "
        "of the clipped response. It alone determines the noise: the sharp range is (1 + B)^2 for "
        "B of at least 1 and 4 B below, the published one is always (1 + B)^2, and that of Lemma 2 "
        "is 2 + 2 B^2. The box lies inside the ball with the same prediction bound and touches it "
        "at its corners. In the box, a model without one of the true variables cannot compensate "
        "by larger coefficients. Add-remove halves the noise at the same epsilon, but its "
        "guarantee is weaker: a replaced record is one removed and one added."
    ),
    trials=trials,
    measure=measure,
    draw=draw,
    claims=(
        Claim("Permute-and-flip needs no more rows than exponential, over all supports and in "
              "Top-R.", flips),
        Claim("A box needs fewer rows than a ball with the same prediction bound, 1.", box),
        Claim("Prediction bound 1 needs fewer rows than the papers' radius of 1.1, and a ridge of "
              "480 increases their number.", prediction_bound),
        Claim("The sharp range needs no more rows than the published ones, and fewer than Lemma 2 "
              "where the prediction bound is small.", sharp),
        Claim("Add-remove neighbours need about half the rows of replace-one in the mean.", half),
    ),
    full="about 10 minutes on 2 cores",
    size=(13.0, 4.4),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(command(EXPERIMENT))
