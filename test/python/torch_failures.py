"""Ranks of torch get the name of a rank that dies, in bounded time, and continue without it."""

import os
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import syncopate.torch


def survive(rank, size, store):
    """Rank 1 kills itself in a step; the others print their error and continue as a smaller group."""
    dist.init_process_group("syncopate", init_method=store, rank=rank, world_size=size)
    nets = {"ddp": DistributedDataParallel(torch.nn.Linear(4, 4)), "hook": syncopate.torch.DistributedDataParallel(torch.nn.Linear(4, 4))}
    for net in 2 * list(nets.values()):  # DDP forms its buckets again in the second pass
        net(torch.ones(2, 4)).sum().backward()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    told = {}
    for name, net in nets.items():
        try:
            while True:
                net(torch.ones(2, 4)).sum().backward()
        except RuntimeError as error:
            told[name] = repr(error)
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
