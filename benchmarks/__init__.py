"""The bars of the search engine, its growth curves and its memory: ``python -m benchmarks``."""
