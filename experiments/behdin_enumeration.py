"""What enumeration would cost: the end of Section 3 of Behdin, Prastakos and Mazumder 2024."""

from __future__ import annotations

import math
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.data import PUBLISHED, Shape

import dpsubset as dps
from dpsubset.api.problem_spec import build_problem_spec
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.data.gram import GramData
from dpsubset.mechanisms import Data, Setting
from dpsubset.mechanisms.exponential import Exponential
from dpsubset.objective.losses import scorer
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.search.engine import Limits
from dpsubset.search.enumerate import enumerate_supports

from .experiment import Claim, Experiment, Line, Lines, Trial, Verdict
from .figures import CYCLE, finish, values, where
from .running import command

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: s, and the epsilon that goes with it in their figure; the signal-to-noise ratio is 5.
EPSILONS = {5: 1, 7: 2}
SNR = 5.0
#: Where all supports are listed, and where they are searched: p by s.
LISTED = {5: (15, 20, 25, 30, 35), 7: (15, 18, 21, 24)}
SEARCHED = (20, 50, 100, 250, 1000)
ROWS = (1000, 4000, 16_000)
REPEATS = 10
#: Supports whose scores give the rate at p = 250.
SAMPLE = 50_000
SECONDS = 60.0

#: What they count with: seconds and bytes for a support of their largest setting.
THEIR_SECONDS, THEIR_BYTES = 1e-6, 2
LARGEST = (250, 7)
DAY, TERABYTE = 86_400, 10**12


def trials(quick: bool) -> list[Trial]:
    """Lists of all supports, scores of some, and draws from tables of three lengths."""
    repeats = range(2 if quick else REPEATS)
    listed: list[Trial] = []
    for s, epsilon in EPSILONS.items():
        about = {"s": s, "epsilon": epsilon}
        for seed in repeats:
            listed += [{"what": "list", **about, "p": p, "n": 4000, "seed": seed}
                       for p in LISTED[s]]  # fmt: skip
            listed.append({"what": "some", **about, "p": 250, "n": 4000, "seed": seed})
            listed += [{"what": "draw", **about, "p": p, "n": n, "seed": seed}
                       for p in SEARCHED for n in (ROWS[:2] if quick else ROWS)]  # fmt: skip
    return listed


def read(trial: Trial) -> tuple[GramData, Setting, float]:
    """The table behind the quantizer, what a mechanism is told, and the seconds of reading."""
    shape = Shape(trial["n"], trial["p"], trial["s"], snr=SNR, seed=trial["seed"])
    x, y = shape.make()
    start = time.perf_counter()
    stated = build_problem_spec(
        x, y=y, bounds=dps.Bounds(x=1, y=1), k=shape.k, constraint="ball", radius=1.1,
        intercept=PUBLISHED["intercept"],
    )  # fmt: skip
    table = SensitiveTable(x, stated.schema, y, records_for=stated.records_for)
    digest = table.read(stated.problem)
    return digest, Setting.of(stated.problem, trial["epsilon"]), time.perf_counter() - start


def measure(trial: Trial) -> Line:
    """Seconds of listing, of scoring, or of one draw from scratch."""
    digest, setting, reading = read(trial)
    problem, unit = setting.problem, setting.sensitivity.score_step
    rng = np.random.default_rng(trial["seed"])
    if trial["what"] == "draw":
        _draw(*read({**trial, "p": 16, "n": 100})[:2])  # compiled by now
        seconds, splits = _draw(digest, setting)
        return {"seconds": seconds, "reading": round(reading, 4), "splits": splits,
                "supports": problem.supports, "ended": seconds is not None}  # fmt: skip
    some = rng.permuted(np.tile(np.arange(problem.p), (10, 1)), axis=1)[:, : problem.k]
    scoring = scorer(digest, problem, unit)
    scoring.scores(np.sort(some, axis=1))  # compiled by now
    if trial["what"] == "some":
        chosen = rng.integers(0, problem.p, (2 * SAMPLE, problem.k))
        chosen.sort(axis=1)
        chosen = chosen[(np.diff(chosen, axis=1) > 0).all(axis=1)][:SAMPLE]
        start = time.perf_counter()
        scoring.scores(chosen)
        count = len(chosen)
    else:
        start = time.perf_counter()
        scored = enumerate_supports(digest, problem, unit)
        weights = np.exp(-float(Exponential().eta(setting) * unit) * scored.differences)
        rng.choice(len(scored), p=weights / weights.sum())
        count = len(scored)
    spent = time.perf_counter() - start
    return {"seconds": round(spent, 4), "supports": count, "rate": round(count / spent)}


