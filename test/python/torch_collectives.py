"""Every collective, operation and type of torch, through the backend and through Gloo, against what torch computes alone.

Tensors of the backend are on the device of the variable DEVICE, by default the CPU, and Gloo's are on the CPU.
"""

import contextlib

import torch
import torch.distributed as dist
from device.chosen import DEVICE, late
from torch.distributed import ReduceOp

import syncopate.torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
OPS = {"SUM": ReduceOp.SUM, "AVG": ReduceOp.AVG, "MIN": ReduceOp.MIN, "MAX": ReduceOp.MAX, "PRODUCT": ReduceOp.PRODUCT,
       "BAND": ReduceOp.BAND, "BOR": ReduceOp.BOR, "BXOR": ReduceOp.BXOR}
COUNT = 12


@contextlib.contextmanager
def on_device():
    """New tensors are on the device. Operators and copies of the pretended accelerator begin late."""
    with late(operator_us=100, copy_us=300), torch.device(DEVICE):
        yield


def equal(one, other):
    """Wherever they are."""
    return torch.equal(one.cpu(), other.cpu())


def vector(rank, dtype, device=DEVICE):
    """Whole numbers, so that every order of adding gives the same bits."""
    values = (torch.arange(COUNT, device="cpu") * 3 + 2 * rank + 1) % 7
    return (values % 2 == 0 if dtype == torch.bool else values.to(dtype)).to(device)


def expected(op, dtype, size):
    """The reduction, by torch alone."""
    rows = torch.stack([vector(rank, dtype, "cpu") for rank in range(size)])
    if dtype == torch.bool:
        return {"SUM": rows.any(0), "MAX": rows.any(0), "BOR": rows.any(0), "BXOR": rows.sum(0) % 2 == 1}.get(op, rows.all(0))
    if op == "AVG":
        return rows.sum(0, dtype=dtype).div(size, rounding_mode=None if dtype.is_floating_point else "trunc").to(dtype)
    if op in ("SUM", "PRODUCT"):
        return getattr(rows, {"SUM": "sum", "PRODUCT": "prod"}[op])(0, dtype=dtype)
    if op in ("MIN", "MAX"):
        return getattr(rows, "a" + op.lower())(0)
    total = rows[0].clone()
    for row in rows[1:]:
        total = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}[op](total, row)
    return total


def cases():
    """(operation, type) that are defined."""
    for dtype in [*FLOATS, *INTEGERS, torch.bool]:
        for op in OPS:
            bitwise = op in ("BAND", "BOR", "BXOR")
            if not (bitwise and dtype in FLOATS) and not (op == "AVG" and dtype == torch.bool):
                yield op, dtype


