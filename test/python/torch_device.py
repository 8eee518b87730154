"""Gradients of an accelerator: training with the hook against the same training on the CPU, and mistakes in the order of copies."""

import contextlib
import itertools
from functools import partial
from unittest import mock

import torch
import torch.distributed as dist
from device.chosen import DEVICE, begin, late
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import syncopate
import syncopate.torch
from syncopate.torch.device.lane import Crossing, Lane

STEPS = 20
CODECS = ("none", "topk:0.01", "qsgd:4", "low_rank:2", "fp16", "bf16", "int8", "gtopk:0.05", "onebit")
OPTIONS = {"find_unused_parameters": {"find_unused_parameters": True}, "static_graph": {"static_graph": True},
           "gradient_as_bucket_view": {"gradient_as_bucket_view": True}}


class Model(nn.Module):
    """Several of DDP's buckets, with a matrix that codecs take, and a layer that every third pass leaves out."""

    def __init__(self, skips=False):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.middle, self.last, self.skipped = nn.Linear(32, 128), nn.Linear(128, 160), nn.Linear(160, 4), nn.Linear(4, 4)
        self._skips, self._passes = skips, 0

    def forward(self, x):
        self._passes += 1
        x = self.last(self.middle(self.first(x).relu()).tanh())
        return x if self._skips and self._passes % 3 == 0 else self.skipped(x)


def trained(device, *, codec="none", steps=STEPS, dtype=torch.float32, skips=False, micro=1, clips=False, scales=False, options=None, **coding):
    """The weights after some steps with the hook."""
    net = Model(skips).to(device).to(dtype)
    ddp = DistributedDataParallel(net, bucket_cap_mb=0.05, **(options or {}))
    state = syncopate.torch.HookState(ddp, codec=codec, **coding)
    ddp.register_comm_hook(state, syncopate.torch.hook)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.02, momentum=0.9)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0, enabled=scales)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        optimizer.zero_grad()
        for part in range(micro):
            with ddp.no_sync() if part < micro - 1 else contextlib.nullcontext():
                x = torch.randn(8, 32, generator=generator).to(dtype).to(device)
                scaler.scale(ddp(x).square().mean()).backward()
        if clips:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(ddp.parameters(), 0.05)
        scaler.step(optimizer)
        scaler.update()
    state.close()
    return [value.detach().cpu() for value in net.parameters()]


def same(found, wanted):
    """Bit for bit, but for devices that round otherwise than the CPU."""
    close = torch.equal if DEVICE in ("emu", "cpu") else lambda one, other: torch.allclose(one, other, rtol=1e-3, atol=1e-4)
    return all(close(one, other) for one, other in zip(found, wanted, strict=True))


def trainings(size):
    """By name, the options of `trained`."""
    made = {codec: {"codec": codec} for codec in CODECS}
    if size == 2:
        made |= {name: {"codec": "topk:0.05", "options": options, "skips": name == "find_unused_parameters"} for name, options in OPTIONS.items()}
        made |= {"scaler with fp16": {"codec": "fp16", "scales": True, "clips": True}, "micro-batches with bf16": {"codec": "bf16", "micro": 3}}
        made |= {"micro-batches": {"codec": "topk:0.05", "micro": 3}, "clipping": {"clips": True}, "scaler": {"scales": True, "clips": True}}
    return made


def as_on_the_cpu(rank, size, store):
    """Names of trainings whose weights are not those of the CPU."""
    begin(rank, size, store)
    wrong = []
    for name, options in trainings(size).items():
        with late(operator_us=30, copy_us=1000):
            found = trained(DEVICE, **options)
        wrong += [] if same(found, trained("cpu", **options)) else [name]
    dist.destroy_process_group()
    return wrong


