"""A program ported from Horovod; comments show the original lines. It runs under `syncopate run` or torchrun."""

import argparse

import torch
from ddp import network, samples_of
from torch import nn

import syncopate
import syncopate.torch


def main():
    """Train, and print rank 0's result."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--batch", type=int, default=32, help="samples of each rank")
    given = arguments.parse_args()

    group = syncopate.Group.join()  # hvd.init()
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    # hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    # optimizer = hvd.DistributedOptimizer(optimizer, net.named_parameters(), compression=hvd.Compression.fp16)
    optimizer = syncopate.torch.DistributedOptimizer(optimizer, net, group=group, codec="fp16")
    images, labels = samples_of(group.rank, given.steps * given.batch)  # hvd.rank()
    for step in range(given.steps):
        share = slice(step * given.batch, (step + 1) * given.batch)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images[share]), labels[share])
        loss.backward()
        optimizer.synchronize()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()  # with optimizer.skip_synchronize(): optimizer.step()
    mean = loss.detach().clone()
    group.allreduce(mean, op="average")  # hvd.allreduce(loss)
    if group.rank == 0:
        print(f"{group.size} ranks, fp16: loss {mean.item():.3f} after {given.steps} steps")  # hvd.size()


if __name__ == "__main__":
    main()
