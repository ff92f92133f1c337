"""Estimates: noisy means and vectors, released as numbers. No support is searched for."""
