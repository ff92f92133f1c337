"""Errors, validation, rounding, text and numeric kernels: what every other folder may use."""
