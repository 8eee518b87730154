"""Tensors on devices that cannot have them are refused with the remedy; other files test Horovod's calls and the backend's."""

import pytest
import torch
import torch.distributed as dist
import torch_job  # skips where there is no torch
from torch import nn

import syncopate
import syncopate.torch

assert torch_job
ALTERNATIVE = r'init_process_group\(backend="cpu:syncopate,cuda:nccl"\)'


def distributed(net):
    return syncopate.torch.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net)


@pytest.mark.parametrize("use", [syncopate.torch.HookState, lambda net: syncopate.torch.profile(net, torch.empty(2, device="meta")), distributed,
                                 lambda net: syncopate.torch.ShardedOptimizer(net, "adamw", 0.1)])
def test_parameters_without_memory(use):
    with pytest.raises(syncopate.Misuse, match=r"parameter weight is on meta; allowed: .* model\.to_empty"):
        use(nn.Linear(2, 2, device="meta"))


@pytest.mark.parametrize("use", [syncopate.torch.HookState, distributed])
def test_parameters_on_devices_of_several_kinds(use):
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta"))
    with pytest.raises(syncopate.Misuse, match=r"0\.weight on cpu, 1\.weight on meta; allowed: .*model\.to"):
        use(net)


def test_an_accelerator_without_pinned_memory(monkeypatch):
    net = nn.Linear(2, 2, device="meta")

    def empty(*_, **__):
        raise RuntimeError("out of locked memory")

    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("meta"))
    monkeypatch.setattr(torch, "empty", empty)
    with pytest.raises(syncopate.Misuse, match=r"weight is on meta, for which there is no pinned memory \(out of locked .*; allowed: .*ulimit -l"):
        syncopate.torch.HookState(net)


@pytest.mark.skipif(not syncopate.torch.Backend.is_supported(), reason="this torch lets no Python class be a backend")
@pytest.mark.parametrize("call", [
    lambda backend, one: backend.allreduce([one]), lambda backend, one: backend.broadcast([one]),
    lambda backend, one: backend.allgather([[one]], [one]), lambda backend, one: backend.reduce_scatter_single(one, one),
    lambda backend, one: backend.all_to_all_single(one, one, [], [])])
def test_tensors_on_a_device_in_the_backend(tmp_path, call):
    dist.init_process_group("syncopate", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        with pytest.raises(
            syncopate.Misuse, match="a tensor on meta cannot be used here; allowed: tensors on the CPU, or on an accelerator that this"
        ):
            call(backend, torch.empty(2, device="meta"))
    finally:
        dist.destroy_process_group()
