"""Optimizers of models on an accelerator against the same training on the CPU, and mistakes in the order of copies."""

import contextlib
import copy
import zlib
from functools import partial
from unittest import mock

import torch
import torch.distributed as dist
from device.chosen import DEVICE, begin, busy, late
from torch import nn
from torch_device import Freed, Model, NoWaitBefore, NoWaitFor, OneMemory, is_found, own_group, same, stores_of

import syncopate
import syncopate.torch
from syncopate.torch.device import copies, gradients, lane, weights

STEPS = 20
CODECS = ("none", "topk:0.01", "qsgd:4", "low_rank:2", "fp16", "int8", "onebit")


class Pair(nn.Module):
    """A convolution with channels-last weights on one device, and a layer on another."""

    def __init__(self, device, other):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(2, 8, 3).to(memory_format=torch.channels_last).to(device)
        self.last, self._other = nn.Linear(32, 4).to(other), other

    def forward(self, x):
        x = x.view(-1, 2, 4, 4).to(memory_format=torch.channels_last)
        return self.last(self.first(x).relu().flatten(1).to(self._other))


def pair(device):
    """On two devices of one kind where there are two."""
    return Pair(device, f"{device}:1" if device != "cpu" and torch.accelerator.device_count() > 1 else device)


def whole(device, **more):
    """Several tensors of different sizes."""
    return Model(**more).to(device)


def skipping(device):
    """A model that leaves a layer out in every third pass."""
    return whole(device, skips=True)


def trained(device, *, steps=STEPS, make=whole, dtype=torch.float32, micro=1, clips=False, scales=False, clear="zero_grad", lbfgs=False,
            reads=False, **options):
    """The weights after some steps with the DistributedOptimizer.

    reads: and this rank's own gradients, which another hook copies. On a device that may follow the optimizer's: averages come later.
    """
    net = make(device).to(dtype)
    inner = torch.optim.LBFGS(net.parameters(), 0.1, max_iter=3) if lbfgs else torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
    if dist.get_rank() == 1:
        with torch.no_grad():
            net.last.weight.add_(1)  # they become rank 0's
    seen = []
    if reads and device == "cpu":
        copy_gradients(net, seen)
    optimizer = syncopate.torch.DistributedOptimizer(inner, net, **options)
    if reads and device != "cpu":
        copy_gradients(net, seen)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0, enabled=scales)
    generator = torch.Generator().manual_seed(dist.get_rank())

    def passes():
        net.zero_grad(set_to_none=clear == "none") if clear != "zero_grad" else optimizer.zero_grad()
        for part in range(micro):
            with optimizer.no_sync() if part < micro - 1 else contextlib.nullcontext():
                loss = net(batches[part]).square().mean()
                scaler.scale(loss).backward()
        return loss

    for _ in range(steps):
        batches = [torch.randn(8, 32, generator=generator).to(dtype).to(device) for _ in range(micro)]
        if lbfgs:
            optimizer.step(passes)
            continue
        passes()
        if clips:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 0.05)
        scaler.step(optimizer)
        scaler.update()
    wrong = [name for name, p in net.named_parameters() if p.grad.device != p.device]
    optimizer.close()
    return [torch.ones(1) * len(wrong), *(value.detach().cpu() for value in [*net.parameters(), *seen])]


def trainings():
    """By name, the options of `trained`."""
    made = {codec: {"codec": codec} for codec in CODECS}
    made |= {f"policy {policy}": {"policy": policy, "codec": "topk:0.05", "steps": 8} for policy in ("wfbp", "single", "online", "mg_wfbp")}
    made |= {"micro-batches": {"codec": "topk:0.05", "micro": 3, "steps": 8}, "clipping": {"clips": True, "steps": 8},
             "scaler": {"scales": True, "clips": True, "steps": 8}, "clip_norm": {"clip_norm": 0.05, "steps": 8},
             "set to none": {"clear": "none", "steps": 8}, "zeroed in place": {"clear": "in place", "steps": 8},
             "f64": {"dtype": torch.float64, "steps": 8},
             "zero_missing": {"make": skipping, "zero_missing": True, "codec": "topk:0.05", "steps": 8},
             "channels-last on two devices": {"make": pair, "codec": "topk:0.05", "steps": 8}, "closure": {"lbfgs": True, "steps": 4}}
    return made


def copy_gradients(net, seen):
    """Add a copy of each gradient to the list when it is computed."""
    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(lambda parameter: seen.append(parameter.grad * 1))


RULES = ("sgd", "momentum", "adamw", "lars", "lamb")


