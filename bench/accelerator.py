"""Times of gradients on an accelerator: copies to the CPU and back, training steps by contender, and a trace of one step.

`copies` runs alone. The others are one rank of a job: syncopate run -n 2 --lab 1gbit -- python bench/accelerator.py step …
Rows are printed by rank 0, one JSON object each; scripts/test-gpu runs all of it but `overlap`, which is a table of scripts/measure.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import syncopate.torch
from syncopate.torch.shared import rendezvous

sys.path.insert(0, str(Path(__file__).parent / "contender"))

import pytorch

SIDE = 32  # pixels each way

HEADERS = 1.047  # Ethernet, IP and TCP of a full wire
# Name of a row -> the codec of the library's class; None is PyTorch's DDP with Gloo.
CONTENDERS = {"ddp-gloo": None, "syncopate-ddp": "none", "syncopate-ddp topk:0.01": "topk:0.01", "syncopate-ddp dgc:0.01": "dgc:0.01"}


def say(**row):
    """Print a row in one write."""
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def best_s(call, times=10):
    """The least seconds of the call, after one that is not measured."""
    taken = []
    for _ in range(times + 1):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return min(taken[1:])


def copies(given):
    """Copies of one vector: each direction alone, both at once, and into memory that is not pinned."""
    down, up = torch.Stream(given.device), torch.Stream(given.device)
    for mib in given.mib:
        elements = mib * 2**18
        on_device, target = (torch.ones(elements, device=given.device) for _ in range(2))
        pinned, source = (torch.ones(elements, device="cpu", pin_memory=True) for _ in range(2))
        pageable = torch.ones(elements, device="cpu")

        def copy(*ways, to=pinned, own=on_device, of=source, into=target):
            if "down" in ways:
                with down:
                    to.copy_(own, non_blocking=True)
            if "up" in ways:
                with up:
                    into.copy_(of, non_blocking=True)
            torch.accelerator.synchronize(given.device)

        for kind, call in {"down": lambda: copy("down"), "up": lambda: copy("up"), "both": lambda: copy("down", "up"),
                           "down, not pinned": lambda: copy("down", to=pageable)}.items():
            seconds = best_s(call)
            say(benchmark="device_copies", copy=kind, mib=mib, seconds=seconds, gb_per_s=mib * 2**20 / seconds / 1e9)


def join(given):
    """The process group of the job's ranks over Gloo, which takes CUDA tensors too; the pretended accelerator has the library's."""
    rank, size = int(os.environ["SYNCOPATE_RANK"]), int(os.environ["SYNCOPATE_SIZE"])
    if "SYNCOPATE_INTERFACE" in os.environ:
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["SYNCOPATE_INTERFACE"]
    backend = "syncopate" if given.device == "emu" else f"cpu:gloo,{given.device}:gloo"
    dist.init_process_group(backend, store=dist.FileStore(given.meeting, size), rank=rank, world_size=size)


class Training:
    """One contender's model, optimizer and batch, all on the device."""

    def __init__(self, given, codec):
        torch.manual_seed(1)
        net = pytorch.model_of(given.model, 1, SIDE).to(given.device)
        self.net = DistributedDataParallel(net) if codec is None else syncopate.torch.DistributedDataParallel(net, codec=codec)
        self._optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)
        self._device = given.device
        self._images = torch.randn(given.batch, 3, SIDE, SIDE, device="cpu").to(given.device)
        self._labels = torch.randint(pytorch.CLASSES, (given.batch,), device="cpu").to(given.device)

    def step(self):
        """Seconds of one step, from an idle device to an idle device."""
        torch.accelerator.synchronize(self._device)
        begin = time.perf_counter()
        self._optimizer.zero_grad()
        nn.functional.cross_entropy(self.net(self._images), self._labels).backward()
        self._optimizer.step()
        torch.accelerator.synchronize(self._device)
        return time.perf_counter() - begin

    def alone(self):
        """The same without an exchange."""
        with self.net.no_sync():
            return self.step()


def steps(given):
    """Every contender in turns of a few steps, and the bound of dense gradients: the longer of computing alone and the full wire."""
    trainings = {name: Training(given, codec) for name, codec in CONTENDERS.items()}
    taken = {name: [] for name in trainings}
    for turn in range(given.turns + 1):
        for name, training in trainings.items():
            seconds = [training.step() for _ in range(given.steps)]
            taken[name] += seconds if turn else []  # the first turn forms buckets and allocates
    alone = statistics.median(trainings["ddp-gloo"].alone() for _ in range(5))
    if dist.get_rank() == 0:
        ranks, size = dist.get_world_size(), sum(p.numel() * p.element_size() for p in trainings["ddp-gloo"].net.parameters())
        wire = given.rate and 2 * (ranks - 1) / ranks * size * 8 * HEADERS / given.rate
        for name, seconds in taken.items():
            say(benchmark="device_step", contender=name, model=given.model, batch=given.batch, ranks=ranks, rate=given.rate, gradient_bytes=size,
                step_seconds={"median": statistics.median(seconds), "min": min(seconds), "max": max(seconds), "n": len(seconds)},
                alone_seconds=alone, bound_seconds=wire and max(alone, wire))


