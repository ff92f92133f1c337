"""The objective minimised over a support: problem, losses, and the sensitivity of scores."""
