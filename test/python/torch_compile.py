"""Compiled training in jobs of two ranks against the same training as it is: the hook, the class and FSDP2, by back end and mode of DDP."""

import contextlib
from pathlib import Path
from unittest import mock

import torch
import torch._dynamo
import torch.distributed as dist
from device import chosen
from torch import nn
from torch._dynamo.convert_frame import register_bytecode_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as Plain

import syncopate
import syncopate.torch
from syncopate.torch import fsdp
from syncopate.torch.ddp.wrapper import DistributedDataParallel
from syncopate.torch.shared import codec_choice

STEPS = 3
CODECS = ("none", "topk:0.05")


class Model(nn.Module):
    """Matrices that codecs take, and what a back end fuses."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm, self.last = nn.Linear(12, 24), nn.LayerNorm(24), nn.Linear(24, 8)

    def forward(self, x):
        return self.last(self.norm(self.first(x).tanh()).relu())


def as_it_is(net):
    return net


def batch(step):
    """This rank's input of a step."""
    return torch.randn(16, 12, generator=torch.Generator().manual_seed(100 * step + dist.get_rank()))


def train(net, *, backward=torch.Tensor.backward, average=lambda net: None):
    """The weights after some steps."""
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        backward(net(batch(step)).square().mean())
        average(net)
        optimizer.step()
    return weights(net)


def weights(net):
    return torch.cat([(value.full_tensor() if hasattr(value, "full_tensor") else value).detach().flatten() for value in net.parameters()])


def hook(net, codec):
    """torch's DDP with the hook."""
    ddp = Plain(net)
    ddp.register_comm_hook(syncopate.torch.HookState(net, codec=codec, dense_below=0), syncopate.torch.hook)
    return ddp


def own_class(net, codec, bucket_mib=0.001):
    """With several buckets, at which it divides the compiled model."""
    return DistributedDataParallel(net, codec=codec, dense_below=0, bucket_cap_mb=bucket_mib)


def own_class_of_one_bucket(net, codec):
    return own_class(net, codec, bucket_mib=1)


def hybrid(net, codec, units=1):
    """FSDP2 in hosts of one rank; native HSDP without a codec."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(), 1), mesh_dim_names=("host", "rank"))
    for part in (net.first, net)[-units:]:
        fully_shard(part, mesh=mesh if codec is None else mesh["rank"])
    if codec is not None:
        fsdp.compress(net, mesh, codec=codec, dense_below=0)
    return net


def hybrid_of_two_units(net, codec):
    return hybrid(net, codec, units=2)


def made(wrap, codec, inner=as_it_is, outer=as_it_is):
    torch._dynamo.reset()
    return outer(wrap(inner(Model()), codec))


def distance(one, other):
    """The largest difference of two weights."""
    return (one - other).abs().max().item()


def compiled_by(backend):
    return lambda net: torch.compile(net, backend=backend)


def in_place(net):
    """The module, which compiles its calls."""
    net.compile(backend="eager")
    return net


def without_rounding(_):
    """By wrapping, codec and way of compiling: how far the weights are from those of the program that is not compiled."""
    found = {}
    whole, module = {"eager": {"outer": compiled_by("eager")}}, {"the module": {"inner": compiled_by("aot_eager")}}
    others = {"aot_eager": {"outer": compiled_by("aot_eager")}, "in place": {"outer": in_place}}
    for wrap in (hook, own_class, hybrid_of_two_units):
        for codec in CODECS:
            plain = train(made(wrap, codec))
            ways = whole | (module if wrap is not hybrid_of_two_units else {}) | (others if codec != "none" else {})
            for name, way in ways.items():
                found[f"{wrap.__name__}, {codec}, {name}"] = distance(train(made(wrap, codec, **way)), plain)
    return found


def averaging(codec):
    """Averages all gradients after the backward pass, with neither DDP nor FSDP."""
    group = syncopate.torch.HookState(Model()).group
    combiner = syncopate.Combiner(group, [syncopate.Gradient(name, tuple(value.shape)) for name, value in Model().named_parameters()],
                                  codec=codec, dense_below=0)

    def average(net):
        combiner.combine([(i, value.grad) for i, value in enumerate(net.parameters())])
        combiner.end_step()
    return average


def fused(_):
    """By wrapping, codec and order: how far the weights are from those of the same compiled module without the library's hook."""
    found = {}
    with torch._inductor.config.patch({"cpp_cache_precompile_headers": False, "compile_threads": 1}):
        wanted = {"none": train(made(lambda net, _: Plain(net), None, outer=torch.compile))}
        wanted["native"] = train(made(hybrid, None, outer=torch.compile))
        wanted["topk:0.05"] = train(made(lambda net, _: net, None, outer=torch.compile), average=averaging("topk:0.05"))
        for wrap in (hook, own_class_of_one_bucket, hybrid):
            for codec in CODECS:
                want = wanted["native" if wrap is hybrid and codec == "none" else codec]
                for order in ("outer", "inner") if wrap is not hybrid else ("outer",):
                    found[f"{wrap.__name__}, {codec}, {order}"] = distance(train(made(wrap, codec, **{order: torch.compile})), want)
    found["rounding"] = distance(wanted["none"], train(made(hook, "none")))
    return found


def traced(loss):
    """A compiled backward pass."""
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        loss.backward()