def updated_by_the_library(device, *, kind, rule="momentum", steps=8, micro=1, place=None, make=whole, changes=False, loads=False, **options):
    """The weights after some steps with an optimizer whose updates the library makes, and its state if it can be saved."""
    net = make(device)
    if dist.get_rank() == 1:
        with torch.no_grad():
            net.last.weight.add_(1)
    optimizer = MADE[kind](net, rule, place, **options)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(micro):
            with optimizer.no_sync() if part < micro - 1 else contextlib.nullcontext():
                net(torch.randn(8, 32, generator=generator).to(device)).square().mean().backward()
        optimizer.step()
        if changes and step == 3:
            state = net.state_dict()  # which synchronizes
            net.load_state_dict({name: value * 0.5 for name, value in state.items()})
        if loads and step == 5:
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    state, seen = {}, []
    if kind == "served":
        for _ in range(2):  # a step without gradients follows at once
            optimizer.synchronize()
            if device == DEVICE:
                busy(0.3)  # the answer to the next step comes before the weights are read
            seen += [value.detach() * 1 for value in net.parameters()]
            optimizer.step()
        optimizer.finish()
    else:
        state = optimizer.state_dict()["state"]
    if kind != "alone":
        optimizer.close()
    return [*(value.cpu() for value in seen), *(value.detach().cpu() for value in net.parameters()),
            *(torch.as_tensor(part).cpu().float() for one in state.values() for part in one.values())]


def alone(net, rule, _, **options):
    """Each rank for itself, with the weights of rank 0."""
    with torch.no_grad():
        net.last.weight.sub_(1 if dist.get_rank() == 1 else 0)
    made = syncopate.torch.RuleOptimizer(net.parameters(), rule, 0.01, **options)
    made.no_sync = contextlib.nullcontext
    return made


def served(net, rule, place, **options):
    """With a server in the process of rank 0."""
    inner = {"momentum": lambda: torch.optim.SGD(net.parameters(), 0.01, momentum=0.9), "adamw": lambda: torch.optim.AdamW(net.parameters(), 0.01)}
    return syncopate.torch.ServedOptimizer(inner[rule](), net, servers=[place], worker=dist.get_rank(), workers=2, timeout_s=60, **options)


MADE = {
    "alone": alone, "served": served,
    "averaged": lambda net, rule, _, **options: syncopate.torch.DistributedOptimizer(
        syncopate.torch.RuleOptimizer(net.parameters(), rule, 0.01), net, **options),
    "sharded": lambda net, rule, _, **options: syncopate.torch.ShardedOptimizer(net, rule, 0.01, **options),
}


def updates():
    """By name, the options of `updated_by_the_library`."""
    made = {f"{kind} {rule}": {"kind": kind, "rule": rule} for kind in ("alone", "averaged", "sharded") for rule in RULES}
    made |= {f"served {codec}": {"kind": "served", "codec": codec, "rule": "adamw"} for codec in CODECS if codec != "low_rank:2"}
    for kind in ("alone", "averaged", "sharded"):
        made[f"{kind} with changed weights"] = {"kind": kind, "changes": True}
        made[f"{kind} with a loaded state"] = {"kind": kind, "rule": "adamw", "loads": True}
    made |= {f"{kind} micro-batches": {"kind": kind, "micro": 3} for kind in ("averaged", "sharded", "served")}
    made["sharded without a gradient"] = {"kind": "sharded", "make": skipping, "zero_missing": True}
    made["served without a gradient"] = {"kind": "served", "make": skipping}
    return made


def updates_as_on_the_cpu(rank, size, store):
    """Names of trainings whose weights, or states, are not those of the CPU."""
    begin(rank, size, store)
    wrong = []
    for name, options in updates().items():
        with late(operator_us=30, copy_us=1000):
            found = with_server(store, DEVICE, options)
        wrong += [] if same(found, with_server(store, "cpu", options)) else [name]
    dist.destroy_process_group()
    return wrong


def with_server(store, device, options):
    """`updated_by_the_library`, with a server if it needs one."""
    if options["kind"] != "served":
        return updated_by_the_library(device, **options)
    place = f"@staged{zlib.crc32(store.encode())}"
    with syncopate.Server.start([place]) if dist.get_rank() == 0 else contextlib.nullcontext():
        dist.barrier()
        found = updated_by_the_library(device, place=place, **options)
        dist.barrier()  # the server ends when both have their weights
    return found


def as_on_the_cpu(rank, size, store):
    """Names of trainings whose weights are not those of the CPU."""
    begin(rank, size, store)
    wrong = []
    for name, options in trainings().items():
        with late(operator_us=30, copy_us=1000):
            found = trained(DEVICE, **options)
        wrong += [] if same(found, trained("cpu", **options)) else [name]
    dist.destroy_process_group()
    return wrong


def half_types(rank, size, store):
    """Values of 16 bits: the averages of given gradients are the CPU's."""
    begin(rank, size, store)
    wrong = []
    for dtype in (torch.float16, torch.bfloat16):
        averages = []
        for device in (DEVICE, "cpu"):
            net = nn.Linear(64, 64, bias=False).to(dtype).to(device)
            optimizer = syncopate.torch.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net, codec="topk:0.1")
            drawn = torch.randn(64, 64, generator=torch.Generator().manual_seed(rank)).to(dtype)
            with late(operator_us=300, copy_us=1000):
                (net(torch.eye(64, dtype=dtype).to(device)) * drawn.to(device)).sum().backward()  # the gradient is `drawn`
                averages.append(net.weight.grad.cpu())
            optimizer.close()
        wrong += [] if same(averages[:1], averages[1:]) else [str(dtype)]
    dist.destroy_process_group()
    return wrong


