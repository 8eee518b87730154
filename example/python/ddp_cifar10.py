"""DistributedDataParallel on CIFAR-10's binary format, under torchrun: each rank reads its share of every epoch."""

import argparse
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import syncopate.torch  # noqa: F401 (it registers the backend)

PIXELS = 3 * 32 * 32


def images_in(files):
    """(image, label) of files whose records are one byte of label and 3072 of pixels, colour by colour."""
    records = numpy.concatenate([numpy.fromfile(file, numpy.uint8).reshape(-1, 1 + PIXELS) for file in files])
    pixels = torch.from_numpy(records[:, 1:].astype(numpy.float32)).view(-1, 3, 32, 32)
    return TensorDataset(pixels / 127.5 - 1, torch.from_numpy(records[:, 0].astype(numpy.int64)))


def network():
    """Three convolutions with normalisation."""
    torch.manual_seed(0)
    layers = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 4 * 4, 10))


def accuracy_of(net, samples):
    """The fraction of samples that this network classifies correctly."""
    net.eval()
    with torch.no_grad():
        right = sum((net(images).argmax(1) == labels).sum().item() for images, labels in DataLoader(samples, 256))
    net.train()
    return right / len(samples)


def main():
    """Train for some epochs, and print the result of each."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--data", type=Path, required=True, help="folder with data_batch_*.bin and test_batch.bin")
    arguments.add_argument("--backend", default="syncopate")
    arguments.add_argument("--epochs", type=int, default=2)
    arguments.add_argument("--batch", type=int, default=32, help="samples of each rank")
    given = arguments.parse_args()

    dist.init_process_group(given.backend)
    training, held_out = images_in(sorted(given.data.glob("data_batch_*.bin"))), images_in([given.data / "test_batch.bin"])
    sampler = DistributedSampler(training)
    net = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(given.epochs):
        sampler.set_epoch(epoch)
        losses = []
        for images, labels in DataLoader(training, given.batch, sampler=sampler):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if dist.get_rank() == 0:
            mean = sum(losses) / len(losses)
            print(f"epoch {epoch + 1}: loss {mean:.3f}, accuracy {accuracy_of(net.module, held_out):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
