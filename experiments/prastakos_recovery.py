"""Recovery and F1 against n, for least squares: a figure of Prastakos et al. 2025."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.data import BOUNDS, SETTINGS, WIDE, Shape

from .experiment import Claim, Experiment, Line, Lines, Trial, Verdict
from .figures import COLOURS, curve, finish, mean, values, where
from .running import command
from .supports import enough, largest_fall, legend, log_axis, simulated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

K, DELTA = 5, 1e-6
SMALL, MIDDLE, LARGE = 100, 1000, 10_000
SIZES = (SMALL, MIDDLE, LARGE)

#: Where the curves rise, by p.
ROWS = {
    SMALL: (500, 750, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 8000, 12_000),
    MIDDLE: (750, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 8000, 10_000, 12_000),
    LARGE: (1000, 1500, 2000, 3000, 4000, 5000),
}
#: At the largest p buckets of mistakes take long where no support stands out.
LISTED_ROWS, LISTED_REPEATS = (4000, 5000, 8000), 3
BOX_ROWS = (500, 750, 1000, 1500, 3000)
REPEATS = {SMALL: 10, MIDDLE: 5, LARGE: 4}
#: Many rows for small epsilons.
EPSILONS, SWEPT_ROWS, SWEPT_REPEATS = (0.125, 0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 4), 6000, 5

#: Some of all, for a quick look.
QUICK_ROWS = {
    SMALL: (1500, 3000, 5000, 8000),
    MIDDLE: (3000, 5000, 10_000),
    LARGE: (3000, 5000),
}
QUICK_EPSILONS = (0.25, 0.5, 1)

#: What a selection is told, by setting: the papers' ball with their sensitivity, and a box.
GIVEN: dict[str, dict[str, Any]] = {
    "ball": {**SETTINGS["ball"], "sensitivity": "published", "bounds": BOUNDS},
    "box": {**SETTINGS["box"], "bounds": BOUNDS},
    "unequal": {**SETTINGS["box"], "bounds": BOUNDS},
}
#: Neighbours that are correlated, and weights that fall to a half.
UNEQUAL: dict[str, Any] = {"rho": 0.6, "least": 0.5}
UNEQUAL_ROWS = 6000
#: Seconds for one mechanism on one table.
LIMIT = 120


@dataclass(frozen=True)
class Method:
    """A mechanism, and how many draws are taken from a table by p."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    draws: tuple[int, int, int] = (200, 200, 100)
    delta: float = 0
    steps: int = 0
    largest: int = LARGE

    def asked(self, p: int) -> dict[str, Any]:
        """Its options; a chain may be longer for a larger p."""
        return {**self.options, **({"steps": self.steps * p} if self.steps else {})}


EXACT, RACE, DEFAULTS = "exponential", "permute-and-flip", "our defaults"
TOP_R, TOP_LONG = "top-r, R = 100", "top-r, R = k(p-k)+2"
MISTAKES, MISTAKES_PRIVATE = "mistakes, published (no guarantee)", "mistakes, private anchor"
CHAIN, LONG_CHAIN = "metropolis, 5,000 steps", "metropolis, 50 p steps"
VOTES = "sample-aggregate"
OTHERS = ("peeling", "hard-thresholding", "frank-wolfe", "stability")

METHODS: dict[str, dict[str, Method]] = {
    "exact": {
        RACE: Method("permute-and-flip"),
        EXACT: Method("exponential"),
        DEFAULTS: Method("permute-and-flip", draws=(20, 10, 5)),
        CHAIN: Method("metropolis", {"steps": 5000}, (50, 25, 20), DELTA),
        LONG_CHAIN: Method("metropolis", {}, (50, 25, 5), DELTA, steps=50),
    },
    "listed": {
        TOP_R: Method("top-r", {"R": 100}),
        TOP_LONG: Method("top-r", {}, largest=MIDDLE),
        MISTAKES: Method("mistakes", {"anchor": "data"}),
        MISTAKES_PRIVATE: Method("mistakes", {}, (25, 25, 0), largest=MIDDLE),
        VOTES: Method("sample-aggregate", {}, (10, 10, 5)),
    },
    "others": {
        "peeling": Method("peeling"),
        "hard-thresholding": Method("hard-thresholding", {}, (50, 0, 0), DELTA),
        "frank-wolfe": Method("frank-wolfe", {}, (50, 0, 0), DELTA),
        "stability": Method("stability", {}, (10, 0, 0), DELTA),
    },
}


