"""The papers' experiments, and ours: a module for each figure or table, a page with all of them.

``python -m experiments.NAME --quick`` runs one, ``make experiments`` all of them.
"""
