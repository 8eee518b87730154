"""Reductions by Horovod's names, and the scaling of tensors before and after them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

import syncopate
from syncopate.horovod.rejected import Rejected

Average, Sum, Min, Max, Product = "Average", "Sum", "Min", "Max", "Product"
Adasum = Rejected(
    "the reduction Adasum",
    "op=hvd.Average, and a learning rate that grows with the number of ranks (docs/optimizers.md has LAMB)")
_KINDS = {
    Average: dist.ReduceOp.AVG, Sum: dist.ReduceOp.SUM, Min: dist.ReduceOp.MIN, Max: dist.ReduceOp.MAX,
    Product: dist.ReduceOp.PRODUCT
}


def chosen(average: bool | None, op: str | Rejected | None) -> str:
    """The reduction, of the arguments `average` (Horovod's older one) and `op`; without both it is Average."""
    if average is not None and op is not None:
        raise syncopate.Misuse(f"average={average!r} and op={op!r} are both given; give only op")
    if average is not None:
        return Average if average else Sum
    return checked(Average if op is None else op)


def checked(op: str | Rejected, allowed: Sequence[str] = tuple(_KINDS)) -> str:
    """The reduction. Raises Misuse if it is not allowed."""
    if isinstance(op, Rejected):
        op.refuse()
    if op not in allowed:
        raise syncopate.Misuse(
            f"op={op!r} is not a reduction of this call; allowed: {', '.join(f'hvd.{name}' for name in allowed)}")
    return op


def as_torch(op: str) -> dist.ReduceOp:
    """The reduction for the collectives of syncopate.torch."""
    return dist.ReduceOp(_KINDS[op])


def scaled(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """The tensor times the factor, in its own type: itself if the factor is 1; integers are computed in float64."""
    if factor == 1:
        return tensor
    return (tensor * factor if tensor.is_floating_point() or tensor.is_complex() else tensor.double() * factor).to(
        tensor.dtype)
