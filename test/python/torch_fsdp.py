"""FSDP2 within hosts and the library's codecs between them, against native HSDP; hosts are rows of the mesh."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from device import chosen
from device.chosen import DEVICE, late
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

import syncopate
import syncopate.torch
from syncopate.torch import fsdp

HOSTS = int(os.environ.get("HOSTS", "2"))
STEPS, WIDTH, ROWS = 8, 24, 37  # 37 rows are not divisible by the ranks of a host


def begin(rank, size, store):
    """The process group, and the mesh of hosts and their ranks."""
    backend = os.environ.get("BACKEND", "gloo")
    if backend == "syncopate":
        syncopate.torch.register()
    chosen.begin(rank, size, store, backend)
    return init_device_mesh(DEVICE, (HOSTS, size // HOSTS), mesh_dim_names=("host", "rank"))


def model(mesh, **options):
    """Three blocks, each a unit of its own, and an end that belongs to the root's."""
    torch.manual_seed(0)
    block = lambda: torch.nn.Sequential(torch.nn.Linear(WIDTH, ROWS), torch.nn.Tanh(), torch.nn.Linear(ROWS, WIDTH, bias=False))
    net = torch.nn.Sequential(block(), block(), block(), torch.nn.Linear(WIDTH, 1)).to(DEVICE)
    for layer in list(net)[:3]:
        fully_shard(layer, mesh=mesh, **options)
    return fully_shard(net, mesh=mesh, **options)


def batch(rank, step):
    """This rank's input of a step."""
    return torch.randn(16, WIDTH, generator=torch.Generator().manual_seed(1000 * step + rank))


def train(net, steps=range(STEPS)):
    """The weights after these steps."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in steps:
        optimizer.zero_grad()
        values = batch(dist.get_rank(), step).to(DEVICE)
        (net(values) - values.sum(1, keepdim=True).sin()).square().mean().backward()
        optimizer.step()
    return weights(net)


def weights(net):
    """All weights, from all ranks of the host, on the CPU."""
    return torch.cat([(value.full_tensor() if isinstance(value, DTensor) else value).detach().cpu().flatten() for value in net.parameters()])


def against_native(rank, size, store):
    """Whether the weights without a codec are those of native HSDP, in f32 and with gradients reduced in bf16."""
    mesh = begin(rank, size, store)
    equal = []
    for options in ({}, {"mp_policy": MixedPrecisionPolicy(reduce_dtype=torch.bfloat16)}):
        native = train(model(mesh, **options))
        net = model(mesh["rank"], **options)
        exchange = fsdp.compress(net, mesh)
        equal.append(torch.equal(train(net), native))
        exchange.close()
    return equal


def coded(rank, size, store):
    """By codec: the weights' bytes, and the bytes that this rank sent to other hosts in a step."""
    mesh = begin(rank, size, store)
    found = {}
    for codec in os.environ["CODECS"].split():
        net = model(mesh["rank"])
        with_codec = fsdp.compress(net, mesh, codec=codec, dense_below=0)
        before = with_codec.group.traffic_bytes[0]
        with late(operator_us=30, copy_us=1000):
            trained = train(net)
        found[codec] = trained.numpy().tobytes(), (with_codec.group.traffic_bytes[0] - before) / STEPS
        with_codec.close()
    return found


def bytes_between_hosts(rank, size, store):
    """Those that a host sends in a step with `topk:0.01`: by sharded hosts, and by the flat exchange of all ranks' whole gradients."""
    mesh = begin(rank, size, store)
    layer = torch.nn.Linear(256, 256, bias=False)
    whole = torch.nn.parallel.DistributedDataParallel(layer)
    state = syncopate.torch.HookState(layer, codec="topk:0.01")
    whole.register_comm_hook(state, syncopate.torch.hook)
    net = fully_shard(torch.nn.Linear(256, 256, bias=False), mesh=mesh["rank"])
    exchange = fsdp.compress(net, mesh, codec="topk:0.01")
    sent = []
    for module, group in ((net, lambda: exchange.group), (whole, lambda: state.group)):
        module(torch.ones(1, 256)).sum().backward()
        before = group().traffic_bytes[0]
        module(torch.randn(4, 256)).square().sum().backward()
        sent.append(group().traffic_bytes[0] - before)
    of_host = torch.tensor(float(sent[0]))
    dist.all_reduce(of_host, group=mesh.get_group(1))
    state.close()
    return float(of_host), sent[1]  # in a ring one rank of a host sends to the next host


def checkpoint(rank, size, store):
    """Whether a run that goes on from a checkpoint has the weights of one that was not interrupted, and differs without the codec's state."""
    mesh = begin(rank, size, store)

    def coding(net):
        return fsdp.compress(net, mesh, codec="topk:0.1", dense_below=0)

    whole = model(mesh["rank"])
    exchange = coding(whole)
    train(whole, range(4))
    folder = Path(store.removeprefix("file://")).parent / "checkpoint"
    dcp.save({"net": whole.state_dict(), "exchange": exchange}, checkpoint_id=folder)
    expected = train(whole, range(4, STEPS))
    facts = []
    for keeps_state in (True, False):
        net = model(mesh["rank"])
        again = coding(net)
        values = net.state_dict()
        dcp.load({"net": values, **({"exchange": again} if keeps_state else {})}, checkpoint_id=folder)
        net.load_state_dict(values)
        facts.append(torch.equal(train(net, range(4, STEPS)), expected))
    return facts


def accumulation(rank, size, store):
    """Whether two backward passes before an exchange give native HSDP's weights."""
    mesh = begin(rank, size, store)

    def run(net):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        for step in range(3):
            for part in range(2):
                net.set_requires_gradient_sync(part == 1)
                net(batch(rank, 2 * step + part).to(DEVICE)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        return weights(net)

    native, net = run(model(mesh)), model(mesh["rank"])
    exchange = fsdp.compress(net, mesh)
    facts = [torch.equal(run(net), native)]
    exchange.discard_step()
    return facts


def refusals(rank, size, store):
    """The error of each mistake."""
    mesh = begin(rank, size, store)
    found = {}

    def attempt(name, call):
        try:
            call()
        except (syncopate.Misuse, syncopate.Mismatch, syncopate.RemoteFailure) as error:
            found[name] = f"{type(error).__name__}: {error}"

    attempt("one dimension", lambda: fsdp.compress(model(mesh["rank"]), mesh["rank"]))
    attempt("native", lambda: fsdp.compress(model(mesh), mesh))
    attempt("between", lambda: fsdp.compress(model(mesh["host"]), mesh))
    attempt("not sharded", lambda: fsdp.compress(torch.nn.Linear(2, 2), mesh))
    attempt("auto", lambda: fsdp.compress(model(mesh["rank"]), mesh, codec="auto:none+fp16"))
    attempt("unknown", lambda: fsdp.compress(model(mesh["rank"]), mesh, codec="nothing"))
    attempt("ranks", lambda: fsdp.compress(model(mesh["rank"]), mesh, dense_below=0, codec="topk:0.1" if rank < size // 2 else "none"))
    net = torch.nn.Sequential(torch.nn.Linear(WIDTH, 4))
    net.register_parameter("extra", torch.nn.Parameter(torch.ones(4)))
    exchange = fsdp.compress(fully_shard(net, mesh=mesh["rank"]), mesh)
    attempt("unused", lambda: net(torch.ones(1, WIDTH)).sum().backward())
    attempt("loaded", lambda: exchange.load_state_dict({"rank 0 of 1": ()}))
    return found
