"""What several mechanisms share."""
