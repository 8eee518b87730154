"""Optimizers of models on an accelerator against the same training on the CPU, and mistakes in the order of copies."""

import contextlib
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn

import syncopate
import syncopate.torch
from syncopate.torch import lane, staged
from torch_device import DEVICE, Freed, Model, NoWaitBefore, NoWaitFor, OneMemory, begin, late, same

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
            **options):
    """The weights after some steps with the DistributedOptimizer."""
    net = make(device).to(dtype)
    inner = torch.optim.LBFGS(net.parameters(), 0.1, max_iter=3) if lbfgs else torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
    if dist.get_rank() == 1:
        with torch.no_grad():
            net.last.weight.add_(1)  # they become rank 0's
    optimizer = syncopate.torch.DistributedOptimizer(inner, net, **options)
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
    return [torch.ones(1) * len(wrong), *(value.detach().cpu() for value in net.parameters())]


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


class NoWaitAfter(staged.Copies):
    """The current stream goes on before averages are on the device."""

    @staticmethod
    def _await(event):
        del event


class NoWaitForHost(staged.StagedGradients):
    """The exchange begins when a gradient is computed, not when it has arrived."""

    def ready(self, i):
        self._crossings[i] = self._copies.down(i, self.views[i])
        self._arrived(i, self._crossings[i].host)


# By name: the place, the class that replaces the one there, and delays with which it is found.
MISTAKES = {
    "no wait before the copy down": (staged, "Lane", NoWaitBefore, {"operator_us": 2000}),
    "no wait for the copy down": (lane, "Crossing", NoWaitFor, {"copy_us": 10_000}),
    "the exchange does not wait for the copy down": (staged, "StagedGradients", NoWaitForHost, {"copy_us": 10_000}),
    "the optimizer does not wait for the copy up": (staged, "Copies", NoWaitAfter, {"copy_us": 10_000}),
    "pinned memory is used again before its copy up ends": (staged, "Lane", OneMemory, {"copy_us": 5000}),
    "memory of the device is freed during its copy": (staged, "Lane", Freed, {"copy_us": 10_000}),
}


def undetected(rank, size, store):
    """Names of mistakes with which training goes on to the weights of the CPU."""
    begin(rank, size, store)
    missed, wanted = [], trained("cpu", steps=4)
    for name, (place, replaced, planted, delays) in MISTAKES.items():
        try:
            with mock.patch.object(place, replaced, planted), late(**delays):
                found = trained(DEVICE, steps=4)
        except (RuntimeError, syncopate.Error):
            continue
        missed += [name] if same(found, wanted) else []
    with late(operator_us=2000, copy_us=5000):
        missed += [] if same(trained(DEVICE, steps=4), wanted) else ["nothing is planted, and the weights differ"]
    dist.destroy_process_group()
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
