"""Code that several mechanisms share."""
