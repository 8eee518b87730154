"""Tensors of accelerators in collectives of the CPU: copies that block, in the current stream of their thread."""

import torch

from syncopate.torch.device.thread_modes import in_callers_modes

IN_PLACE = {"allreduce_coalesced", "broadcast"}  # their results replace what they get


class OnHost:
    """The tensors of one call. Those of the first argument get results; the others are only read."""

    def __init__(self, method):
        self._is_in_place, self._results = method in IN_PLACE, []

    def arguments(self, given):
        """The same arguments with tensors of the CPU in the place of others."""
        return [self._first(given[0]), *map(_read, given[1:])] if given else []

    def _first(self, argument):
        if isinstance(argument, list | tuple):
            return [self._first(one) for one in argument]
        if not isinstance(argument, torch.Tensor) or argument.is_cpu:
            return argument
        host = argument.cpu() if self._is_in_place else torch.empty(argument.shape, dtype=argument.dtype, device="cpu")
        self._results.append((argument, host))
        return host

    def returning(self, work):
        """The work, whose `wait` also copies results to their devices."""
        return _Returning(work, self._results) if self._results else work


def _read(argument):
    if isinstance(argument, list | tuple):
        return [_read(one) for one in argument]
    return argument.cpu() if isinstance(argument, torch.Tensor) else argument


class _Returning:
    """A work of the backend with results of the CPU that belong on an accelerator."""

    def __init__(self, work, results):
        self._work, self._copy = work, in_callers_modes(lambda: _copy_all(results))
        if hasattr(work, "journaled"):
            self.journaled = work.journaled

    def is_completed(self):
        """Whether the exchange has ended."""
        return self._work.is_completed()

    def wait(self):
        """Return when the results are where they belong. Raises as the work."""
        self._work.wait()
        self._copy()


def _copy_all(pairs):
    for there, here in pairs:
        there.copy_(here)
