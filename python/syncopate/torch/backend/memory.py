"""torch's tensors as the flat vectors that the library works on: in place where their memory allows it, else through a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import torch
from torch.utils.dlpack import to_dlpack

ELSEWHERE = 'for tensors on GPUs, init_process_group(backend="cpu:syncopate,cuda:nccl") uses NCCL'  # ends refusals of them
SPARSE = "cannot be used here; allowed: all_reduce with SUM of torch.sparse_coo on the CPU; else pass tensor.to_dense()"

PutBack: TypeAlias = "Callable[[], object] | None"  # puts a result where it belongs; None: it is there


class Refusal(Exception):
    """Why a call cannot be made; it becomes Misuse once the group knows of the call."""


class OnDevice(Exception):
    """The call has a tensor that is not on the CPU, and is to be made on copies."""


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor without its history. Raises Refusal for a sparse one, and OnDevice for one that is not on the CPU."""
    if not tensor.is_cpu:
        raise OnDevice
    if tensor.layout is not torch.strided:
        raise Refusal(f"a sparse tensor ({tensor.layout}) of shape {tuple(tensor.shape)} {SPARSE}")
    return tensor.detach() if tensor.requires_grad else tensor


def to_send(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in C order as a flat vector: the tensor's own memory, or a copy if that is not contiguous."""
    return dense(tensor).contiguous().view(-1)


def to_change(tensor: torch.Tensor) -> tuple[torch.Tensor, PutBack]:
    """Contiguous memory for a result, with the tensor's elements, and what puts the result into the tensor.

    The second is None if that memory is the tensor's own.
    """
    target = dense(tensor)
    if target.is_contiguous():
        return target, None
    copied = target.contiguous()
    return copied, lambda: target.copy_(copied)


def to_fill(tensor: torch.Tensor) -> tuple[torch.Tensor, PutBack]:
    """As to_change, as a flat vector."""
    memory, put_back = to_change(tensor)
    return memory.view(-1), put_back


def exported(data: torch.Tensor | None) -> tuple[Any, ...]:
    """The argument by which the group gets a tensor that memory of this module holds; no argument for None.

    The tensor's method `__dlpack__` does the same in several times the time of a small all-reduce.
    """
    return () if data is None else (to_dlpack(data),)


def spread(pieces: Iterable[torch.Tensor], tensors: Iterable[torch.Tensor]) -> None:
    """Put each flat piece into its tensor."""
    for piece, tensor in zip(pieces, tensors, strict=True):
        tensor.detach().copy_(piece.view(tensor.shape))


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors may share elements."""
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr() and one.numel() > 0


def described(tensor: torch.Tensor) -> str:
    """Length and type."""
    return f"{tensor.numel()} x {str(tensor.dtype).removeprefix('torch.')}"


def require_like(one: torch.Tensor, other: torch.Tensor) -> None:
    """Refuse tensors of different lengths."""
    if one.numel() != other.numel():
        raise Refusal(f"one tensor has {described(one)} and the other has {described(other)}; allowed: equal lengths")


def require_pairs(outputs: Sequence[object], inputs: Sequence[object]) -> None:
    """Refuse lists of different lengths."""
    if len(outputs) != len(inputs):
        raise Refusal(f"there are {len(outputs)} outputs for {len(inputs)} inputs; allowed: as many outputs as inputs")
