"""The trace of a step on an accelerator: errors in the spans of its copies."""

import itertools
import json
import os
import tempfile
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
from torch_device import DEVICE, Model, begin, late

import syncopate.torch
from syncopate.torch.device import lane

DOWN, UP = "copy down", "copy up"  # the report knows them by these names
TRACED, STEPS = 3, 4
COPY_US = 20_000  # the longest delay of a copy; the shortest is half of it
EXACT_S = 4e-3  # of the device's times on the host's clock; the machine may be busy


def trained_kind(kind, net):
    """(what is trained, its optimizer, options of the Recorder)."""
    if kind == "sharded":
        return net, syncopate.torch.ShardedOptimizer(net, "momentum", 0.02), {}
    if kind == "rule":
        return net, syncopate.torch.DistributedOptimizer(syncopate.torch.RuleOptimizer(net.parameters(), "momentum", 0.02), net), {}
    optimizer = torch.optim.SGD(net.parameters(), 0.02)
    if kind == "optimizer":
        return net, syncopate.torch.DistributedOptimizer(optimizer, net), {}
    ddp = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.05)
    state = syncopate.torch.HookState(ddp, codec="topk:0.05")
    ddp.register_comm_hook(state, syncopate.torch.hook)
    return ddp, optimizer, {"hook_state": state}


def step(net, optimizer):
    optimizer.zero_grad()
    net(torch.ones(8, 32).to(DEVICE)).square().mean().backward()
    optimizer.step()


def trace_of(kind):
    """(the spans of the traced step on this rank by track, the buckets of the hook)."""
    with tempfile.TemporaryDirectory() as folder:
        net, optimizer, options = trained_kind(kind, Model().to(DEVICE))
        with late(operator_us=30, copy_us=COPY_US), syncopate.torch.Recorder(folder, net, optimizer, traced_step=TRACED, **options) as record:
            for _ in range(STEPS):
                step(net, optimizer)
                record.step(loss=0, samples=8)
        spans = {}
        for line in Path(folder, f"trace-{dist.get_rank()}.jsonl").read_text().splitlines():
            span = json.loads(line)
            spans.setdefault(span["track"], []).append(span)
        return spans, record._buckets


def wrong_times(spans):
    """Copies that take less than their delay, or that overlap another one of their stream."""
    found = []
    for track in (DOWN, UP):
        ordered = sorted(spans[track], key=lambda span: span["begin_s"])
        found += [f"{span} is short" for span in ordered if span["end_s"] - span["begin_s"] < COPY_US / 2 * 1e-6 and DEVICE == "emu"]
        found += [f"{span} does not begin and then end in the step" for span in ordered if not -EXACT_S < span["begin_s"] < span["end_s"]]
        found += [f"{one} overlaps {other}" for one, other in itertools.pairwise(ordered) if other["begin_s"] < one["end_s"] - 1e-5]
    return found


def wrong_buckets(spans, buckets):
    """The hook's: each has its phases in order, with its bytes."""
    tracks = (DOWN, "encode", "exchange", "decode", UP)
    found = [f"{track}: {sorted(span['bytes'] for span in spans[track])}" for track in tracks
             if sorted(span["bytes"] for span in spans[track]) != sorted(buckets.values())]
    for name in {span["name"] for span in spans["exchange"]}:
        phases = [[span for span in spans[track] if span["name"] == name] for track in tracks]
        if [len(of) for of in phases] != [1] * len(tracks):
            return [*found, f"{name}: {phases}"]
        found += [f"{after} begins before the end of {before}" for (before,), (after,) in itertools.pairwise(phases)
                  if after["begin_s"] < before["end_s"] - EXACT_S]
    return found if len(buckets) > 1 else [*found, "one bucket shows no order"]


def wrong_copies(spans, kind):
    """Those of an optimizer: gradients and weights go the ways of docs/gpu.md with all their bytes."""
    sizes = {name: parameter.numel() * parameter.element_size() for name, parameter in Model().named_parameters()}
    weights = {f"weights of {name}": size for name, size in sizes.items()}
    down, up = ([(span["name"], span["bytes"]) for span in spans[track]] for track in (DOWN, UP))
    wanted = {"optimizer": (list(sizes.items()), list(sizes.items())),
              "rule": (2 * list(sizes.items()) + list(weights.items()), list(sizes.items()) + list(weights.items()))}
    if kind in wanted:
        return [] if (sorted(down), sorted(up)) == tuple(map(sorted, wanted[kind])) else [f"down {down}, up {up}"]
    shards = [(name, size) for name, size in down if name in weights]
    is_right = (sorted(set(down) - set(shards)) == sorted(sizes.items()) and {name for name, _ in shards} <= set(weights)
                and sum(size for _, size in shards) < sum(weights.values()) and sorted(up) == sorted(weights.items()))
    return [] if is_right else [f"down {down}, up {up}"]


def recorded(rank, size, store):
    """Errors in the trace of the kind in the environment."""
    begin(rank, size, store)
    kind = os.environ["KIND"]
    spans, buckets = trace_of(kind)
    found = wrong_times(spans) + (wrong_buckets(spans, buckets) if kind == "hook" else wrong_copies(spans, kind))
    dist.destroy_process_group()
    return found


def unobserved(rank, size, store):
    """How many copies were made for a trace without an observer."""
    begin(rank, size, store)
    net, optimizer, _ = trained_kind(os.environ["KIND"], Model().to(DEVICE))
    with mock.patch.object(lane, "Copy", side_effect=lane.Copy) as copy:
        for _ in range(2):
            step(net, optimizer)
    dist.destroy_process_group()
    return copy.call_count
