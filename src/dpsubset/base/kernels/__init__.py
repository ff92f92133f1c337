"""Building blocks of the float64 kernels; they depend on nothing but arrays and numbers.

Kernels are plain functions over flat arrays, compiled by numba and cached. They use no fast-math
and no threads, so that the order of operations is fixed and equal inputs give equal results.
"""
