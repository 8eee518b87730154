"""The mixin of optimizers whose gradients leave during the backward pass: micro-batches, and the closure of a step."""

import contextlib

import torch


class Accumulating:
    """`_accumulates` is whether gradients stay where they are."""

    _accumulates = False

    @contextlib.contextmanager
    def no_sync(self):
        """Backward passes in it add to the gradients, and nothing is sent: for all but the last micro-batch."""
        before, self._accumulates = self._accumulates, True
        try:
            yield
        finally:
            self._accumulates = before

    @staticmethod
    def _loss_of(closure):
        """Call the closure of a step, which computes the loss and its gradients; return the loss, or None without a closure."""
        if closure is None:
            return None
        with torch.enable_grad():
            return closure()
