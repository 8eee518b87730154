"""Collectives of the backend with tensors of an accelerator: their order, mistakes in the order of copies, refusals, DDP and FSDP2."""

import contextlib
import random
from unittest import mock

import torch
import torch.distributed as dist
from device import chosen
from device.chosen import DEVICE, late
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch_device import OPTIONS, Model, same

import syncopate
import syncopate.torch
from syncopate.torch.backend import device_calls

COUNT = 1000


def begin(rank, size, store):
    """The process group, of which the backend is for the CPU and the device."""
    chosen.begin(rank, size, store, "syncopate")


def drawn_calls(rank, size, devices):
    """Wrong results of drawn calls, the same on every rank, with tensors on drawn devices; some are waited for at once."""
    draw, wrong, works = random.Random(7), [], []
    for number in range(60):
        device, is_async, kind = draw.choice(devices), draw.random() < 0.7, draw.choice(("sum", "gather", "shift"))
        own = torch.full((COUNT + number,), float(rank + number), device="cpu").to(device)
        everywhere = [float(other + number) for other in range(size)]
        if kind == "sum":
            work, made, want = dist.all_reduce(own, async_op=is_async), own, [sum(everywhere)]
        elif kind == "gather":
            made = torch.empty(size * own.numel(), device=device)
            work, want = dist.all_gather_into_tensor(made, own, async_op=is_async), everywhere
        else:
            made = torch.empty_like(own)
            sent, work = dist.isend(own, (rank + 1) % size), dist.irecv(made, (rank - 1) % size)
            want = [everywhere[rank - 1]]
            works.append((sent, None, []))
        works.append((work, made, want))
    for work, made, want in works:
        if work is not None:
            work.wait()
        if made is not None and [row.unique().tolist() for row in made.cpu().view(len(want), -1)] != [[value] for value in want]:
            wrong.append(f"{want}: {made}")
    return wrong


def order(rank, size, store):
    """Wrong results of drawn calls on the CPU and on the device, and on the device of one rank and the CPU of the other."""
    begin(rank, size, store)
    with late(operator_us=300, copy_us=3000 * rank):
        wrong = drawn_calls(rank, size, ["cpu", *(f"{DEVICE}:{index}" for index in range(torch.accelerator.device_count()))])
        wrong += drawn_calls(rank, size, [DEVICE if rank else "cpu"])
        column = (torch.arange(COUNT * 2.0, device="cpu").view(COUNT, 2) * (rank + 1)).to(DEVICE)[:, 1]
        dist.all_reduce(column)
        wrong += [] if torch.equal(column.cpu(), torch.arange(1, COUNT * 2.0, 2) * sum(range(1, size + 1))) else ["a column"]
    dist.destroy_process_group()
    return wrong


def results(rank, size):
    """Values of a program that computes on the device, exchanges, and goes on with the results; by the work, the future, and temporaries."""
    own = torch.arange(float(COUNT), device="cpu").to(DEVICE)
    for _ in range(3):
        own = own * (rank + 2)
    dist.all_reduce(own)
    first = own * 3
    work = dist.all_reduce(first, async_op=True)
    work.wait()
    second = first + 1
    third = dist.all_reduce(second, async_op=True).get_future().wait()[0] * 2
    gathered = torch.empty(size * COUNT, device=DEVICE)
    work = dist.all_gather_into_tensor(gathered, third.clone(), async_op=True)
    torch.empty(COUNT, device=DEVICE)  # gets the memory of the clone if it is free
    work.wait()
    last = dist.all_reduce(gathered.clone(), async_op=True)
    others = [torch.zeros(COUNT, device=DEVICE) for _ in range(3)]  # memory that was freed too early
    last.wait()
    del last
    return [value.cpu() for value in (own, first, second, third, gathered, *others)]


class NoWaitBefore(device_calls.Copies):
    """The copy down does not wait for the stream that computes the values."""

    def __init__(self, lane):
        with mock.patch.object(torch.accelerator, "current_stream", lambda _: lane.up_stream):
            super().__init__(lane)


