"""The mixin of optimizers whose gradients leave during the backward pass: micro-batches, and the closure of a step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

import syncopate


class Accumulating:
    """`_accumulates` is whether gradients stay where they are."""

    _accumulates = False

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes in it add to the gradients, and nothing is sent: for all but the last micro-batch."""
        before, self._accumulates = self._accumulates, True
        try:
            yield
        finally:
            self._accumulates = before

    @staticmethod
    def _loss_of(closure: Callable[[], Any] | None) -> Any:
        """Call the closure of a step, which computes the loss and its gradients; return the loss, or None without a closure."""
        if closure is None:
            return None
        with torch.enable_grad():
            return closure()


def second_gradient(name: str) -> syncopate.Misuse:
    """The error of a parameter whose gradient of this step has left already."""
    return syncopate.Misuse(f"parameter {name} has a second gradient in a step; allowed: step() after each backward pass, or no_sync() around "
                            "all passes of a step but the last, also around those of another model that only reach this one; with "
                            "torch.utils.checkpoint use_reentrant=False")
