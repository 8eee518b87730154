"""Raises the error of an exchange by its class where a backward pass ends, while torch makes a RuntimeError of a future's error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch


def call_after_backward(function: Callable[[], object]) -> bool:
    """Call it at the end of this backward pass, when DDP has waited for its buckets; False if there is no backward pass."""
    queue: Any = torch.autograd.Variable._execution_engine.queue_callback
    try:
        queue(lambda: queue(function))  # DDP has queued its own callback by the time that the first one is called
    except RuntimeError:
        return False
    return True


class Deferred:
    """Keeps the error of a `with` block, which completes a future, until the backward pass ends in which the future was made.

    DDP ends its pass with the future's value, and the pass raises the error afterwards. Outside a backward pass, and if that ends
    before the block (a pass within another one), the block raises the error itself.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._is_deferred = call_after_backward(self._raise)

    def __enter__(self) -> Deferred:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        with self._lock:
            self._error = error
            return self._is_deferred and isinstance(error, Exception)

    def _raise(self) -> None:
        with self._lock:
            self._is_deferred, error = False, self._error
        if error is not None:
            raise error
