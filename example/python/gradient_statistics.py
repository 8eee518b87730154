"""Statistics of the gradients of all layers: the ranks divide the layers, and every rank gets all rows (`torchrun`, `syncopate run`)."""

import argparse

import torch
from ddp import network, samples_of
from torch import nn

import syncopate
import syncopate.torch

COLUMNS = ("mean", "deviation", "largest", "zeros")


def statistics(gradient):
    """One row: mean, standard deviation, largest absolute value and share of zeros."""
    values = gradient.double()
    return values.mean(), values.std(correction=0), values.abs().max(), (values == 0).double().mean()


def main():
    """Train for some steps, and print the table of the last one."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--steps", type=int, default=5)
    given = arguments.parse_args()

    net = network()
    with syncopate.Group.join() as group:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        averaged = syncopate.torch.DistributedOptimizer(optimizer, net, group=group)
        layers = list(net.named_parameters())
        work = syncopate.SharedWork(group, [layer.numel() for _, layer in layers], len(COLUMNS), name="statistics")
        images, labels = samples_of(group.rank, 32 * given.steps)
        for step in range(given.steps):
            averaged.zero_grad()
            share = slice(32 * step, 32 * (step + 1))
            nn.functional.cross_entropy(net(images[share]), labels[share]).backward()
            rows = torch.from_dlpack(work.run(lambda layer: statistics(layers[layer][1].grad)))  # of averaged gradients
            averaged.step()
        if group.rank == group.size - 1:  # as every rank could
            computed_by = {layer: rank for rank in range(group.size) for layer in work.tensors(rank)}
            for i, row in enumerate(rows.tolist()):
                print(layers[i][0], f"rank {computed_by[i]}", *map("{} {:.4g}".format, COLUMNS, row), sep="  ")
        averaged.close()


if __name__ == "__main__":
    main()
