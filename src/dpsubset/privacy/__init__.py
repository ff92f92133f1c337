"""What a release costs, and the noise that it costs it for."""
