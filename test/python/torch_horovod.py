"""The parts of syncopate.horovod on ranks of a job: each returns what is wrong, compared with torch in one process."""

import os
import signal
import sys
from unittest import mock

import torch
from device.chosen import DEVICE, busy, late
from torch import nn

import syncopate
import syncopate.horovod as hvd
from syncopate.horovod import on_host

STEPS, SAMPLES = 4, 12  # of all ranks together


def like(found, wanted, bound=1e-12):
    """Whether two tensors are equal up to rounding, in type, shape and device too."""
    return found.device == wanted.device and found.dtype == wanted.dtype and found.shape == wanted.shape and torch.allclose(
        found.cpu().double(), wanted.cpu().double(), bound, bound)


def unlike(cases):
    """The names of (name, found, wanted) that differ."""
    return [f"{name}: {found} instead of {wanted}" for name, found, wanted in cases if not like(found, wanted)]


def of(rank, dtype=torch.float64, rows=6):
    """A tensor of that rank: small whole numbers, so that sums and products are exact."""
    return torch.randint(1, 5, (rows, 3), generator=torch.Generator().manual_seed(rank)).to(dtype).to(DEVICE)


def stacked(size, **more):
    return torch.stack([of(rank, **more) for rank in range(size)])


def reductions(rank, size):
    """Every reduction of several types, with factors and compression, in and out of place."""
    cases = []
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int32, torch.int64):
        own, every = of(rank, dtype), stacked(size, dtype=dtype)
        total = every.sum(0, dtype=dtype)
        average = total / size if dtype.is_floating_point else total // size
        for op, wanted in ((hvd.Sum, total), (hvd.Min, every.amin(0)), (hvd.Max, every.amax(0)),
                           (hvd.Product, every.prod(0, dtype=dtype)), (None, average), (hvd.Average, average)):
            cases.append((f"{op} of {dtype}", hvd.allreduce(own, op=op, name="a"), wanted.to(dtype)))
        cases.append((f"{dtype} of the caller", own, of(rank, dtype)))
        cases.append((f"factors of {dtype}", hvd.allreduce(own, op=hvd.Sum, prescale_factor=2.0,
                                                           postscale_factor=3.0), total * 6))
        cases.append((f"average=False of {dtype}", hvd.allreduce(own, average=False), total))
    own, total = of(rank), stacked(size).sum(0)
    cases.append(("fp16", hvd.allreduce(own, op=hvd.Sum, compression=hvd.Compression.fp16), total))
    tenth = hvd.allreduce(own / 10, op=hvd.Sum, compression=hvd.Compression.fp16)
    cases.append(("sum in fp16", tenth, tenth.half().double()))
    rounded = [] if like(tenth, total / 10, 1e-3) else ["rounding of fp16"]
    changed = own.clone()
    same = hvd.allreduce_(changed, op=hvd.Sum)
    cases += [("in place", changed, total), ("the same tensor", same, changed)]
    column = torch.stack([own, own], -1)[..., 0]
    cases.append(("not contiguous", hvd.allreduce_(column, op=hvd.Sum), total))
    return rounded + unlike(cases)


