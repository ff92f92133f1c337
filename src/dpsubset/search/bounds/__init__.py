"""Certified lower bounds on the scores of a region: one bounder a kind of loss, and its kernels."""
