"""Costs, guarantees and composition; noise, private quantiles and the randomness they draw.

Private values (a histogram, counts, sums) are arguments of what draws: `quantiles`, `noisy_counts`,
`noise` and `sup_norm`. The other modules compute with public facts alone.
"""