def _draw(digest: GramData, setting: Setting) -> tuple[float | None, int]:
    """Seconds, None if it did not end, and regions that were split."""
    start = time.perf_counter()
    sampler = Exponential().prepare(Data(digest, Limits(seconds=SECONDS)), setting)
    try:
        sampler.draw(Randomness(SystemSource()))
    except dps.SearchLimitError:
        return None, sampler.diagnostics().get("splits", 0)
    return round(time.perf_counter() - start, 4), sampler.diagnostics().get("splits", 0)


# -- the figure --------------------------------------------------------------------------------


def _median(lines: Lines, name: str, **wanted: Any) -> float:
    found = [line[name] for line in where(lines, **wanted) if line.get(name) is not None]
    return statistics.median(found) if found else math.nan


def rate(lines: Lines, s: int) -> float:
    """Supports scored in a second at p = 250."""
    return _median(lines, "rate", what="some", s=s)


def draw(lines: Lines, figure: Figure) -> None:
    """Seconds against p, a panel for each s: all supports, and one draw without listing them."""
    panels = figure.subplots(1, len(EPSILONS), sharey=True)
    for panel, s in zip(panels, EPSILONS, strict=True):
        listed = where(lines, what="list", s=s)
        sizes = values(listed, "p")
        panel.plot(sizes, [_median(listed, "seconds", p=p) for p in sizes], "o-", markersize=4,
                   color="#d55e00", label="all supports, measured")  # fmt: skip
        beyond = np.geomspace(sizes[-1], SEARCHED[-1], 40)
        counts = [math.comb(int(p), s) for p in beyond]
        panel.plot(beyond, [count / rate(lines, s) for count in counts], "--", color="#d55e00",
                   label="all supports, by the rate at p 250")  # fmt: skip
        panel.plot(beyond, [count * THEIR_SECONDS for count in counts], ":", color="#666666",
                   label="all supports, at a microsecond each")  # fmt: skip
        for n, colour in zip(ROWS, ("#56b4e9", "#0072b2", "#332288"), strict=True):
            drawn = where(lines, what="draw", s=s, n=n)
            if drawn:
                sizes = values(drawn, "p")
                panel.plot(sizes, [_median(drawn, "seconds", p=p) for p in sizes], "D-",
                           markersize=4, color=colour, label=f"exact draw, n {n:,}")  # fmt: skip
        for seconds, name in ((1, "second"), (3600, "hour"), (DAY, "day"), (365.25 * DAY, "year")):
            panel.axhline(seconds, color="#bbbbbb", linewidth=0.6, zorder=0)
            panel.text(0.015, seconds * 1.25, name, fontsize=7, color="#777777",
                       transform=panel.get_yaxis_transform())  # fmt: skip
        panel.set_title(f"s {s}, epsilon {EPSILONS[s]}", fontsize=10)
        panel.set_xscale("log")
        panel.set_yscale("log")
        ticks = (20, 50, 100, 250, 1000)
        panel.set_xticks(ticks, [str(tick) for tick in ticks])
        panel.minorticks_off()
    panels[1].plot([LARGEST[0]], [math.comb(*LARGEST) * THEIR_SECONDS], "*", markersize=11,
                   color=CYCLE[4], label="printed: 128 days")  # fmt: skip
    finish(panels, "variables p", "seconds")
    figure.legend(*panels[1].get_legend_handles_labels(), loc="outside lower center", ncols=4,
                  fontsize=8, frameon=False)  # fmt: skip


# -- claims ------------------------------------------------------------------------------------


def arithmetic(lines: Lines) -> Verdict:
    """Their count, days and terabytes from their assumptions."""
    count = math.comb(*LARGEST)
    days, bytes_ = count * THEIR_SECONDS / DAY, count * THEIR_BYTES / TERABYTE
    return Verdict(
        int(days) == 128 and int(bytes_) == 22 and 1e13 <= count < 1.5e13,
        f"{count:.3e} supports, {days:.1f} days, {bytes_:.2f} terabytes",
    )