def asynchronous(rank, size):
    """Several operations at once, waited for in another order; groups of tensors."""
    total = stacked(size).sum(0)
    first, second = of(rank), of(rank)
    handles = [
        hvd.allreduce_async_(first, op=hvd.Sum, name="first"),
        hvd.allreduce_async(second, op=hvd.Sum, postscale_factor=2.0, name="second"),
        hvd.broadcast_async(second, size - 1),
        hvd.allgather_async(second),
        hvd.reducescatter_async(second, op=hvd.Sum),
        hvd.grouped_allreduce_async([second, of(rank, torch.int64)], op=hvd.Sum)
    ]
    results = [hvd.synchronize(handle) for handle in reversed(handles)][::-1]
    wanted = [total, total * 2, of(size - 1), torch.cat([of(r) for r in range(size)]), total.tensor_split(size)[rank]]
    cases = [(f"operation {i}", found, right) for i, (found, right) in enumerate(zip(results, wanted, strict=False))]
    cases += [("first in place", first, total), ("second kept", second.clone(), of(rank))]
    groups = [results[-1], hvd.grouped_allreduce([second, of(rank, torch.int64)], op=hvd.Sum),
              hvd.grouped_allreduce_([second, of(rank, torch.int64)], op=hvd.Sum)]
    for group in groups:
        cases += [("group", group[0], total), ("integers of a group", group[1], total.long())]
    cases.append(("group in place", second, total))
    pair = [of(rank, rows=rank), of(rank, torch.int64)]
    gathered = hvd.grouped_allgather_async(pair, name="pair")
    scattered = hvd.grouped_reducescatter_async([of(rank), of(rank, torch.int64, size + 1)], op=hvd.Sum, postscale_factor=2.0)
    parts, rows = hvd.synchronize(scattered), hvd.synchronize(gathered)
    cases += [("rows of a group", rows[0], torch.cat([of(r, rows=r) for r in range(size)])),
              ("integer rows of a group", rows[1], torch.cat([of(r, torch.int64) for r in range(size)])),
              ("parts of a group", parts[0], total.tensor_split(size)[rank] * 2),
              ("integer parts of a group", parts[1],
               stacked(size, dtype=torch.int64, rows=size + 1).sum(0).tensor_split(size)[rank] * 2)]
    ended = [hvd.poll(scattered), hvd.poll(gathered)]
    if DEVICE != "emu":  # it has no inference tensors
        with torch.inference_mode():
            inference = of(rank)
            in_inference_mode = hvd.allreduce_async_(inference, op=hvd.Sum, postscale_factor=2.0)
        cases.append(("started in inference mode", hvd.synchronize(in_inference_mode).clone(), total * 2))
    pending = hvd.allreduce_async(of(rank), op=hvd.Sum)
    while not hvd.poll(pending):
        pass
    wrong = [] if ended == [True, True] else [f"poll of groups: {ended}"]
    return wrong + unlike([*cases, ("polled", hvd.synchronize(pending), total)])


def moves(rank, size):
    """Collectives that move rows, of any type, with different numbers of rows."""
    rows = [of(r, rows=r + 1) for r in range(size)]
    cases = [("allgather", hvd.allgather(rows[rank]), torch.cat(rows)),
             ("allgather of bool", hvd.allgather(rows[rank] > 2), torch.cat(rows) > 2),
             ("allgather of a rank without rows", hvd.allgather(rows[rank][:rank]),
              torch.cat([rows[r][:r] for r in range(size)])),
             ("broadcast", hvd.broadcast(rows[0] + rank, 1), rows[0] + 1)]
    changed = of(rank)
    hvd.broadcast_(changed, root_rank=1)
    cases.append(("broadcast in place", changed, of(1)))
    splits = [[1 + (s + r) % 2 for r in range(size)] for s in range(size)]  # what rank s sends rank r
    sent = [of(s, rows=sum(splits[s])) for s in range(size)]
    found, received = hvd.alltoall(sent[rank], splits=torch.tensor(splits[rank]))
    cases += [("alltoall with splits", found, torch.cat([sent[s].split(splits[s])[rank] for s in range(size)])),
              ("received splits", received, torch.tensor([splits[s][rank] for s in range(size)])),
              ("alltoall", hvd.alltoall(of(rank)), torch.cat([of(s).chunk(size)[rank] for s in range(size)]))]
    uneven = stacked(size, rows=size + 1)
    cases.append(("reducescatter", hvd.reducescatter(uneven[rank], op=hvd.Sum), uneven.sum(0).tensor_split(size)[rank]))
    cases.append(("average of parts", hvd.reducescatter(uneven[rank]), uneven.mean(0).tensor_split(size)[rank]))
    hvd.barrier()
    return unlike(cases)