class NoWaitUp(copies.Copies):
    """Copies up do not wait for a stream that uses what they change."""

    def follow(self):
        pass


class NoWaitAfter(copies.Copies):
    """The current stream goes on before averages are on the device."""

    @staticmethod
    def _await(event):
        del event


class NoWaitForHost(gradients.StagedGradients):
    """The exchange begins when a gradient is computed, not when it has arrived."""

    def ready(self, i):
        self._crossings[i] = self.copies.down(i, self.views[i])
        self._arrived(i, self._crossings[i].host)


# By name: the place, the class that replaces the one there, and delays with which it is found.
MISTAKES = {
    "no wait before the copy down": (copies, "Lane", NoWaitBefore, {"operator_us": 2000}),
    "no wait for the copy down": (lane, "Crossing", NoWaitFor, {"copy_us": 10_000}),
    "the exchange does not wait for the copy down": (gradients, "StagedGradients", NoWaitForHost, {"copy_us": 10_000}),
    "the optimizer does not wait for the copy up": (gradients, "Copies", NoWaitAfter, {"copy_us": 10_000}),
    "pinned memory is used again before its copy up ends": (copies, "Lane", OneMemory, {"copy_us": 5000}),
    "averages replace gradients that a stream reads": (gradients, "Copies", NoWaitUp, {"operator_us": 20_000}),
    "memory of the device is freed during its copy": (copies, "Lane", Freed, {"copy_us": 10_000}),
}


def differs(train, wanted, place, replaced, planted, delays):
    """Whether training with this mistake goes on to other weights than those of the CPU."""
    with mock.patch.object(place, replaced, planted), late(**delays):
        return not same(train(DEVICE), wanted)


def undetected(rank, size, store):
    """Names of mistakes that no rank finds."""
    stores = stores_of(store)

    def train(device):
        return trained(device, steps=4, reads=True)

    with own_group(rank, size, stores):
        wanted = train("cpu")
    missed = [name for name, mistake in MISTAKES.items() if not is_found(rank, size, stores, partial(differs, train, wanted, *mistake))]
    with own_group(rank, size, stores), late(operator_us=2000, copy_us=5000):
        missed += [] if same(train(DEVICE), wanted) else ["nothing is planted, and the weights differ"]
    return missed


class NoWaitForUp(weights.StagedTables):
    """The worker changes weights that are being copied up."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._ups = mock.MagicMock()


# By the kind of optimizer and name.
MISTAKES_OF_UPDATES = {kind: {
    "no wait before the copy down": (copies, "Lane", NoWaitBefore, {"operator_us": 2000}),
    "no wait for the copy down": (lane, "Crossing", NoWaitFor, {"copy_us": 10_000}),
    "the forward pass does not wait for the copy up": (weights, "Copies", NoWaitAfter, {"copy_us": 10_000}),
} for kind in ("alone", "sharded", "served")}
MISTAKES_OF_UPDATES["sharded"]["memory of the device is freed during its copy"] = (copies, "Lane", Freed, {"copy_us": 10_000})
MISTAKES_OF_UPDATES["served"]["weights replace those that a stream reads"] = (weights, "Copies", NoWaitUp, {"operator_us": 20_000})
MISTAKES_OF_UPDATES["served"]["the worker changes weights while they are copied up"] = (
    syncopate.torch.server.optimizer, "StagedTables", NoWaitForUp, {"copy_us": 10_000})


def undetected_of_updates(rank, size, store):
    """Names of mistakes that no rank finds."""
    stores, missed = stores_of(store), []
    for kind, mistakes in MISTAKES_OF_UPDATES.items():
        train = partial(with_server, store, options={"kind": kind, "steps": 4})
        with own_group(rank, size, stores):
            wanted = train("cpu")
        missed += [f"{kind}: {name}" for name, mistake in mistakes.items()
                   if not is_found(rank, size, stores, partial(differs, train, wanted, *mistake))]
    return missed


def errors_between_the_copies(rank, size, store):
    """The texts after an error on rank 1, before a copy down and after it."""
    begin(rank, size, store)
    found = []
    for place, name in ((lane.Lane, "_pinned"), (lane.Crossing, "wait")):
        net = Model().to(DEVICE)
        optimizer = syncopate.torch.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.02), net)

        def fail(*_):
            raise RuntimeError("the device is lost")

        text = "nothing"
        with mock.patch.object(place, name, fail) if rank == 1 else contextlib.nullcontext(), late(copy_us=1000):
            try:
                net(torch.ones(8, 32).to(DEVICE)).square().mean().backward()
            except (RuntimeError, syncopate.Error) as error:
                text = str(error)
        with contextlib.suppress(syncopate.Error):
            optimizer.close()
        found.append(text)
    dist.destroy_process_group()
    return found
