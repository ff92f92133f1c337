"""What is claimed of the chain's F-scores, and how far it is from the law it tends to."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from .experiment import Lines, Verdict
from .figures import mean, values, where
from .roy import (
    EPSILONS,
    HARD,
    LENGTH,
    RADII,
    SIGNALS,
    P,
    S,
    by_chance,
    not_there,
    total_variation,
)

EXACT, CHAIN, FLIP, DEFAULTS = "exponential", "metropolis", "permute-and-flip", "our defaults"
WIDER = "exponential, r of the model"
#: Chains on a table.
CHAINS = 10
#: Mean F-scores of their Table 2, at K = 2.
PRINTED = {
    "strong": (0.025, 0.15, 1.00, 1.00, 1.00),
    "weak": (0.00, 0.05, 0.15, 0.40, 1.00),
}
#: Columns: how many supports have so many of the true variables.
COUNTS = [f"found_{shared}" for shared in range(S + 1)]


def compared(lines: Lines, steps: int = LENGTH, **cell: Any) -> tuple[float, float, float] | None:
    """Distance of the overlaps, and what chance makes of it in 1 of 20 and 1 of 1000 runs."""
    law = {line["seed"]: line for line in where(lines, method=EXACT, ended=True, **cell)}
    walks = {line["seed"]: line for line in where(lines, method=CHAIN, steps=steps, **cell)}
    both = sorted(law.keys() & walks.keys())
    # A few draws in all would only say that they are few.
    if sum(law[seed]["draws"] for seed in both) < 5:
        return None
    ours, theirs = (
        [[line[seed][name] for name in COUNTS] for seed in both] for line in (walks, law)
    )
    apart = total_variation(np.sum(ours, axis=0), np.sum(theirs, axis=0))
    return apart, by_chance(ours, theirs, 0.95), by_chance(ours, theirs, 0.999)


def cells(lines: Lines, method: str = CHAIN) -> list[dict[str, Any]]:
    """The cells that a method was run in."""
    return [
        {"signal": signal, "K": K, "epsilon": epsilon}
        for signal, K, epsilon in itertools.product(SIGNALS, RADII, EPSILONS)
        if where(lines, method=method, signal=signal, K=K, epsilon=epsilon)
    ]


def _F(lines: Lines, method: str = CHAIN, **cell: Any) -> float:
    steps = {"steps": LENGTH} if method == CHAIN else {}
    return mean(lines, "F", method=method, **steps, **cell)


def _slack(lines: Lines) -> float:
    """Two and a half standard errors of a difference of F-scores, with a deviation of 0.3."""
    tables = len(values(where(lines, method=CHAIN), "seed"))
    return 2.5 * 0.3 / math.sqrt(CHAINS * tables)


def finds(lines: Lines) -> Verdict:
    """Strong signal, K = 2, epsilon at least 3."""
    found = {
        epsilon: _F(lines, signal="strong", K=2.0, epsilon=epsilon) for epsilon in EPSILONS[2:]
    }
    holds = found[3.0] >= 0.9 and min(found[5.0], found[10.0]) >= 0.99
    law, wider = (
        _F(lines, method, signal="strong", K=2.0, epsilon=3.0) for method in (EXACT, WIDER)
    )
    text = "F " + ", ".join(f"{F:.2f} at {epsilon:g}" for epsilon, F in found.items())
    return Verdict(holds, f"{text}; of the law at 3 {law:.2f}, with the r of the model {wider:.2f}")


def as_printed(lines: Lines) -> Verdict:
    """The chain's mean F against the printed one, K = 2."""
    gaps = [
        (abs(_F(lines, signal=signal, K=2.0, epsilon=epsilon) - printed), signal, epsilon)
        for signal in SIGNALS
        for epsilon, printed in zip(EPSILONS, PRINTED[signal], strict=True)
    ]
    worst, signal, epsilon = max(gaps)
    return Verdict(worst <= 0.3, f"largest difference {worst:.2f} ({signal}, epsilon {epsilon:g})")