def gradients(rank, size):
    """Gradients through collectives are those of the sum of all ranks' losses, computed by torch in one process."""
    weights = [of(10 + r, rows=20) for r in range(size)]
    splits = [[2] + [1] * (size - 1) for _ in range(size)]

    def losses(inputs, collective, ranks):
        return sum((weights[r][:len(out)] * out * out).sum() for r, out in zip(ranks, collective(inputs), strict=True))

    def pieces(inputs):
        return [torch.cat([one.split(own)[r] for one, own in zip(inputs, splits, strict=True)]) for r in range(size)]

    pairs = {
        "allreduce": (lambda own: hvd.allreduce(own), lambda every: [sum(every) / size] * size),
        "sum": (lambda own: hvd.allreduce(own, op=hvd.Sum), lambda every: [sum(every)] * size),
        "allgather": (lambda own: hvd.allgather(own), lambda every: [torch.cat(every)] * size),
        "broadcast": (lambda own: hvd.broadcast(own, 1), lambda every: [every[1]] * size),
        "alltoall": (lambda own: hvd.alltoall(own, splits[rank])[0], pieces),
        "reducescatter": (lambda own: hvd.reducescatter(own), lambda every: (sum(every) / size).tensor_split(size)),
        "grouped allgather": (lambda own: sum(hvd.grouped_allgather([own, 2 * own])),
                              lambda every: [3 * torch.cat(every)] * size),
        "grouped reducescatter": (lambda own: sum(hvd.grouped_reducescatter([own, 2 * own])),
                                  lambda every: (3 * sum(every) / size).tensor_split(size))
    }
    cases = []
    for name, (distributed, alone) in pairs.items():
        every = [of(r, rows=size + 1).requires_grad_() for r in range(size)]
        losses(every, alone, range(size)).backward()
        own = of(rank, rows=size + 1).requires_grad_()
        losses([own], lambda inputs, call=distributed: [call(inputs[0])], [rank]).backward()
        wanted = every[rank].grad
        cases.append((name, own.grad, wanted if wanted is not None else torch.zeros_like(own)))
    return unlike(cases)


def objects(rank, size):
    """Objects with tensors, parameters, and the state of an optimizer that only rank 1 has."""
    wrong = []
    found = hvd.broadcast_object({"rank": rank, "tensor": of(rank)} if rank == 1 else None, root_rank=1)
    wrong += [] if found["rank"] == 1 and like(found["tensor"], of(1)) else ["broadcast_object"]
    wrong += [] if hvd.allgather_object("x" * rank) == ["x" * r for r in range(size)] else ["allgather_object"]
    net, wanted = model(rank), model(1)
    optimizer, other = (torch.optim.Adam(one.parameters(), lr=0.1 * (1 + of_rank))
                        for one, of_rank in ((net, rank), (wanted, 1)))
    for one, adam in ((wanted, other), *([(net, optimizer)] if rank == 1 else [])):
        one(batch(0)[0]).sum().backward()
        adam.step()
    hvd.broadcast_parameters(net.state_dict(), root_rank=1)
    hvd.broadcast_optimizer_state(optimizer, root_rank=1)
    states = optimizer.state_dict(), other.state_dict()
    wrong += [] if states[0]["param_groups"] == states[1]["param_groups"] else ["param_groups"]
    cases = [(name, net.state_dict()[name], value) for name, value in wanted.state_dict().items()]
    for i, state in states[1]["state"].items():
        cases += [(f"state {i} {key}", states[0]["state"][i][key], value) for key, value in state.items()]
    return wrong + unlike(cases)


def process_sets(rank, size):
    """Collectives of ranks 1 to size - 1, among themselves; roots are ranks of the job."""
    part = hvd.add_process_set(range(1, size))
    wrong = [] if part.included() == (rank > 0) and part.size() == size - 1 else ["members"]
    if part.included():
        every = stacked(size)[1:]
        wrong += [] if part.rank() == rank - 1 else ["rank"]
        wrong += unlike([("sum", hvd.allreduce(of(rank), op=hvd.Sum, process_set=part), every.sum(0)),
                         ("average", hvd.allreduce(of(rank), process_set=part), every.mean(0)),
                         ("allgather", hvd.allgather(of(rank), process_set=part), torch.cat(list(every))),
                         ("broadcast", hvd.broadcast(of(rank), size - 1, process_set=part), every[-1])])
        net = model()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net.named_parameters(),
                                             process_set=part)
        train(net, optimizer, rank - 1, size - 1)
        wrong += unlike_models(net, alone())
        optimizer.close()
    else:
        text = refusal(lambda: hvd.allreduce(of(rank), process_set=part))
        wrong += [] if "not in the process set" in text else ["outside"]
    wrong += [] if hvd.remove_process_set(part) and not hvd.remove_process_set(part) else ["removal"]
    text = refusal(lambda: hvd.allreduce(of(rank), process_set=part))
    wrong += [] if "add_process_set" in text else ["after removal"]
    return wrong


