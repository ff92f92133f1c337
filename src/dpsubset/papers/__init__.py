"""What the papers need and a selection does not: chains, tracing attacks, minimax rates, means.

`means` and `sparse_regression` read a table and release, through `api.driver`; `peeling_steps`
draws for `means`. The other modules work on simulated data.
"""
