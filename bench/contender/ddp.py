#!/usr/bin/env python3
"""One rank of a training with DistributedDataParallel over Gloo, for `scripts/convergence --peers`.

Model, initial values, batches, learning rates and optimizer are those of `syncopate train` with the same options and
seed; so are the rows that it prints. The bytes of a step are those that left the interface SYNCOPATE_INTERFACE.
"""

import argparse
import gzip
import itertools
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

PACKAGED = "/usr/share/datasets/fashion-mnist"
MODELS = {"lenet": {"lr": 0.05, "warmup": 100}, "mlp": {"lr": 0.01, "warmup": 20}}  # the trainer's defaults
CODECS = ("ddp", "ddp_fp16", "ddp_powersgd_1", "ddp_powersgd_4")
GOLDEN, BITS = 0x9E3779B97F4A7C15, 2**64 - 1
WEIGHT_DRAWS, ORDER_DRAWS = 0x77656967687473, 0x6F72646572  # "weights", "order"


def mixed(x):
    """The finaliser of splitmix64, of an integer or of an array of uint64."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & BITS
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & BITS
    return x ^ (x >> 31)


def drawn(key, first, count):
    """The draws `first`, `first` + 1, … of a key."""
    return mixed(numpy.uint64(key) + numpy.arange(first, first + count, dtype=numpy.uint64) * numpy.uint64(GOLDEN))


class Weights:
    """Initial values: uniform, from one stream for all layers in their order."""

    def __init__(self, seed):
        self.key, self.next = 0, 2
        for part in (seed, WEIGHT_DRAWS):
            self.key = mixed((self.key ^ mixed(part + GOLDEN & BITS)) + GOLDEN & BITS)

    def fill(self, layer, deviation):
        """Draw a layer's weights with this standard deviation; its bias is zero."""
        count = layer.weight.numel()
        unit = (drawn(self.key, self.next, count) >> numpy.uint64(40)).astype(numpy.float32) * numpy.float32(2**-24)
        self.next += count
        values = (2 * unit - 1) * numpy.float32(deviation * math.sqrt(3))
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(values).view_as(layer.weight))
            layer.bias.zero_()
        return layer

    def convolution(self, channels, out, kernel):
        return self.fill(nn.Conv2d(channels, out, kernel), math.sqrt(2 / (kernel * kernel * channels)))

    def linear(self, width, out, gain):
        return self.fill(nn.Linear(width, out), gain / math.sqrt(width))


def model_of(given):
    """The trainer's models for three planes of 28 x 28 pixels and ten classes."""
    weights, before_relu = Weights(given.seed), math.sqrt(2)
    if given.model == "lenet":
        return nn.Sequential(weights.convolution(3, 16, 5), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                             weights.convolution(16, 32, 5), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
                             weights.linear(32 * 4 * 4, 256, before_relu), nn.ReLU(inplace=True), weights.linear(256, 10, 1))
    sizes = (3 * 28 * 28, given.width, given.width, given.width)
    hidden = [layer for a, b in itertools.pairwise(sizes) for layer in (weights.linear(a, b, before_relu), nn.ReLU(inplace=True))]
    return nn.Sequential(nn.Flatten(), *hidden, weights.linear(given.width, 10, 1))


def array_of(folder, name, head):
    """The values of an idx file, plain or gzipped, after a head of this length."""
    plain = Path(folder) / name
    content = plain.read_bytes() if plain.exists() else gzip.decompress(plain.with_name(name + ".gz").read_bytes())
    return torch.frombuffer(bytearray(content[head:]), dtype=torch.uint8)


class Pictures:
    """One part of the data set; pictures are normalised by the moments of the training part."""

    def __init__(self, folder, part, moments=None):
        self.pixels = array_of(folder, f"{part}-images-idx3-ubyte", 16).view(-1, 1, 28, 28)
        self.labels = array_of(folder, f"{part}-labels-idx1-ubyte", 8).long()
        counts = torch.bincount(self.pixels.flatten(), minlength=256).double()
        values = torch.arange(256, dtype=torch.float64)
        mean = (counts * values).sum() / counts.sum()
        own = mean, ((counts * (values - mean) ** 2).sum() / counts.sum()).sqrt()
        self.moments = moments or own

    def batch(self, chosen):
        mean, deviation = (moment.float() for moment in self.moments)
        return ((self.pixels[chosen].float() - mean) / deviation).expand(-1, 3, -1, -1), self.labels[chosen]


def order_of(seed, epoch, samples):
    """The order of an epoch: a Fisher-Yates shuffle with the draws of (seed, epoch)."""
    key = 0
    for part in (seed, ORDER_DRAWS, epoch):
        key = mixed((key + GOLDEN & BITS) ^ mixed(part + GOLDEN & BITS))
    limits = numpy.arange(samples + 1, dtype=numpy.uint64)
    places = ((drawn(key, 1, samples + 1) >> numpy.uint64(32)) * limits >> numpy.uint64(32)).tolist()
    order = list(range(samples))
    for i in range(samples, 1, -1):
        order[i - 1], order[places[i]] = order[places[i]], order[i - 1]
    return order


