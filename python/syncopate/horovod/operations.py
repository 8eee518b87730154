"""Horovod's collectives: each as a call that waits, one that returns a handle, and one that works in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import torch
from torch._C._distributed_c10d import Work

import syncopate
from syncopate.horovod.collectives import Collectives
from syncopate.horovod.compression import Compression, Compressor
from syncopate.horovod.job import ProcessSet, global_process_set
from syncopate.horovod.on_host import Returning
from syncopate.horovod.reductions import Average, Sum, as_torch, checked, chosen, scaled
from syncopate.torch.device.lane import is_accelerator
from syncopate.torch.device.thread_modes import in_callers_modes


class Handle:
    """An operation in progress; `synchronize` returns its result, which is made in the modes of torch that the caller had."""

    def __init__(self, collectives: Collectives, work: Work | Returning, result: Callable[[], Any]) -> None:
        self._collectives = collectives
        self._work: Work | Returning | None = work
        self._result: Any = in_callers_modes(result)  # makes the result; it is the result when there is no work left

    def ended(self) -> bool:
        """Whether it has ended, well or not."""
        return self._work is None or self._work.is_completed()

    def wait(self) -> Any:
        """The result. Raises what the operation failed with."""
        if self._work is not None:
            self._collectives.wait(self._work)
            self._work, self._result = None, self._result()
        return self._result


class _Several(Handle):
    """Operations in progress, as one; their results are a list."""

    def __init__(self, handles: Sequence[Handle]) -> None:
        self._handles = handles

    def ended(self) -> bool:
        """Whether all have ended."""
        return all(handle.ended() for handle in self._handles)

    def wait(self) -> list[Any]:
        """The results. Raises what the first one failed with."""
        return [handle.wait() for handle in self._handles]


def synchronize(handle: Handle) -> Any:
    """Wait for an operation and return its result."""
    if not isinstance(handle, Handle):
        raise syncopate.Misuse(f"synchronize({handle!r}): allowed: what a call whose name has `_async` returned")
    return handle.wait()


def poll(handle: Handle) -> bool:
    """Whether an operation has ended."""
    return handle.ended()


class _Differentiable(torch.autograd.Function):
    """A collective whose backward pass is another; gradients are those of the sum of all ranks' losses."""

    @staticmethod
    def forward(context: Any, tensor: torch.Tensor, forward: Callable[[torch.Tensor], torch.Tensor],
                backward: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """Run the collective."""
        context.backward_call = backward
        return forward(tensor)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Run the other collective on the gradient."""
        return context.backward_call(gradient), None, None


def _differentiable(call: str, process_set: ProcessSet, tensor: torch.Tensor, forward: Callable[[torch.Tensor], torch.Tensor],
                    backward: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    _usable(call, process_set, tensor)
    if torch.is_grad_enabled() and tensor.requires_grad:
        result: torch.Tensor = _Differentiable.apply(tensor, forward, backward)
        return result
    return forward(tensor)


def _usable(call: str, process_set: ProcessSet, *tensors: torch.Tensor) -> Collectives:
    """The calls of the process set, if they take the tensors."""
    collectives = process_set.collectives()
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            collectives.group.refuse(
                f"{call}: got {type(tensor).__name__}; allowed: torch.Tensor; broadcast_object moves other objects")
        if not tensor.is_cpu and not is_accelerator(tensor.device):
            collectives.group.refuse(
                f"{call}: got a tensor on {tensor.device}; allowed: tensors on the CPU, or from torch 2.6 on an "
                "accelerator that this PyTorch finds (torch.accelerator.current_accelerator())")
        if tensor.is_sparse:
            collectives.group.refuse(f"{call}: got a sparse tensor; pass tensor.to_dense()")
    return collectives


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """Memory for a result; what is not a tensor is refused later."""
    return tensor.detach().clone() if isinstance(tensor, torch.Tensor) else tensor


def _with_rows(call: str, process_set: ProcessSet, *tensors: torch.Tensor) -> Collectives:
    """As _usable, for tensors that have rows."""
    collectives = _usable(call, process_set, *tensors)
    if any(tensor.dim() == 0 for tensor in tensors):
        collectives.group.refuse(
            f"{call}: got a tensor without dimensions; allowed: one or more; pass tensor.reshape(1)")
    return collectives


def grouped_allreduce_async_(tensors: Sequence[torch.Tensor], average: bool | None = None, name: str | None = None,
                             op: str | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                             process_set: ProcessSet = global_process_set, blocking: bool = False) -> Handle:
    """Start the reduction of every tensor over the ranks, in place."""
    reduction, collectives = chosen(average, op), _usable("allreduce", process_set, *tensors)
    vectors = [tensor.detach() for tensor in tensors]
    for vector in vectors if prescale_factor != 1 else ():
        vector.copy_(scaled(vector, prescale_factor))

    def result() -> Sequence[torch.Tensor]:
        for vector in vectors if postscale_factor != 1 else ():
            vector.copy_(scaled(vector, postscale_factor))
        return tensors

    return Handle(collectives,
                  collectives.call("allreduce_coalesced", name, vectors, blocking=blocking, reduceOp=as_torch(reduction)),
                  result)


def grouped_allreduce_(tensors: Sequence[torch.Tensor], average: bool | None = None, name: str | None = None,
                       op: str | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set) -> Sequence[torch.Tensor]:
    """Reduce every tensor over the ranks, in place."""
    reduced: Sequence[torch.Tensor] = grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set,
                                                           blocking=True).wait()
    return reduced


def grouped_allreduce_async(tensors: Sequence[torch.Tensor], average: bool | None = None, name: str | None = None,
                            op: str | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                            process_set: ProcessSet = global_process_set) -> Handle:
    """Start a reduction into new tensors."""
    return grouped_allreduce_async_([_copied(tensor) for tensor in tensors], average, name, op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce(tensors: Sequence[torch.Tensor], average: bool | None = None, name: str | None = None,
                      compression: type[Compressor] | Compressor = Compression.none, op: str | None = None,
                      prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set) -> list[torch.Tensor]:
    """The reduction of every tensor, as new tensors."""
    return [
        allreduce(tensor, average, name, compression, op, prescale_factor, postscale_factor, process_set)
        for tensor in tensors
    ]


def allreduce_async_(tensor: torch.Tensor, average: bool | None = None, name: str | None = None,
                     op: str | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                     process_set: ProcessSet = global_process_set) -> Handle:
    """Start the reduction of a tensor, in place."""
    return _only(grouped_allreduce_async_([tensor], average, name, op, prescale_factor, postscale_factor, process_set))


def allreduce_(tensor: torch.Tensor, average: bool | None = None, name: str | None = None,
               op: str | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Reduce a tensor in place and return it."""
    (reduced,) = grouped_allreduce_([tensor], average, name, op, prescale_factor, postscale_factor, process_set)
    return reduced


def allreduce_async(tensor: torch.Tensor, average: bool | None = None, name: str | None = None,
                    op: str | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                    process_set: ProcessSet = global_process_set) -> Handle:
    """Start a reduction into a new tensor."""
    return _only(grouped_allreduce_async([tensor], average, name, op, prescale_factor, postscale_factor, process_set))


def _only(handle: Handle) -> Handle:
    whole = handle._result
    handle._result = lambda: whole()[0]
    return handle


def allreduce(tensor: torch.Tensor, average: bool | None = None, name: str | None = None,
              compression: type[Compressor] | Compressor = Compression.none, op: str | None = None,
              prescale_factor: float = 1.0, postscale_factor: float = 1.0,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The reduction of a tensor over the ranks, as a new tensor."""
    reduction = chosen(average, op)

    def reduced(own: torch.Tensor) -> torch.Tensor:
        packed, context = compression.compress(own.detach())
        packed = packed.clone() if packed.data_ptr() == own.data_ptr() else packed
        return compression.decompress(
            allreduce_(packed, None, name, reduction, prescale_factor, postscale_factor, process_set), context)

    return _differentiable("allreduce", process_set, tensor, reduced, reduced)


def _gathering(tensors: Sequence[torch.Tensor], name: str | None, process_set: ProcessSet,
               blocking: bool) -> tuple[Handle, list[list[int]]]:
    """The handle, and for each tensor the numbers of rows of all ranks."""
    collectives = _with_rows("allgather", process_set, *tensors)
    of_ranks = torch.zeros(collectives.size(), len(tensors), dtype=torch.int64, device="cpu")
    own = of_ranks.new_tensor([len(tensor) for tensor in tensors])
    collectives.call("all_gather_single", name, of_ranks, own, blocking=True)
    counts = of_ranks.t().tolist()
    wholes = [tensor.new_empty((sum(rows), *tensor.shape[1:])) for tensor, rows in zip(tensors, counts, strict=True)]
    pieces = [list(whole.split(rows)) for whole, rows in zip(wholes, counts, strict=True)]
    work = collectives.call("allgather", name, pieces, tensors, blocking=blocking)
    return Handle(collectives, work, lambda: wholes), counts


def grouped_allgather_async(tensors: Sequence[torch.Tensor], name: str | None = None, process_set: ProcessSet = global_process_set) -> Handle:
    """As allgather_async, of several tensors; the result is a list."""
    return _gathering(tensors, name, process_set, False)[0]


def grouped_allgather(tensors: Sequence[torch.Tensor], name: str | None = None, process_set: ProcessSet = global_process_set) -> list[torch.Tensor]:
    """The rows of all ranks, of every tensor."""
    return [allgather(tensor, name, process_set) for tensor in tensors]


def allgather_async(tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set) -> Handle:
    """Start gathering the rows of all ranks; it waits until all have called it, because their numbers may differ."""
    return _only(_gathering([tensor], name, process_set, False)[0])


def allgather(tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The rows of all ranks, in the order of ranks; the first dimension may differ."""
    own_rows: list[slice] = []

    def forward(own: torch.Tensor) -> torch.Tensor:
        handle, (counts,) = _gathering([own.detach()], name, process_set, True)
        begin = sum(counts[:process_set.rank()])
        own_rows.append(slice(begin, begin + len(own)))
        whole: torch.Tensor = handle.wait()[0]
        return whole

    def backward(gradient: torch.Tensor) -> torch.Tensor:
        return allreduce(gradient, name=name, op=Sum, process_set=process_set)[own_rows[0]]

    return _differentiable("allgather", process_set, tensor, forward, backward)


def broadcast_async_(tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set,
                     blocking: bool = False) -> Handle:
    """Start copying the tensor of that rank of the job into every rank's."""
    collectives = _usable("broadcast", process_set, tensor)
    work = collectives.call("broadcast", name, [tensor.detach()], blocking=blocking,
                            rootRank=process_set.index(root_rank))
    return Handle(collectives, work, lambda: tensor)


def broadcast_(tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Copy the tensor of that rank of the job into every rank's, and return it."""
    broadcast_async_(tensor, root_rank, name, process_set, blocking=True).wait()
    return tensor


def broadcast_async(tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set) -> Handle:
    """Start copying the tensor of that rank of the job into a new one."""
    return broadcast_async_(_copied(tensor), root_rank, name, process_set)


def broadcast(tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The tensor of that rank of the job, as a new one."""
    def backward(gradient: torch.Tensor) -> torch.Tensor:
        total = allreduce(gradient, name=name, op=Sum, process_set=process_set)
        return total if process_set.rank() == process_set.index(root_rank) else torch.zeros_like(total)

    def forward(own: torch.Tensor) -> torch.Tensor:
        return broadcast_(own.detach().clone(), root_rank, name, process_set)

    return _differentiable("broadcast", process_set, tensor, forward, backward)


def _exchanging(tensor: torch.Tensor, splits: torch.Tensor | Sequence[int] | None, name: str | None, process_set: ProcessSet,
                blocking: bool) -> tuple[Handle, torch.Tensor]:
    """The handle, and the numbers of rows that come from each rank."""
    collectives = _with_rows("alltoall", process_set, tensor)
    ranks, rows = collectives.size(), len(tensor)
    if splits is None and rows % ranks:
        collectives.group.refuse(
            f"alltoall: {rows} rows for {ranks} ranks without splits; allowed: a multiple of {ranks} rows, or splits")
    given = torch.full((ranks,), rows // ranks, device="cpu") if splits is None else torch.as_tensor(splits, dtype=torch.int64).cpu()
    if given.shape != (ranks,) or given.sum() != rows or given.min() < 0:
        collectives.group.refuse(
            f"alltoall: splits {given.tolist()} of {rows} rows; allowed: {ranks} numbers of rows, one for each rank, "
            f"whose sum is {rows}")
    received = torch.empty_like(given)
    collectives.call("all_to_all_single", name, received, given, [], [], blocking=True)
    output = tensor.new_empty((int(received.sum()), *tensor.shape[1:]))
    work = collectives.call("all_to_all_single", name, output, tensor, received.tolist(), given.tolist(),
                            blocking=blocking)
    return Handle(collectives, work, lambda: output if splits is None else (output, received)), received


def alltoall_async(tensor: torch.Tensor, splits: torch.Tensor | Sequence[int] | None = None, name: str | None = None,
                   process_set: ProcessSet = global_process_set) -> Handle:
    """Start sending part r of the rows to rank r; it waits until all have called it, because parts may differ."""
    return _exchanging(tensor, splits, name, process_set, False)[0]


@overload
def alltoall(tensor: torch.Tensor, splits: None = None, name: str | None = None, process_set: ProcessSet = global_process_set) -> torch.Tensor: ...


@overload
def alltoall(tensor: torch.Tensor, splits: torch.Tensor | Sequence[int], name: str | None = None,
             process_set: ProcessSet = global_process_set) -> tuple[torch.Tensor, torch.Tensor]: ...


def alltoall(tensor: torch.Tensor, splits: torch.Tensor | Sequence[int] | None = None, name: str | None = None,
             process_set: ProcessSet = global_process_set) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """The rows that all ranks sent to this one; with splits, also how many came from each rank."""
    counts: list[torch.Tensor] = []

    def forward(own: torch.Tensor) -> torch.Tensor:
        handle, received = _exchanging(own.detach(), splits, name, process_set, True)
        counts.append(received)
        received_rows: torch.Tensor = handle.wait() if splits is None else handle.wait()[0]
        return received_rows

    def backward(gradient: torch.Tensor) -> torch.Tensor:
        return alltoall(gradient, counts[0], name, process_set)[0]

    output = _differentiable("alltoall", process_set, tensor, forward, backward)
    return output if splits is None else (output, counts[0])


def reducescatter_async(tensor: torch.Tensor, name: str | None = None, op: str = Average,
                        process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                        postscale_factor: float = 1.0, blocking: bool = False) -> Handle:
    """Start the reduction of a tensor; this rank gets its part of the rows, as torch.tensor_split divides them."""
    collectives, reduction = _with_rows("reducescatter", process_set, tensor), checked(op)
    parts = list(scaled(tensor.detach(), prescale_factor).tensor_split(collectives.size()))
    output = torch.empty_like(parts[collectives.rank()], memory_format=torch.contiguous_format)
    work = collectives.call("reduce_scatter", name, [output], [parts], blocking=blocking, reduceOp=as_torch(reduction))
    return Handle(collectives, work, lambda: scaled(output, postscale_factor))


def reducescatter(tensor: torch.Tensor, name: str | None = None, compression: type[Compressor] | Compressor = Compression.none,
                  op: str = Average, process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> torch.Tensor:
    """This rank's part of the rows of the reduction."""
    factor = prescale_factor * postscale_factor / (process_set.size() if op == Average else 1)

    def forward(own: torch.Tensor) -> torch.Tensor:
        packed, context = compression.compress(own.detach())
        return compression.decompress(
            reducescatter_async(packed, name, op, process_set, prescale_factor, postscale_factor, blocking=True).wait(),
            context)

    def backward(gradient: torch.Tensor) -> torch.Tensor:
        return scaled(allgather(gradient, name, process_set), factor)

    return _differentiable("reducescatter", process_set, tensor, forward, backward)


def grouped_reducescatter_async(tensors: Sequence[torch.Tensor], name: str | None = None, op: str = Average,
                                process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                                postscale_factor: float = 1.0) -> Handle:
    """Start the reduction of every tensor; this rank gets its part of the rows of each."""
    _with_rows("reducescatter", process_set, *tensors)  # before the first one starts
    return _Several([
        reducescatter_async(tensor, name, op, process_set, prescale_factor, postscale_factor) for tensor in tensors
    ])


def grouped_reducescatter(tensors: Sequence[torch.Tensor], name: str | None = None,
                          compression: type[Compressor] | Compressor = Compression.none, op: str = Average,
                          process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> list[torch.Tensor]:
    """This rank's part of the rows of the reduction, of every tensor."""
    return [
        reducescatter(tensor, name, compression, op, process_set, prescale_factor, postscale_factor)
        for tensor in tensors
    ]


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Return when every rank has called it."""
    collectives = process_set.collectives()
    collectives.wait(collectives.call("barrier", None, blocking=True))