class NoWaitFor(device_calls.Copies):
    """The host reads while the copy down is under way."""

    def arrive(self):
        pass


class EarlyEvent(device_calls.Copies):
    """The event is before the copy up."""

    def up(self):
        event = self.lane.mark(self.lane.up_stream)
        super().up()
        self.returned = event


class NoWaitAfter(device_calls.StagedWork):
    """The current stream does not wait for the copy up."""

    def wait(self, timeout=None):
        return self._wait(timeout)


def freed():
    """The copy down is of memory that may be freed before it ends."""
    return mock.patch.object(torch.Tensor, "record_stream", lambda *_: None)


MISTAKES = {
    "no wait before the copy down": (lambda: mock.patch.object(device_calls, "Copies", NoWaitBefore), {"operator_us": 3000}),
    "no wait for the copy down": (lambda: mock.patch.object(device_calls, "Copies", NoWaitFor), {"copy_us": 10_000}),
    "the event is before the copy up": (lambda: mock.patch.object(device_calls, "Copies", EarlyEvent), {"copy_us": 10_000}),
    "no wait for the copy up": (lambda: mock.patch.object(device_calls, "StagedWork", NoWaitAfter), {"copy_us": 10_000}),
    "memory of the device is freed during its copy": (freed, {"copy_us": 10_000}),
}


def undetected(rank, size, store):
    """Names of mistakes with which a program has the results that it should have."""
    begin(rank, size, store)
    wanted, missed = results(rank, size), []
    for name, (planted, delays) in MISTAKES.items():
        with planted(), late(**delays):
            missed += [name] if same(results(rank, size), wanted) else []
    with late(operator_us=2000, copy_us=5000):
        missed += [] if same(results(rank, size), wanted) else ["nothing is planted, and the results differ"]
    dist.destroy_process_group()
    return missed


def unordered(rank, size, store):
    """The errors of ranks whose calls on the CPU do not wait until those of the device have been made."""
    begin(rank, size, store)
    try:
        with mock.patch.object(device_calls.Staging, "drain", lambda _: None), late(copy_us=20_000 * rank):
            drawn_calls(rank, size, ["cpu", DEVICE])
    except syncopate.Error as error:
        return type(error).__name__
    return "no error"


def completion(rank, size, store):
    """By name, whether a work has the state that it should have."""
    begin(rank, size, store)
    with late(copy_us=600_000):
        work = dist.all_reduce(torch.ones(COUNT, device=DEVICE), async_op=True)
        facts = {"programs that name no backend get the vendor's": "syncopate" not in dist.Backend.default_device_backend_map.values(),
                 "begins late": not work.is_completed() and not work.is_success()}
        work.wait()
        facts["wait lets the host go on"] = not work.is_completed() and not work.is_success()
        torch.accelerator.synchronize()
        facts["ends"] = work.is_completed() and work.is_success()
        work = dist.all_reduce(torch.ones(COUNT, device=DEVICE), async_op=True)
        facts["a wait has a bound"] = (
            raised(lambda: work.wait(dist.timedelta(milliseconds=1))) == "Timeout: the operation did not end within 0.001 s; it goes on"
        )
        work.wait()
    with late(copy_us=600_000):
        work = dist.group.WORLD._get_backend(torch.device("cpu")).allreduce([torch.ones(COUNT, device=DEVICE)])
        while work._copies.returned is None:
            pass
        is_idle = []
        while not work._copies.returned.query():
            is_idle.append(torch.accelerator.current_stream().query())
        facts["the copy up holds no other stream"] = is_idle and all(is_idle)
    with late(operator_us=600_000):
        event = torch.Event(DEVICE)
        torch.ones(COUNT, device=DEVICE)
        event.record()
        dist.barrier()
        facts["a barrier of the host"] = not event.query()
        dist.barrier(device_ids=[0])
        facts["a barrier of the device"] = event.query()
    dist.destroy_process_group()
    return facts