def class_on_the_device(rank, size, store):
    """Findings about the library's DistributedDataParallel on the device: bits, a plan by the device's own times, a choice with the copies."""
    begin(rank, size, store)
    wrong, made = [], {}
    for device in dict.fromkeys((DEVICE, "cpu")):
        torch.manual_seed(rank)
        model, batches = Model().to(device), [torch.randn(8, 32).to(device) for _ in range(4)]
        with torch.device(device), late(operator_us=30, copy_us=1000):  # the program's default is not for the library's own tensors
            net = syncopate.torch.DistributedDataParallel(model, codec="topk:0.05", bucket_cap_mb=0.05)
            optimizer = torch.optim.SGD(net.parameters(), 0.02)
            for batch in batches:
                optimizer.zero_grad()
                net(batch).square().mean().backward()
                optimizer.step()
        made[device] = [value.detach().cpu() for value in net.parameters()]
        net.close()
    wrong += [] if same(*(list(made.values()) * 2)[:2]) else ["weights"]
    with late(operator_us=3000):
        profile = syncopate.torch.profile(Model().to(DEVICE), torch.randn(8, 32).to(DEVICE), steps=3)
    if DEVICE == "emu":  # each of four layers has operators of 1.5 ms and more, which the host does not wait for
        wrong += [] if profile.forward_s > 4 * 1.5e-3 and sum(layer.backward_s for layer in profile.layers) > 8 * 1.5e-3 else [str(profile)]
    wrong += chooses_with_copies()
    dist.destroy_process_group()
    return wrong


def chooses_with_copies():
    """The predicted step of each codec has the copies; the codec that was chosen has it too."""
    model, batch = Model().to(DEVICE), torch.randn(8, 32).to(DEVICE)
    with torch.device(DEVICE), late(copy_us=20_000):
        net = syncopate.torch.DistributedDataParallel(model, codec="auto:topk:0.05+none", bucket_cap_mb=1)
        while net.choice is None:
            net(batch).square().mean().backward()
            net.zero_grad()
    net.close()
    both_s = 2 * 10e-3  # at least half of the longest delay, down and up
    return [] if DEVICE != "emu" or min(net.choice.predicted_s.values()) > both_s else [str(net.choice)]


def half_types(rank, size, store):
    """Values of 16 bits take the same way as those of 32: the averages of given gradients are the CPU's."""
    begin(rank, size, store)
    wrong = []
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        averages = []
        for device in (DEVICE, "cpu"):
            net = nn.Linear(64, 64, bias=False).to(dtype).to(device)
            ddp = DistributedDataParallel(net)
            state = syncopate.torch.HookState(ddp, codec="none" if dtype == torch.float64 else "topk:0.1")
            ddp.register_comm_hook(state, syncopate.torch.hook)
            drawn = torch.randn(64, 64, generator=torch.Generator().manual_seed(rank)).to(dtype)
            with late(operator_us=300, copy_us=1000):
                (ddp(torch.eye(64, dtype=dtype).to(device)) * drawn.to(device)).sum().backward()  # the gradient is `drawn`
                averages.append(net.weight.grad.cpu())
            state.close()
        wrong += [] if same(averages[:1], averages[1:]) else [str(dtype)]
    dist.destroy_process_group()
    return wrong


PATTERNS = 64 * 1024  # of an f32 value's upper 16 bits


