"""F-scores of a chain and of the law it tends to: Table 2 of Roy, Wang and Tewari 2024."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import dpsubset as dps
from dpsubset.mechanisms import Mechanism
from dpsubset.mechanisms.exponential import Exponential
from dpsubset.mechanisms.permute_and_flip import PermuteAndFlip

from . import roy_claims as claims
from .experiment import Claim, Experiment, Line, Lines, Trial
from .figures import COLOURS, CYCLE, curve, finish, where
from .roy import (
    EPSILONS,
    HARD,
    LENGTH,
    RADII,
    SIGNALS,
    Cell,
    P,
    S,
    Support,
    allowed,
    make,
    overlaps,
    planned,
)
from .roy_claims import CHAIN, CHAINS, COUNTS, DEFAULTS, EXACT, FLIP, PRINTED, WIDER, compared
from .running import command

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLES = 10
#: When chains are looked at, in steps.
LOOKS = tuple(P * many for many in (1, 2, 5, 10, 20, 50))
DEFAULT_DRAWS = 5
#: Much wider than either response, for those who do not know its scale.
WIDE = dps.Bounds(x=1, y=5)

METHODS = (CHAIN, EXACT, FLIP, WIDER, DEFAULTS)


def trials(quick: bool) -> list[Trial]:
    """A method on a table in a cell; the quick ones have one table, and K = 2 above all."""
    listed: list[Trial] = []
    for signal, K, epsilon, seed in itertools.product(
        SIGNALS, RADII, EPSILONS, range(1 if quick else TABLES)
    ):
        cell = {"signal": signal, "K": K, "epsilon": epsilon, "seed": seed}
        methods = _quick(signal, K, epsilon)
        if not quick:
            hard = (signal, K, epsilon) in HARD
            asked = {CHAIN: True, EXACT: not hard or seed < 2, FLIP: not hard and seed < 5,
                     WIDER: K == 2 and signal == "strong", DEFAULTS: K == 2}  # fmt: skip
            methods |= {method for method in METHODS if asked[method]}
        for method in sorted(methods, key=METHODS.index):
            # Our defaults know no K.
            about = cell.keys() - ({"K"} if method == DEFAULTS else set())
            listed.append({name: cell[name] for name in cell if name in about} | {"method": method})
    return listed


def _quick(signal: str, K: float, epsilon: float) -> set[str]:
    """What a quick run has of a cell."""
    methods = set()
    if K == 2 or epsilon in {0.5: (1.0, 3.0, 5.0, 10.0), 3.0: (), 3.5: (3.0, 5.0)}[K]:
        methods.add(CHAIN)
    if (K == 2 and planned(signal, K, epsilon) > 5) or (K == 0.5 and epsilon >= 3):
        methods.add(EXACT)
    if K == 2 and signal == "strong":
        methods |= {1.0: {FLIP}, 3.0: {FLIP, WIDER}, 5.0: {FLIP}}.get(epsilon, set())
    if K == 2 and epsilon in (1.0, 3.0, 10.0):
        methods.add(DEFAULTS)
    return methods


def measure(trial: Trial) -> Line | list[Line]:
    """How many true variables are in each of some supports, and how well these score."""
    method, signal, epsilon, seed = (
        trial[name] for name in ("method", "signal", "epsilon", "seed")
    )
    if method == DEFAULTS:
        x, y = make(signal, seed)
        drawn = dps.simulate(x, y=y, bounds=WIDE, k=S, epsilon=epsilon, draws=DEFAULT_DRAWS)
        return counted([support or () for support in drawn.elements()])
    cell = Cell(signal, trial["K"], epsilon, seed, allowed(signal) if method == WIDER else None)
    if method == CHAIN:
        start = time.perf_counter()
        walks = cell.walks(CHAINS, LOOKS)
        spent = {"seconds": round(time.perf_counter() - start, 2)}
        return [
            {"steps": steps, **summary(cell, [walk[i] for walk in walks]), **spent}
            for i, steps in enumerate(LOOKS)
        ]
    return exact(cell, PermuteAndFlip() if method == FLIP else Exponential())


def exact(cell: Cell, mechanism: Mechanism) -> Line:
    """Exact draws, or that they did not end."""
    draws = planned(cell.signal, cell.K, cell.epsilon)
    start = time.perf_counter()
    drawn = cell.draws(mechanism, draws)
    spent = round(time.perf_counter() - start, 2)
    if drawn is None:
        return {"ended": False, "draws": draws, "seconds": spent}
    return {**summary(cell, drawn), "seconds": spent, "swaps": cell.swaps()}


def counted(supports: Sequence[Support]) -> Line:
    """Overlaps with the true support, and their F-score, 2 |S and T| / (|S| + |T|)."""
    found = overlaps(supports)
    share = sum(shared * count for shared, count in enumerate(found)) / (S * len(supports))
    return {"ended": True, "draws": len(supports), "F": share} | dict(
        zip(COUNTS, found, strict=True)
    )


def summary(cell: Cell, supports: Sequence[Support]) -> Line:
    """The same with the scores, as the law sees them."""
    exponents = cell.exponents(supports)
    return {
        **counted(supports),
        "exponent": round(float(exponents.mean()), 4),
        "exponent_sd": round(float(exponents.std(ddof=1)), 4) if len(supports) > 1 else None,
        "better": int((exponents < 0).sum()),
    }


# -- the figure --------------------------------------------------------------------------------

STYLES: dict[str, dict[str, Any]] = {
    CHAIN: {"color": COLOURS["metropolis"], "label": "chain, 50 p steps", "marker": "o"},
    EXACT: {"color": COLOURS["exponential"], "label": "exact draw of its law", "marker": "D",
            "linestyle": "--"},
    FLIP: {"color": COLOURS["permute-and-flip"], "label": "permute-and-flip", "marker": "v",
           "linestyle": ":"},
    DEFAULTS: {"color": "#000000", "label": "our defaults (no K)", "marker": "s",
               "linestyle": "-.", "linewidth": 1},
}  # fmt: skip


def draw(lines: Lines, figure: Figure) -> None:
    """F-scores against epsilon, a panel for each signal and K; below, how far the chain is off."""
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.55, 1))
    above, below = parts
    panels = above.subplots(2, len(RADII), sharex=True, sharey=True)
    for row, signal in zip(panels, SIGNALS, strict=True):
        for panel, K in zip(row, RADII, strict=True):
            for method, style in STYLES.items():
                wanted = {} if method == DEFAULTS else {"K": K}
                here = [
                    line
                    for line in where(lines, method=method, signal=signal, **wanted)
                    if line.get("steps") in (None, LENGTH)
                ]
                curve(panel, here, "epsilon", "F", **style)
            if K == 2.0:
                panel.plot(EPSILONS, PRINTED[signal], "*", color="#d55e00", markersize=9,
                           label="printed", zorder=5)  # fmt: skip
            panel.set_title(f"{signal} signal, K {K:g}", fontsize=9)
            panel.set_xscale("log")
            panel.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            panel.minorticks_off()
        finish(row, "", "F-score", share=True)
    for panel in panels[-1]:
        panel.set_xlabel("epsilon")
    above.legend(*panels[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=5,
                 fontsize=8.5, frameon=False)  # fmt: skip
    below_panels = below.subplots(1, 3, width_ratios=(1, 1, 0.9))
    for panel, signal in zip(below_panels[:2], SIGNALS, strict=True):
        _map(panel, lines, signal)
    _course(below_panels[2], lines)


def _map(panel: Any, lines: Lines, signal: str) -> None:
    """The distance in each cell, beside what chance makes of it."""
    image = np.full((len(RADII), len(EPSILONS)), np.nan)
    for (i, K), (j, epsilon) in itertools.product(enumerate(RADII), enumerate(EPSILONS)):
        cell: dict[str, Any] = {"signal": signal, "K": K, "epsilon": epsilon}
        found = compared(lines, **cell)
        if found is not None:
            image[i, j] = found[0]
            text = f"{found[0]:.2f}\n({found[1]:.2f})"
        else:
            tried = where(lines, method=EXACT, **cell)
            ended = sum(bool(line["ended"]) for line in tried)
            text = f"{ended} of {len(tried)}\nended" if tried else "not run"
        panel.text(j, i, text, ha="center", va="center", fontsize=7)
    panel.imshow(image, cmap="Oranges", vmin=0, vmax=1, aspect="auto")
    panel.set_xticks(range(len(EPSILONS)), [f"{epsilon:g}" for epsilon in EPSILONS])
    panel.set_yticks(range(len(RADII)), [f"{K:g}" for K in RADII])
    panel.set_xlabel("epsilon")
    panel.set_ylabel("K")
    panel.set_title(f"chain to law at 50 p, {signal} (95 % by chance)", fontsize=9)


def _course(panel: Any, lines: Lines) -> None:
    """The distance along the walk at K = 2."""
    shown = (("strong", 1.0), ("strong", 3.0), ("strong", 10.0), ("weak", 10.0))
    for (signal, epsilon), colour in zip(shown, CYCLE, strict=False):
        points = {
            steps: compared(lines, steps, signal=signal, K=2.0, epsilon=epsilon) for steps in LOOKS
        }
        there = {steps / P: found[0] for steps, found in points.items() if found is not None}
        panel.plot(list(there), list(there.values()), "o-", markersize=3.5, color=colour,
                   label=f"{signal}, epsilon {epsilon:g}")  # fmt: skip
    panel.set_xscale("log")
    panel.set_xticks([steps // P for steps in LOOKS], [str(steps // P) for steps in LOOKS])
    panel.minorticks_off()
    finish([panel], "steps, in p", "total variation of overlaps", share=True)
    panel.set_title("along the walk, K 2", fontsize=9)
    panel.legend(fontsize=7.5, frameon=False)


EXPERIMENT = Experiment(
    name="roy_table",
    title="The chain's F-scores, and the exact draw of its law",
    source="Roy, Wang and Tewari 2024, Table 2 and Appendix A",
    published=(
        "At K = 2 the mean F-score of ten chains grows with epsilon: 0.025, 0.15 and 1.00 from 3 "
        "on for the strong signal; 0, 0.05, 0.15, 0.40, 1.00 for the weak one. A larger K is "
        "worse, since it adds noise. K = 0.5 shrinks too much for the strong signal, but suits "
        "the weak one, where it does as well as without privacy from epsilon 3 on. Chains were "
        "judged to have mixed by visual inspection; the target distribution was considered "
        "infeasible to compute."
    ),
    caption=(
        "n = 900, p = 2000, s = 4 and all other settings are as published: the bound (r + K)^2 on "
        "the sensitivity, add-remove neighbours and the l1 ball. The paper does not print r. Here "
        "r is the largest response of the table, which agrees better with the published figures "
        "than the largest response that the model allows, though a release could not know it. "
        "There are ten tables, with ten chains of 50 p steps from uniform starts on each and forty "
        "exact draws at the same weights, fewer in the hardest cells. If a draw did not finish "
        "within 60 seconds, the cell says so. Below: the total variation distance between chains "
        "and exact draws in the number of true variables, which is never larger than that of the "
        "supports themselves; in brackets the value that would be exceeded in one of twenty runs "
        "if the chains had the target distribution. Chains whose state has not changed for a while "
        "look as if they had mixed, and they agree with the exact draws here. But hundreds of "
        "chains can show only distances of some hundredths or more, and Lemma 4 multiplies the "
        "distance by 1 + exp(epsilon). Counting shows more: with a probability that no table can "
        "reduce, some missing variable is never proposed in a walk of 50 p steps. *Our defaults* "
        "know neither the scale of y (bounds of 5) nor K, and have an intercept and replace-one "
        "neighbours. Where they fail at epsilon 3, the released response range was inaccurate, "
        "since 900 rows are few for its deciles."
    ),
    trials=trials,
    measure=measure,
    draw=draw,
    claims=(
        Claim("F is about 1 at K = 2, strong signal, epsilon at least 3.", claims.finds),
        Claim("F-scores at K = 2 are about those printed.", claims.as_printed),
        Claim("F grows with epsilon.", claims.grows),
        Claim("The strong signal does better, at K of 2 and more.", claims.stronger),
        Claim("A larger K is worse, at K of 2 and more.", claims.larger_K),
        Claim(
            "At epsilon 3 and 5, K = 0.5 is worse than K = 2 for the strong signal.",
            claims.small_K_strong,
        ),
        Claim(
            "For the weak signal K = 0.5 is best, and good from epsilon 3 on.", claims.small_K_weak
        ),
        Claim(
            "Ours: after 50 p steps the chain's overlaps with the truth are those of its law.",
            claims.near,
        ),
        Claim("Ours: so are its scores.", claims.scores_near),
        Claim(
            "Ours: after p steps it is far from its law wherever that is at the truth.", claims.far
        ),
        Claim(
            "Ours: at epsilon 10, K = 2, strong signal, 50 p steps leave Lemma 4 a delta above "
            "0.05.",
            claims.by_counting,
        ),
        Claim(
            "Ours: permute-and-flip scores no worse than the exponential mechanism.", claims.flips
        ),
        Claim(
            "Ours: at epsilon 1 our defaults find more than the chain does at any K.", claims.at_one
        ),
        Claim(
            "Ours: exact draws end in a minute, but for the weak signal with K above 2 and "
            "epsilon above 3.",
            claims.ended,
        ),
    ),
    full="about 30 minutes on 2 cores",
    size=(12.0, 9.0),
)

if __name__ == "__main__":
    raise SystemExit(command(EXPERIMENT))
