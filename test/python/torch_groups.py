"""Process groups: their modes, descriptors and sparse sums, and what a rank learns of another that fails while they connect."""

import os
import resource
import signal
import socket
from datetime import timedelta
from unittest import mock

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch_compatibility import job, text_of

import syncopate
import syncopate.torch


def modes(rank, size, store):
    """The end of an operation, and the calls that follow it, run in the modes of its call."""
    def seen(_=None):
        return [torch.is_inference_mode_enabled(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")]

    with job(rank, size, store):
        with torch.inference_mode():
            part, view, tiny = torch.zeros(1, 2), torch.ones(3, 2).t(), torch.ones(2, dtype=torch.int8)
            works = [dist.reduce_scatter_tensor(part, torch.ones(size, 2), async_op=True), dist.all_reduce(view, async_op=True),
                     dist.all_reduce(tiny, async_op=True)]
        facts = {"failed": [text for text in (text_of(work.wait) for work in works) if text],
                 "results": [tensor.flatten()[0].item() for tensor in (part, view, tiny)]}
        with torch.no_grad(), torch.autocast("cpu", torch.float16):
            wanted = seen()
            future = dist.all_reduce(torch.ones(100_000), async_op=True).get_future().then(lambda future: seen())
        facts["callback"] = future.wait() == wanted
        found = []
        state = syncopate.torch.HookState(net := DistributedDataParallel(torch.nn.Linear(2, 1)))
        state.observer = lambda _indices, _spans: found.append(seen())

        def recording(state, bucket):
            found.append(seen())
            return syncopate.torch.hook(state, bucket)
        net.register_comm_hook(state, recording)
        with torch.autocast("cpu", torch.float16):
            net(torch.ones(1, 2)).sum().backward()
        facts["hook"] = len(found) == 2 and found[0] == found[1]
        facts["autocast in a backward pass"] = found[0][2]
        state.close()
        return facts


def sparse(rank, size, store):
    """Sums of sparse tensors are in progress at the same time as dense ones, and in groups that the ranks use in different orders."""
    def own(dense_dimensions):
        values = torch.ones([rank + 1] + [2] * dense_dimensions, dtype=torch.float64 if dense_dimensions else torch.float32)
        return torch.sparse_coo_tensor(torch.arange(rank + 1).view(1, -1), values, [size] + [2] * dense_dimensions)

    dist.init_process_group("syncopate", init_method=store, rank=rank, world_size=size)
    groups = [dist.new_group() for _ in range(2)]
    tensors = [own(i) for i in range(2)]
    order = [0, 1] if rank else [1, 0]
    works = {i: dist.all_reduce(tensors[i], group=groups[i], async_op=True) for i in order}
    dense = torch.ones(1)
    dist.all_reduce(dense)
    again = own(0)
    works[2] = dist.all_reduce(again, group=groups[0], async_op=True)
    for i in range(3):
        works[i].wait()
    wanted = torch.arange(size, 0, -1.0)
    blocking, nothing = own(0), torch.sparse_coo_tensor(torch.empty(1, 0), torch.empty(0), (2,))
    dist.all_reduce(blocking)
    dist.all_reduce(nothing)
    with torch.inference_mode():
        outside = own(0)
        work = dist.all_reduce(outside, async_op=True)
    work.wait()
    facts = {"sums": [torch.equal(found.to_dense(), wanted) for found in (tensors[0], again, blocking, outside)],
             "hybrid": torch.equal(tensors[1].to_dense(), torch.stack([wanted, wanted], 1).double()),
             "nothing": nothing._nnz(), "dense": dense.item(), "ended": works[0].is_completed(),
             "mixed": text_of(lambda: dist.all_reduce(own(0) if rank else torch.ones(size)))}
    dist.destroy_process_group()
    return facts


def _open_now():
    return len(os.listdir("/proc/self/fd"))


def descriptors(rank, size, store):
    """How many descriptors each further group of all ranks has, once it was used."""
    with job(rank, size, store):
        counts = []
        for _ in range(4):
            dist.all_reduce(torch.ones(1), group=dist.new_group())
            dist.barrier()
            counts.append(_open_now())
        return {after - before for before, after in zip(counts, counts[1:], strict=False)}


def _leave_descriptors(free):
    """Let this process open only `free` more. Returns a function that lifts the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    filled, highest = [], max(map(int, os.listdir("/proc/self/fd")))
    while not filled or filled[-1] <= highest:
        filled.append(os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (filled[-1] + 1 + free, hard))
    return lambda: (resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)), [os.close(number) for number in filled])


def _tcp_store(rank, store):
    """The address of a store that needs no descriptor for a question."""
    shared = dist.FileStore(store.removeprefix("file://"))
    if rank == 0:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            shared.set("port", str(free.getsockname()[1]))
    return f"tcp://127.0.0.1:{int(shared.get('port'))}"


def lacking(rank, size, store):
    """The errors of new_group and of its first use, by the number of descriptors that a rank has left and by that rank."""
    found = {}
    with job(rank, size, _tcp_store(rank, store)):
        for limited in (0, 1):
            for free in range(40):
                lift = _leave_descriptors(free) if rank == limited else lambda: None
                text = text_of(lambda: dist.all_reduce(torch.ones(1), group=dist.new_group()))
                lift()
                # So that the ranks do the same.
                failed = [None] * size
                dist.all_gather_object(failed, text)
                if not any(failed):
                    break
                found[limited, free] = text
            found[limited, "last"] = free
    return found


def ending(rank, size, store):
    """Rank 1 ends while the ranks connect a group; the others' errors."""
    with mock.patch("syncopate.torch.shared.membership._SILENT_S", 3):
        dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
        if rank == 1:
            syncopate.Group.join = lambda **_: os.kill(os.getpid(), signal.SIGKILL)
        return text_of(lambda: dist.new_group(backend="syncopate", timeout=timedelta(minutes=30)))


def without_store(rank, size, store):
    """Rank 0, whose process has the store, ends while rank 1 waits for it in a group; the error of rank 1."""
    store = dist.FileStore(store.removeprefix("file://"))
    if rank == 0:
        server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        store.set("port", str(server.port))
        store.wait(["waits"])
        os.kill(os.getpid(), signal.SIGKILL)
    client = dist.TCPStore("127.0.0.1", int(store.get("port")), timeout=timedelta(seconds=60))
    client.set("host/1", "")
    store.set("waits", "")
    return text_of(lambda: syncopate.torch.shared.rendezvous.join(client, 1, 2, 1800))