def grows(lines: Lines) -> Verdict:
    """F against epsilon, for every K and signal."""
    falls, rises = [], []
    for signal, K in itertools.product(SIGNALS, RADII):
        here = [cell for cell in cells(lines) if (cell["signal"], cell["K"]) == (signal, K)]
        found = [_F(lines, **cell) for cell in here]
        falls += [a - b for a, b in itertools.pairwise(found)]
        # A quick run has the small epsilons alone where K is large.
        rises += [found[-1] - found[0]] if here and here[-1]["epsilon"] == EPSILONS[-1] else []
    worst = max(0.0, *falls)
    holds = worst <= _slack(lines) and min(rises) > 0
    return Verdict(holds, f"largest fall between neighbours {worst:.2f}, least rise up to "
                          f"epsilon 10 {min(rises):.2f}")  # fmt: skip


def stronger(lines: Lines) -> Verdict:
    """Strong against weak, K at least 2."""
    gaps = [
        _F(lines, **cell) - _F(lines, **{**cell, "signal": "weak"})
        for cell in cells(lines)
        if cell["signal"] == "strong" and cell["K"] >= 2
    ]
    holds = min(gaps) >= -_slack(lines) and max(gaps) > 0.3
    return Verdict(holds, f"strong less weak {min(gaps):.2f} to {max(gaps):.2f}")


def larger_K(lines: Lines) -> Verdict:
    """K = 3.5 against K = 2, at epsilon 3 and 5 together, for each signal."""
    pairs = [
        tuple(
            float(np.mean([_F(lines, signal=signal, K=K, epsilon=epsilon) for epsilon in (3, 5)]))
            for K in (2.0, 3.5)
        )
        for signal in SIGNALS
    ]
    return Verdict(all(b < a for a, b in pairs), ", ".join(f"{a:.2f} > {b:.2f}" for a, b in pairs))


def small_K_strong(lines: Lines) -> Verdict:
    """K = 0.5 against K = 2, strong, epsilon 3 and 5."""
    a, b = (
        float(np.mean([_F(lines, signal="strong", K=K, epsilon=epsilon) for epsilon in (3, 5)]))
        for K in (0.5, 2.0)
    )
    return Verdict(a < b, f"mean F {a:.2f} against {b:.2f}")


def small_K_weak(lines: Lines) -> Verdict:
    """K = 0.5 against the others, weak; and at epsilon 3 and more."""
    gaps = [
        _F(lines, signal="weak", K=0.5, epsilon=cell["epsilon"]) - _F(lines, **cell)
        for cell in cells(lines)
        if cell["signal"] == "weak" and cell["K"] > 0.5
        if {**cell, "K": 0.5} in cells(lines)
    ]
    good = min(_F(lines, signal="weak", K=0.5, epsilon=epsilon) for epsilon in EPSILONS[2:])
    holds = min(gaps) >= -_slack(lines) and good >= 0.9
    return Verdict(holds, f"F higher than at other K by {min(gaps):.2f} to {max(gaps):.2f}, at "
                          f"least {good:.2f} from epsilon 3 on")  # fmt: skip


def near(lines: Lines) -> Verdict:
    """Overlaps of chains after 50 p steps and of exact draws, in every cell."""
    found = [result for cell in cells(lines) if (result := compared(lines, **cell)) is not None]
    beyond = sum(apart > rare for apart, _, rare in found)
    return Verdict(
        beyond <= 1,
        f"total variation at most {max(apart for apart, *_ in found):.2f} in {len(found)} cells; "
        f"in {beyond} of them more than chance makes in 1 of 1000",
    )


def scores_near(lines: Lines) -> Verdict:
    """Means of the exponents, in standard errors of their difference."""
    errors = []
    for cell in cells(lines, EXACT):
        law = {line["seed"]: line for line in where(lines, method=EXACT, ended=True, **cell)}
        walks = {line["seed"]: line for line in where(lines, method=CHAIN, steps=LENGTH, **cell)}
        both = [seed for seed in law.keys() & walks.keys() if law[seed]["draws"] > 1]
        gap = sum(walks[seed]["exponent"] - law[seed]["exponent"] for seed in both)
        variance = sum(
            line[seed]["exponent_sd"] ** 2 / line[seed]["draws"]
            for line in (law, walks)
            for seed in both
        )
        if variance:
            errors.append(abs(gap) / math.sqrt(variance))
    return Verdict(max(errors) < 4.5, f"at most {max(errors):.1f} standard errors apart in "
                                      f"{len(errors)} cells")  # fmt: skip


