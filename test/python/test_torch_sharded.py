"""ShardedOptimizer and RuleOptimizer train as one process of torch does, with equal bits on all ranks, and keep their states."""

import copy
import io
import threading

import pytest
import torch
import torch_job
from conftest import outcomes
from device.chosen import DEVICE
from torch import nn

import syncopate
import syncopate.torch

assert torch_job
pytestmark = pytest.mark.cpu_only("ranks are threads, whose backward passes share one thread of torch for a device, and wait for each other")
STEPS, BATCH = 4, 16
SEEDING = threading.Lock()  # torch's seed is that of all threads
RULES = ("sgd", "momentum", "nesterov", "adam", "adamw", "lars", "lamb")
EPSILON = 1e-4  # with a smaller one the direction of a weight whose gradient is nearly zero depends on rounding


class Net(nn.Module):
    """A layer is used twice, one without a call, as MultiheadAttention uses its projection, and one need not be used."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.three, self.last = nn.Linear(16, 160), nn.Linear(160, 160), nn.Linear(160, 160), nn.Linear(160, 4)
        self.spare = nn.Linear(4, 4)
        self.uses_spare = True

    def forward(self, values):
        hidden = torch.tanh(self.two(torch.tanh(self.two(torch.tanh(self.one(values))))))
        found = self.last(torch.tanh(nn.functional.linear(hidden, self.three.weight, self.three.bias)))
        return self.spare(found) if self.uses_spare else found


def model(rank=0):
    """Every rank begins with other weights."""
    with SEEDING, torch.random.fork_rng():
        torch.manual_seed(rank)
        return Net().to(DEVICE)


def halves(net):
    """Two groups of parameters, of which one has a rate of its own."""
    named = list(net.parameters())
    return [{"params": named[:3]}, {"params": named[3:], "lr": 0.02}]


def samples(step):
    """The samples of all ranks in one step."""
    generator = torch.Generator().manual_seed(step)
    values = torch.randn(BATCH, 16, generator=generator).to(DEVICE)
    return values, values[:, :4] * 2 - values[:, 4:8]


def backward(net, step, rank=0, ranks=1):
    values, targets = (tensor.chunk(ranks)[rank] for tensor in samples(step))
    nn.functional.mse_loss(net(values), targets).backward()


def trained(net, optimizer, rank=0, ranks=1, steps=range(STEPS)):
    """Train with a rate that falls; returns the net."""
    rate = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for step in steps:
        optimizer.zero_grad()
        backward(net, step, rank, ranks)
        optimizer.step()
        rate.step()
    return net


class Scaled(torch.optim.Optimizer):
    """LARS and LAMB by the formulas of docs/optimizers.md, a tensor at a time."""

    def __init__(self, groups, rule):
        super().__init__(groups, {"lr": 0.01})
        self.rule, self.steps = rule, 0

    def direction(self, parameter, decay):
        """(what is subtracted times the rate, the trust ratio) of LAMB."""
        mean, square = (self.state[parameter].setdefault(name, torch.zeros_like(parameter)) for name in ("a", "s"))
        mean.lerp_(parameter.grad, 0.1)
        square.lerp_(parameter.grad**2, 0.001)
        found = mean / (1 - 0.9**self.steps) / ((square / (1 - 0.999**self.steps)).sqrt() + EPSILON) + decay * parameter
        return found, parameter.norm() / found.norm()

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for group in self.param_groups:
            for parameter in group["params"]:
                decay = 0.01 if parameter.dim() > 1 else 0.0
                if self.rule == "lamb":
                    found, ratio = self.direction(parameter, decay)
                    parameter -= group["lr"] * (ratio if decay else 1) * found
                else:
                    ratio = 0.001 * parameter.norm() / (parameter.grad.norm() + decay * parameter.norm()) if decay else 1
                    velocity = self.state[parameter].setdefault("v", torch.zeros_like(parameter))
                    velocity.mul_(0.9).add_(group["lr"] * ratio * (parameter.grad + decay * parameter))
                    parameter -= velocity


PLAIN = {
    "sgd": lambda groups: torch.optim.SGD(groups, 0.01, weight_decay=0.01),
    "momentum": lambda groups: torch.optim.SGD(groups, 0.01, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda groups: torch.optim.SGD(groups, 0.01, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda groups: torch.optim.Adam(groups, 0.01, eps=EPSILON, weight_decay=0.01),
    "adamw": lambda groups: torch.optim.AdamW(groups, 0.01, eps=EPSILON),
    "lars": lambda groups: Scaled(groups, "lars"),
    "lamb": lambda groups: Scaled(groups, "lamb"),
}


def alone(rule):
    """The weights that torch ends with in one process, and its optimizer."""
    net = model()
    optimizer = PLAIN[rule](halves(net))
    return trained(net, optimizer).state_dict(), optimizer


def chosen(rule):
    """The hyperparameters that differ from the library's."""
    return {"weight_decay": 0.01} | ({"epsilon": EPSILON} if rule in ("adam", "adamw", "lamb") else {})


