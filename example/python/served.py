"""Training with a parameter server: `syncopate run -n 4 --servers 2 -- python served.py` starts workers and servers."""

import argparse
import os

import torch
from ddp import network, samples_of
from torch import nn

import syncopate.torch


def main():
    """Train, and print worker 0's result."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--consistency", default="ssp:3")
    arguments.add_argument("--codec", default="none")
    arguments.add_argument("--checkpoint", help="file; training continues from it if it exists")
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--batch", type=int, default=32, help="samples of each worker")
    given = arguments.parse_args()

    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.5)
    optimizer = syncopate.torch.ServedOptimizer(optimizer, net, consistency=given.consistency, codec=given.codec)
    worker = optimizer.worker.worker
    if given.checkpoint and os.path.exists(given.checkpoint):
        optimizer.load_state_dict(torch.load(given.checkpoint))
    images, labels = samples_of(worker, given.steps * given.batch)
    for step in range(given.steps):
        share = slice(step * given.batch, (step + 1) * given.batch)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images[share]), labels[share])  # layers wait for their weights
        loss.backward()  # updates are sent while it runs
        optimizer.step()
    if given.checkpoint:
        state = optimizer.state_dict()  # every worker calls it
        if worker == 0:
            torch.save(state, given.checkpoint)
    optimizer.finish()
    if worker == 0:
        print(f"{optimizer.worker.workers} workers, {given.consistency}: loss {loss.item():.3f} after {given.steps} steps")


if __name__ == "__main__":
    main()