def shares(given, rank, size, samples):
    """This rank's samples of each step; the last step of an epoch has the rest."""
    epoch = 0
    while True:
        order = order_of(given.seed, epoch, samples)
        for begin in range(0, samples, given.global_batch):
            whole = order[begin:begin + given.global_batch]
            yield whole[rank * len(whole) // size:(rank + 1) * len(whole) // size]
        epoch += 1


def rate_of(given, step):
    """The learning rate of a step, counted from 0: a linear warm-up, then a tenth after each milestone."""
    return given.lr * min(1, (step + 1) / given.warmup) * 0.1 ** sum(milestone <= step for milestone in given.milestones)


def with_codec(net, given):
    """DDP with its own all-reduce or a hook. PowerSGD starts collectives in callbacks: with several buckets ranks disagree on
    their order, so it has one.
    """
    if not given.codec.startswith("ddp_powersgd"):
        ddp = DistributedDataParallel(net)
        if given.codec == "ddp_fp16":
            ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
        return ddp
    ddp = DistributedDataParallel(net, bucket_cap_mb=1024)
    state = powerSGD_hook.PowerSGDState(None, int(given.codec.rpartition("_")[2]), max(2, given.warmup_steps),
                                        random_seed=given.seed)
    ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return ddp


def sent_bytes():
    """Bytes that left this rank's interface, with all headers; None where the ranks share it or it has no counters."""
    name = os.environ.get("SYNCOPATE_INTERFACE", "lo")
    lines = [line.split(":") for line in Path("/proc/net/dev").read_text().splitlines() if ":" in line]
    found = [int(counters.split()[8]) for interface, counters in lines if interface.strip() == name and name != "lo"]
    return found[0] if found else None


def evaluate(net, test, rank, size):
    """Accuracy and loss on all held-out pictures; every rank evaluates its share."""
    sums = torch.zeros(3, dtype=torch.float64)
    mine = torch.arange(rank * len(test.labels) // size, (rank + 1) * len(test.labels) // size)
    with torch.no_grad():
        for chosen in mine.split(64):
            batch, wanted = test.batch(chosen)
            logits = net(batch)
            sums += torch.tensor([len(chosen) * nn.functional.cross_entropy(logits, wanted).item(),
                                  (logits.argmax(1) == wanted).sum().item(), len(chosen)])
    dist.all_reduce(sums)
    return {"accuracy": (sums[1] / sums[2]).item(), "loss": (sums[0] / sums[2]).item()}


def say(**row):
    """Print a row in one write."""
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def arguments():
    """The options of `syncopate train` that the setups of `scripts/convergence` have."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meeting", required=True, help="a file that all ranks reach and that does not exist yet")
    parser.add_argument("--codec", required=True, choices=CODECS)
    parser.add_argument("--warmup-steps", type=int, default=0, help="PowerSGD: start_powerSGD_iter, at least 2")
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--width", type=int, default=2048, help="mlp: width of the hidden layers")
    parser.add_argument("--data", required=True, help="fashion-mnist, or a folder with its four files")
    parser.add_argument("--global-batch", type=int, required=True)
    parser.add_argument("--lr", type=float, help="default: the model's")
    parser.add_argument("--warmup", type=int, help="default: the model's")
    parser.add_argument("--milestones", type=int, nargs="*", default=[])
    parser.add_argument("--dense-below", type=int, help="no effect: PowerSGD has its own bound, min_compression_rate")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--evaluate-every", type=int, default=0)
    parser.add_argument("--report-every", type=int, help="no effect: rows of steps are not printed")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name, value in MODELS[given.model].items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    if given.data == "fashion-mnist" and not Path(given.data).exists():
        given.data = PACKAGED
    return given


def summary(steps, values):
    """Median, least and most of all steps but the first three, as the trainer's rows have them."""
    rest = values[3:] if steps > 5 else values
    return {"median": statistics.median(rest), "min": min(rest), "max": max(rest)}


def train(given, rank, size):
    """Train, and print the rows."""
    training = Pictures(given.data, "train")
    test = Pictures(given.data, "t10k", training.moments)
    net = model_of(given)
    ddp = with_codec(net, given)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=given.lr, momentum=0.9, weight_decay=1e-4)
    if rank == 0:
        say(event="begin", gradient_bytes=sum(4 * parameter.numel() for parameter in net.parameters()))
    mine, seconds, sent = shares(given, rank, size, len(training.labels)), [], []
    for step in range(given.steps):
        begin, before = time.perf_counter(), sent_bytes()
        for group in optimizer.param_groups:
            group["lr"] = rate_of(given, step)
        batch, wanted = training.batch(next(mine))
        optimizer.zero_grad()
        nn.functional.cross_entropy(ddp(batch), wanted).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
        if before is not None:
            sent.append(sent_bytes() - before)
        if given.evaluate_every and (step + 1) % given.evaluate_every == 0:
            found = evaluate(net, test, rank, size)
            if rank == 0:
                say(event="epoch", step=step + 1, **found)
    say(event="end", rank=rank, step_seconds=summary(given.steps, seconds),
        wire_bytes_per_step=int(summary(given.steps, sent)["median"]) if sent else None)


def main():
    """Join the other ranks, train, leave."""
    given = arguments()
    torch.set_num_threads(1)
    rank, size = int(os.environ["SYNCOPATE_RANK"]), int(os.environ["SYNCOPATE_SIZE"])
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ.get("SYNCOPATE_INTERFACE", "lo")
    dist.init_process_group("gloo", store=dist.FileStore(given.meeting, size), rank=rank, world_size=size)
    train(given, rank, size)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
