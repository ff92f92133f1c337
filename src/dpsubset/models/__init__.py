"""Models fitted to selected variables: noisy moments, objective perturbation, intervals.

Private values are arguments of `entries`, `minimise`, and what draws: `noisy_moments`,
`objective_perturbation`, `gaussian_ols` and `run_score`. `solve` and `intervals` compute with
released numbers alone. `rule` and `smooth` are public.
"""