def trials(quick: bool) -> list[Trial]:
    """A table and a group of mechanisms: n at each p, epsilon at the smallest, and the box."""
    found: list[Trial] = []

    def add(setting: str, group: str, p: int, n: int, epsilon: float, repeats: int) -> None:
        found.extend(
            {"setting": setting, "group": group, "p": p, "n": n, "epsilon": epsilon, "seed": seed}
            for seed in range(repeats)
        )

    for p, group in itertools.product(SIZES, METHODS):
        rows = QUICK_ROWS[p] if quick else ROWS[p]
        repeats = (2 if p == SMALL else 1) if quick else REPEATS[p]
        if group == "others":
            if p > SMALL:
                continue
            repeats = 1 if quick else repeats
        if p == LARGE and group == "listed":
            rows, repeats = ((5000,), 1) if quick else (LISTED_ROWS, LISTED_REPEATS)
        for n in rows:
            add("ball", group, p, n, 1, repeats)
    for epsilon, group in itertools.product(QUICK_EPSILONS if quick else EPSILONS, METHODS):
        # The table at epsilon = 1 is one of those above.
        if group != "others" and (quick or epsilon != 1):
            add("ball", group, SMALL, SWEPT_ROWS, epsilon, 2 if quick else SWEPT_REPEATS)
    for n, group in itertools.product((750, 1000, 1500) if quick else BOX_ROWS, METHODS):
        if not quick or group == "exact":
            add("box", group, SMALL, n, 1, 2 if quick else REPEATS[SMALL])
    for group in ("exact", "others"):
        add("unequal", group, SMALL, UNEQUAL_ROWS, 1, 1 if quick else REPEATS[SMALL])
    return found


def measure(trial: Trial) -> list[Line]:
    """Recovery and F1 of every method of a group on one table."""
    p, setting = trial["p"], trial["setting"]
    shape = Shape(trial["n"], p, K, seed=trial["seed"], **(UNEQUAL if setting == "unequal" else {}))
    x, y = shape.make()
    lines = []
    for label, method in METHODS[trial["group"]].items():
        if p > method.largest or (label == DEFAULTS and setting == "box"):
            continue
        told = {"bounds": WIDE} if label == DEFAULTS else GIVEN[setting]
        line = simulated(
            x, y, shape.truth, method.name, method.asked(p), method.draws[SIZES.index(p)],
            epsilon=trial["epsilon"], delta=method.delta, time_limit=LIMIT, **told,
        )  # fmt: skip
        lines.append({"method": label, **line})
    return lines


#: Colour and dash of each curve.
STYLES = {
    DEFAULTS: (COLOURS["permute-and-flip"], ":"), RACE: (COLOURS["permute-and-flip"], "-"),
    EXACT: (COLOURS["exponential"], "-"), MISTAKES: (COLOURS["mistakes"], "-"),
    MISTAKES_PRIVATE: (COLOURS["mistakes"], "--"), TOP_LONG: (COLOURS["top-r"], "--"),
    TOP_R: (COLOURS["top-r"], "-"), LONG_CHAIN: (COLOURS["metropolis"], "--"),
    CHAIN: (COLOURS["metropolis"], "-"), VOTES: (COLOURS["sample-aggregate"], "-"),
    **{name: (COLOURS[name], "-.") for name in OTHERS},
}  # fmt: skip