def naming(lines: Lines) -> Verdict:
    """Bits that tell supports apart."""
    bits = math.log2(math.comb(*LARGEST))
    return Verdict(bits <= 16, f"{bits:.1f} bits name one of them")


def microsecond(lines: Lines) -> Verdict:
    """Their rate against ours."""
    each = 1 / rate(lines, LARGEST[1])
    days = math.comb(*LARGEST) * each / DAY
    return Verdict(each >= THEIR_SECONDS, f"{each * 1e6:.1f} microseconds a support, {days:,.0f} "
                                          "days on one core")  # fmt: skip


def grows_as_counted(lines: Lines) -> Verdict:
    """Whether the rate at p = 250 foretells the seconds of the longest lists."""
    ratios = []
    for s in EPSILONS:
        p = LISTED[s][-1]
        foretold = math.comb(p, s) / rate(lines, s)
        ratios.append(_median(lines, "seconds", what="list", s=s, p=p) / foretold)
    return Verdict(all(0.4 < ratio < 2.5 for ratio in ratios), "measured over predicted "
                   + ", ".join(f"{ratio:.2f} (s {s})" for ratio, s in
                               zip(ratios, EPSILONS, strict=True)))  # fmt: skip


def drawn(lines: Lines) -> Verdict:
    """The exact draw at their largest setting."""
    here = where(lines, what="draw", s=LARGEST[1], p=LARGEST[0])
    done = [line for line in here if line["ended"]]
    slowest = max((line["seconds"] for line in done), default=math.nan)
    splits = max((line["splits"] for line in done), default=0)
    return Verdict(
        len(done) == len(here) and slowest < 60,
        f"{_median(here, 'seconds'):.3f} s (median), at most {slowest:.2f} s and {splits:,} "
        f"regions split; {len(done)} of {len(here)} ended",
    )


def cheaper(lines: Lines) -> Verdict:
    """Seconds of all supports, by the measured rate, over those of a draw; p from 100 on."""
    gains = [
        math.comb(p, s) / rate(lines, s) / _median(lines, "seconds", what="draw", s=s, p=p, n=4000)
        for s in EPSILONS
        for p in SEARCHED
        if p >= 100
    ]
    return Verdict(min(gains) > 1000, f"{min(gains):.1e} to {max(gains):.1e} times fewer seconds")


EXPERIMENT = Experiment(
    name="behdin_enumeration",
    title="What listing all supports would cost",
    source="Behdin, Prastakos and Mazumder 2024, end of Section 3",
    published=(
        "For p = 250 and s = 7 there are about 10^13 supports. At a microsecond and 16 bits each, "
        "the exponential mechanism by enumeration would take 128 days and 22 terabytes."
    ),
    caption=(
        "Enumeration consists of the scores of all supports from X'X, their weights and one draw, "
        "on one core, with the certified scores that the package uses everywhere. Dashed lines "
        "extrapolate by the number of supports and the rate at p = 250, which is measured on "
        "50,000 supports. The exact draw is from the same distribution over all C(p, s) supports, "
        "given X'X and without any earlier result; the figures are medians over ten tables for "
        "each point. The arithmetic of the paper is right, rounded down. 16 bits suffice for a "
        "score of low precision, but not to identify a support."
    ),
    trials=trials,
    measure=measure,
    draw=draw,
    claims=(
        Claim("At a microsecond and 16 bits each, 128 days and 22 terabytes.", arithmetic),
        Claim(
            "16 bits hold a support.", naming,
            reason="It takes 44 bits to identify a support. Scores alone, in a fixed order, could "
                   "be stored in 16 bits each, at half precision.",
        ),
        Claim("A microsecond a support is not too long.", microsecond),
        Claim("Ours: listing takes as long as the number of supports and the rate say.",
              grows_as_counted),
        Claim("Ours: the exact draw ends within a minute at p = 250, s = 7.", drawn),
        Claim("Ours: from p = 100 on it takes less than a thousandth of the seconds.", cheaper),
    ),
    full="about 1 minute on 2 cores",
    size=(10.0, 4.4),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(command(EXPERIMENT))
