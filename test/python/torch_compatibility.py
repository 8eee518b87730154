"""Expectations of programs written for torch's own backends: each function checks one kind and returns facts by name."""

import contextlib
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import syncopate
import syncopate.torch  # noqa: F401 (it makes the name known)


@contextlib.contextmanager
def job(rank, size, store):
    dist.init_process_group("syncopate", init_method=store, rank=rank, world_size=size)
    yield
    dist.barrier()
    dist.destroy_process_group()


def text_of(call):
    """The name and the text of what a call raises."""
    try:
        call()
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def debug_detail(rank, size, store):
    """Run with TORCH_DISTRIBUTED_DEBUG=DETAIL."""
    with job(rank, size, store):
        ones = torch.ones(2)
        dist.all_reduce(ones)
        whole = torch.empty(2 * size)
        dist.all_gather_into_tensor(whole, torch.full((2,), float(rank)))
        part = torch.empty(2)
        dist.reduce_scatter_tensor(part, torch.ones(2 * size))
        net = DistributedDataParallel(nn.Linear(2, 1))
        net(torch.ones(1, 2) * (rank + 1)).sum().backward()
        return {"all_reduce": ones.tolist(), "all_gather": whole.tolist(), "reduce_scatter": part.tolist(),
                "ddp": net.module.weight.grad.tolist()}


def pipelines(rank, size, store):
    """Batches of messages, torch's pipelining, and groups that are split from one."""
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
    with job(rank, size, store):
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        names = ("supports_coalescing", "supports_splitting", "supports_reconfigure", "supports_shrinking", "supports_window",
                 "_supports_time_estimate")
        facts = {"supports": [getattr(backend, name) for name in names], "timeout": backend.options._timeout.total_seconds()}
        received = torch.empty(2)
        batch = [dist.P2POp(dist.isend, torch.full((2,), float(rank)), (rank + 1) % size),
                 dist.P2POp(dist.irecv, received, (rank - 1) % size)]
        for work in dist.batch_isend_irecv(batch):
            work.wait()
        facts["batch"] = received.tolist()
        torch.manual_seed(0)
        layers = [nn.Linear(3, 3, bias=False) for _ in range(size)]
        schedule = ScheduleGPipe(PipelineStage(layers[rank], rank, size, torch.device("cpu")), 2)
        samples = torch.arange(12.0).view(4, 3)
        output = schedule.step(samples) if rank == 0 else schedule.step()
        wanted = samples
        for layer in layers:
            wanted = layer(wanted)
        facts["pipeline"] = rank < size - 1 or torch.allclose(output, wanted)
        part = dist.split_group(split_ranks=[[2, 0], [1]])
        sums = torch.full((1,), float(rank))
        dist.all_reduce(sums, group=part)
        facts["split"] = [part.rank(), part.size(), sums.item()]
        return facts


def works(rank, size, store):
    """The state of an operation that no thread has waited for."""
    with job(rank, size, store):
        right, left = (rank + 1) % size, (rank - 1) % size
        received, sums, parts = torch.empty(2), torch.ones(3), [torch.empty(2) for _ in range(size)]
        started = [dist.isend(torch.full((2,), float(rank)), right), dist.irecv(received, left), dist.all_reduce(sums, async_op=True),
                   dist.all_gather(parts, torch.full((2,), float(rank)), async_op=True), dist.barrier(async_op=True)]
        for work in started:
            while not work.is_completed():
                pass
        facts = {"received": received.tolist(), "sums": sums.tolist(), "parts": torch.cat(parts).tolist(),
                 "success": [work.is_success() for work in started], "result": started[2].result()[0].tolist()}
        alone = dist.new_group([0, 1], backend="gloo")  # another backend's answers stay its own
        if rank < 2:
            work = dist.all_reduce(torch.ones(1), group=alone, async_op=True)
            work.wait()
            facts["gloo"] = work.is_completed() and work.get_future().wait()[0].item()
        failing = dist.new_group()
        work = dist.all_reduce(torch.zeros(1 + (rank == 0)), group=failing, async_op=True)
        while not work.is_completed():
            pass
        facts["failure"] = [work.is_success(), text_of(work.wait)]
        return facts


