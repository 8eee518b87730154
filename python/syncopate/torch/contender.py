"""One rank of `syncopate bench step --contenders`: PyTorch trains a model of `syncopate train` and prints its rows.

A row has the seconds of a step as the training program has them; passes include what the exchange waits for in them.
"""

import argparse
import itertools
import json
import os
import statistics
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import syncopate.torch

CLASSES, SIDE, PIXELS = 10, 32, 3 * 32 * 32
HIDDEN = 2048
VGG11 = (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M")


def power_sgd(codec):
    """The state of PyTorch's own PowerSGD, of the rank of `low_rank:RANK`; its first two steps are dense."""
    return powerSGD_hook.PowerSGDState(None, int(codec.removeprefix("low_rank:")), start_powerSGD_iter=2)


OWN_CLASS = "syncopate-ddp"  # the library's DistributedDataParallel, which has buckets and a hook of its own
ZERO = "zero-gloo"  # AdamW in PyTorch's ZeroRedundancyOptimizer, with DDP
OWN_ZERO = "syncopate-sharded"  # AdamW in the library's ShardedOptimizer, which needs no DDP
# Name -> backend of torch.distributed, and the hook that it registers.
CONTENDERS = {
    "ddp-gloo": ("gloo", None),
    "ddp-gloo-fp16": ("gloo", lambda net, _: (None, default_hooks.fp16_compress_hook)),
    "ddp-gloo-powersgd": ("gloo", lambda net, codec: (power_sgd(codec), powerSGD_hook.powerSGD_hook)),
    "ddp-syncopate": ("syncopate", None),
    "ddp-syncopate-hook": ("syncopate", lambda net, codec: (syncopate.torch.HookState(net, codec=codec), syncopate.torch.hook)),
    OWN_CLASS: ("syncopate", None),
    ZERO: ("gloo", None),
    OWN_ZERO: ("gloo", None),
}


def vgg11():
    """Configuration A of Simonyan and Zisserman with batch normalisation, for 32 x 32 pixels."""
    layers, channels = [], 3
    for stage in VGG11:
        if stage == "M":
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(channels, stage, 3, padding=1, bias=False), nn.BatchNorm2d(stage), nn.ReLU(inplace=True)]
        channels = stage
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, CLASSES))


def mlp():
    """The perceptron 3072-2048-2048-2048-10."""
    sizes = (PIXELS, HIDDEN, HIDDEN, HIDDEN)
    hidden = [layer for a, b in itertools.pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU(inplace=True))]
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(HIDDEN, CLASSES))


def linear():
    """One layer."""
    return nn.Sequential(nn.Flatten(), nn.Linear(PIXELS, CLASSES))


MODELS = {"linear": linear, "mlp": mlp, "vgg11": vgg11}


def samples_in(folder):
    """Images and labels of a data set in CIFAR-10's binary format."""
    files = sorted(Path(folder).glob("data_batch_*.bin")) or sorted(Path(folder).glob("cifar-10-batches-bin/data_batch_*.bin"))
    if not files:
        sys.exit(f"contender: {folder} has no data_batch_1.bin: --data of a PyTorch contender is a folder in CIFAR-10's binary format")
    records = torch.cat([torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8) for file in files]).view(-1, 1 + PIXELS)
    return records[:, 1:].float().div_(127.5).sub_(1).view(-1, 3, SIDE, SIDE), records[:, 0].long()


def arguments():
    """The arguments of `bench step`, and the options of `syncopate train` that the contenders accept."""
    parser = argparse.ArgumentParser(prog="contender", description=__doc__, allow_abbrev=False)
    parser.add_argument("--contender", required=True, help=f"NAME or NAME:MIB, the size of DDP's buckets; NAME: {', '.join(CONTENDERS)}")
    parser.add_argument("--codec", default="none", help="of the hook")
    parser.add_argument("--meeting", required=True, help="a file that all ranks reach, not there yet")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--data", required=True)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    given.contender, _, mib = given.contender.partition(":")
    if given.contender not in CONTENDERS:
        parser.error(f"contender {given.contender} is unknown; allowed: {', '.join(CONTENDERS)}")
    given.buckets = {"bucket_cap_mb": float(mib)} if mib else {}
    # PowerSGD starts collectives in callbacks, on any thread: with several buckets ranks disagree on their order.
    if given.contender == "ddp-gloo-powersgd":
        given.buckets = {"bucket_cap_mb": 1024}
    return given