def sharded(net, group, rule, **options):
    return syncopate.torch.ShardedOptimizer(net, rule, 0.01, groups=halves(net), group=group, **chosen(rule), **options)


def rule_of_library(net, rule):
    return syncopate.torch.RuleOptimizer(halves(net), rule, 0.01, **chosen(rule))


def require_equal_bits(results):
    first, *others = results
    for other in others:
        assert all(torch.equal(value, other[name]) for name, value in first.items())


def require_close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("rule", "ranks"), [*((rule, 2) for rule in RULES), ("momentum", 4), ("adamw", 4), ("lamb", 4)])
def test_weights_are_those_of_one_process_of_torch(on_ranks, rule, ranks):
    def body(group):
        net = model(group.rank)
        return trained(net, sharded(net, group, rule), group.rank, ranks).state_dict()

    found = on_ranks(ranks, body)
    require_equal_bits(found)
    require_close(found[0], alone(rule)[0])


@pytest.mark.parametrize("rule", ["adamw", "lamb"])
def test_a_rank_keeps_its_part_of_the_state_and_a_whole_state_goes_to_any_number_of_ranks(on_ranks, rule):
    def first_half(group):
        net = model(group.rank)
        optimizer = sharded(net, group, rule)
        trained(net, optimizer, group.rank, group.size)
        own, whole, weights = optimizer.state_dict(sharded=True), optimizer.state_dict(), net.state_dict()
        saved = io.BytesIO()
        torch.save((own, whole, {name: value.clone() for name, value in weights.items()}), saved)
        return saved.getvalue(), trained(net, optimizer, group.rank, group.size, range(STEPS, 2 * STEPS)).state_dict()

    four = on_ranks(4, first_half)
    saved = [torch.load(io.BytesIO(content)) for content, _ in four]
    wanted = four[0][1]
    elements = sum(value.numel() for value in wanted.values())
    for own, whole, _ in saved:
        kept = sum(part.numel() for part in own["shard"]["state"].values())
        assert kept <= 2 * (elements / 4 + 2 * 4096), "two vectors of a quarter, up to two blocks"
        assert sum(state["exp_avg"].numel() for state in whole["state"].values()) == elements

    def second_half(group, which):
        net = model()
        optimizer = sharded(net, group, rule)
        net.load_state_dict(saved[group.rank][2])
        optimizer.load_state_dict(saved[group.rank][which])
        return trained(net, optimizer, group.rank, group.size, range(STEPS, 2 * STEPS)).state_dict()

    for which in (0, 1):
        require_equal_bits([wanted, *on_ranks(4, lambda group, which=which: second_half(group, which))])
    require_close(on_ranks(2, lambda group: second_half(group, 1))[0], wanted)
    errors = outcomes(syncopate.Group.threads(2), lambda group: second_half(group, 0))
    assert all(isinstance(error, syncopate.Misuse) and f"rank {rank} of 4" in str(error) for rank, error in enumerate(errors))


