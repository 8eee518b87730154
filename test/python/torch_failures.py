"""Ranks of torch get the name of a rank that dies, in bounded time, and continue without it."""

import os
import signal

import numpy
import torch
import torch.distributed as dist
from device import chosen
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

import syncopate
import syncopate.torch


def layers():
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64))


def hooked(hook, state_of=lambda _: None):
    net = DistributedDataParallel(layers(), bucket_cap_mb=0.01)
    net.register_comm_hook(state_of(net), hook)
    return net


def survive(rank, size, store):
    """Rank 1 kills itself in a step; the others catch the error by its class, in every later pass too, and continue as a smaller group."""
    chosen.begin(rank, size, store, "syncopate")
    chosen.make_default()
    nets = {"ddp": DistributedDataParallel(layers(), bucket_cap_mb=0.01),
            "hook of torch": hooked(default_hooks.fp16_compress_hook),
            "class": syncopate.torch.DistributedDataParallel(layers()),
            "hook": hooked(syncopate.torch.hook, lambda net: syncopate.torch.HookState(net, codec="topk:0.1"))}
    for net in 2 * list(nets.values()):  # DDP forms its buckets again in the second pass
        net(torch.ones(2, 64)).sum().backward()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    told = {name: [] for name in nets}
    for name, net in nets.items():
        for _ in range(2):
            try:
                while True:
                    net(torch.ones(2, 64)).sum().backward()
            except syncopate.PeerLost as error:
                told[name].append(error.peer)
    try:
        dist.all_reduce(torch.ones(1))
    except syncopate.PeerLost as error:
        told["peer"] = error.peer
    dist.destroy_process_group()
    dist.init_process_group("syncopate", init_method=store + "-again", rank=rank // 2, world_size=size - 1)
    ones = torch.ones(1)
    dist.all_reduce(ones)
    told["again"] = ones.item()
    dist.destroy_process_group()
    return told


class Unfit(Exception):
    """That of a program's own codec."""


def raises(rank, size, store):
    """Rank 1's codec raises an error; the backward passes of both ranks raise theirs."""
    chosen.begin(rank, size, store)
    chosen.make_default()

    def rounds(tensors, _):
        if rank == 1:
            raise Unfit
        yield syncopate.gather(numpy.zeros(tensors[0].values.size, numpy.uint32))

    net = hooked(syncopate.torch.hook, lambda net: syncopate.torch.HookState(net, codec=syncopate.Codec("own", rounds), dense_below=0))
    try:
        net(torch.ones(2, 64)).sum().backward()
    except Exception as error:  # noqa: BLE001 (the test knows its class)
        return type(error).__name__
    finally:
        dist.destroy_process_group()
