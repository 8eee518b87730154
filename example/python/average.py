"""Averages a vector over all ranks of a job: the smallest program that uses Syncopate from Python."""

import numpy

import syncopate

# Rank and size come from `syncopate run`, torchrun, Slurm or mpirun; alone, the group has one rank.
with syncopate.Group.join() as group:
    gradient = numpy.full(1 << 20, group.rank, numpy.float32)
    group.allreduce(gradient, op="average", name="gradient")
    print(f"rank {group.rank} of {group.size}: average {gradient[0]:g}")
