"""Sums of sparse tensors over the ranks of a process group: in a group of their own, so that the caller need not wait."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent import futures

import torch

import syncopate
from syncopate.torch.backend.memory import exported
from syncopate.torch.backend.reduce_op import movable
from syncopate.torch.shared.threads import Threads


class SparseSums:
    """How many elements each rank has is known only when all have called, and what they exchange then must keep its order.

    So the process group exchanges the numbers, and one thread the elements, in the group that `join()` makes.
    """

    def __init__(self, join: Callable[[], syncopate.Group]) -> None:
        self._join = join
        self._group: syncopate.Group | None = None
        self._thread: Threads | None = None

    def start(self, counting: syncopate.Work, counts: torch.Tensor, own: torch.Tensor) -> _Sum:
        """Begin adding `own`, a coalesced tensor on the CPU; the work `counting` completes `counts`, the numbers of all ranks.

        Returns what can be waited for, as a syncopate.Work; its `sum` is the result.
        """
        if self._thread is None:
            self._thread = Threads(1)
        return _Sum(self._thread.submit(self._add, counting, counts, own))

    def _add(self, counting: syncopate.Work, counts: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        counting.wait()
        if self._group is None:
            self._group = self._join()
        places = _gathered(self._group, own.indices().t().contiguous(), counts.tolist()).t()
        values = _gathered(self._group, own.values().contiguous(), counts.tolist())
        return torch.sparse_coo_tensor(places, values, own.shape, device="cpu").coalesce()

    def set_timeout(self, seconds: float) -> None:
        """Set the bound of operations that begin from now on."""
        if self._group is not None:
            self._group.set_timeout(seconds)

    def close(self) -> None:
        """Leave; sums that were started end first."""
        if self._thread is not None:
            self._thread.submit(lambda: None).result()
            self._thread.end()
        if self._group is not None:
            self._group.close()

    def abort(self, reason: str) -> None:
        """End every rank's sums with RemoteFailure."""
        if self._group is not None and not self._group.closed:
            self._group.abort(reason)


def _gathered(group: syncopate.Group, rows: torch.Tensor, counts: list[int]) -> torch.Tensor:
    """The rows of all ranks, of which each rank has its own number."""
    whole = rows.new_empty((sum(counts), *rows.shape[1:]))
    whole.split(counts)[group.rank].copy_(rows)
    data, width = movable(whole.view(-1))
    row = width * math.prod(rows.shape[1:])
    (vector,) = exported(data)
    group.allgather_v(vector, parts=[row * count for count in counts])
    return whole


class _Sum:
    """A sum in progress, as a syncopate.Work."""

    def __init__(self, future: futures.Future[torch.Tensor]) -> None:
        self._future = future

    @property
    def sum(self) -> torch.Tensor:
        """The result; waits for it."""
        return self._future.result()

    def wait(self) -> None:
        """Return when it has ended. Raises what it failed with."""
        self._future.result()

    def wait_for(self, seconds: float) -> bool:
        """Whether it ends within that time."""
        done, _ = futures.wait([self._future], seconds)
        if done:
            self._future.result()
        return bool(done)

    def ready(self) -> bool:
        """Whether it has ended, well or not."""
        return self._future.done()

    def then(self, call: Callable[[BaseException | None], object]) -> None:
        """Call it with the error, or None, at the end."""
        self._future.add_done_callback(lambda future: call(future.exception()))
