"""Decoded forms of records as bytes: a tensor with its type and shape, or bytes as they are."""

from __future__ import annotations

import json
from typing import Any

import torch

import syncopate

_ALIGNMENT = 64  # of the elements from the begin of the form


def packed(value: Any) -> bytes:
    """The form of a tensor on the CPU, an array, or bytes. Raises Misuse for another value."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _with_head(None, bytes(value))
    try:
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise syncopate.Misuse(f"`decoded` returned {type(value).__name__}; allowed: a tensor, an array, or bytes") from error
    if not tensor.is_cpu or tensor.layout != torch.strided:
        raise syncopate.Misuse(f"`decoded` returned a tensor on {tensor.device} with layout {tensor.layout}; allowed: a dense one on the CPU")
    tensor = tensor.detach().contiguous()
    elements = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return _with_head([str(tensor.dtype).removeprefix("torch."), list(tensor.shape)], elements)


def unpacked(form: bytes) -> Any:
    """The tensor, with memory of its own, or the bytes."""
    head, begin = form[:form.index(b"\n")], _begin(form.index(b"\n"))
    kind = json.loads(head)
    if kind is None:
        return form[begin:]
    dtype, shape = getattr(torch, kind[0]), kind[1]
    if begin == len(form):
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(memoryview(form)[begin:]), dtype=dtype).reshape(shape)


def _with_head(kind: list[Any] | None, elements: bytes) -> bytes:
    head = json.dumps(kind).encode()
    return head + b"\n" + bytes(_begin(len(head)) - len(head) - 1) + elements


def _begin(head_bytes: int) -> int:
    """Where the elements begin, after the head and a newline."""
    return -(-(head_bytes + 1) // _ALIGNMENT) * _ALIGNMENT
