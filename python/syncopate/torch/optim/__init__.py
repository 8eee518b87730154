"""Optimizers that exchange without DDP: averaged gradients, divided work and state, and rules of the library."""
