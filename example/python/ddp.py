"""Training under torchrun: DistributedDataParallel on the backend syncopate. It also runs on "gloo", more slowly."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import syncopate.torch  # noqa: F401 (torch 2.14 and later find the installed package without this import)

CLASSES, SIDE = 10, 32


def samples_of(rank, count):
    """Generate this rank's own images of ten classes: a pattern per class, and noise."""
    patterns = torch.randn(CLASSES, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(rank + 1)
    labels = torch.randint(CLASSES, (count,), generator=generator)
    return patterns[labels] + torch.randn(count, 3, SIDE, SIDE, generator=generator), labels


def network():
    """A small convolutional network, equal on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Flatten(),
                         nn.Linear(32 * (SIDE // 4) ** 2, CLASSES))


def train(net, optimizer, given):
    """Train with given.steps batches of given.batch images of this rank; return the last batch's loss."""
    images, labels = samples_of(dist.get_rank(), given.steps * given.batch)
    for step in range(given.steps):
        share = slice(step * given.batch, (step + 1) * given.batch)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images[share]), labels[share])
        loss.backward()  # gradients are sent while it runs
        optimizer.step()
    return loss.detach()


def report(loss, steps, what):
    """Print the ranks' mean loss, once."""
    dist.all_reduce(loss, op=dist.ReduceOp.AVG)
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, {what}: loss {loss.item():.3f} after {steps} steps")


def main():
    """Train, and print rank 0's result."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--backend", default="syncopate")
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--batch", type=int, default=32, help="samples of each rank")
    given = arguments.parse_args()

    dist.init_process_group(given.backend)
    net = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    report(train(net, optimizer, given), given.steps, given.backend)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
