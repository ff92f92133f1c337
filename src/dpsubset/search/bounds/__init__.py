"""Certified lower bounds on the scores of a region: the bound oracles and their kernels."""