def layouts(rank, size, store):
    """Lists of lists, memory with gaps, sparse tensors, and a result in the place of the input."""
    with job(rank, size, store):
        outs = [[torch.empty(2), torch.empty(3, 2)] for _ in range(size)]
        dist.all_gather_coalesced(outs, [torch.full((2,), float(rank)), torch.full((3, 2), 10.0 + rank)])
        facts = {"coalesced": [[tensors[0].sum().item(), tensors[1][:, 0].sum().item()] for tensors in outs]}
        base = torch.arange(6.0).view(2, 3)
        transposed, strided = (base + rank).t(), (base + rank)[:, ::2]
        image = (torch.arange(16.0).view(1, 2, 2, 4) + rank).contiguous(memory_format=torch.channels_last)
        dist.all_reduce(transposed)
        dist.broadcast(strided, 1)
        dist.all_reduce(image, async_op=True).wait()
        facts["gaps"] = [transposed.tolist(), strided.tolist(), image.flatten().tolist()]
        column = torch.zeros(2, 2)
        whole = torch.zeros(2 * size, 2)
        dist.all_gather_into_tensor(whole[:, 0], (base + rank)[:, 1])
        dist.reduce_scatter_tensor(column[:, 1], torch.ones(2 * size, 2)[:, 0])
        received = torch.zeros(2, 3).t()
        works = [dist.isend((base + rank).t(), (rank + 1) % size), dist.irecv(received, (rank - 1) % size)]
        for work in works:
            work.wait()
        facts["into gaps"] = [whole[:, 0].tolist(), whole[:, 1].tolist(), column.tolist(), received.tolist()]
        sparse = torch.sparse_coo_tensor([[0, rank + 1]], torch.tensor([[1.0, 2.0], [3.0, rank]]), (size + 2, 2))
        dist.all_reduce(sparse)
        facts["sparse"] = sparse.to_dense().tolist()
        net = DistributedDataParallel(nn.Embedding(5, 2, sparse=True))
        net(torch.tensor([rank, 4])).sum().backward()
        facts["embedding"] = net.module.weight.grad.to_dense()[:, 0].tolist()
        facts["sparse refused"] = text_of(lambda: dist.broadcast(sparse, 0))
        in_place = torch.arange(float(size)) + 10 * rank
        dist.all_to_all_single(in_place, in_place)
        facts["in place"] = in_place.tolist()
        return facts


def sizes(rank, size, store):
    """Wrong sizes and types are refused on every rank, nothing is written, and the group goes on."""
    kept = torch.full((2 * size + 1,), 7.0)
    lists = [torch.zeros(2) for _ in range(size)]
    calls = {
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(kept, torch.zeros(2)),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(kept, torch.zeros(2 * size)),
        "scatter": lambda: dist.scatter(kept, lists if rank == 0 else None, 0),
        "all_gather": lambda: dist.all_gather(lists[1:], torch.zeros(2)),
        "gather": lambda: dist.gather(torch.zeros(3), lists if rank == 0 else None, 0),
        "types": lambda: dist.group.WORLD._allgather_base(torch.zeros(2 * size), torch.zeros(2, dtype=torch.int32)).wait(),
        "pieces": lambda: dist.all_to_all_single(kept, torch.zeros(2 * size + 1)),
    }
    with job(rank, size, store):
        facts = {name: text_of(call) for name, call in calls.items() if name not in ("scatter", "gather")}
        ones = torch.ones(1)
        dist.all_reduce(ones)
        facts["then"] = ones.item()
        facts["kept"] = kept.unique().tolist()
    for name in ("scatter", "gather"):  # only the root can see that
        dist.init_process_group("syncopate", init_method=store + name, rank=rank, world_size=size)
        facts[name] = text_of(calls[name])
        dist.destroy_process_group()
    return facts


def built_in_hooks(rank, size, store):
    """torch's hooks in C++; gradients are 1 + the rank."""
    with job(rank, size, store):
        facts = {}
        for kind in (dist.BuiltinCommHookType.ALLREDUCE, dist.BuiltinCommHookType.FP16_COMPRESS):
            net = DistributedDataParallel(nn.Linear(4, 1, bias=False))
            net._register_builtin_comm_hook(kind)
            for _ in range(3):
                net.zero_grad()
                net(torch.full((1, 4), 1.0 + rank)).sum().backward()
            facts[kind.name] = net.module.weight.grad[0].tolist()
        return facts


def missing(rank, size, store):
    """A group whose last rank does not come; and two ranks that exchange messages before the others."""
    with job(rank, size, store):
        facts, other = {}, dist.new_group()  # before the ranks have made different numbers of groups, by which torch names them
        if rank != size - 1:
            facts["group"] = text_of(lambda: dist.new_group(timeout=timedelta(seconds=1)))
        if rank < 2:
            work = dist.isend(torch.ones(1), 1 - rank)
            received = torch.zeros(1)
            dist.recv(received, 1 - rank)
            work.wait()
            facts["message"] = received.item()
        facts["barrier"] = text_of(lambda: dist.monitored_barrier(timeout=timedelta(seconds=60)))
        bound = timedelta(seconds=1)
        if rank != 1:
            facts["monitored"] = text_of(lambda: dist.monitored_barrier(timeout=bound))
        dist.barrier()
        if rank == 0:
            facts["all"] = text_of(lambda: dist.monitored_barrier(timeout=bound, wait_all_ranks=True))
        dist.barrier()
        facts["after"] = text_of(lambda: dist.monitored_barrier(timeout=timedelta(seconds=60)))
        dist.all_reduce(torch.ones(1), group=other)
        dist.distributed_c10d._set_pg_timeout(bound, other)
        if rank == 0:
            facts["timeout"] = text_of(lambda: dist.barrier(other))
        return facts