def model(seed=0):
    """Two layers in float64."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).double().to(DEVICE)


def batch(step, dtype=torch.float64):
    generator = torch.Generator().manual_seed(100 + step)
    return [torch.randn(SAMPLES, width, dtype=torch.float64, generator=generator).to(dtype).to(DEVICE) for width in (8, 4)]


def loss_of(net, step, rank, size):
    """The loss of that rank's share."""
    share = slice(rank * SAMPLES // size, (rank + 1) * SAMPLES // size)
    samples, targets = batch(step, net[0].weight.dtype)
    return nn.functional.mse_loss(net(samples[share]), targets[share])


def train(net, optimizer, rank, size, passes=1, clip=False):
    """Take STEPS steps, each with the gradients of several batches."""
    for step in range(STEPS):
        optimizer.zero_grad()
        for i in range(passes):
            loss_of(net, step * passes + i, rank, size).backward()
        if clip:
            optimizer.synchronize()
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            optimizer.step()


def alone(rate=0.1, passes=1):
    """The model that one process trains with whole batches."""
    net = model()
    train(net, torch.optim.SGD(net.parameters(), rate), 0, 1, passes)
    return net


def unlike_models(found, wanted, bound=1e-12):
    return [name for name, value in wanted.state_dict().items() if not like(found.state_dict()[name], value, bound)]


def training(rank, size):
    """Weights are those of one process that takes whole batches."""
    wrong = []
    ways = {
        "default": ({}, 1e-12), "two passes": ({"backward_passes_per_step": 2}, 1e-12), "sum": ({"op": hvd.Sum}, 1e-12),
        "predivided": ({"gradient_predivide_factor": 8.0}, 1e-12),
        "fp16": ({"compression": hvd.Compression.fp16}, 1e-3), "codec": ({"compression": "bf16"}, 1e-2)
    }
    for name, (options, bound) in ways.items():
        passes = options.get("backward_passes_per_step", 1)
        net = model(rank).float() if "compression" in options else model(rank)
        rate = 0.1 / size if "op" in options else 0.1
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), rate), net.named_parameters(), **options)
        hvd.broadcast_parameters(net.state_dict(), root_rank=0)
        train(net, optimizer, rank, size, passes)
        wrong += [f"{name}: {one}" for one in unlike_models(net.double(), alone(passes=passes), bound)]
        optimizer.close()
    return wrong


def clipping(rank, size):
    """Gradients are reduced after synchronize, and the step uses what the program made of them; without names too."""
    wanted, net = model(), model()
    reference = torch.optim.SGD(wanted.parameters(), 0.1)
    for step in range(STEPS):
        reference.zero_grad()
        loss_of(wanted, step, 0, 1).backward()
        nn.utils.clip_grad_norm_(wanted.parameters(), 0.1)
        reference.step()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1))
    train(net, optimizer, rank, size, clip=True)
    optimizer.close()
    return unlike_models(net, wanted)


def unfinished(rank, size):
    """A step before all backward passes, and one with a backward pass of rank 0 only, use the gradients that exist."""
    wanted, net = model(), model()
    reference = torch.optim.SGD(wanted.parameters(), 0.1)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net.named_parameters(),
                                         backward_passes_per_step=3)
    for one, of_net, place in ((reference, wanted, (0, 1)), (optimizer, net, (rank, size))):
        for _ in range(2):
            one.zero_grad()
            loss_of(of_net, 0, *place).backward()
            loss_of(of_net, 1, *place).backward()
            one.step()
    wrong = unlike_models(net, wanted)
    reference.zero_grad()
    optimizer.zero_grad()
    (loss_of(wanted, 0, 0, size) / size).backward()
    if rank == 0:
        loss_of(net, 0, 0, size).backward()
    reference.step()
    optimizer.step()
    optimizer.close()
    return wrong + unlike_models(net, wanted)


