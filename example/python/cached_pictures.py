"""Trains a small network on JPEG files with CachedDataset: files are read once, and decoded without the interpreter's lock."""

import argparse

import torch
from torch import nn

import syncopate.torch

arguments = argparse.ArgumentParser()
arguments.add_argument("--data", required=True, help="folder with CLASS/PICTURE.jpeg, or a tar file of it; the same for all ranks")
arguments.add_argument("--size", type=int, default=32, help="pixels of a picture, each way")
arguments.add_argument("--batch", type=int, default=16, help="pictures of each rank in a step")
arguments.add_argument("--epochs", type=int, default=3)
given = arguments.parse_args()

with syncopate.Group.join() as group:
    decode = syncopate.torch.PictureDecoder(given.size, augment=True)
    data = syncopate.torch.CachedDataset(given.data, decode, batch_size=given.batch, memory_bytes=1 << 30, group=group)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, len(data.source.classes)))
    optimizer = syncopate.torch.DistributedOptimizer(torch.optim.Adam(net.parameters(), lr=0.003), net, group=group)
    for epoch in range(given.epochs):
        total = 0.0
        for pictures, labels in data:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(pictures), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if group.rank == 0:
            print(f"epoch {epoch}: loss {total / len(data):.3f}", flush=True)
    data.close()
