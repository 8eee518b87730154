"""Data sets that ranks cache together, their sources, and the decoding of pictures."""
