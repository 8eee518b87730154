#!/usr/bin/env python3
"""One rank of a training with PyTorch, for `syncopate bench step --contenders` and `scripts/convergence --peers`.

Model, initial values, samples, learning rates and optimizer are those of `syncopate train` with the same options and seed; so
are the rows that it prints. Passes include what the exchange waits for in them. The bytes of a step are those that left the
interface SYNCOPATE_INTERFACE.
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
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

PACKAGED = "/usr/share/datasets/fashion-mnist"
CLASSES = 10
VGG11 = (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M")
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
            if layer.bias is not None:
                layer.bias.zero_()
        return layer

    def convolution(self, channels, out, kernel):
        return self.fill(nn.Conv2d(channels, out, kernel), math.sqrt(2 / (kernel * kernel * channels)))

    def normalised_convolution(self, channels, out):
        layer = self.fill(nn.Conv2d(channels, out, 3, padding=1, bias=False), math.sqrt(2 / (9 * out)))
        return layer, nn.BatchNorm2d(out), nn.ReLU(inplace=True)

    def linear(self, width, out, gain=1.0):
        return self.fill(nn.Linear(width, out), gain / math.sqrt(width))

    def hidden(self, width, out):
        return self.linear(width, out, math.sqrt(2)), nn.ReLU(inplace=True)


def linear(weights, side, _):
    return nn.Flatten(), weights.linear(3 * side * side, CLASSES)


def mlp(weights, side, width):
    hidden = [weights.hidden(a, b) for a, b in itertools.pairwise((3 * side * side, width, width, width))]
    return nn.Flatten(), *itertools.chain(*hidden), weights.linear(width, CLASSES)


def lenet(weights, side, _):
    left = ((side - 4) // 2 - 4) // 2
    return (weights.convolution(3, 16, 5), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            weights.convolution(16, 32, 5), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
            *weights.hidden(32 * left * left, 256), weights.linear(256, CLASSES))


def vgg11(weights, _side, _width):
    layers, channels = [], 3
    for stage in VGG11:
        layers += [nn.MaxPool2d(2)] if stage == "M" else weights.normalised_convolution(channels, stage)
        channels = channels if stage == "M" else stage
    return *layers, nn.Flatten(), weights.linear(channels, CLASSES)


class Model(NamedTuple):
    """A model of `syncopate train`: its layers, and the trainer's defaults for it."""

    layers: Callable
    lr: float
    warmup: int


MODELS = {"linear": Model(linear, 0.01, 0), "mlp": Model(mlp, 0.01, 20), "lenet": Model(lenet, 0.05, 100), "vgg11": Model(vgg11, 0.02, 50)}


def model_of(name, seed, side, width=2048):
    """The model for three planes of side x side pixels and ten classes; `width` is that of the perceptron's hidden layers."""
    return nn.Sequential(*MODELS[name].layers(Weights(seed), side, width))


def library():
    """`syncopate.torch`, which only its own contenders need; it registers its backend."""
    import syncopate.torch
    return syncopate.torch


def ddp(model, given, hook=None):
    """DDP, with the (state, hook) that `hook` returns for it; and that state."""
    net = DistributedDataParallel(model, **given.buckets)
    if not hook:
        return net, None
    state, function = hook(net)
    net.register_comm_hook(state, function)
    return net, state


def ddp_powersgd(model, given):
    """PowerSGD of the rank in `low_rank:RANK`. It starts collectives in callbacks, on any thread: with several buckets ranks
    disagree on their order, so it has one.
    """
    rank = int(given.codec.removeprefix("low_rank:"))
    state = powerSGD_hook.PowerSGDState(None, rank, max(2, given.warmup_steps), random_seed=given.seed)
    given.buckets = {"bucket_cap_mb": 1024}
    return ddp(model, given, lambda _: (state, powerSGD_hook.powerSGD_hook))


def ddp_hook(model, given):
    return ddp(model, given, lambda net: (library().HookState(net, codec=given.codec), library().hook))


def own_ddp(model, given):
    net = library().DistributedDataParallel(model, codec=given.codec, **given.buckets)
    return net, net.hook_state


def sgd(net, given):
    return torch.optim.SGD(net.parameters(), lr=given.lr, momentum=0.9, weight_decay=1e-4, fused=True)  # one pass over memory, as the trainer


def zero_adamw(net, given):
    return ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=given.lr, fused=True)


def own_adamw(net, given):
    return library().ShardedOptimizer(net, "adamw", given.lr)


class Contender(NamedTuple):
    """How a model is distributed and what updates it; `distribute` returns the net and the state of its hook."""

    backend: str = "gloo"
    distribute: Callable = ddp
    optimizer: Callable = sgd


