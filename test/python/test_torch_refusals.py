"""Every use that a wrapper of torch refuses: the error names the cause and what is allowed, in terms of the wrapper and of Python."""

import pickle
import re

import pytest
import torch_job

import syncopate

assert torch_job
import torch  # noqa: E402 (only where torch is installed)
from torch import nn  # noqa: E402 (only where torch is installed)

import syncopate.torch  # noqa: E402 (it needs torch)

# Names of C++, and calls that only an inner layer has.
FOREIGN = re.compile(r"::|nullptr|\btrue\b|\bfalse\b|std\.|\baccumulate\b|\bclock\b|\bwait\(\)|next_bucket|dense_bytes|Buffer\b")


@pytest.fixture
def group():
    (alone,) = syncopate.Group.threads(1)
    yield alone
    alone.close()


def net(*layers):
    torch.manual_seed(0)
    return nn.Sequential(*(layers or (nn.Linear(4, 8), nn.Linear(8, 2))))


def wrapped(group, model=None, **options):
    model = model or net()
    return syncopate.torch.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1), model, group=group, **options), model


def sharded(group, model=None, **options):
    model = model or net()
    return syncopate.torch.ShardedOptimizer(model, "sgd", 0.1, group=group, **options), model


def half_a_pass(model):
    model[1](torch.ones(2, 8)).sum().backward()


def a_pass(model):
    model(torch.ones(2, 4)).sum().backward()


def second_gradient(make):
    def use(group):
        _, model = make(group)
        half_a_pass(model)
        half_a_pass(model)
    return use


def missing_gradient(make):
    def use(group):
        optimizer, model = make(group)
        half_a_pass(model)
        optimizer.step()
    return use


def zero_grad_within(group):
    optimizer, model = wrapped(group)
    half_a_pass(model)
    optimizer.zero_grad()


def unfrozen(group):
    model = net()
    model[0].requires_grad_(False)
    optimizer, _ = wrapped(group, model)
    model[0].requires_grad_(True)
    a_pass(model)
    optimizer.step()


def after_close(group):
    optimizer, model = wrapped(group)
    optimizer.close()
    a_pass(model)
    optimizer.step()


def strange_weights(group):
    model = net()
    model[0].weight = nn.Parameter(torch.ones(4, 8).t())
    wrapped(group, model, codec="importance")


def of_another_model(group):
    syncopate.torch.DistributedOptimizer(torch.optim.SGD(net().parameters(), 0.1), net(), group=group)


def foreign_state(group):
    optimizer, _ = sharded(group)
    state = optimizer.state_dict(sharded=True)
    state["shard"]["ranks"] = 2
    optimizer.load_state_dict(state)


def uneven_state(group):
    optimizer, _ = wrapped(group, codec="topk:0.1", dense_below=0)
    codec, steps, rank, ranks, gradients = optimizer.synchronizer.save()
    optimizer.synchronizer.restore(codec, steps, rank + 1, ranks + 1, gradients)


USES = {
    "second gradient": (second_gradient(wrapped), "parameter 1.weight|1.bias has a second gradient.*no_sync"),
    "second gradient, sharded": (second_gradient(sharded), "has a second gradient.*no_sync"),
    "missing gradient": (missing_gradient(wrapped), "'0.weight' and 1 more never became ready.*zero_missing"),
    "missing gradient, sharded": (missing_gradient(sharded), "'0.weight' and 1 more never became ready.*zero_missing"),
    "zero_grad within a pass": (zero_grad_within, "did not reach 0.weight and 1 more.*no_sync"),
    "unfrozen": (unfrozen, r"shape \(8, 4\).*unfrozen"),
    "closed": (after_close, "DistributedOptimizer was closed.*allowed: step"),
    "weights that are not contiguous": (strange_weights, "importance needs the weights"),
    "another model's": (of_another_model, "give the model that has all of them"),
    "pickle": (lambda group: pickle.dumps(wrapped(group)[0]), r"state_dict\(\)"),
    "pickle, sharded": (lambda group: pickle.dumps(sharded(group)[0]), r"state_dict\(\)"),
    "more parameters": (lambda group: wrapped(group)[0].add_param_group({"params": []}), "before DistributedOptimizer"),
    "more parameters, sharded": (lambda group: sharded(group)[0].add_param_group({"params": []}), "groups="),
    "shard of another group": (foreign_state, "shard of rank 0 of 2.*allowed: its own"),
    "codec state of another rank": (uneven_state, "rank 1 of 2, and this is rank 0 of 1.*allowed"),
    "complex": (
        lambda group: wrapped(group, nn.Sequential(nn.Linear(4, 2, dtype=torch.complex64))),
        "0.weight is of torch.complex64; allowed: torch.float32.*DistributedDataParallel",
    ),
    "on another device": (lambda group: wrapped(group, nn.Sequential(nn.Linear(4, 2, device="meta"))), "is on meta; allowed: on the CPU"),
    "unknown codec": (lambda group: wrapped(group, codec="topc"), "topc.*did you mean 'topk'"),
    "unknown rule": (lambda group: syncopate.torch.ShardedOptimizer(net(), "sdg", 0.1, group=group), "sdg.*allowed: sgd"),
    "an exchange that ends in weights": (lambda group: wrapped(group, exchange="reduce_broadcast"), "reduce_broadcast"),
    "clipping of velocities": (
        lambda group: wrapped(group, codec="topk", clip_norm=1.0, feedback="momentum"),
        "clip_norm is 1 with feedback momentum",
    ),
    "hook without a model": (lambda _: syncopate.torch.HookState(codec="topk").discard_step(), "no step to discard"),
    "net in DDP, sharded": (
        lambda group: syncopate.torch.ShardedOptimizer(
            nn.parallel.DistributedDataParallel.__new__(nn.parallel.DistributedDataParallel), "sgd", 0.1, group=group
        ),
        "give the module",
    ),
}


@pytest.mark.parametrize("use", USES)
def test_the_error_names_cause_and_remedy(use, group):
    call, words = USES[use]
    with pytest.raises(syncopate.Misuse, match=words) as refused:
        call(group)
    assert not FOREIGN.search(str(refused.value)), str(refused.value)
