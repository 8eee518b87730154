"""A recorded training of two ranks: DistributedDataParallel of torch and of this library, DistributedOptimizer and ShardedOptimizer."""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

import syncopate.torch

STEPS = 8


class Scaled(nn.Module):
    """Multiplies by a parameter without dimensions."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, inputs):
        return inputs * self.scale


def net_of(kind, net):
    """(what is trained, its optimizer)."""
    if kind == "plain":
        net = nn.parallel.DistributedDataParallel(net)
    elif kind == "ours":
        net = syncopate.torch.DistributedDataParallel(net, codec="topk:0.1", bucket_cap_mb=0.1)
    elif kind == "sharded":
        return net, syncopate.torch.ShardedOptimizer(net, "momentum", 0.1, policy="wfbp")
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    return net, syncopate.torch.DistributedOptimizer(optimizer, net, codec="topk:0.1") if kind == "optimizer" else optimizer


def recorded(rank, size, store):
    """The folders of the runs, by kind."""
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    folders = {}
    for kind in ("plain", "ours", "optimizer", "sharded"):
        names = [tempfile.mkdtemp() if rank == 0 else None]
        dist.broadcast_object_list(names)
        torch.manual_seed(1)
        net, optimizer = net_of(kind, nn.Sequential(nn.Linear(40, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 4), Scaled()))
        inputs, wanted = torch.randn(16, 40), torch.randint(4, (16,))
        if rank == 0:
            Path(names[0], "rank-7.jsonl").write_text("of an earlier run\n")
        with syncopate.torch.Recorder(names[0], net, optimizer) as record:
            for _ in range(STEPS):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(net(inputs), wanted)
                loss.backward()
                optimizer.step()
                record.step(loss=loss.item(), samples=16)
            record.evaluation(epoch=1, accuracy=0.5, loss=loss.item())
        if kind == "sharded":
            assert not optimizer._is_underway, "the digest is not that of the last step's weights"
        folders[kind] = names[0]
    dist.barrier()
    dist.destroy_process_group()
    return folders