CONTENDERS = {
    "ddp-gloo": Contender(),
    "ddp-gloo-fp16": Contender(distribute=lambda model, given: ddp(model, given, lambda _: (None, default_hooks.fp16_compress_hook))),
    "ddp-gloo-powersgd": Contender(distribute=ddp_powersgd),
    "ddp-syncopate": Contender("syncopate"),
    "ddp-syncopate-hook": Contender("syncopate", ddp_hook),
    "syncopate-ddp": Contender("syncopate", own_ddp),
    "zero-gloo": Contender(optimizer=zero_adamw),
    "syncopate-sharded": Contender(distribute=lambda model, _: (model, None), optimizer=own_adamw),
}


def idx_part(folder, part):
    """Planes and labels of a part in MNIST's files, plain or gzipped."""
    def array(name, head):
        plain = folder / name
        content = plain.read_bytes() if plain.exists() else gzip.decompress(plain.with_name(name + ".gz").read_bytes())
        return torch.frombuffer(bytearray(content[head:]), dtype=torch.uint8)
    return array(f"{part}-images-idx3-ubyte", 16).view(-1, 1, 28, 28), array(f"{part}-labels-idx1-ubyte", 8)


def cifar_part(folder, part):
    """Planes and labels of a part in CIFAR-10's binary files."""
    files = sorted(folder.glob("data_batch_*.bin")) if part == "train" else [folder / "test_batch.bin"]
    records = torch.cat([torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8) for file in files]).view(-1, 1 + 3 * 32 * 32)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0]


def part_of(data, part):
    """Planes and labels of the part "train" or "t10k" of a data set."""
    folder = Path(PACKAGED if data == "fashion-mnist" and not Path(data).exists() else data)
    if any(folder.glob("train-images-idx3-ubyte*")):
        return idx_part(folder, part)
    for each in (folder, folder / "cifar-10-batches-bin"):
        if (each / "data_batch_1.bin").exists():
            return cifar_part(each, part)
    sys.exit(f"pytorch.py: --data {data} has neither train-images-idx3-ubyte nor data_batch_1.bin; allowed: fashion-mnist, a folder with "
             "MNIST's four files, or one with CIFAR-10's binary files (`syncopate data draw` makes such)")