def modes(_):
    """By mode, wrapping and codec: how far the weights are from those of the program that is not compiled."""
    found = {}
    eager, coded = torch.Tensor.backward, CODECS[1:]
    for wrap in (hook, own_class):
        plain = {codec: train(made(wrap, codec)) for codec in CODECS}
        for mode, codecs, backward in ((False, coded, eager), ("python_reducer_without_compiled_forward", coded, eager),
                                       ("python_reducer", CODECS, eager), ("python_reducer", coded, traced)):
            for codec in codecs:
                with torch._dynamo.config.patch(optimize_ddp=mode):
                    net = made(wrap, codec, outer=compiled_by("eager"))
                    found[f"{mode}, {backward.__name__}, {wrap.__name__}, {codec}"] = distance(train(net, backward=backward), plain[codec])
    return found


def whole_steps(_):
    """By mode: how far the weights are, and which functions of the library are compiled, if a step is compiled with its backward pass."""
    plain, found = train(made(hook, "topk:0.05")), {}
    library = str(Path(syncopate.__file__).parent)
    for mode in ("ddp_optimizer", "python_reducer"):
        compiled = []
        with torch._dynamo.config.patch(optimize_ddp=mode):
            net = made(hook, "topk:0.05")
            optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)

            @torch.compile(backend="eager")
            def step(x, net=net, optimizer=optimizer):
                optimizer.zero_grad()
                net(x).square().mean().backward()
                optimizer.step()
            watching = register_bytecode_hook(lambda code, _, compiled=compiled: compiled.append(code))
            for number in range(STEPS):
                step(batch(number))
            watching.remove()
        found[mode] = distance(weights(net), plain), len(compiled), [code.co_name for code in compiled if code.co_filename.startswith(library)]
    return found


def accumulated(_):
    """With the reducer in Python: whether passes within `no_sync` add up, and the error of a pass that does not reach all parameters."""
    both = []
    for mode in (True, "python_reducer"):
        with torch._dynamo.config.patch(optimize_ddp=mode):
            net = made(hook, "topk:0.05")
        for step in range(4):
            with net.no_sync() if step % 2 == 0 else contextlib.nullcontext():
                net(batch(step)).square().mean().backward()
        both.append(torch.cat([value.grad.flatten() for value in net.parameters()]))
    errors = []
    for backward in (torch.Tensor.backward, traced):
        with torch._dynamo.config.patch(optimize_ddp="python_reducer"):
            net = made(own_class, "topk:0.05")
            try:
                for _ in range(2):
                    backward(net.module.first(batch(0)).sum())
            except syncopate.Misuse as error:
                errors.append(str(error))
    return distance(*both), errors


def failing(rank):
    """The classes of errors of an exchange, by how the pass is computed."""
    found = {}
    for name, mode, backward in (("ddp_optimizer", True, torch.Tensor.backward), ("python_reducer", "python_reducer", torch.Tensor.backward),
                                 ("traced", "python_reducer", traced)):
        with torch._dynamo.config.patch(optimize_ddp=mode):
            net = made(own_class, "topk:0.05", outer=compiled_by("eager"))
            train(net, backward=backward)
            dist.barrier()
            if rank == 1:
                net.hook_state.group.abort("enough")
            try:
                train(net, backward=backward)
            except syncopate.Error as error:
                found[name] = f"{type(error).__name__}: {error}"
    return found


def measured_buckets(_):
    """Options that the class gives to torch with a sample: sizes of buckets differ only where torch's reducer in Python is not used."""
    found = {}
    for mode in (True, "python_reducer"):
        with torch._dynamo.config.patch(optimize_ddp=mode):
            net = DistributedDataParallel(Model(), sample=batch(0), loss=lambda output: output.square().mean())
            found[mode] = bool(getattr(net, "bucket_bytes_cap_list", []))
    return found


class Layers(nn.Module):
    """The last layer is registered first."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.last, self.first, self.middle = nn.Linear(160, 4), nn.Linear(12, 128), nn.Linear(128, 160)

    def forward(self, x):
        return self.last(self.middle(self.first(x).relu()).relu())


def small_buckets(_):
    """By codec: how far the weights are, and into how many graphs the class divides the module at its buckets."""
    found = {}
    for codec, options in (("none", {}), ("topk:0.1", {"bucket_cap_mb": 0.02})):
        graphs = []

        def backend(graph, _, graphs=graphs):
            graphs.append(graph)
            return graph

        with mock.patch.object(codec_choice, "law", lambda *_, **__: codec_choice.Law(1e-4, 1e-8)):
            plain = DistributedDataParallel(Layers(), codec=codec, **options)
            inner = DistributedDataParallel(torch.compile(Layers(), backend=backend), codec=codec, **options)
            outer = torch.compile(DistributedDataParallel(Layers(), codec=codec, **options), backend=backend)
        want = train(plain)
        for name, net in (("inner", inner), ("outer", outer)):
            torch._dynamo.reset()
            graphs.clear()
            found[f"{codec}, {name}"] = distance(train(net), want), len(graphs)
    return found


def everything(rank, size, store):
    """The results of all these functions, by name."""
    chosen.begin(rank, size, store)
    found = {}
    for claim in (without_rounding, modes, fused, whole_steps, accumulated, failing, measured_buckets, small_buckets):
        found[claim.__name__] = claim(rank)
    dist.destroy_process_group()
    return found
