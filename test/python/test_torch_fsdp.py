"""FSDP2 with codecs between hosts: native HSDP's weights without one, equal weights on all ranks with any, checkpoints, and refusals."""

from types import SimpleNamespace

import pytest
import torch
import torch_job

import syncopate.torch

pytest.importorskip("torch.distributed.fsdp", reason="FSDP2 came with torch 2.6")
from syncopate.torch import fsdp

CODECS = "topk:0.05 qsgd:8 int8 low_rank:2 fp16"


def run(function, size, **environment):
    return torch_job.run("torch_fsdp.py", function, size, **environment)


@pytest.fixture(params=["cpu", "device"])
def place(request):
    """The CPU, and the accelerator of --device."""
    if request.param == "cpu":
        return "cpu"
    device = request.getfixturevalue("device")
    if device == "cpu" or not syncopate.torch.Backend.is_supported():
        pytest.skip("no accelerator, or this torch lets no Python class be a backend")
    return device


@pytest.mark.parametrize(("hosts", "backend"), [(2, "gloo"), (4, "syncopate")])
def test_without_a_codec_the_weights_are_those_of_native_hsdp(hosts, backend):
    if backend == "syncopate" and not syncopate.torch.Backend.is_supported():
        pytest.skip("this torch lets no Python class be a backend, and Gloo adds the parts of more than two hosts in another order")
    assert run("against_native", 2 * hosts, HOSTS=str(hosts), BACKEND=backend) == [[True, True]] * 2 * hosts


def test_codecs_leave_equal_weights_on_all_ranks_and_on_every_device(device):
    on_cpu = run("coded", 4, CODECS=CODECS)
    for codec, (weights, sent) in on_cpu[0].items():
        assert all(rank[codec][0] == weights for rank in on_cpu), codec
        assert sent > 0
    if device != "cpu" and syncopate.torch.Backend.is_supported():
        there = run("coded", 4, CODECS=CODECS, DEVICE=device)
        assert [{codec: weights for codec, (weights, _) in rank.items()} for rank in there] == \
               [{codec: weights for codec, (weights, _) in rank.items()} for rank in on_cpu]


def test_hosts_send_fewer_bytes_than_in_a_flat_exchange():
    for sharded, flat in run("bytes_between_hosts", 8, HOSTS="4"):
        assert sharded < 0.6 * flat


def test_a_checkpoint_has_what_the_codec_keeps(place):
    assert run("checkpoint", 4, DEVICE=place) == [[True, False]] * 4


def test_gradients_may_be_accumulated(place):
    assert run("accumulation", 4, DEVICE=place) == [[True]] * 4


def test_what_does_not_fit_is_refused_on_every_rank():
    for found in run("refusals", 4):
        assert found["one dimension"].startswith("Misuse: a mesh of 1 dimension; allowed: two, the hosts and the ranks of a host"), found
        assert "is sharded over ranks [[" in found["native"] and "fully_shard(module, mesh=mesh[second dimension])" in found["native"], found
        assert "allowed: over the ranks [" in found["between"], found
        assert "no module with trained parameters that fully_shard was given" in found["not sharded"], found
        assert "allowed: one codec" in found["auto"], found
        assert "nothing" in found["unknown"], found
        assert "codec" in found["ranks"], found["ranks"]
        assert "every parameter of a module that fully_shard was given needs a gradient" in found["unused"], found
        assert "allowed: the same number of ranks and hosts" in found["loaded"], found


def test_a_rank_outside_of_the_mesh_is_refused():
    with pytest.raises(syncopate.Misuse, match="this rank is not in the mesh"):
        fsdp.compress(torch.nn.Linear(2, 2), SimpleNamespace(ndim=2, get_coordinate=lambda: None))