class Pictures:
    """One part of a data set; pictures are normalised by the moments of the training part."""

    def __init__(self, data, part, moments=None):
        self.pixels, labels = part_of(data, part)
        self.labels, self.side = labels.long(), self.pixels.shape[-1]
        self.moments = moments or self._own_moments()

    def _own_moments(self):
        """Mean and standard deviation of each plane."""
        counts = torch.stack([torch.bincount(plane.flatten(), minlength=256).double() for plane in self.pixels.unbind(1)])
        values = torch.arange(256, dtype=torch.float64)
        mean = (counts * values).sum(1, keepdim=True) / counts.sum(1, keepdim=True)
        deviation = ((counts * (values - mean) ** 2).sum(1, keepdim=True) / counts.sum(1, keepdim=True)).sqrt()
        return mean[..., None].float(), deviation[..., None].float()

    def batch(self, chosen):
        mean, deviation = self.moments
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
    batch = given.global_batch or given.batch * size
    for epoch in itertools.count():
        order = order_of(given.seed, epoch, samples)
        for begin in range(0, samples, batch):
            whole = order[begin:begin + batch]
            yield whole[rank * len(whole) // size:(rank + 1) * len(whole) // size]


def rate_of(given, step):
    """The learning rate of a step, counted from 1: a linear warm-up, then a tenth after each milestone."""
    return given.lr * min(1, step / max(1, given.warmup)) * 0.1 ** sum(milestone < step for milestone in given.milestones)


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
    net.eval()
    with torch.no_grad():
        for chosen in mine.split(64):
            batch, wanted = test.batch(chosen)
            logits = net(batch)
            sums += torch.tensor([len(chosen) * nn.functional.cross_entropy(logits, wanted).item(),
                                  (logits.argmax(1) == wanted).sum().item(), len(chosen)])
    net.train()
    dist.all_reduce(sums)
    return {"accuracy": (sums[1] / sums[2]).item(), "loss": (sums[0] / sums[2]).item()}


def state_bytes(optimizer):
    """Bytes of the vectors that this rank's optimizer keeps."""
    if not isinstance(optimizer, (torch.optim.SGD, ZeroRedundancyOptimizer)):
        vectors = optimizer.state_dict(sharded=True)["shard"]["state"].values()
    else:
        of = getattr(optimizer, "optim", optimizer)
        vectors = [value for state in of.state.values() for value in state.values() if value is not None and value.dim() > 0]
    return sum(vector.numel() * vector.element_size() for vector in vectors)


def say(**row):
    """Print a row in one write."""
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def arguments():
    """The contender, and those options of `syncopate train` that a contender has too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--contender", required=True, help=f"NAME or NAME:MIB, the size of DDP's buckets; NAME: {', '.join(CONTENDERS)}")
    parser.add_argument("--codec", default="none", help="of the hook")
    parser.add_argument("--warmup-steps", type=int, default=0, help="PowerSGD: start_powerSGD_iter, at least 2")
    parser.add_argument("--meeting", required=True, help="a file that all ranks reach and that does not exist yet")
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--width", type=int, default=2048, help="mlp: width of the hidden layers")
    parser.add_argument("--data", required=True, help="fashion-mnist, or a folder with files in MNIST's or CIFAR-10's format")
    parser.add_argument("--batch", type=int, default=32, help="samples of a step on each rank")
    parser.add_argument("--global-batch", type=int, help="samples of a step on all ranks")
    parser.add_argument("--lr", type=float, help="default: the model's")
    parser.add_argument("--warmup", type=int, help="default: the model's")
    parser.add_argument("--milestones", type=int, nargs="*", default=[])
    parser.add_argument("--dense-below", type=int, help="no effect: PowerSGD has its own bound, min_compression_rate")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--evaluate-every", type=int, default=0)
    parser.add_argument("--report-every", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    given.contender, _, mib = given.contender.partition(":")
    if given.contender not in CONTENDERS:
        parser.error(f"contender {given.contender} is unknown; allowed: {', '.join(CONTENDERS)}")
    given.buckets = {"bucket_cap_mb": float(mib)} if mib else {}
    for name in ("lr", "warmup"):
        if getattr(given, name) is None:
            setattr(given, name, getattr(MODELS[given.model], name))
    return given


def join(given):
    """The process group of the job's ranks, on the interface that the job gives."""
    rank, size = int(os.environ.get("SYNCOPATE_RANK", "0")), int(os.environ.get("SYNCOPATE_SIZE", "1"))
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ.get("SYNCOPATE_INTERFACE", "lo")
    meeting = urlsplit(os.environ.get("SYNCOPATE_RENDEZVOUS", ""))
    if meeting.scheme == "tcp":
        os.environ["MASTER_ADDR"] = meeting.hostname  # where the backend syncopate looks for rank 0's address
    backend = CONTENDERS[given.contender].backend
    if backend == "syncopate":
        library()
    dist.init_process_group(backend, store=dist.FileStore(given.meeting, size), rank=rank, world_size=size)
    return rank, size


def summary(steps, values):
    """Median, least and most of all steps but the first three, as the trainer's rows have them."""
    rest = values[3:] if steps > 5 else values
    return {"median": statistics.median(rest), "min": min(rest), "max": max(rest)}


def train(given, net, model, optimizer, pictures):
    """Train and print the rows of steps and evaluations; returns the seconds of the steps, and the bytes that they sent."""
    rank, size = dist.get_rank(), dist.get_world_size()
    training, test = pictures
    mine, seconds, sent = shares(given, rank, size, len(training.labels)), [], []
    for step in range(1, given.steps + 1):
        chosen, before, begin = next(mine), sent_bytes(), time.perf_counter()
        batch, wanted = training.batch(chosen)
        read = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = rate_of(given, step)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(batch), wanted)
        forward = time.perf_counter()
        loss.backward()
        backward = time.perf_counter()
        optimizer.step()
        end = time.perf_counter()
        seconds.append(end - begin)
        if before is not None:
            sent.append(sent_bytes() - before)
        if step % given.report_every == 0:
            say(event="step", step=step, step_s=end - begin, input_s=read - begin, forward_s=forward - read,
                backward_s=backward - forward, optimizer_s=end - backward, loss=loss.item())
        if given.evaluate_every and step % given.evaluate_every == 0:
            found = evaluate(model, test, rank, size)
            if rank == 0:
                say(event="epoch", step=step, **found)
    return seconds, sent


def main():
    """Join the other ranks, train, leave."""
    given = arguments()
    torch.set_num_threads(given.threads)
    training = Pictures(given.data, "train")
    test = Pictures(given.data, "t10k", training.moments) if given.evaluate_every else None
    rank, _ = join(given)
    model = model_of(given.model, given.seed, training.side, given.width)
    net, state = CONTENDERS[given.contender].distribute(model, given)
    optimizer = CONTENDERS[given.contender].optimizer(net, given)
    say(event="begin", gradient_bytes=sum(p.numel() * p.element_size() for p in model.parameters()))
    seconds, sent = train(given, net, model, optimizer, (training, test))
    say(event="end", rank=rank, step_seconds=summary(given.steps, seconds), state_bytes=state_bytes(optimizer),
        wire_bytes_per_step=int(summary(given.steps, sent)["median"]) if sent else None)
    dist.barrier()
    if hasattr(state, "close"):
        state.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