def raised(call):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def refusals(rank, size, store):
    """Errors of calls that rank 1 cannot make, and of those that no rank can make; and a sum after them."""
    begin(rank, size, store)
    backend, found = dist.group.WORLD._get_backend(torch.device("cpu")), {}

    def gather_on_two():
        dist.all_gather([torch.empty(3, device="cpu") for _ in range(size)], torch.ones(3, device=DEVICE))

    def not_pinned():
        def empty(*_, **__):
            raise RuntimeError("out of locked memory")
        with mock.patch.object(torch, "empty", empty):
            backend.allreduce([own])

    own, sparse = torch.ones(3, device=DEVICE), torch.empty(2, 2, layout=torch.sparse_coo, device="meta")
    for name, call in {"meta": lambda: backend.broadcast([torch.empty(3, device="meta")]), "sparse": lambda: backend.allreduce([sparse]),
                       "two": gather_on_two, "pinned": not_pinned}.items():
        found[name] = raised(call)
    dist.all_reduce(own)
    found["after"] = own.tolist()
    found["one rank"] = raised(gather_on_two if rank else lambda: dist.all_gather([torch.empty(3) for _ in range(size)], torch.ones(3)))
    dist.destroy_process_group()
    return found


def lost(rank, size, store):
    """The errors of all ranks when the device of rank 1 fails during a copy down."""
    begin(rank, size, store)

    def fail(_):
        raise RuntimeError("the device is lost")
    with mock.patch.object(device_calls.Copies, "arrive", fail) if rank == 1 else contextlib.nullcontext():
        return raised(lambda: dist.all_reduce(torch.ones(3, device=DEVICE)))


def trained(device, wrap, steps=5, skips=False):
    """The weights after some steps of the model that `wrap` makes parallel."""
    net = Model(skips).to(device)
    wrapped = wrap(net)
    optimizer = torch.optim.SGD(wrapped.parameters(), 0.02, momentum=0.9)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        optimizer.zero_grad()
        wrapped(torch.randn(8, 32, generator=generator).to(device)).square().mean().backward()
        optimizer.step()
    whole = (value.full_tensor() if hasattr(value, "full_tensor") else value for value in net.parameters())
    return [value.detach().cpu() for value in whole]


def data_parallel(rank, size, store):
    """Names of options of torch's DDP with which the weights are not those of the CPU."""
    begin(rank, size, store)
    wrong = []
    for name, options in {"plain": {}, **OPTIONS}.items():
        def wrap(net, options=options):
            return DistributedDataParallel(net, bucket_cap_mb=0.05, **options)
        with late(operator_us=30, copy_us=2000):
            found = trained(DEVICE, wrap, skips=name == "find_unused_parameters")
        wrong += [] if same(found, trained("cpu", wrap, skips=name == "find_unused_parameters")) else [name]

    def hooked(net):
        ddp = DistributedDataParallel(net, bucket_cap_mb=0.05)
        ddp.register_comm_hook(None, fp16_compress_hook)
        return ddp
    with late(operator_us=30, copy_us=2000):
        found = trained(DEVICE, hooked)
    wrong += [] if same(found, trained("cpu", hooked)) else ["fp16_compress_hook"]
    dist.destroy_process_group()
    return wrong


def fully_sharded(rank, size, store):
    """Whether FSDP2's weights are those of the CPU."""
    begin(rank, size, store)

    def sharded(net):
        kind = next(net.parameters()).device.type
        mesh = init_device_mesh(kind, (size,))
        for layer in (net.first, net.middle, net.last):
            fully_shard(layer, mesh=mesh)
        return fully_shard(net, mesh=mesh)
    with late(operator_us=30, copy_us=2000):
        found = trained(DEVICE, sharded)
    is_same = same(found, trained("cpu", sharded))
    dist.destroy_process_group()
    return is_same