def joining(rank, size):
    """Rank r has r + 1 batches in the first round and size - r in the second; ranks without one contribute zeros."""
    wrong = []
    net, wanted = model(), model()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net.named_parameters())
    reference = torch.optim.SGD(wanted.parameters(), 0.1)
    for batches in (lambda r: r + 1, lambda r: size - r):
        for step in range(batches(rank)):
            active = [r for r in range(size) if batches(r) > step]
            optimizer.zero_grad()
            loss_of(net, step, rank, size).backward()
            optimizer.step()
            started = hvd.allreduce_async(of(rank))
            wrong += unlike([("allreduce", hvd.allreduce(of(rank), op=hvd.Sum, name="a"), sum(of(r) for r in active)),
                             ("allgather", hvd.allgather(of(rank)), torch.cat([of(r) for r in active])),
                             ("group", hvd.synchronize(hvd.grouped_allgather_async([of(rank), of(rank)]))[1],
                              torch.cat([of(r) for r in active])),
                             ("broadcast", hvd.broadcast(of(rank), active[0]), of(active[0])),
                             ("started", hvd.synchronize(started), sum(of(r) for r in active) / size)])
        last = hvd.join()
        wrong += [] if last == max(range(size), key=lambda r: (batches(r), r)) else [f"last: {last}"]
        hvd.broadcast_parameters(net.state_dict(), root_rank=last)
        for step in range(size):
            reference.zero_grad()
            sum(loss_of(wanted, step, r, size) / size for r in range(size) if batches(r) > step).backward()
            reference.step()
        wrong += unlike_models(net, wanted)
    optimizer.close()
    wrong += [] if hvd.join() == size - 1 else ["nothing to do"]
    return wrong


def joined_ahead(rank, size):
    """Rank 0 ends a broadcast as its root and joins, before the others begin the broadcast."""
    if rank > 0:
        journal = hvd.global_process_set.collectives().journal
        with journal._changed:
            assert journal._changed.wait_for(lambda: 0 in journal._joined[journal._round], timeout=300)
    found = hvd.broadcast(of(rank), 0)
    return unlike([("broadcast", found, of(0))]) + ([] if hvd.join() == size - 1 else ["last"])


def begin(rank, size, store, job="folder"):
    """Join one of the jobs that meet next to the store."""
    os.environ |= {"SYNCOPATE_RANK": str(rank), "SYNCOPATE_SIZE": str(size), "SYNCOPATE_RENDEZVOUS": f"{store}-{job}"}
    hvd.init()


def refusal(call):
    """The text of Misuse, or nothing."""
    try:
        call()
    except syncopate.Misuse as error:
        return str(error)
    return ""


