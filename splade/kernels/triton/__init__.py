"""The vocabulary head's kernels in Triton; importing one needs Triton, and `splade.kernels` chooses when."""