def far(lines: Lines) -> Verdict:
    """After p steps, where nearly all of the law is at the true support."""
    found = []
    for cell in cells(lines, EXACT):
        law = where(lines, method=EXACT, ended=True, **cell)
        if law and sum(line["found_4"] for line in law) >= 0.95 * sum(
            line["draws"] for line in law
        ):
            found.append([compared(lines, steps, **cell) for steps in (P, 10 * P)])
    early, later = (
        [each[0] for each in column if each is not None] for column in zip(*found, strict=True)
    )
    return Verdict(
        min(early) >= 0.5,
        f"{min(early):.2f} to {max(early):.2f} after p steps in {len(early)} cells, "
        f"{min(later):.2f} to {max(later):.2f} after 10 p",
    )


def by_counting(lines: Lines) -> Verdict:
    """What is certain of the distance at epsilon = 10, and the delta that goes with it."""
    here = where(lines, method=EXACT, ended=True, signal="strong", K=2.0, epsilon=10.0)
    others = max(line["swaps"] for line in here)
    least = not_there(LENGTH) - 2 * others
    delta = least * (1 + math.exp(10))
    return Verdict(
        delta > 0.05,
        f"a walk is elsewhere with a probability of at least {not_there(LENGTH):.1e}, a draw of "
        f"the law with about {others:.0e}; delta at least {delta:.2f}",
    )


def flips(lines: Lines) -> Verdict:
    """Mean exponents of permute-and-flip less those of exact draws, over cells and tables."""
    gaps = []
    for line in where(lines, method=FLIP, ended=True):
        cell = {name: line[name] for name in ("signal", "K", "epsilon", "seed")}
        gaps += [line["exponent"] - each["exponent"]
                 for each in where(lines, method=EXACT, ended=True, **cell)]  # fmt: skip
    error = float(np.std(gaps, ddof=1)) / math.sqrt(len(gaps))
    gap = float(np.mean(gaps))
    return Verdict(gap < 3 * error + 0.1, f"mean exponent higher by {gap:.2f}, standard error "
                                    f"{error:.2f}, {len(gaps)} pairs")  # fmt: skip


def at_one(lines: Lines) -> Verdict:
    """Our defaults against the best K, for both signals, at epsilon 1."""
    pairs = [
        (
            mean(lines, "F", method=DEFAULTS, signal=signal, epsilon=1.0),
            max(
                _F(lines, **cell)
                for cell in cells(lines)
                if (cell["signal"], cell["epsilon"]) == (signal, 1.0)
            ),
        )
        for signal in SIGNALS
    ]
    text = ", ".join(f"{a:.2f} against {b:.2f} ({signal})" for (a, b), signal in
                     zip(pairs, SIGNALS, strict=True))  # fmt: skip
    return Verdict(sum(a - b for a, b in pairs) > 0, text)


def ended(lines: Lines) -> Verdict:
    """Exact draws in all cells but the hard ones."""
    tried = where(lines, method=EXACT)
    hard = [line for line in tried if (line["signal"], line["K"], line["epsilon"]) in HARD]
    easy = [line for line in tried if line not in hard]
    missed = sum(not line["ended"] for line in easy)
    each = [line["seconds"] / line["draws"] for line in easy if line["ended"]]
    done = sum(bool(line["ended"]) for line in hard)
    more = f"; weak, K above 2, epsilon above 3: one draw ended in {done} of {len(hard)} tries"
    return Verdict(
        missed <= len(easy) / 50,
        f"{len(easy) - missed} of {len(easy)} ended, {np.median(each):.2f} s a draw (median), "
        f"at most {max(each):.1f} s" + (more if hard else ""),
    )
