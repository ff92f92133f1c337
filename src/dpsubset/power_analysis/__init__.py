"""Power analysis: how likely a release names the true variables, estimated on simulated data."""