def refusals(rank, size):
    """Texts of what every rank refuses."""
    net, one = model(), of(rank)
    sgd = torch.optim.SGD(net.parameters(), 0.1)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net.named_parameters())

    of_two_passes = hvd.DistributedOptimizer(torch.optim.SGD((other := model()).parameters(), 0.1), backward_passes_per_step=2)

    def zero_between_passes():
        loss_of(other, 0, 0, 1).backward()
        of_two_passes.zero_grad()

    def backward_twice():
        loss_of(net, 0, 0, 1).backward()
        loss_of(net, 0, 0, 1).backward()

    calls = {
        "adasum": lambda: hvd.allreduce(one, op=hvd.Adasum),
        "adasum optimizer": lambda: hvd.DistributedOptimizer(sgd, op=hvd.Adasum),
        "both": lambda: hvd.allreduce(one, average=True, op=hvd.Sum),
        "op": lambda: hvd.allreduce(one, op=7),
        "number": lambda: hvd.allreduce(3.0),
        "device": lambda: hvd.allreduce(one.to("meta")),
        "sparse": lambda: hvd.allreduce(one.cpu().to_sparse()),
        "root": lambda: hvd.broadcast(one, size),
        "splits": lambda: hvd.alltoall(one, [1] * size),
        "rows": lambda: hvd.alltoall(one[:1]),
        "no dimension": lambda: hvd.allgather(torch.tensor(1)),
        "group": lambda: hvd.grouped_reducescatter_async([one, torch.tensor(1)]),
        "number in a group": lambda: hvd.grouped_allgather_async([one, 3.0]),
        "set": lambda: hvd.add_process_set([0, size]),
        "same set": lambda: hvd.add_process_set(list(range(size))),
        "communicator": lambda: hvd.ProcessSet(7),
        "comm": lambda: hvd.init(comm=[0]),
        "handle": lambda: hvd.synchronize(7),
        "elastic": lambda: hvd.elastic.run,
        "timeline": lambda: hvd.start_timeline("x"),
        "norm": lambda: hvd.SyncBatchNorm(3),
        "compressor": lambda: hvd.DistributedOptimizer(sgd, compression=int),
        "names": lambda: hvd.DistributedOptimizer(sgd, list(net.named_parameters())[1:]),
        "twice": lambda: hvd.DistributedOptimizer(sgd, [("w", p) for p in net.parameters()]),
        "predivide": lambda: hvd.DistributedOptimizer(sgd, op=hvd.Sum, gradient_predivide_factor=2.0),
        "passes": lambda: hvd.DistributedOptimizer(sgd, backward_passes_per_step=0),
        "too many": backward_twice,
        "zero_grad": zero_between_passes,
    }
    texts = {name: refusal(call) for name, call in calls.items()}
    optimizer.zero_grad()  # the averages of a complete pass may be left out
    of_two_passes.close()
    optimizer.close()
    return texts


def everything(rank, size, store):
    """Returns what is wrong, by part."""
    wrong = {"before": refusal(hvd.rank), "known before": hvd.is_initialized()}
    begin(rank, size, store)
    hvd.init()
    places = (hvd.rank, hvd.size, hvd.local_rank, hvd.local_size, hvd.cross_rank, hvd.cross_size, hvd.is_homogeneous,
              hvd.is_initialized, hvd.mpi_built)
    wrong["places"] = [place() for place in places]
    for part in (reductions, asynchronous, moves, gradients, objects, process_sets, training, clipping, unfinished,
                 joining, joined_ahead, refusals):
        wrong[part.__name__] = part(rank, size)
    if rank > 0:
        _, wrong["left"], _ = error_of(hvd.join)
    hvd.shutdown()
    wrong["known after"] = hvd.is_initialized()
    return wrong


def on_the_device(rank, size, store):
    """Returns what is wrong with tensors and models on an accelerator, by part."""
    begin(rank, size, store)
    wrong = {}
    for part in (reductions, asynchronous, moves, gradients, objects, process_sets, training, clipping, unfinished, joining):
        with late(20, 300, rank):
            wrong[part.__name__] = part(rank, size)
    hvd.shutdown()
    return wrong


