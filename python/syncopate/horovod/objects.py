"""Objects, parameters and the state of optimizers, from one rank to all."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable
from typing import IO, Any

import torch

import syncopate
from syncopate.horovod.job import ProcessSet, global_process_set
from syncopate.horovod.operations import allgather, broadcast_, broadcast_async_
from syncopate.torch.device.lane import is_accelerator


class _Pickler(pickle.Pickler):
    """Leaves tensors out: they are broadcast as they are."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self.tensors: list[torch.Tensor] = []

    def persistent_id(self, one: Any) -> tuple[torch.dtype, tuple[int, ...], str] | None:
        """The type, shape and kind of device of a tensor on the CPU or an accelerator; None for other objects."""
        if type(one) is not torch.Tensor or one.layout is not torch.strided:
            return None
        if not one.is_cpu and not is_accelerator(one.device):
            return None
        self.tensors.append(one.detach())
        return one.dtype, tuple(one.shape), one.device.type


class _Unpickler(pickle.Unpickler):
    """Makes the tensors that were left out."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self.tensors: list[torch.Tensor] = []

    def persistent_load(self, described: Any) -> torch.Tensor:
        """A tensor of that type and shape, on the current device of that kind."""
        dtype, shape, device = described
        self.tensors.append(torch.empty(shape, dtype=dtype, device=device))
        return self.tensors[-1]


def broadcast_object(obj: Any, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set) -> Any:
    """The object of that rank, on every rank. It is pickled, but its tensors are sent as they are."""
    is_root = process_set.index(root_rank) == process_set.rank()
    file = io.BytesIO()
    if is_root:
        pickler = _Pickler(file)
        pickler.dump(obj)
        tensors = pickler.tensors
    length = broadcast_(torch.tensor([len(file.getvalue())], device="cpu"), root_rank, name, process_set)
    body = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8) if is_root else torch.empty(
        int(length), dtype=torch.uint8, device="cpu")
    broadcast_(body, root_rank, name, process_set)
    if not is_root:
        unpickler = _Unpickler(io.BytesIO(body.numpy().tobytes()))
        obj = unpickler.load()
        tensors = unpickler.tensors
    for tensor in tensors:
        broadcast_(tensor, root_rank, name, process_set)
    return obj


def allgather_object(obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """A list of the objects of all ranks, which are pickled."""
    body = torch.frombuffer(bytearray(pickle.dumps(obj)), dtype=torch.uint8)
    lengths = allgather(torch.tensor([len(body)], device="cpu"), name, process_set)
    return [
        pickle.loads(piece.numpy().tobytes()) for piece in allgather(body, name, process_set).split(lengths.tolist())
    ]


def broadcast_parameters(params: dict[str, Any] | Iterable[tuple[str, torch.Tensor]], root_rank: int,
                         process_set: ProcessSet = global_process_set) -> None:
    """Copy that rank's values into every rank's: of a state_dict, or of pairs of name and tensor."""
    named = sorted(params.items()) if isinstance(params, dict) else list(params)
    if any(not isinstance(pair, tuple) or not isinstance(pair[1], torch.Tensor) for pair in named):
        raise syncopate.Misuse(
            "broadcast_parameters: allowed: a dict of tensors, or pairs of a name and a tensor; broadcast_object moves "
            "other objects")
    for handle in [broadcast_async_(tensor, root_rank, name, process_set) for name, tensor in named]:
        handle.wait()


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int, model: torch.nn.Module | None = None,
                              process_set: ProcessSet = global_process_set) -> None:
    """Load that rank's state, learning rates included, into every rank's optimizer; the model is not needed."""
    state = broadcast_object(optimizer.state_dict(), root_rank, "optimizer state", process_set)
    if process_set.rank() != process_set.index(root_rank):
        optimizer.load_state_dict(state)
