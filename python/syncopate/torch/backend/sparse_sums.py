"""Sums of sparse tensors over the ranks of a process group: in a group of their own, so that the caller need not wait."""

import math
from concurrent import futures

import torch

from syncopate.torch.backend.memory import exported
from syncopate.torch.backend.reduce_op import movable
from syncopate.torch.shared.threads import Threads


class SparseSums:
    """How many elements each rank has is known only when all have called, and what they exchange then must keep its order.

    So the process group exchanges the numbers, and one thread the elements, in the group that `join()` makes.
    """

    def __init__(self, join):
        self._join, self._group, self._thread = join, None, None

    def start(self, counting, counts, own):
        """Begin adding `own`, a coalesced tensor on the CPU; the work `counting` completes `counts`, the numbers of all ranks.

        Returns what can be waited for, as a syncopate.Work; its `sum` is the result.
        """
        if self._thread is None:
            self._thread = Threads(1)
        return _Sum(self._thread.submit(self._add, counting, counts, own))

    def _add(self, counting, counts, own):
        counting.wait()
        if self._group is None:
            self._group = self._join()
        places = self._gathered(own.indices().t().contiguous(), counts.tolist()).t()
        values = self._gathered(own.values().contiguous(), counts.tolist())
        return torch.sparse_coo_tensor(places, values, own.shape, device="cpu").coalesce()

    def _gathered(self, rows, counts):
        """The rows of all ranks, of which each rank has its own number."""
        whole = rows.new_empty((sum(counts), *rows.shape[1:]))
        whole.split(counts)[self._group.rank].copy_(rows)
        data, width = movable(whole.view(-1))
        row = width * math.prod(rows.shape[1:])
        self._group.allgather_v(*exported(data), parts=[row * count for count in counts])
        return whole

    def set_timeout(self, seconds):
        """Set the bound of operations that begin from now on."""
        if self._group is not None:
            self._group.set_timeout(seconds)

    def close(self):
        """Leave; sums that were started end first."""
        if self._thread is not None:
            self._thread.submit(lambda: None).result()
            self._thread.end()
        if self._group is not None:
            self._group.close()

    def abort(self, reason):
        """End every rank's sums with RemoteFailure."""
        if self._group is not None and not self._group.closed:
            self._group.abort(reason)


class _Sum:
    """A sum in progress, as a syncopate.Work."""

    def __init__(self, future):
        self._future = future

    @property
    def sum(self):
        """The result; waits for it."""
        return self._future.result()

    def wait(self):
        """Return when it has ended. Raises what it failed with."""
        self._future.result()

    def wait_for(self, seconds):
        """Whether it ends within that time."""
        done, _ = futures.wait([self._future], seconds)
        if done:
            self._future.result()
        return bool(done)

    def ready(self):
        """Whether it has ended, well or not."""
        return self._future.done()

    def then(self, call):
        """Call it with the error, or None, at the end."""
        self._future.add_done_callback(lambda future: call(future.exception()))
