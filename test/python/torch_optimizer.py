"""DistributedOptimizer on ranks of a job against one process alone that takes all samples."""

import copy

import torch
from device import chosen
from device.chosen import DEVICE
from torch import nn
from torch_training import batch, differences

import syncopate
import syncopate.torch

STEPS = 5
HALF_CODECS = ("none", "topk:0.01", "low_rank:4", "qsgd", "int8", *(["importance"] if DEVICE == "cpu" else []))  # it looks at weights on the CPU


def model(rank=0):
    """Initially rank 0's: others begin with other weights."""
    torch.manual_seed(rank)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64, momentum=0.0), nn.Linear(64, 4)).double().eval()


def adam(net):
    """Two groups of parameters with their own rates."""
    return torch.optim.Adam([{"params": net[0].parameters()}, {"params": [p for layer in net[1:] for p in layer.parameters()], "lr": 0.02}],
                            lr=0.01)


def loss_of(net, step, share):
    samples, targets = (tensor[share] for tensor in batch(step))
    return nn.functional.mse_loss(net(samples), targets)


def own(rank, size):
    return slice(rank * 8 // size, (rank + 1) * 8 // size)


def trained(net, optimizer, share, clear):
    """Clipped gradients and a falling rate; `clear` removes the gradients."""
    rate = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for step in range(STEPS):
        clear(net, optimizer)
        loss_of(net, step, share).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()
        rate.step()
    return net.state_dict()


CLEARS = {"zero_grad": lambda net, optimizer: optimizer.zero_grad(), "set to none": lambda net, _: net.zero_grad(set_to_none=True),
          "zeroed in place": lambda net, _: net.zero_grad(set_to_none=False)}


def as_alone(group, rank, size):
    """Weights are those of one process, however gradients are cleared, and lie where they are exchanged."""
    wrong = []
    for name, clear in CLEARS.items():
        alone = model()
        wanted = trained(alone, adam(alone), slice(0, 8), clear)
        for policy in ("fusion", "wfbp", "online"):
            net = model(rank)
            optimizer = syncopate.torch.DistributedOptimizer(adam(net), net, group=group, policy=policy)
            places = [p.grad.data_ptr() for p in net.parameters()]
            found = trained(net, optimizer, own(rank, size), clear)
            if differences(found, wanted) or places != [p.grad.data_ptr() for p in net.parameters()]:
                wrong.append(f"{name}, {policy}: {differences(found, wanted)}")
            optimizer.synchronizer.close()
    return wrong


def strides(group, rank, size):
    """Parameters become rank 0's, whatever their strides."""
    def of(seed):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Conv2d(3, 4, 2).to(memory_format=torch.channels_last), nn.Linear(4, 3))
        net[1].weight = nn.Parameter(torch.randn(4, 3).t())
        return net

    net = of(rank)
    syncopate.torch.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net, group=group).synchronizer.close()
    wanted = of(0).state_dict()
    return [name for name, value in net.state_dict().items() if not torch.equal(value, wanted[name])]


def micro_batches(group, rank, size):
    """Gradients of two backward passes add up before they are exchanged."""
    alone, net = model(), model()
    optimizer = syncopate.torch.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net, group=group)
    reference = torch.optim.SGD(alone.parameters(), 0.1)
    for step in range(STEPS):
        reference.zero_grad()
        for part in (2 * step, 2 * step + 1):
            loss_of(alone, part, slice(0, 8)).backward()
        reference.step()
        optimizer.zero_grad()
        with optimizer.no_sync():
            loss_of(net, 2 * step, own(rank, size)).backward()
        loss_of(net, 2 * step + 1, own(rank, size)).backward()
        optimizer.step()
    optimizer.synchronizer.close()
    return differences(net.state_dict(), alone.state_dict())


def skipped_steps(group, rank, size):
    """A step with an infinity on one rank is skipped by all, and the codec's state is as if it had not been."""
    results = []
    for strikes in ((), (2,)):
        net = model().float()
        optimizer = syncopate.torch.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net, group=group, codec="topk:0.1",
                                                         dense_below=0)
        scaler = torch.amp.GradScaler(DEVICE, init_scale=1024.0, growth_interval=10**6, backoff_factor=1 - 1e-16)
        for step in (0, 1, *strikes, 3):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(batch(step)[0][own(rank, size)].float()), batch(step)[1][own(rank, size)].float())
            scaler.scale(loss * (float("inf") if step in strikes and rank == 0 else 1)).backward()
            scaler.step(optimizer)
            scaler.update()
        results.append((copy.deepcopy(net.state_dict()), optimizer.synchronizer.save()))
        optimizer.synchronizer.close()
    (weights, state), (others, other_state) = results
    return ([] if all(torch.equal(weights[name], others[name]) for name in weights) else ["weights"]) + \
        ([] if state == other_state else ["codec state"])