def without_a_wait(tensor):
    """In the place of Tensor.cpu."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor, non_blocking=True)


MISTAKES = {
    "sends what was there before": (on_host, "IN_PLACE", set()), "no copy up": (on_host, "_copy_all", lambda _: None),
    "no wait for the copy down": (torch.Tensor, "cpu", without_a_wait)
}


def undetected(rank, size, store):
    """Names of mistakes in the copies with which an operation that is waited for later has the right result."""
    begin(rank, size, store)
    missed, total = [], stacked(size).sum(0)
    for name, (place, replaced, planted) in {**MISTAKES, "nothing is planted": (on_host, "IN_PLACE", on_host.IN_PLACE)}.items():
        with mock.patch.object(place, replaced, planted), late(0, 5000, rank):
            busy(0.5)  # the copy down comes later than the exchange, also on a busy machine
            found = hvd.synchronize(hvd.allreduce_async(of(rank), op=hvd.Sum))
        missed += [name] if torch.equal(found.to("cpu"), total.to("cpu")) else []
    hvd.shutdown()
    return missed


def mismatches(rank, size, store):
    """Errors of ranks that call different things."""
    begin(rank, size, store)
    try:
        hvd.allreduce(of(rank), name="one" if rank == 0 else "other")
    except syncopate.Mismatch as error:
        return str(error)
    return ""


def while_joined(rank, size, store, call):
    """The text of the error of `call` of rank 1 while rank 0 has joined."""
    begin(rank, size, store)
    try:
        hvd.join() if rank == 0 else call()
    except syncopate.Error as error:
        return str(error)
    return ""


def joined_root(rank, size, store):
    """A broadcast from a rank that has joined."""
    return while_joined(rank, size, store, lambda: hvd.broadcast(of(rank), 0))


def joined_alltoall(rank, size, store):
    """Rows for a rank that has joined."""
    return while_joined(rank, size, store, lambda: hvd.alltoall(of(rank)))


def joined_set(rank, size, store):
    """A process set without the rank that has joined."""
    return while_joined(rank, size, store, lambda: hvd.add_process_set([1]))


def error_of(call):
    """The class and text of the error of a call, and the rank that caused it; None without an error."""
    try:
        call()
    except syncopate.Error as error:
        return type(error).__name__, str(error), error.peer
    return None


def learned(what):
    """Wait until this rank's journal knows it."""
    journal = hvd.global_process_set.collectives().journal
    with journal._changed:
        assert journal._changed.wait_for(lambda: what(journal), timeout=300)


def uneven(rank, size, store):
    """The errors of ranks that make one more call after rank 0 has left the job; each call in a job of its own."""
    calls = {
        "allreduce": lambda: hvd.allreduce(of(rank)),
        "handle": lambda: hvd.synchronize(hvd.allreduce_async(of(rank))),
        "barrier": hvd.barrier,
        "object": lambda: hvd.broadcast_object(None, 0),
        "process set": lambda: hvd.allreduce(of(rank), process_set=part) if part.included() else None,
        "another set": lambda: hvd.add_process_set([1, 2]),
        "step": lambda: step(),
        "join": hvd.join,
        "join of one": lambda: hvd.join() if rank == 1 else hvd.allreduce(of(rank)),
        "step for a started call": lambda: step(),
        "no call": lambda: learned(lambda journal: 0 in journal.left),
    }
    errors = {}

    def step():
        optimizer.zero_grad()
        loss_of(net, 0, rank, size).backward()
        optimizer.step()

    for name, call in calls.items():
        begin(rank, size, store, name.replace(" ", "-"))
        net, part = model(), hvd.add_process_set([0, 2])
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net.named_parameters())
        step()
        if rank > 0:  # a rank may still be in the common call when another one's next call fails
            errors[name] = error_of(lambda: [hvd.allreduce(of(rank)), call()])
        else:
            hvd.allreduce(of(rank))
        if rank == 0 and name == "step for a started call":
            hvd.allreduce_async(of(rank))
        hvd.shutdown()
    return errors


def failing(rank, size, store):
    """The errors of ranks that wait for the last one, which is killed or ends with an exception."""
    begin(rank, size, store)
    net = model()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1), net.named_parameters())
    if rank == size - 1:
        hvd.barrier()
        if os.environ["TEST_END"] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            raise ValueError("the data ran out")
        except ValueError as error:
            sys.last_value = error  # as Python sets it before the functions at its end; its traceback keeps the optimizer
        return None

    def step():
        loss_of(net, 0, rank, size).backward()
        optimizer.step()

    def shutdown():
        learned(lambda journal: journal._failure is not None)
        hvd.shutdown()

    calls = {"allreduce": lambda: hvd.allreduce(of(rank)), "join": hvd.join, "step": step, "shutdown": shutdown}
    # A rank may still be in the barrier when the last one fails.
    return error_of(lambda: [hvd.barrier(), calls[os.environ["TEST_CALL"]]()])
