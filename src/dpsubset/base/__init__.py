"""Errors, validation, rounding, text and numeric kernels, which every other folder may import."""