@pytest.mark.parametrize("rule", ["nesterov", "adamw"])
def test_a_state_without_steps_begins_anew(on_ranks, rule):
    def body(group):
        net = model()
        weights = {name: value.clone() for name, value in net.state_dict().items()}
        optimizer = sharded(net, group, rule)
        wanted = {name: value.clone() for name, value in trained(net, optimizer, group.rank, group.size).state_dict().items()}
        net.load_state_dict(weights)
        optimizer.load_state_dict(PLAIN[rule](halves(model())).state_dict())
        return wanted, trained(net, optimizer, group.rank, group.size).state_dict()

    for pair in on_ranks(2, body):
        require_equal_bits(pair)


@pytest.mark.parametrize("rule", ["nesterov", "adamw"])
def test_a_state_of_torch_is_continued(on_ranks, rule):
    weights, optimizer = alone(rule)
    weights, state = {name: value.clone() for name, value in weights.items()}, optimizer.state_dict()

    def body(group):
        found = []
        for make in (lambda net: sharded(net, group, rule), lambda net: rule_of_library(net, rule)):
            net = model()
            optimizer = make(net)
            net.load_state_dict(weights)
            optimizer.load_state_dict(copy.deepcopy(state))
            group_rank = (group.rank, group.size) if hasattr(optimizer, "group") else (0, 1)
            found.append(trained(net, optimizer, *group_rank, range(STEPS, 2 * STEPS)).state_dict())
        return found

    plain = model()
    plain.load_state_dict(weights)
    reference = PLAIN[rule](halves(plain))
    reference.load_state_dict(copy.deepcopy(state))
    wanted = trained(plain, reference, steps=range(STEPS, 2 * STEPS)).state_dict()
    for found in on_ranks(2, body)[0]:
        require_close(found, wanted)


