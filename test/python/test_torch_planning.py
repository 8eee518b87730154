"""A model of torch is measured and planned, and stays as it was; the plan's buckets are DDP's."""

import collections
import dataclasses
import types
import warnings

import pytest
import torch
import torch.distributed as dist
import torch_job  # skips where there is no torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import syncopate
import syncopate.torch

assert torch_job
CLUSTER = {"ranks": 4, "links": {"inter": {"alpha_s": 1e-4, "beta_s_per_byte": 1e-6, "gamma_s_per_byte": 1e-10}}}


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def test_a_profile_has_every_parameter_and_changes_nothing():
    net = model()
    net[0].weight.grad = marked = torch.ones_like(net[0].weight)
    before = [p.detach().clone() for p in net.parameters()]
    measured = syncopate.torch.profile(net, torch.randn(16, 64))
    assert [layer.name for layer in measured.layers] == [name for name, _ in net.named_parameters()]
    assert [layer.elements for layer in measured.layers] == [p.numel() for p in net.parameters()]
    assert measured.forward_s > 0 and all(layer.backward_s > 0 for layer in measured.layers)
    assert net[0].weight.grad is marked and net[2].weight.grad is None
    assert all(torch.equal(p, old) for p, old in zip(net.parameters(), before, strict=True))


def test_the_step_of_an_optimizer_counts_and_changes_nothing(monkeypatch):
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), 0.1)
    before = [p.detach().clone() for p in net.parameters()]
    clock = types.SimpleNamespace(now=0.0)
    step = torch.optim.AdamW.step

    def tick():
        clock.now += 0.125
        return clock.now

    def slow(self, closure=None):
        clock.now += 3
        return step(self, closure)

    monkeypatch.setattr("syncopate.torch.analysis.clock.time", types.SimpleNamespace(perf_counter=tick))
    monkeypatch.setattr(torch.optim.AdamW, "step", slow)
    measured = syncopate.torch.profile(net, torch.randn(16, 64), optimizer=optimizer)
    assert measured.forward_s == 0.125 + 3.125 and all(layer.backward_s == 0.125 for layer in measured.layers)
    assert all(torch.equal(p, old) for p, old in zip(net.parameters(), before, strict=True))
    assert not optimizer.state and all(p.grad is None for p in net.parameters())
    (found,) = syncopate.torch.plan(net, torch.randn(16, 64), CLUSTER, optimizer=optimizer, policies=["single"])
    assert found.compute_s == measured.forward_s + 6 * 0.125


def test_a_profile_leaves_buffers_and_random_numbers():
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout())
    before, drawn = [buffer.clone() for buffer in net.buffers()], torch.get_rng_state()
    syncopate.torch.profile(net, torch.randn(16, 4, generator=torch.Generator().manual_seed(0)))
    assert all(torch.equal(buffer, old) for buffer, old in zip(net.buffers(), before, strict=True))
    assert torch.equal(torch.get_rng_state(), drawn)


def test_a_profile_is_in_the_order_of_arrival_and_begins_with_what_gets_no_gradient():
    class Crossed(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.unused, self.first = nn.Linear(8, 1), nn.Linear(1, 1), nn.Linear(4, 8)

        def forward(self, x):
            return self.last(self.first(x))

    names = [layer.name for layer in syncopate.torch.profile(Crossed(), torch.randn(16, 4)).layers]
    assert names == ["unused.weight", "unused.bias", "first.weight", "first.bias", "last.weight", "last.bias"]


class Language(nn.Module):
    """Keyword arguments and an output as in Hugging Face's models: a mapping with nested, integer and missing values."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head, self.unused = nn.Embedding(10, 4), nn.Linear(4, 10), nn.Linear(4, 1)

    def forward(self, *, input_ids, scale):
        hidden = self.embedding(input_ids) * scale
        return collections.OrderedDict(logits=self.head(hidden), hidden_states=(hidden, [hidden.detach()]), ids=input_ids,
                                       attentions=None, cache=object())


def test_a_dict_or_another_mapping_is_keyword_arguments():
    sample = {"input_ids": torch.zeros(2, 3, dtype=torch.int64), "scale": 2.0}
    for given in (sample, collections.UserDict(sample)):  # the second as Hugging Face's BatchEncoding
        layers = syncopate.torch.profile(Language(), given).layers
        assert [layer.name for layer in layers] == ["unused.weight", "unused.bias", "embedding.weight", "head.weight", "head.bias"]
        assert all(layer.backward_s > 0 for layer in layers[2:])


@dataclasses.dataclass
class Output:
    values: object
    other: object = None


@pytest.mark.parametrize("wrap", [
    lambda x: (x, x), lambda x: [x, None, x], lambda x: {"a": x, "b": {"c": (x, 3)}}, lambda x: Output(x, Output([x])),
    lambda x: (x, x, x.detach(), x.argmax(), 7, "text", None), lambda x: types.MappingProxyType({"a": x, "b": x})])
def test_the_default_loss_sums_what_depends_on_a_parameter(wrap):
    class Wrapped(nn.Linear):
        def forward(self, x):
            return wrap(super().forward(x))

    seen = []
    net = Wrapped(4, 2)
    net.weight.register_hook(lambda gradient: seen.append(gradient.clone()))
    syncopate.torch.profile(net, torch.ones(3, 4), steps=1)
    assert seen and all(torch.equal(gradient, torch.full((2, 4), 6.0)) for gradient in seen)  # 3 rows, twice


@pytest.mark.parametrize("wrap", [lambda x: x.detach(), lambda x: {"best": x.argmax(), "loss": None}, lambda _: None, lambda _: ()])
def test_an_output_without_a_gradient_needs_a_loss(wrap):
    class Wrapped(nn.Linear):
        def forward(self, x):
            return wrap(super().forward(x))

    with pytest.raises(syncopate.Misuse, match="loss="):
        syncopate.torch.profile(Wrapped(4, 2), torch.ones(3, 4))


def test_a_plan_weighs_policies_and_codecs():
    found = syncopate.torch.plan(model(), torch.randn(16, 64), CLUSTER, codecs=("none", "topk:0.01"), policies=("wfbp", "single", "exact_dp"))
    assert len(found) == 6
    assert [one.iteration_s for one in found] == sorted(one.iteration_s for one in found)
    assert found[0].codec.startswith("topk") and found[0].iteration_s < found[-1].iteration_s / 2


def test_a_plan_warns_where_the_network_is_fast_enough():
    links = {"alpha_s": 1e-9, "beta_s_per_byte": 1e-13, "gamma_s_per_byte": 0}
    with pytest.warns(UserWarning, match="fast enough"):
        syncopate.torch.plan(model(), torch.randn(16, 64), {"ranks": 4, "links": {"inter": links}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        syncopate.torch.plan(model(), torch.randn(16, 64), CLUSTER)


def test_ddp_forms_the_buckets_of_the_plan(tmp_path):
    net = model()
    measured = syncopate.torch.profile(net, torch.randn(16, 64))
    sizes = syncopate.ddp_buckets(measured, CLUSTER, policy="wfbp")
    dist.init_process_group("syncopate", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    seen = []

    def watch(_, bucket):
        seen.append(len(bucket.parameters()))
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    wrapped = DistributedDataParallel(net, bucket_cap_mb_list=sizes)
    wrapped.register_comm_hook(None, watch)
    for _ in range(2):
        seen.clear()
        wrapped(torch.randn(16, 64)).sum().backward()
    dist.destroy_process_group()
    assert seen == [1] * 6