def half_models(group, rank, size):
    """A step's averages of bfloat16 are those of a synchronizer in f32, rounded once."""
    wrong = []
    for codec in HALF_CODECS:
        net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 4)).bfloat16()
        optimizer = syncopate.torch.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net, group=group, codec=codec, policy="wfbp")
        twin = copy.deepcopy(net)
        values = [p.detach().cpu().float() for p in twin.parameters()]
        averages = syncopate.Synchronizer(group, [syncopate.Gradient(name, tuple(p.shape)) for name, p in twin.named_parameters()],
                                          codec=codec, policy="wfbp", weights=values)
        for step in range(STEPS):
            twin.load_state_dict(net.state_dict())
            for value, p in zip(values, twin.parameters(), strict=True):
                value.copy_(p.detach())
            for of, clear in ((net, optimizer.zero_grad), (twin, twin.zero_grad)):
                clear()
                samples, targets = (tensor[own(rank, size)].bfloat16() for tensor in batch(step))
                (of(samples) - targets).square().mean().backward()
            optimizer.synchronize()  # before the other begins: they share a group
            for i, p in reversed(list(enumerate(twin.parameters()))):
                torch.from_dlpack(averages.gradient(i)).copy_(p.grad)
                averages.ready(i)
            averages.wait()
            same = [torch.equal(p.grad.cpu(), torch.from_dlpack(averages.gradient(i)).bfloat16()) for i, p in enumerate(net.parameters())]
            wrong += [] if all(same) else [f"{codec}, step {step}: {same}"]
            optimizer.step()
        optimizer.synchronizer.close()
        averages.close()
    return wrong


def refusals(group):
    """Texts of what is refused."""
    net, other = model(), model()
    texts = []
    for call in (lambda: syncopate.torch.DistributedOptimizer(adam(net), other, group=group),
                 lambda: syncopate.torch.DistributedOptimizer(adam(net), net, group=group, exchange="reduce_broadcast"),
                 lambda: syncopate.torch.DistributedOptimizer(adam(net), net, group=group).add_param_group({"params": []})):
        try:
            call()
            texts.append("")
        except syncopate.Misuse as error:
            texts.append(str(error))
    return texts


def hooks(group):
    """Every kind of hook of torch's optimizers is called once by one step, one save and one load; returns those that were not."""
    net = model()
    optimizer = syncopate.torch.DistributedOptimizer(adam(net), net, group=group)
    kinds = [name for name in dir(torch.optim.Optimizer) if name.startswith("register_") and name.endswith("_hook")]
    called = []
    for kind in kinds:
        getattr(optimizer, kind)(lambda *_, kind=kind: called.append(kind))
    net(batch(0)[0]).sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.synchronizer.close()
    return [kind for kind in kinds if called.count(kind) != 1]


def ends(group, rank, size):
    """After `close` another wrapper takes over the parameters; the group that was given stays open."""
    net, alone = model(), model()
    for step in range(2):
        optimizer = syncopate.torch.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net, group=group)
        for of, part in ((net, own(rank, size)), (alone, slice(None))):
            samples, targets = (tensor[part] for tensor in batch(step))
            of.zero_grad()
            (of(samples) - targets).square().mean().backward()
        optimizer.step()
        optimizer.close()
        torch.optim.SGD(alone.parameters(), 0.1).step()
    same = [torch.allclose(a, b, atol=1e-6) for a, b in zip(net.parameters(), alone.parameters(), strict=True)]
    return [] if all(same) else [f"weights: {same}"]


def everything(rank, size, store):
    """Returns what is wrong, by name."""
    chosen.make_default()
    with syncopate.Group.join(rank=rank, size=size, rendezvous=store + "-folder") as group:
        wrong = {part.__name__: part(group, rank, size) for part in (as_alone, strides, micro_batches, skipped_steps, half_models, ends)}
        wrong["hooks"] = hooks(group)
        wrong["refused"] = refusals(group)
    return wrong