def reductions(group, rank, size):
    """Every operation and type; returns what differs."""
    wrong = []
    for op, dtype in cases():
        want = expected(op, dtype, size)
        for is_async in (False, True):
            everywhere, at_root = vector(rank, dtype), vector(rank, dtype)
            works = [dist.all_reduce(everywhere, OPS[op], group, async_op=is_async),
                     dist.reduce(at_root, group_dst=size - 1, op=OPS[op], group=group, async_op=is_async)]
            part = torch.empty(COUNT // size, dtype=dtype)
            whole = vector(rank, dtype)
            works.append(dist.reduce_scatter_tensor(part, whole, OPS[op], group, async_op=is_async))
            for work in works if is_async else []:
                work.wait()
            root_want = want if rank == size - 1 else vector(rank, dtype)
            found = {"all_reduce": equal(everywhere, want), "reduce": equal(at_root, root_want),
                     "reduce_scatter": equal(part, want.view(size, -1)[rank]), "input": equal(whole, vector(rank, dtype))}
            wrong += [f"{name} {op} {dtype} async={is_async}" for name, right in found.items() if not right]
    return wrong


def moves(group, rank, size, dtype, device=DEVICE):
    """Everything that only moves, with pieces of equal and of differing lengths; a dict of what every rank has then."""
    with torch.device(device):
        return moves_here(group, rank, size, dtype, device)


def moves_here(group, rank, size, dtype, device):
    """The same; new tensors are on the device."""
    own, other = vector(rank, dtype, device), vector(rank + 5, dtype, device)
    sent = own.clone()
    dist.broadcast(sent, group_src=size - 1, group=group)
    gathered = [torch.empty_like(own) for _ in range(size)]
    dist.all_gather(gathered, own, group)
    whole = torch.empty(COUNT * size, dtype=dtype)
    dist.all_gather_into_tensor(whole, own, group)
    at_root = [torch.empty_like(own) for _ in range(size)] if rank == 0 else None
    dist.gather(own, at_root, group=group, group_dst=0)
    part = torch.empty_like(own)
    dist.scatter(part, [vector(r + 3, dtype, device) for r in range(size)] if rank == 0 else None, group=group, group_src=0)
    even = torch.empty_like(own)
    dist.all_to_all_single(even, own, group=group)
    out_lengths, lengths = [1 + (rank + r) % 2 for r in range(size)], [1 + (rank + r) % 2 for r in range(size)]
    uneven = torch.empty(sum(out_lengths), 2, dtype=dtype)
    dist.all_to_all_single(uneven, torch.cat([other] * 4)[:2 * sum(lengths)].view(-1, 2), out_lengths, lengths, group=group)
    return {"broadcast": sent, "all_gather": torch.cat(gathered), "all_gather_into_tensor": whole,
            "gather": torch.cat(at_root) if at_root else sent, "scatter": part, "all_to_all": even, "uneven": uneven}


def compared(rank, size, store):
    """Both backends in the same processes; returns what is wrong, by name."""
    with on_device():
        return comparison(rank, size, store)


def comparison(rank, size, store):
    """The same; new tensors are on the device."""
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    wrong = []
    for members in (list(range(size)), [0, 1]):
        ours, gloo = dist.new_group(members, backend="syncopate"), dist.new_group(members, backend="gloo")
        if rank not in members:
            continue
        wrong += [f"{len(members)} ranks: {text}" for text in reductions(ours, rank, len(members))]
        for dtype in (torch.float32, torch.int8, torch.uint8, torch.float16, torch.int64):
            mine, theirs = moves(ours, rank, len(members), dtype), moves(gloo, rank, len(members), dtype, "cpu")
            wrong += [f"{len(members)} ranks: {name} {dtype}" for name in mine if not equal(mine[name], theirs[name])]
        complex_types = () if DEVICE == "emu" else (torch.complex64, torch.complex128)  # it has no views of them as real numbers
        for dtype in (torch.int16, torch.bool, *complex_types):  # Gloo moves no such
            mine = moves(ours, rank, len(members), torch.int64)
            cast = moves(ours, rank, len(members), dtype)
            same = [equal(cast[n], mine[n] % 2 == 0 if dtype == torch.bool else mine[n].to(dtype)) for n in mine]
            wrong += [] if all(same) else [f"{len(members)} ranks: moves of {dtype}"]
    dist.destroy_process_group()
    return wrong


def others(rank, size, store):
    """Operations that Gloo lacks, messages, objects, futures and errors; returns facts by name."""
    with on_device():
        return operations(rank, size, store)


def operations(rank, size, store):
    """The same; new tensors are on the device."""
    dist.init_process_group("syncopate", init_method=store, rank=rank, world_size=size)
    facts = {}
    scaled = torch.full((3,), float(rank + 1))
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(0.5))
    facts["premul_sum"] = scaled.tolist()
    future = dist.all_reduce(torch.ones(3), async_op=True).get_future()
    facts["future"] = [tensor.tolist() for tensor in future.wait()]
    chained = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(
        lambda done: dist.all_reduce(done.value()[0], async_op=True).get_future().wait()[0].sum().item())
    facts["a callback waits for the next"] = chained.wait()
    inputs = [torch.full((r + 1,), float(rank)) for r in range(size)]
    pieces = [torch.empty(rank + 1) for _ in range(size)]
    dist.all_to_all(pieces, inputs)
    facts["all_to_all"] = torch.cat(pieces).tolist()
    part = torch.empty(rank + 1)
    dist.reduce_scatter(part, inputs)
    facts["reduce_scatter"] = part.tolist()
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    facts["objects"] = [one["rank"] for one in objects]
    right, left = (rank + 1) % size, (rank - 1) % size
    received = [torch.zeros(2) for _ in range(3)]
    works = [dist.isend(torch.full((2,), 10.0 * rank + tag), right, tag=tag) for tag in range(3)]
    works += [dist.irecv(received[tag], left, tag=tag) for tag in range(3)]
    for work in works:
        work.wait()
    facts["messages"] = [tensor[0].item() for tensor in received]
    coalesced = [torch.full((2,), float(i)) for i in range(3)]
    dist.all_reduce_coalesced(coalesced)
    facts["coalesced"] = [tensor[0].item() for tensor in coalesced]
    facts["refused"] = refusals(rank)
    dist.barrier()
    dist.destroy_process_group()
    kept = dist.FileStore(store.removeprefix("file://") + "-kept", size)
    facts["generations"] = []
    for _ in range(2):  # the keys of the first group are in the store that the second one meets by
        dist.init_process_group("syncopate", store=kept, rank=rank, world_size=size)
        ones = torch.ones(1)
        dist.all_reduce(ones)
        facts["generations"].append(ones.item())
        dist.destroy_process_group()
    return facts


