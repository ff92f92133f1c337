"""What is minimised over a support: the problem, its losses, and the sensitivity of its scores."""
