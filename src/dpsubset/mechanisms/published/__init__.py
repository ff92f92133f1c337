"""Mechanisms from the literature, for comparison and to reproduce published results."""