def draw(lines: Lines, figure: Figure) -> None:
    """Recovery and F1 at each p; below them epsilon, a box, and mechanisms of other kinds."""
    panels = figure.subplots(3, 3, sharey=True)
    ball = where(lines, setting="ball", epsilon=1)
    main = [name for name in STYLES if name not in OTHERS]
    for column, p in enumerate(SIZES):
        here = where(ball, p=p)
        _curves(panels[0, column], here, main, "n", "recovery")
        _curves(panels[1, column], here, main, "n", "f1")
        panels[0, column].set_title(f"recovery, p = {p:,}", fontsize=10)
        panels[1, column].set_title(f"F1, p = {p:,}", fontsize=10)
    swept = where(lines, setting="ball", p=SMALL, n=SWEPT_ROWS)
    _curves(panels[2, 0], swept, main, "epsilon", "recovery")
    panels[2, 0].set_title(f"recovery, p = {SMALL}, n = {SWEPT_ROWS:,}", fontsize=10)
    _curves(panels[2, 1], where(lines, setting="box"), list(STYLES), "n", "recovery")
    panels[2, 1].set_title(f"recovery, box of reach 1, p = {SMALL}", fontsize=10)
    _curves(panels[2, 2], where(ball, p=SMALL), [RACE, EXACT, *OTHERS], "n", "recovery")
    panels[2, 2].set_title(f"recovery, p = {SMALL}, other kinds", fontsize=10)
    for row in panels:
        finish(row, "rows n", "share, or F1", share=True)
        for panel in row:
            log_axis(panel, (500, 1000, 2000, 5000, 10_000))
    log_axis(panels[2, 1], (500, 750, 1000, 1500, 3000))
    log_axis(panels[2, 0], (0.125, 0.25, 0.5, 1, 2, 4))
    panels[2, 0].set_xlabel("epsilon")
    legend(figure, (panels[0, 0], panels[2, 2]), 4)


def _curves(panel: Any, lines: Lines, names: list[str], x: str, y: str) -> None:
    for name in names:
        if found := where(lines, method=name):
            colour, dash = STYLES[name]
            curve(panel, found, x, y, color=colour, linestyle=dash, label=name)


def _at(lines: Lines, method: str, **wanted: Any) -> list[Line]:
    """Where n varies: the papers' ball at epsilon 1."""
    return where(lines, setting="ball", epsilon=1, method=method, **wanted)


def _means(lines: Lines, one: str, other: str, **wanted: Any) -> tuple[float, float]:
    """Mean recovery of two methods over those n that both were run at."""
    first, second = _at(lines, one, **wanted), _at(lines, other, **wanted)
    shared = set(values(first, "n")) & set(values(second, "n"))
    pairs = [(mean(first, "recovery", n=n), mean(second, "recovery", n=n)) for n in shared]
    pairs = [pair for pair in pairs if not math.isnan(sum(pair))]
    a, b = (sum(found) / len(pairs) for found in zip(*pairs, strict=True))
    return a, b


def grows(lines: Lines) -> Verdict:
    """First and last mean, and the largest fall, wherever there are three n or more."""
    falls, ends = [], []
    for p, method in itertools.product(SIZES, (TOP_R, MISTAKES, EXACT, RACE)):
        here = _at(lines, method, p=p)
        rows = values(here, "n")
        if len(rows) < 3:
            continue
        falls.append(largest_fall(here))
        ends.append(mean(here, "recovery", n=rows[-1]) - mean(here, "recovery", n=rows[0]))
    rises = sum(end > 0.5 for end in ends)
    holds = max(falls) < 0.2 and rises >= 0.75 * len(ends)
    return Verdict(holds, f"{rises} of {len(ends)} curves rise by more than one half; largest fall "
                          f"between neighbours {max(falls):.2f}")  # fmt: skip


def high_privacy(lines: Lines) -> Verdict:
    """Mistakes and top-r at each epsilon up to 1."""
    swept = where(lines, setting="ball", p=SMALL, n=SWEPT_ROWS)
    small = [epsilon for epsilon in values(swept, "epsilon") if epsilon <= 1]
    pairs = {
        epsilon: tuple(
            mean(swept, "recovery", epsilon=epsilon, method=method) for method in (MISTAKES, TOP_R)
        )
        for epsilon in small
    }
    never = all(a >= b - 0.02 for a, b in pairs.values())
    best = max(pairs, key=lambda epsilon: pairs[epsilon][0] - pairs[epsilon][1])
    a, b = pairs[best]
    return Verdict(never and a > b + 0.3, f"at epsilon {best:g} {a:.2f} against {b:.2f}")