def tagged(rank, size, store):
    """Messages whose receives are called in another order than their sends: facts by name, for each backend."""
    with on_device():
        dist.init_process_group("syncopate", init_method=store, rank=rank, world_size=size)
    found = {}
    for backend in ("syncopate", "gloo"):
        group, facts = dist.new_group(backend=backend), found.setdefault(backend, {})
        with on_device() if backend == "syncopate" else contextlib.nullcontext():
            for count in (1, 1000, 1 << 20):
                facts[f"started, {count}"] = crossing(rank, size, group, count)
                facts[f"batch, {count}"] = batch(rank, size, group, count)
    if rank < 2:
        with on_device():
            found["blocking"] = blocking(rank, (1, 1000, 1 << 20))
    dist.barrier()
    try:
        if rank == 0:
            dist.send(torch.zeros(3, device=DEVICE), 1, tag=4)
        elif rank == 1:
            dist.recv(torch.zeros(5, device=DEVICE), 0, tag=4)
        dist.barrier()
    except syncopate.Mismatch as error:
        found["sizes"] = str(error)
    dist.destroy_process_group()
    return found


def crossing(rank, size, group, count):
    """Every rank sends three tags to its right neighbour and receives them in reverse order, all at the same time."""
    right, left = (rank + 1) % size, (rank - 1) % size
    received = {tag: torch.zeros(count) for tag in (3, 2, 1)}
    works = [dist.isend(torch.full((count,), 10.0 * rank + tag), right, group, tag) for tag in (1, 2, 3)]
    works += [dist.irecv(tensor, left, group, tag) for tag, tensor in received.items()]
    for work in works:
        work.wait()
    return {tag: tensor.cpu().unique().tolist() for tag, tensor in received.items()}


def batch(rank, size, group, count):
    """As crossing, in one batch, with both neighbours."""
    received = {(left, tag): torch.zeros(count) for tag in (2, 1) for left in ((rank - 1) % size, (rank + 1) % size)}
    calls = [dist.P2POp(dist.irecv, tensor, peer, group, tag) for (peer, tag), tensor in received.items()]
    calls += [dist.P2POp(dist.isend, torch.full((count,), 10.0 * rank + tag), peer, group, tag) for peer, tag in reversed(received)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    return {key: tensor.cpu().unique().tolist() for key, tensor in received.items()}


def blocking(rank, counts):
    """Rank 0 sends tag 1, then tag 2 twice; rank 1 receives tag 2 twice, then tag 1. Gloo waits for ever here."""
    received = []
    for count in counts:
        if rank == 0:
            for value, tag in ((1.0, 1), (2.0, 2), (3.0, 2)):
                dist.send(torch.full((count,), value), 1, tag=tag)
        else:
            for tag in (2, 2, 1):
                tensor = torch.zeros(count)
                dist.recv(tensor, 0, tag=tag)
                received += tensor.cpu().unique().tolist()
    return received


def waited_for_later(work):
    """`is_completed` has made the result then, and raises nothing."""
    while not work.is_completed():
        pass
    work.wait()


def refusals(rank):
    """Texts of what is refused, by every rank alike."""
    texts = []
    for call in (lambda: dist.all_reduce(torch.zeros(3), ReduceOp.BAND),
                 lambda: waited_for_later(dist.all_reduce(torch.zeros(3), ReduceOp.BAND, async_op=True)),
                 lambda: dist.recv(torch.zeros(1))):
        try:
            call()
            texts.append("")
        except (syncopate.Misuse, RuntimeError, ValueError) as error:
            texts.append(f"{type(error).__name__}: {error}")
    return texts
