"""Explainers side by side on the same texts: the model's own exact sums, and what else people use."""
