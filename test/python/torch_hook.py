"""The hook for DDP against plain DDP, a synchronizer and NumPy, on the same gradients in the same processes."""

import copy
import datetime
import io
import pickle
import sys
from pathlib import Path
from unittest import mock

import numpy
import torch
import torch.distributed as dist
from device import chosen
from device.chosen import DEVICE
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import syncopate
import syncopate.torch

sys.path.insert(0, str(Path(__file__).parents[2] / "example" / "python"))
import own_codec as own_topk

STEPS = 6
HALF_CODECS = ("none", "topk:0.01", "low_rank:4", "qsgd", "int8")
CODECS = {"fp16": {}, "topk:0.01": {"feedback": "residual"}, "low_rank:2": {"feedback": "residual"}}


def model():
    """Several of DDP's buckets, with matrices that codecs take; the same on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 160), nn.ReLU(), nn.Linear(160, 4))


def wrapped(state=None, of=None):
    net = DistributedDataParallel(of or model(), bucket_cap_mb=0.05)
    if state is not None:
        state.attach(net)
        net.register_comm_hook(state, syncopate.torch.hook)
    return net


def backward(net, rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    net.zero_grad()
    net(torch.randn(8, 32, generator=generator, device="cpu").to(DEVICE)).square().sum().backward()


def train(net, rank, steps, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(net.parameters(), 1e-4, momentum=0.9)
    for step in steps:
        backward(net, rank, step)
        optimizer.step()
    return optimizer


def bits(net):
    return [parameter.detach().cpu().numpy().tobytes() for parameter in net.parameters()]


def same_bits_without_codec(rank):
    """A power of two divides without rounding, before the sum as DDP does and behind it."""
    plain, hooked = wrapped(), wrapped(syncopate.torch.HookState())
    for net in (plain, hooked):
        train(net, rank, range(STEPS))
    return [] if bits(plain) == bits(hooked) else ["weights differ from plain DDP"]


def law_of_the_synchronizer(rank, codec, options):
    """Each step's averages are those of a synchronizer that gets the same gradients, in other buckets."""
    group = syncopate.torch.shared.rendezvous.own_group()
    twin = model()
    names = list(twin.named_parameters())
    averages = syncopate.Synchronizer(group, [syncopate.Gradient(name, tuple(p.shape)) for name, p in names], codec=codec, **options)
    views = [torch.from_dlpack(averages.gradient(i)) for i in range(len(names))]
    net = wrapped(syncopate.torch.HookState(codec=codec, **options))
    wrong = []
    for step in range(STEPS):
        backward(net, rank, step)
        backward(twin, rank, step)
        for i in reversed(range(len(names))):
            views[i].copy_(names[i][1].grad)
            averages.ready(i)
        averages.wait()
        same = [torch.equal(p.grad.cpu(), view) for p, view in zip(net.parameters(), views, strict=True)]
        wrong += [] if all(same) else [f"{codec}, step {step}: {same}"]
    return wrong


def half_model(rank, codec):
    """Gradients of bfloat16 become what a synchronizer makes of them in f32, rounded once."""
    group = syncopate.torch.shared.rendezvous.own_group()
    net, twin = wrapped(syncopate.torch.HookState(codec=codec), model().bfloat16()), model().bfloat16()
    names = list(twin.named_parameters())
    averages = syncopate.Synchronizer(group, [syncopate.Gradient(name, tuple(p.shape)) for name, p in names], codec=codec)
    views = [torch.from_dlpack(averages.gradient(i)) for i in range(len(names))]
    wrong = []
    for step in range(STEPS):
        for of in (net, twin):
            generator = torch.Generator().manual_seed(100 * step + rank)
            of.zero_grad()
            of(torch.randn(8, 32, generator=generator, device="cpu").bfloat16().to(DEVICE)).square().sum().backward()
        for i in reversed(range(len(names))):
            views[i].copy_(names[i][1].grad)
            averages.ready(i)
        averages.wait()
        same = [torch.equal(p.grad.cpu(), view.bfloat16()) for p, view in zip(net.parameters(), views, strict=True)]
        wrong += [] if all(same) else [f"step {step}: {same}"]
    return wrong


def residuals_in_numpy(rank):
    """topk of one matrix by the formula: r + g is sent where it is largest, and the rest kept."""
    width, density = 100, 0.01
    net = nn.Linear(width, width, bias=False)
    nn.init.zeros_(net.weight)
    state = syncopate.torch.HookState(codec=f"topk:{density}")
    hooked = wrapped(state, net)
    size, kept = dist.get_world_size(), numpy.zeros((dist.get_world_size(), width * width), numpy.float32)
    wrong = []
    for step in range(STEPS):
        drawn = [numpy.random.default_rng((step, r)).standard_normal((width, width), numpy.float32) for r in range(size)]
        hooked.zero_grad()
        # The gradient of <W x, x'> summed over unit vectors x is any matrix.
        (hooked(torch.eye(width)) * torch.from_numpy(drawn[rank].T.copy()).to(DEVICE)).sum().backward()
        average = numpy.zeros(width * width, numpy.float32)
        for r in range(size):
            kept[r] += drawn[r].ravel()
            chosen = numpy.argsort(-numpy.abs(kept[r]))[:round(density * width * width)]
            average[chosen] += kept[r][chosen] / numpy.float32(size)
            kept[r][chosen] = 0
        wrong += [] if numpy.allclose(net.weight.grad.cpu().numpy().ravel(), average, rtol=1e-6, atol=1e-7) else [f"step {step}"]
    return wrong