def longer_list(lines: Lines) -> Verdict:
    """The long list against R = 100, and against the exact draw."""
    found = []
    for p in (SMALL, MIDDLE):
        short, long = _means(lines, TOP_R, TOP_LONG, p=p)
        found.append((short, long, _means(lines, EXACT, TOP_LONG, p=p)[0]))
    text = "; ".join(f"{a:.2f}, {b:.2f}, {c:.2f}" for a, b, c in found)
    holds = all(a < b < c for a, b, c in found)
    return Verdict(holds, f"mean over n with R = 100, with the long list, exact: {text}")


def votes_below(lines: Lines) -> Verdict:
    """Sample-aggregate against mistakes as published, at each p."""
    pairs = [_means(lines, VOTES, MISTAKES, p=p) for p in SIZES]
    text = ", ".join(f"{a:.2f} < {b:.2f}" for a, b in pairs)
    return Verdict(all(a < b for a, b in pairs), f"mean over n at p = 100, 1,000, 10,000: {text}")


def short_chain(lines: Lines) -> Verdict:
    """A chain of 5,000 steps against mistakes, at the larger p."""
    pairs = [_means(lines, CHAIN, MISTAKES, p=p) for p in (MIDDLE, LARGE)]
    text = ", ".join(f"{a:.2f} < {b:.2f}" for a, b in pairs)
    return Verdict(all(a < b for a, b in pairs), f"mean over n at p = 1,000 and 10,000: {text}")


def any_chain(lines: Lines) -> Verdict:
    """A chain that is long enough against mistakes, at each p."""
    pairs = [_means(lines, LONG_CHAIN, MISTAKES, p=p) for p in SIZES]
    text = ", ".join(f"{a:.2f}, {b:.2f}" for a, b in pairs)
    return Verdict(all(a < b for a, b in pairs), f"mean over n, chain and Mistakes: {text}")


def mixed_chain(lines: Lines) -> Verdict:
    """A chain of 50 p steps against the exact draw."""
    pairs = [_means(lines, LONG_CHAIN, EXACT, p=p) for p in SIZES]
    text = ", ".join(f"{a:.2f} and {b:.2f}" for a, b in pairs)
    return Verdict(all(abs(a - b) < 0.12 for a, b in pairs), f"mean over n: {text}")


def never_below(lines: Lines) -> Verdict:
    """Permute-and-flip against the exponential mechanism, in units of what draws can tell."""
    worst, gain = math.inf, -math.inf
    keys = {
        (line["setting"], line["p"], line["n"], line["epsilon"])
        for line in where(lines, group="exact")
    }
    for setting, p, n, epsilon in keys:
        here = where(lines, setting=setting, p=p, n=n, epsilon=epsilon)
        a, b = (mean(here, "recovery", method=method) for method in (RACE, EXACT))
        draws = sum(line["draws"] for line in where(here, method=RACE))
        middle = (a + b) / 2
        error = math.sqrt(2 * max(middle * (1 - middle), 1 / draws) / draws)
        worst, gain = min(worst, (a - b) / error), max(gain, a - b)
    return Verdict(worst > -4, f"lowest difference {worst:.1f} standard errors, largest gain "
                               f"{gain:.2f}")  # fmt: skip


def fewer_rows(lines: Lines) -> Verdict:
    """The exact draw at the largest p against what the papers have."""
    a, b = _means(lines, RACE, MISTAKES, p=LARGE)
    c, d = _means(lines, RACE, TOP_R, p=LARGE)
    return Verdict(a > b and c > d, f"mean over n {a:.2f} against {b:.2f} of Mistakes and {d:.2f} "
                                    "of Top-R")  # fmt: skip


def defaults_sooner(lines: Lines) -> Verdict:
    """Rows for one half, with our defaults and in the published setting, at each p."""
    pairs = [
        (enough(_at(lines, DEFAULTS, p=p)), enough(_at(lines, EXACT, p=p))) for p in SIZES
    ]  # fmt: skip
    text = ", ".join(f"{a:,.0f} and {b:,.0f}" for a, b in pairs)
    return Verdict(all(a <= b / 1.5 for a, b in pairs), f"n for one half: {text}")


