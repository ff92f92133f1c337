"""Certified lower bounds on the scores of a region: the bound oracles and their kernels.

Bounds are deterministic functions of the table and private.
"""
