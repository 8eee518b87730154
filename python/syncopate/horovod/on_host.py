"""Tensors of accelerators in collectives of the CPU: copies that block, in the current stream of their thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._C._distributed_c10d import Work

from syncopate.torch.device.thread_modes import in_callers_modes

IN_PLACE = {"allreduce_coalesced", "broadcast"}  # their results replace what they get


class OnHost:
    """The tensors of one call. Those of the first argument get results; the others are only read."""

    def __init__(self, method: str) -> None:
        self._is_in_place = method in IN_PLACE
        self._results: list[tuple[torch.Tensor, torch.Tensor]] = []

    def arguments(self, given: Sequence[Any]) -> list[Any]:
        """The same arguments with tensors of the CPU in the place of others."""
        return [self._first(given[0]), *map(_read, given[1:])] if given else []

    def _first(self, argument: Any) -> Any:
        if isinstance(argument, list | tuple):
            return [self._first(one) for one in argument]
        if not isinstance(argument, torch.Tensor) or argument.is_cpu:
            return argument
        host = argument.cpu() if self._is_in_place else torch.empty(argument.shape, dtype=argument.dtype, device="cpu")
        self._results.append((argument, host))
        return host

    def returning(self, work: Work) -> Work | Returning:
        """The work, whose `wait` also copies results to their devices."""
        return Returning(work, self._results) if self._results else work


def _read(argument: Any) -> Any:
    if isinstance(argument, list | tuple):
        return [_read(one) for one in argument]
    return argument.cpu() if isinstance(argument, torch.Tensor) else argument


class Returning:
    """A work of the backend with results of the CPU that belong on an accelerator."""

    def __init__(self, work: Work, results: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
        self._work, self._copy = work, in_callers_modes(lambda: _copy_all(results))
        self.journaled: int | None = getattr(work, "journaled", None)  # its number in the journal

    def is_completed(self) -> bool:
        """Whether the exchange has ended."""
        return self._work.is_completed()

    def wait(self) -> None:
        """Return when the results are where they belong. Raises as the work."""
        self._work.wait()
        self._copy()


def _copy_all(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
    for there, here in pairs:
        there.copy_(here)