def one_by_one(lines: Lines) -> Verdict:
    """Our defaults against peeling where variables are correlated and count unequally."""
    here = where(lines, setting="unequal")
    a, b = (mean(here, "recovery", method=method) for method in (DEFAULTS, "peeling"))
    return Verdict(a > b + 0.3, f"{a:.2f} against {b:.2f}")


def anchor_costs(lines: Lines) -> Verdict:
    """Mistakes with an anchor that is paid for, against the published one."""
    pairs = [_means(lines, MISTAKES_PRIVATE, MISTAKES, p=p) for p in (SMALL, MIDDLE)]
    text = ", ".join(f"{a:.2f} < {b:.2f}" for a, b in pairs)
    return Verdict(all(a < b for a, b in pairs), f"mean over n at p = 100 and 1,000: {text}")


EXPERIMENT = Experiment(
    name="prastakos_recovery",
    title="Recovery and F1 at p up to 10,000, least squares",
    source="Prastakos, Behdin and Mazumder 2025, support recovery, left panel",
    published=(
        "With p = 10,000, s = 5, a signal-to-noise ratio of 5, rho = 0.1 and epsilon = 1, Top-R "
        "and Mistakes come to name the true support as n grows. By their theory Mistakes needs "
        "weaker signals than Top-R where epsilon is small."
    ),
    caption=(
        "The published setting at three p: rows clipped at 0.5, radius 1.1, a ridge, no intercept, "
        "the declared response range and the published sensitivity. It applies to all curves "
        "except *our defaults*, which have bounds for y that are twenty times too wide, an "
        "intercept, and a part of epsilon for a private response range. There are several tables "
        "for each point and many draws from each. The published grid of n is not printed; this "
        "grid covers the rise of the curves. **Mistakes as published uses the best support of the "
        "data without noise and has no guarantee.** If the anchor is released privately, it has a "
        "guarantee and needs more rows. At p = 10,000 the long list of Top-R (49,977 supports) and "
        "the private anchor are omitted, because they had not finished after 20 processor seconds "
        "at n = 5,000. Both published mechanisms start at n = 4,000 there, because the buckets of "
        "Mistakes had not finished after 45 seconds at n = 2,000. A search that takes two minutes "
        "is stopped, and its cell is empty. The box with prediction bound 1 at the bottom needs "
        "about a third of the rows of the ball: its sensitivity is smaller, and it has no ridge. "
        "Variables are nearly uncorrelated here, which favours peeling. For the last claim they "
        "have correlation 0.6 and weights that decrease to one half, at n = 6,000. There the box "
        "with prediction bound 1 fails too, since another support is the best one within it; with "
        "prediction bound 1.25 the true one is."
    ),
    trials=trials,
    measure=measure,
    draw=draw,
    claims=(
        Claim("Recovery grows with n.", grows),
        Claim("Mistakes, as published, names the true support more often than Top-R with R = 100 "
              "at high privacy.", high_privacy),
        Claim("Top-R does better with a larger R, and stays below the exponential mechanism that "
              "it approaches.", longer_list),
        Claim("Sample-and-aggregate is below Mistakes at every p.", votes_below),
        Claim("The chain is below Mistakes at large p: with 5,000 steps.", short_chain),
        Claim("The chain is below Mistakes at every p: with 50 p steps.", any_chain,
              "A chain that has mixed draws from the exponential mechanism, which Mistakes "
              "approximates from below; its guarantee assumes the mixing and has a delta."),
        Claim("Ours: a chain of 50 p steps recovers as much as the exact draw.", mixed_chain),
        Claim("Ours: permute-and-flip is nowhere below the exponential mechanism.", never_below),
        Claim("Ours: the exact draw at p = 10,000 needs fewer rows than Mistakes and Top-R.",
              fewer_rows),
        Claim("Ours: the defaults need at most two thirds of the rows of the published setting.",
              defaults_sooner),
        Claim("Ours: what makes Mistakes private costs recovery.", anchor_costs),
        Claim("Ours: where variables are correlated and count unequally, the defaults find the set "
              "and peeling, which looks at variables one by one, does not.", one_by_one),
    ),
    full="about 20 minutes on 2 cores",
    size=(12.0, 11.0),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(command(EXPERIMENT))
