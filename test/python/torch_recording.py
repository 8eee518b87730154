"""A recorded training of two ranks: DistributedDataParallel of torch and of this library, DistributedOptimizer and ShardedOptimizer."""

import contextlib
import itertools
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from device import chosen
from torch import nn

import syncopate.torch

STEPS, EVALUATED, MICRO_BATCHES = 8, 6, 2  # an evaluation after step 6
KINDS = ("plain", "hook", "ours", "optimizer", "sharded")


class Scaled(nn.Module):
    """Multiplies by a parameter without dimensions."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, inputs):
        return inputs * self.scale


def net_of(kind, net):
    """(what is trained, its optimizer, options of the Recorder)."""
    options = {}
    if kind in ("plain", "hook"):
        net = nn.parallel.DistributedDataParallel(net)
    if kind == "hook":
        options["hook_state"] = syncopate.torch.HookState(net)
        net.register_comm_hook(options["hook_state"], syncopate.torch.hook)
    elif kind == "ours":
        net = syncopate.torch.DistributedDataParallel(net, codec="topk:0.1", bucket_cap_mb=0.1)
    elif kind == "sharded":
        return net, syncopate.torch.ShardedOptimizer(net, "momentum", 0.1, policy="wfbp"), options
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    if kind == "optimizer":
        optimizer = syncopate.torch.DistributedOptimizer(optimizer, net, codec="topk:0.1")
    return net, optimizer, options


def train(net, optimizer, inputs, wanted, micro_batches):
    """One step, whose gradients are exchanged in its last backward pass; the loss."""
    optimizer.zero_grad()
    for i in range(micro_batches):
        with contextlib.nullcontext() if i == micro_batches - 1 else (net if hasattr(net, "no_sync") else optimizer).no_sync():
            loss = nn.functional.cross_entropy(net(inputs), wanted) / micro_batches
            loss.backward()
    optimizer.step()
    return loss.item() * micro_batches


def recorded(rank, size, store):
    """The folders of the runs, by kind and number of micro-batches."""
    chosen.begin(rank, size, store)
    chosen.make_default()
    folders = {}
    for kind, micro_batches in itertools.product(KINDS, (1, MICRO_BATCHES)):
        names = [tempfile.mkdtemp() if rank == 0 else None]
        dist.broadcast_object_list(names)
        torch.manual_seed(1)
        net, optimizer, options = net_of(kind, nn.Sequential(nn.Linear(40, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(),
                                                             nn.Linear(200, 4), Scaled()))
        inputs, wanted = torch.randn(16, 40), torch.randint(4, (16,))
        if rank == 0:
            Path(names[0], "rank-7.jsonl").write_text("of an earlier run\n")
        with syncopate.torch.Recorder(names[0], net, optimizer, **options) as record:
            for step in range(STEPS):
                record.step(loss=train(net, optimizer, inputs, wanted, micro_batches), samples=16)
                if step == EVALUATED - 1:
                    record.evaluation(epoch=1, accuracy=0.5, loss=2)
        if kind == "sharded":
            assert not optimizer._is_underway, "the digest is not that of the last step's weights"
        folders[kind, micro_batches] = names[0]
    dist.barrier()
    dist.destroy_process_group()
    return folders
