"""Gradients of accelerators for a Synchronizer, which averages them in the memory of the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch

import syncopate
from syncopate.torch.device.copies import Copies
from syncopate.torch.device.lane import Crossing
from syncopate.torch.shared import parameters


class StagedGradients:
    """The gradients of a Synchronizer whose exchange ends with gradients, for parameters on accelerators; it has its `ready`, `wait` and `close`.

    views: the gradients on their devices. They are copied into pinned memory, from there into the synchronizer's, and back
    in the same way; with `in_parts` (no operation follows on all averages) averages of a bucket go up while others are exchanged.
    """

    def __init__(self, synchronizer: syncopate.Synchronizer, group: syncopate.Group, named: Sequence[tuple[str, torch.Tensor]], *,
                 in_parts: bool) -> None:
        self._synchronizer, self._in_parts = synchronizer, in_parts
        self.copies = Copies(group.abort, [parameter for _, parameter in named])
        self._memory: list[torch.Tensor] = [torch.from_dlpack(synchronizer.gradient(i)) for i in range(len(named))]
        self.views = [torch.zeros(parameter.shape, dtype=parameter.dtype, device=parameter.device) for _, parameter in named]
        self._crossings: dict[int, Crossing] = {}  # of this step

    def ready(self, i: int) -> None:
        """View i is completely written by the current stream. Returns at once."""
        self._crossings[i] = self.copies.down(i, self.views[i])
        self.copies.then(self._crossings[i], self._arrived, i, self._crossings[i].host)

    def _arrived(self, i: int, host: torch.Tensor) -> None:
        self._memory[i].copy_(host)
        self._synchronizer.ready(i)

    def wait(self) -> None:
        """Return when the host has every average; the current stream goes on when the views have them. Raises as `Synchronizer.wait`."""
        crossings, self._crossings = self._crossings, {}
        self.copies.land()
        order = reversed(range(len(self.views)))  # that of the exchange
        if self._in_parts and len(crossings) == len(self.views):
            for i in order:
                self._synchronizer.wait_for_gradient(i)
                self._return(i, crossings[i])
            self._synchronizer.wait()
        else:
            self._synchronizer.wait()
            for i in order:
                self._return(i, crossings[i])

    def _return(self, i: int, crossing: Crossing) -> None:
        crossing.host.copy_(self._memory[i])
        self.copies.back(i, crossing)

    def close(self) -> None:
        """End the thread of the copies, and the synchronizer."""
        self.copies.close()
        self._synchronizer.close()


def gradients_of(synchronizer: syncopate.Synchronizer, group: syncopate.Group, named: Sequence[tuple[str, torch.Tensor]], *,
                 in_parts: bool) -> tuple[syncopate.Synchronizer | StagedGradients, list[torch.Tensor]]:
    """(what has `ready`, `wait` and `close`, the gradients of these parameters): the synchronizer and its own memory, or those on accelerators."""
    if parameters.on_cpu(named):
        return synchronizer, [torch.from_dlpack(synchronizer.gradient(i)) for i in range(len(named))]
    staged = StagedGradients(synchronizer, group, named, in_parts=in_parts)
    return staged, staged.views
