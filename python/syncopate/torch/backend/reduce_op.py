"""torch's reductions and types in the library's terms; what the library does not reduce itself is gathered and reduced here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

import torch
from torch.distributed import ReduceOp

import syncopate

NATIVE = {torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8}
_OPS: dict[ReduceOp.RedOpType, str] = {
    ReduceOp.SUM: "sum", ReduceOp.AVG: "average", ReduceOp.MIN: "min", ReduceOp.MAX: "max", ReduceOp.PRODUCT: "product",
    ReduceOp.PREMUL_SUM: "sum"
}
_BITWISE: dict[ReduceOp.RedOpType, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    ReduceOp.BAND: torch.bitwise_and, ReduceOp.BOR: torch.bitwise_or, ReduceOp.BXOR: torch.bitwise_xor
}


class Reducing(Protocol):
    """Options of torch's reductions."""

    reduceOp: ReduceOp | ReduceOp.RedOpType  # noqa: N815 (torch's name)


def op_of(opts: Reducing) -> ReduceOp:
    """The operation: torch declares that a program may set one of both types, and makes a ReduceOp of either."""
    return cast("ReduceOp", opts.reduceOp)


def native_op(op: ReduceOp, dtype: torch.dtype) -> str | None:
    """The library's name of the operation if it reduces this type itself, else None."""
    return _OPS.get(op.op) if dtype in NATIVE else None


def premultiplied(op: ReduceOp, tensor: torch.Tensor) -> torch.Tensor:
    """The vector to be summed: itself, or times the factor of PREMUL_SUM."""
    return tensor * op.factor if op.op == ReduceOp.PREMUL_SUM else tensor


def reduced(op: ReduceOp, rows: torch.Tensor) -> torch.Tensor:
    """The reduction of gathered vectors, in the order of ranks: the same bits everywhere. Raises Misuse."""
    kind, dtype = op.op, rows.dtype
    if kind in _BITWISE and not dtype.is_floating_point and not dtype.is_complex:
        total = rows[0].clone()
        for row in rows[1:]:
            total = _BITWISE[kind](total, row)
        return total
    if dtype == torch.bool and kind in (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.PRODUCT, ReduceOp.MIN):
        return rows.any(0) if kind in (ReduceOp.SUM, ReduceOp.MAX) else rows.all(0)
    if kind == ReduceOp.PRODUCT:
        return rows.prod(0, dtype=dtype)
    if dtype.is_complex or dtype == torch.bool or kind not in _OPS:
        raise syncopate.Misuse(f"{kind.name} of {dtype} is not defined; allowed: SUM, AVG, PREMUL_SUM, MIN, MAX and PRODUCT of numbers, "
                               "BAND, BOR and BXOR of integers, SUM, PRODUCT, MIN, MAX and bitwise ones of bool")
    if kind == ReduceOp.MIN:
        return rows.amin(0)
    if kind == ReduceOp.MAX:
        return rows.amax(0)
    total = premultiplied(op, rows).sum(0, dtype=dtype)
    return total.div_(len(rows), rounding_mode="trunc") if kind == ReduceOp.AVG and not dtype.is_floating_point else \
        total.div_(len(rows)) if kind == ReduceOp.AVG else total


def movable(vector: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The flat vector as a type that the library moves, and how many of its elements make one of the vector's."""
    if vector.dtype in NATIVE:
        return vector, 1
    return vector.view(torch.uint8), vector.element_size()