@pytest.mark.parametrize(("rule", "ranks"), [("lars", 2), ("lamb", 4)])
def test_divided_norms_give_the_bits_of_a_rank_that_computes_all(on_ranks, rule, ranks):
    def body(group):
        found = []
        for divides in (True, False):
            net = model(group.rank)
            inner = rule_of_library(net, rule)
            optimizer = syncopate.torch.DistributedOptimizer(inner, net, group=group)
            if not divides:
                inner.share_norms(None)
            before = group.traffic_bytes[0]
            found.append((trained(net, optimizer, group.rank, ranks).state_dict(), group.traffic_bytes[0] - before))
            optimizer.synchronizer.close()
        (weights, bytes_), (others, fewer) = found
        require_equal_bits([weights, others])
        return weights, bytes_ - fewer

    weights, bytes_ = zip(*on_ranks(ranks, body), strict=True)
    require_equal_bits(weights)
    require_close(weights[0], alone(rule)[0])
    blocks = sum(-(-p.numel() // 4096) for p in model().parameters() if p.dim() > 1)
    assert sum(bytes_) >= STEPS * 16 * blocks * (ranks - 1), "every rank gets the squares of all others"


@pytest.mark.parametrize("rule", ["momentum", "adamw"])
def test_a_rule_alone_is_torchs_optimizer_also_without_some_gradients_and_after_a_copy(rule):
    net, plain = model(), model()
    optimizer, reference = rule_of_library(net, rule), PLAIN[rule](halves(plain))
    for step in range(STEPS):
        for each in (net, plain):
            each.zero_grad()
            each.uses_spare = step != 1
            backward(each, step)
        optimizer.step(), reference.step()
        saved = io.BytesIO()
        torch.save(optimizer.state_dict(), saved)
        optimizer = rule_of_library(net, rule)
        optimizer.load_state_dict(torch.load(io.BytesIO(saved.getvalue())))
    require_close(net.state_dict(), plain.state_dict())


def test_micro_batches_add_up_and_missing_gradients_are_zero_or_an_error(on_ranks):
    def body(group):
        net, plain = model(), model()
        optimizer, reference = sharded(net, group, "adamw", zero_missing=True), PLAIN["adamw"](halves(plain))
        for step in range(STEPS):
            with optimizer.no_sync():
                backward(net, 2 * step, group.rank, group.size)
            net.uses_spare = plain.uses_spare = step != 1  # in one step only the first micro-batch has this gradient
            backward(net, 2 * step + 1, group.rank, group.size)
            optimizer.step()
            plain.uses_spare = True
            backward(plain, 2 * step)
            plain.uses_spare = net.uses_spare
            backward(plain, 2 * step + 1)
            net.uses_spare = plain.uses_spare = True
            reference.step()
            reference.zero_grad()
        require_close(net.state_dict(), plain.state_dict())
        optimizer.close()

        net.uses_spare = False
        optimizer = sharded(net, group, "sgd", zero_missing=True)
        before = net.spare.weight.detach().clone()
        backward(net, 0, group.rank, group.size)
        optimizer.step()
        require_close(net.state_dict()["spare.weight"], before * (1 - 0.02 * 0.01))
        optimizer.close()
        optimizer = sharded(net, group, "sgd")
        backward(net, 0, group.rank, group.size)
        optimizer.step()

    for error in outcomes(syncopate.Group.threads(2), body):
        assert isinstance(error, (syncopate.Misuse, syncopate.RemoteFailure)) and "'spare." in str(error), error


def test_gradients_are_clipped_by_the_norm_of_all_shards(on_ranks):
    def body(group):
        net, plain = model(), model()
        optimizer, reference = sharded(net, group, "sgd", clip_norm=0.1), PLAIN["sgd"](halves(plain))
        for step in range(2):
            backward(net, step, group.rank, group.size)
            optimizer.step()
            reference.zero_grad()
            backward(plain, step)
            nn.utils.clip_grad_norm_(plain.parameters(), 0.1)
            reference.step()
        require_close(net.state_dict(), plain.state_dict())

    on_ranks(2, body)


def test_a_rank_that_ends_after_its_last_step_leaves_its_weights_to_the_others(job):
    ranks = job(2, """
        import torch
        from torch import nn
        import syncopate.torch
        from device import chosen
        net = nn.Sequential(*[nn.Linear(512, 512) for _ in range(6)]).to(chosen.DEVICE)
        optimizer = syncopate.torch.ShardedOptimizer(net, "adamw", 0.01, group=join(timeout_s=60))
        net(torch.randn(2, 512).to(chosen.DEVICE)).sum().backward()
        optimizer.step()
        if rank == 0:
            say(len(net.state_dict()))
    """)
    assert ranks[0].hear() == 12
    assert [rank.end()[0] for rank in ranks] == [0, 0]


def test_what_cannot_work_is_refused_with_what_is_allowed(on_ranks):
    def body(group):
        def refused(words, call):
            with pytest.raises(syncopate.Misuse, match=words):
                call()

        net = model()
        make = syncopate.torch.ShardedOptimizer
        refused("allowed: sgd, momentum", lambda: make(net, "rmsprop", 0.1, group=group))
        refused("lr is -1", lambda: make(net, "sgd", -1, group=group))
        refused("betas", lambda: make(net, "adamw", 0.1, betas=(0.9, 0.99), group=group))
        refused("eps", lambda: make(net, "adamw", 0.1, eps=1e-3, group=group))
        refused(r"torch\.float32", lambda: make(model().double(), "sgd", 0.1, group=group))
        refused("of which the model has 0", lambda: make(net, "sgd", 0.1, groups=list(model().parameters()), group=group))
        optimizer = sharded(net, group, "adamw")
        refused("groups of parameters", lambda: optimizer.add_param_group({"params": []}))
        refused("of the same rule", lambda: optimizer.load_state_dict(alone("momentum")[1].state_dict()))
        backward(net, 0, group.rank, group.size)
        refused("call step", net.state_dict)
        refused("second gradient", lambda: backward(net, 0, group.rank, group.size))
        optimizer.step()
        refused("three.weight was used before", lambda: net.three.weight.sum().backward())

    on_ranks(2, body)


def test_the_last_steps_of_optimizers_end_in_the_order_in_which_they_were_made(monkeypatch):
    from syncopate.torch.optim import sharded as module

    (group,) = syncopate.Group.threads(1)
    made, ended = [syncopate.torch.ShardedOptimizer(nn.Linear(2, 2).to(DEVICE), "sgd", 0.1, group=group) for _ in range(8)], []
    monkeypatch.setattr(module.ShardedOptimizer, "_end_exchange", lambda self: ended.append(self))
    module._arrive()
    assert [one for one in ended if one in made] == made