WIDTH, LAYERS = 256, 8  # a bucket for each layer


class Blocking:
    """A hook without streams: the backward pass waits for the copy down, the exchange and the copy up of each bucket."""

    def __init__(self):
        self.group = rendezvous.own_group()

    def hook(self, bucket):
        """For `register_comm_hook` with this state."""
        values = bucket.buffer()
        host = values.cpu()
        self.group.allreduce(host, op="average", name=f"bucket {bucket.index()}")
        values.copy_(host)
        future = torch.futures.Future(devices=[values.device])
        future.set_result(values)
        return future

    def close(self):
        """Leave the group."""
        self.group.close()


class Layers:
    """Equal layers with a bucket each, and the hook that averages them: the library's with this codec, or without one one that blocks."""

    def __init__(self, given, codec):
        torch.manual_seed(1)
        net = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS))).to(given.device)
        self._ddp = DistributedDataParallel(net, bucket_cap_mb_list=[WIDTH * WIDTH * 4 / 2**20] * LAYERS)
        self.state = syncopate.torch.HookState(self._ddp, codec=codec) if codec else Blocking()
        self._ddp.register_comm_hook(self.state, syncopate.torch.hook if codec else Blocking.hook)
        self._optimizer, self._device = torch.optim.SGD(self._ddp.parameters(), lr=0.01), given.device

    def step(self):
        """Seconds of one step, from an idle device to an idle device, after all ranks have come to it."""
        x = torch.randn(4, WIDTH, device="cpu").to(self._device)
        dist.barrier()
        torch.accelerator.synchronize(self._device)
        begin = time.perf_counter()
        self._ddp(x).sum().backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        torch.accelerator.synchronize(self._device)
        return time.perf_counter() - begin


def overlap(given):
    """A step with copies of a known rate, over the longest of three: copies down, copies up, and the step without the time of copies.

    Operators compute by sleeping. The library's hook, one that blocks, and the step without the time of copies take turns.
    """
    lane, cast, blocking = Layers(given, "none"), Layers(given, "bf16"), Layers(given, None)
    contenders = {"no time of copies": (lane, 0), "the library's hook": (lane, given.copy_rate),
                  "the library's hook, codec `bf16`": (cast, given.copy_rate), "blocking hook": (blocking, given.copy_rate)}
    taken = {name: [] for name in contenders}
    for turn in range(given.turns + 1):
        for name, (layers, rate) in contenders.items():
            with given.emu.delays(operator_us=given.operator_us, seed=dist.get_rank() + 1), given.emu.copy_rate(rate):
                seconds = [layers.step() for _ in range(given.steps)]
            taken[name] += seconds if turn else []  # the first turn forms buckets and allocates
    copy_s, median = LAYERS * WIDTH * WIDTH * 4 / given.copy_rate, {name: statistics.median(seconds) for name, seconds in taken.items()}
    longest_s = max(copy_s, median["no time of copies"])
    for name, seconds in taken.items():
        if dist.get_rank() == 0:
            say(benchmark="device_overlap", contender=name, device=given.device, compute="sleep", ranks=dist.get_world_size(),
                operator_us=given.operator_us, copy_seconds=copy_s, over_longest=median[name] / longest_s,
                step_seconds={"median": median[name], "min": min(seconds), "max": max(seconds), "n": len(seconds)})
    for layers in (lane, cast, blocking):
        layers.state.close()


def trace(given):
    """A timeline of three steps with top-k, for chrome://tracing."""
    training = Training(given, "topk:0.01")
    for _ in range(3):
        training.step()
    with torch.profiler.profile() as profile:
        for _ in range(3):
            training.step()
    if dist.get_rank() == 0:
        profile.export_chrome_trace(given.out)


def main():
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("copies", "step", "overlap", "trace"))
    parser.add_argument("--device", default="cuda", help="one of torch's accelerators, or emu, whose times mean nothing")
    parser.add_argument("--mib", type=int, nargs="+", default=[1, 25, 100], help="sizes of the copies")
    parser.add_argument("--meeting", default=f"{tempfile.gettempdir()}/accelerator-{os.getppid()}", help="a file that all ranks reach, not there yet")
    parser.add_argument("--model", choices=pytorch.MODELS, default="vgg11")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, help="bits per second of a rank's port, for the bound")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--out", help="file of the trace")
    parser.add_argument("--copy-rate", type=float, default=25e6, help="bytes per second of emu's copies in each direction, for overlap")
    parser.add_argument("--operator-us", type=int, default=3460, help="the longest time of an operator of emu, for overlap")
    given = parser.parse_args()
    if given.what == "overlap" and given.device != "emu":
        parser.error(f"overlap on {given.device}; allowed: --device emu, whose copies have a known rate")
    if given.device == "emu":
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test/python"))
        from device import emu
        given.emu = emu
        syncopate.torch.register()
    if given.what == "copies":
        copies(given)
        return
    join(given)
    {"step": steps, "overlap": overlap, "trace": trace}[given.what](given)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
