"""Models fitted to selected variables: noisy moments, objective perturbation, intervals."""
