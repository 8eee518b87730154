"""Raises the error of an exchange by its class where a backward pass ends, while torch makes a RuntimeError of a future's error."""

import threading

import torch


def call_after_backward(function):
    """Call it at the end of this backward pass, when DDP has waited for its buckets; False if there is no backward pass."""
    queue = torch.autograd.Variable._execution_engine.queue_callback
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

    def __init__(self):
        self._lock, self._error = threading.Lock(), None
        self._is_deferred = call_after_backward(self._raise)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        with self._lock:
            self._error = error
            return self._is_deferred and isinstance(error, Exception)

    def _raise(self):
        with self._lock:
            self._is_deferred, error = False, self._error
        if error is not None:
            raise error
