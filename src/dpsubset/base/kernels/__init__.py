"""What the float64 kernels share. They hold no data, and know of nothing but arrays and numbers.

Kernels are plain functions over flat arrays, compiled by numba and cached. No fast-math, no
threads: the order of operations is fixed, so that the same input has the same answer.
"""
