"""Compressors of allreduce and of DistributedOptimizer: none, and 16-bit floats."""

from __future__ import annotations

from typing import Any

import torch


class Compressor:
    """Sends every tensor as it is. An own subclass may be given to allreduce and grouped_allreduce."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """The tensor to send, and what `decompress` needs to know."""
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
        """The result in the type of the tensor that was compressed."""
        return tensor if context is None else tensor.to(context)


class FP16Compressor(Compressor):
    """Sends floating-point tensors as float16."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """The tensor as float16, and its own type."""
        return (tensor.to(torch.float16), tensor.dtype) if tensor.is_floating_point() else (tensor, None)


class Compression:
    """The compressors by Horovod's names."""

    none = Compressor
    fp16 = FP16Compressor