def join(given):
    """The process group of the job's ranks, on the interface that the job gives."""
    rank, size = int(os.environ.get("SYNCOPATE_RANK", "0")), int(os.environ.get("SYNCOPATE_SIZE", "1"))
    if "SYNCOPATE_INTERFACE" in os.environ:
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["SYNCOPATE_INTERFACE"]
    meeting = urlsplit(os.environ.get("SYNCOPATE_RENDEZVOUS", ""))
    if meeting.scheme == "tcp":
        os.environ["MASTER_ADDR"] = meeting.hostname  # where the backend syncopate looks for rank 0's address
    backend, _ = CONTENDERS[given.contender]
    dist.init_process_group(backend, store=dist.FileStore(given.meeting, size), rank=rank, world_size=size)
    return rank, size


def say(**row):
    """Print a row in one write."""
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def wrapped(model, given):
    """The model as the contender distributes it, and the state of its hook."""
    if given.contender == OWN_ZERO:
        return model, None
    if given.contender == OWN_CLASS:
        net = syncopate.torch.DistributedDataParallel(model, codec=given.codec, **given.buckets)
        return net, net.hook_state
    net = DistributedDataParallel(model, **given.buckets)
    if not CONTENDERS[given.contender][1]:
        return net, None
    state, hook = CONTENDERS[given.contender][1](net, given.codec)
    net.register_comm_hook(state, hook)
    return net, state


def optimizer_of(net, given):
    """SGD with momentum; of the contenders that divide their optimizer, AdamW."""
    if given.contender == ZERO:
        return ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=given.lr, fused=True)
    if given.contender == OWN_ZERO:
        return syncopate.torch.ShardedOptimizer(net, "adamw", given.lr)
    return torch.optim.SGD(net.parameters(), lr=given.lr, momentum=0.9, fused=True)  # one pass over memory, as the ceiling's


def state_bytes(optimizer):
    """Bytes of the vectors that this rank's optimizer keeps."""
    if isinstance(optimizer, syncopate.torch.ShardedOptimizer):
        vectors = optimizer.state_dict(sharded=True)["shard"]["state"].values()
    else:
        of = optimizer.optim if isinstance(optimizer, ZeroRedundancyOptimizer) else optimizer
        vectors = [value for state in of.state.values() for value in state.values() if value is not None and value.dim() > 0]
    return sum(vector.numel() * vector.element_size() for vector in vectors)


def main():
    """Train for --steps steps."""
    given = arguments()
    torch.set_num_threads(given.threads)
    images, labels = samples_in(given.data)
    rank, size = join(given)
    torch.manual_seed(given.seed)
    net, state = wrapped(MODELS[given.model](), given)
    optimizer = optimizer_of(net, given)
    drawn = torch.Generator().manual_seed(given.seed * size + rank)
    say(event="begin", gradient_bytes=sum(p.numel() * p.element_size() for p in net.parameters()))
    steps = []
    for step in range(1, given.steps + 1):
        begin = time.perf_counter()
        chosen = torch.randint(len(labels), (given.batch,), generator=drawn)
        batch, wanted = images[chosen], labels[chosen]
        read = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(batch), wanted)
        forward = time.perf_counter()
        loss.backward()
        backward = time.perf_counter()
        optimizer.step()
        end = time.perf_counter()
        steps.append(end - begin)
        say(event="step", step=step, step_s=end - begin, input_s=read - begin, forward_s=forward - read,
            backward_s=backward - forward, optimizer_s=end - backward, loss=loss.item())
    say(event="end", step_seconds={"median": statistics.median(steps)}, state_bytes=state_bytes(optimizer))
    dist.barrier()
    if isinstance(state, syncopate.torch.HookState):
        state.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