def resumed(rank):
    """A pickled state and its model continue as the originals do."""
    state = syncopate.torch.HookState(codec="topk:0.01")
    net = wrapped(state)
    optimizer = train(net, rank, range(3))
    file = io.BytesIO()
    torch.save({"model": net.module.state_dict(), "optimizer": optimizer.state_dict(), "hook": state.state_dict()}, file)
    copied = pickle.loads(pickle.dumps(state))
    train(net, rank, range(3, STEPS), optimizer)
    wanted = bits(net)
    file.seek(0)
    saved = torch.load(file, weights_only=False)
    loaded = syncopate.torch.HookState(codec="topk:0.01")
    loaded.load_state_dict(saved["hook"])
    wrong = []
    for name, again in (("pickled", copied), ("loaded", loaded), ("forgotten", syncopate.torch.HookState(codec="topk:0.01"))):
        other = model()
        other.load_state_dict(saved["model"])
        other = wrapped(again, other)
        optimizer = torch.optim.SGD(other.parameters(), 1e-4, momentum=0.9)
        optimizer.load_state_dict(copy.deepcopy(saved["optimizer"]))
        train(other, rank, range(3, STEPS), optimizer)
        wrong += [] if (bits(other) == wanted) == (name != "forgotten") else [name]
        again.close()
    return wrong


def uneven(rank):
    """DDP's join: ranks that have no more inputs take part with zeros; rank 0's weights count at the end."""
    net = wrapped(syncopate.torch.HookState(codec="topk:0.01"))
    optimizer = torch.optim.SGD(net.parameters(), 1e-4)
    with net.join():
        train(net, rank, range(2 + rank), optimizer)
    everywhere = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, bits(net))
    return [] if all(one == everywhere[0] for one in everywhere) else ["weights differ between ranks"]


def refused():
    """Unsupported uses raise errors that name them."""
    texts = []
    for call in (lambda: wrapped(syncopate.torch.HookState(codec="zip")), lambda: wrapped(syncopate.torch.HookState(exchange="barter"))):
        try:
            backward(call(), 0, 0)
        except (RuntimeError, syncopate.Misuse) as error:
            texts.append(str(error))
    return [text for text in texts if "allowed" not in text] if len(texts) == 2 else ["nothing was refused"]


def ended(rank):
    """A state that was closed, twice, has left its group and rejects further buckets."""
    state = syncopate.torch.HookState()
    net = wrapped(state)
    train(net, rank, range(1))
    state.close()
    state.close()
    try:
        backward(net, rank, 1)
    except (RuntimeError, syncopate.Misuse) as error:
        if "was closed" not in str(error):
            return [str(error)]
        try:
            state.state_dict()
        except syncopate.Misuse as refusal:
            return [] if "save it before close()" in str(refusal) else [str(refusal)]
    return ["a bucket was taken, or the state was given"]


def timeouts(rank):
    """Those of the process group, unless there is one of its own."""
    del rank
    short = dist.new_group(timeout=datetime.timedelta(seconds=77))
    joined = []
    with mock.patch.object(syncopate.torch.shared.rendezvous, "join", lambda *arguments: joined.append(arguments[-1])):
        syncopate.torch.shared.rendezvous.own_group()
        syncopate.torch.shared.rendezvous.own_group(short)
        syncopate.torch.shared.rendezvous.own_group(short, 5)
    return [] if joined == [1800, 77, 5] else joined


def own_codec(rank):
    """A codec in Python with the bits of the library's, also after its state has been pickled."""
    nets = []
    for codec in (own_topk.codec, "topk:0.01"):
        state = syncopate.torch.HookState(codec=codec, dense_below=0)
        net = wrapped(state)
        train(net, rank, range(3))
        restored = pickle.loads(pickle.dumps(state))
        restored.load_state_dict(state.state_dict())
        again = wrapped(restored, of=copy.deepcopy(net.module))
        train(again, rank, range(3, STEPS))
        nets.append(bits(again))
    return [] if nets[0] == nets[1] else ["weights differ from those with topk"]


def everything(rank, size, store):
    """Returns what is wrong, by name."""
    chosen.begin(rank, size, store, "syncopate" if syncopate.torch.Backend.is_supported() else "gloo")  # the hook has a group of its own
    chosen.make_default()
    wrong = {"bits": same_bits_without_codec(rank), "residuals": residuals_in_numpy(rank), "resumed": resumed(rank),
             "uneven": uneven(rank), "refused": refused(), "own codec": own_codec(rank), "ended": ended(rank), "timeouts": timeouts(rank)}
    if size == 2:  # then every order of adding gives the same bits, so that other buckets compare
        wrong |= {codec: law_of_the_synchronizer(rank, codec, options) for codec, options in CODECS.items()}
        wrong |= {f"{codec} in bfloat16": half_model(rank, codec) for codec in HALF_CODECS}
    dist.destroy_process_group()
    return {name: what for name, what in wrong.items() if what}
