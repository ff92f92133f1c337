"""Search over supports."""
