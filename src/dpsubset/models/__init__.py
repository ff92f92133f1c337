"""What is made of a released support: noisy moments, and a model from them alone."""
