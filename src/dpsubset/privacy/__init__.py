"""Costs, guarantees and composition; noise, private quantiles and the randomness they draw."""
