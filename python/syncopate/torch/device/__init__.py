"""Accelerators: copies to the CPU and back in streams of their own, and the gradients and weights that take this way."""
