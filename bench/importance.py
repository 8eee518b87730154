#!/usr/bin/env python3
"""Prints how the importance |v / w| of Cheng and Xu is distributed in the layers of a small network, epoch by epoch.

One process trains two convolutions with batch normalisation and two linear layers on Fashion-MNIST. v is the gradient
accumulated with momentum, u = 0.9 u + g and v = v + u, since its element was last above the threshold that ALPHA gives
(equations 2 and 3; the one worker selects). A row "bins" has the share of a layer's elements in each quarter of a
decade of the importance (zero is in the first), and a row "spread" its variance and mean, and the share of its elements
that the last step sent: figures 2 to 4 of the paper.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent / "contender"))

import pytorch

BATCH, RATE, MOMENTUM, EPS = 128, 0.05, 0.9, 1e-3
BINS = [quarter / 4 for quarter in range(-20, 21)]  # decimal logarithms of the lower limits


def network():
    return nn.Sequential(nn.Conv2d(3, 16, 5), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 5), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))


NAMES = {"0.weight": "conv1", "1.weight": "norm1", "4.weight": "conv2", "5.weight": "norm2", "9.weight": "fc1", "11.weight": "fc2"}


class Layer:
    """A parameter, and what of its gradients is not applied yet."""

    def __init__(self, name, parameter):
        self.name, self.weight = name, parameter
        self.velocity, self.waiting = torch.zeros_like(parameter), torch.zeros_like(parameter)
        self.density = 0  # share of its elements that the last step sent

    def importance(self):
        return (self.waiting.abs() / (self.weight.detach().abs() + EPS)).flatten()

    def step(self, alpha):
        self.velocity.mul_(MOMENTUM).add_(self.weight.grad)
        self.waiting.add_(self.velocity)
        sent = (self.importance() > alpha).view_as(self.waiting)
        with torch.no_grad():
            self.weight.sub_(RATE * self.waiting * sent)
        self.velocity.mul_(~sent)
        self.waiting.mul_(~sent)
        self.density = sent.float().mean().item()

    def rows(self, epoch):
        values = self.importance()
        mean, variance = values.mean().item(), values.var(unbiased=False).item()
        yield {"event": "spread", "layer": self.name, "epoch": epoch, "mean": mean, "variance": variance, "spread": variance / mean,
               "density": self.density}
        bins = torch.bucketize(values.log10().clamp(BINS[0], BINS[-1]), torch.tensor(BINS), right=True) - 1
        counts = torch.bincount(bins, minlength=len(BINS)).tolist()
        for lower, count in zip(BINS, counts):
            if count:
                yield {"event": "bins", "layer": self.name, "epoch": epoch, "importance": 10**lower, "share": count / len(values)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=pytorch.PACKAGED, help="folder with the four files of Fashion-MNIST")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--alpha", type=float, default=3, help="threshold of the importance; 0 sends every element")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(given.seed)
    images, net = pytorch.Pictures(given.data, "train"), network()
    layers = [Layer(NAMES.get(name, name), parameter) for name, parameter in net.named_parameters()]
    for epoch in range(1, given.epochs + 1):
        for chosen in torch.tensor(pytorch.order_of(given.seed, epoch, len(images.labels))).split(BATCH):
            batch, wanted = images.batch(chosen)
            net.zero_grad()
            nn.functional.cross_entropy(net(batch), wanted).backward()
            for layer in layers:
                layer.step(given.alpha)
        for layer in layers:
            if layer.name in NAMES.values():
                for row in layer.rows(epoch):
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
