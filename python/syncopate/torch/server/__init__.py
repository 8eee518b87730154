"""Training with a parameter server: an optimizer whose steps servers make, and embeddings whose rows lie on servers."""
