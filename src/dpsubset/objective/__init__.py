"""The objective minimised over a support: problem, losses, and the sensitivity of scores.

`problem` and `sensitivity` are public. Scorers (`losses`) hold private values and are
deterministic.
"""