def any_values(rank):
    """f32 of every sign, exponent and upper bits of the fraction, so also subnormals, infinities and NaN, in an order of this rank's own."""
    drawn = torch.Generator().manual_seed(rank)
    upper, lower = torch.randperm(PATTERNS, generator=drawn), torch.randint(0, 2**16, (PATTERNS,), generator=drawn)
    lower[::2] = torch.tensor([0x8000, 0x1000, 0, 0x3000])[torch.arange(PATTERNS // 2) % 4]  # ties, too
    return (upper << 16 | lower).to(torch.int32).view(torch.float32).view(256, 256)


def any_averages(device, codec, rank):
    """The bits of the averages of any values, and the bytes of pinned memory for each of them."""
    net = nn.Linear(256, 256, bias=False).to(device)
    ddp = DistributedDataParallel(net)
    state = syncopate.torch.HookState(ddp, codec=codec)
    ddp.register_comm_hook(state, syncopate.torch.hook)
    given, pinned = any_values(rank).to(device), Lane._pinned
    net.weight.register_hook(lambda _: given)
    sizes = []

    def noted(before, values):
        sizes.append(pinned(before, values))
        return sizes[-1]

    with late(operator_us=300, copy_us=1000), mock.patch.object(Lane, "_pinned", staticmethod(noted)):
        ddp(torch.zeros(1, 256).to(device)).sum().backward()
        average = net.weight.grad.cpu()
    state.close()
    return torch.where(average.isnan(), torch.nan, average).view(torch.int32), sum(memory.nbytes for memory in sizes) / average.numel()


def casts_on_the_device(rank, size, store):
    """Findings about codecs of 16 bits: averages that differ from those of the CPU, and other pinned memory than 2 bytes for each value."""
    begin(rank, size, store)
    wrong = []
    for codec, wanted in (("fp16", 2), ("bf16", 2), ("none", 4)):
        found, width = any_averages(DEVICE, codec, rank)
        wrong += [] if torch.equal(found, any_averages("cpu", codec, rank)[0]) else [codec]
        wrong += [] if DEVICE == "cpu" or width == wanted else [f"{codec}: {width} bytes"]
    dist.destroy_process_group()
    return wrong


class NoWaitBefore(Lane):
    """The copy down does not wait for the stream that computes the gradients."""

    def down(self, number, values, host=None, dtype=None):
        with mock.patch.object(torch.accelerator, "current_stream", lambda _: self.up_stream):
            return super().down(number, values, host, dtype)


class NoWaitFor(Crossing):
    """The host reads while the copy down is under way."""

    def wait(self):
        return 0.0


class AnotherStream(Crossing):
    """The future is completed in a stream that does not wait for the copy up."""

    def up(self, complete, observer=None):
        super().up(lambda: None, observer)
        complete()


class ConvertsInAnotherStream(Crossing):
    """The averages are converted in a stream that does not wait for their copy up."""

    def up(self, complete, observer=None):
        values, moved = self._values, self._moved
        self._values = moved
        super().up(complete, observer)
        values.copy_(moved)


class OneMemory(Lane):
    """All buckets have the same pinned memory."""

    memory = torch.empty(0)

    def _pinned(self, before, values):
        if OneMemory.memory.numel() < values.numel():
            OneMemory.memory = torch.empty(100_000, pin_memory=True)
        return OneMemory.memory[:values.numel()].view(values.shape)


class Freed(Lane):
    """The copy down is that of a temporary, whose memory is free before it ends."""

    def down(self, number, values, host=None, dtype=None):
        with mock.patch.object(torch.Tensor, "record_stream", lambda *_: None):
            begun = super().down(number, values.clone(), host, dtype)
        begun._values = begun._moved = values
        return begun


class FirstMemory(Lane):
    """A bucket keeps its first pinned memory when DDP has formed other buckets."""

    @staticmethod
    def _pinned(before, values):
        return before.host if before else Lane._pinned(before, values)


class OneEvent(Lane):
    """All devices have one event."""

    event = None

    def mark(self, stream):
        if OneEvent.event is None:
            OneEvent.event = torch.Event("emu")
            OneEvent.event.record(torch.Stream("emu:1"))
        OneEvent.event.record(stream)
        return OneEvent.event


# By name: the class that replaces one of the lane, and delays with which it is found.
MISTAKES = {
    "no wait before the copy down": ({"Lane": NoWaitBefore}, {"operator_us": 2000}),
    "no wait for the copy down": ({"Crossing": NoWaitFor}, {"copy_us": 10_000}),
    "the future completes in another stream": ({"Crossing": AnotherStream}, {"copy_us": 10_000}),
    "pinned memory is used again before its copy up ends": ({"Lane": OneMemory}, {"copy_us": 5000}),
    "memory of the device is freed during its copy": ({"Lane": Freed}, {"copy_us": 10_000}),
    "a bucket keeps its first pinned memory": ({"Lane": FirstMemory}, {}),
    "an event of another device": ({"Lane": OneEvent}, {}),
}

CAST_MISTAKES = MISTAKES | {"averages are converted in another stream": ({"Crossing": ConvertsInAnotherStream}, {"copy_us": 10_000})}


def planted(classes):
    """Replaces classes of the lane where they are used."""
    stack = contextlib.ExitStack()
    for name, made in classes.items():
        stack.enter_context(mock.patch.object(syncopate.torch.ddp.hook if name == "Lane" else syncopate.torch.device.lane, name, made))
    return stack


def stores_of(store):
    """Names of stores, for one process group after another."""
    return (f"{store}-{number}" for number in itertools.count())


@contextlib.contextmanager
def own_group(rank, size, stores):
    """A process group of the block alone: ranks that end it at different operations leave nothing to the next one."""
    begin(rank, size, next(stores))
    try:
        yield
    finally:
        dist.destroy_process_group()


def is_found(rank, size, stores, differs):
    """Whether `differs()`, training with a mistake, fails on a rank, or is true there, in one of three attempts.

    On a busy machine an exchange can outlast the delay of a stream.
    """
    for _ in range(3):
        found = torch.ones(1, device="cpu")
        with contextlib.suppress(RuntimeError, syncopate.Error), own_group(rank, size, stores):
            found.fill_(differs())
        with own_group(rank, size, stores):
            dist.all_reduce(found, dist.ReduceOp.MAX)
        if found:
            return True
    return False


def undetected(rank, size, store):
    """Names of mistakes that no rank finds."""
    stores, missed = stores_of(store), []
    for codec, mistakes in (("none", MISTAKES), ("bf16", CAST_MISTAKES)):
        with own_group(rank, size, stores):
            wanted = trained("cpu", codec=codec, steps=4)

        def differs(classes, delays, codec=codec, wanted=wanted):
            with planted(classes), late(**delays):
                return not same(trained(DEVICE, codec=codec, steps=4), wanted)

        missed += [f"{codec}: {name}" for name, mistake in mistakes.items() if not is_found(rank, size, stores, partial(differs, *mistake))]
        with own_group(rank, size, stores), late(operator_us=2000, copy_us=5000):
            missed += [] if same(trained(DEVICE, codec=codec, steps=4), wanted) else [f"{codec}: nothing is planted, and the weights differ"]
    return missed


def errors_between_the_copies(rank, size, store):
    """The state after an error on rank 1, before a copy down and after it."""
    begin(rank, size, store)
    found = [after_error(rank, place, name) for place, name in ((Lane, "_pinned"), (Crossing, "wait"))]
    dist.destroy_process_group()
    return found


def after_error(rank, place, name):
    """The text that is raised, and whether gradients are those that this rank has computed."""
    net = Model().to(DEVICE)
    alone = Model().to(DEVICE)
    ddp = DistributedDataParallel(net, bucket_cap_mb=0.05)
    state = syncopate.torch.HookState(ddp)
    ddp.register_comm_hook(state, syncopate.torch.hook)
    x = torch.randn(8, 32, generator=torch.Generator().manual_seed(rank)).to(DEVICE)
    alone(x).square().mean().backward()

    def fail(*_):
        raise RuntimeError("the device is lost")

    text = "nothing"
    with mock.patch.object(place, name, fail) if rank == 1 else contextlib.nullcontext(), late(copy_us=1000):
        try:
            ddp(x).square().mean().backward()
        except (RuntimeError, syncopate.Error) as error:
            text = str(error)
    kept = [torch.equal(one.grad.cpu(), other.grad.cpu()) for one, other in zip(net.parameters(), alone.parameters(), strict=True)
            if one.grad is not None]
    state.close()
    return text, all(kept)
