"""Tensors that are not on the CPU are refused by an error that names the backend for them; test_torch_horovod.py has Horovod's calls."""

import pytest
import torch
import torch.distributed as dist
import torch_job  # skips where there is no torch
from torch import nn

import syncopate
import syncopate.torch

assert torch_job
ALTERNATIVE = r'init_process_group\(backend="cpu:syncopate,cuda:nccl"\)'


@pytest.mark.parametrize("use", [
    syncopate.torch.HookState, lambda net: syncopate.torch.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net),
    lambda net: syncopate.torch.ShardedOptimizer(net, "adamw", 0.1), lambda net: syncopate.torch.profile(net, torch.empty(2, device="meta"))])
def test_parameters_on_a_device(use):
    with pytest.raises(syncopate.Misuse, match=f"parameter weight is on meta; .*{ALTERNATIVE}"):
        use(nn.Linear(2, 2, device="meta"))


@pytest.mark.skipif(not syncopate.torch.Backend.is_supported(), reason="this torch lets no Python class be a backend")
@pytest.mark.parametrize("call", [
    lambda backend, one: backend.allreduce([one]), lambda backend, one: backend.broadcast([one]),
    lambda backend, one: backend.allgather([[one]], [one]), lambda backend, one: backend.reduce_scatter_single(one, one),
    lambda backend, one: backend.all_to_all_single(one, one, [], [])])
def test_tensors_on_a_device_in_the_backend(tmp_path, call):
    dist.init_process_group("syncopate", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        with pytest.raises(syncopate.Misuse, match=f"a tensor on meta cannot be used here; .*{ALTERNATIVE}"):
            call(backend, torch.empty(2, device="meta"))
    finally:
        dist.destroy_process_group()
