"""The backend: torch's collectives as those of a group."""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import torch
from torch._C import _distributed_c10d as c10d
from torch.distributed import Store

import syncopate
from syncopate.torch.backend.data_movement import Moves
from syncopate.torch.backend.device_calls import Staging
from syncopate.torch.backend.point_to_point import Messages
from syncopate.torch.backend.reductions import Reductions
from syncopate.torch.backend.sparse_sums import SparseSums
from syncopate.torch.shared import rendezvous


class Backend(Reductions, Moves, Messages, c10d.Backend):
    """One process group, whose ranks connect when it is made."""

    # torch asks for these by name, and recurses without end where a Python class does not define them.
    supports_splitting = True
    supports_coalescing = supports_shrinking = supports_reconfigure = supports_window = _supports_time_estimate = False
    _in_use: ClassVar[set[Backend]] = set()  # torch may keep the C++ half alone, as with TORCH_DISTRIBUTED_DEBUG=DETAIL

    def __init__(self, store: Store, rank: int, size: int, timeout: datetime.timedelta) -> None:
        if not self.is_supported():
            raise syncopate.Misuse(f"the backend syncopate needs torch 2.14 or later, which lets Python implement a backend; this is torch "
                                   f"{torch.__version__}. Use a later torch, or another backend (\"gloo\") with "
                                   "syncopate.torch.DistributedDataParallel, syncopate.torch.hook or DistributedOptimizer")
        super().__init__(rank, size)
        self._timeout = timeout
        store = rendezvous.generation(store, rank)
        self.group = rendezvous.join(store, rank, size, timeout.total_seconds())
        self._monitored_barrier = rendezvous.MonitoredBarrier(store, rank, size)
        # Futures complete here and not on the group's thread: hooks such as PowerSGD's wait for a second operation in the
        # callback of the first.
        self._completions = ThreadPoolExecutor(4, thread_name_prefix="syncopate")
        self._sparse_sums = SparseSums(
            lambda: rendezvous.join(c10d.PrefixStore("sparse", store), rank, size, self._timeout.total_seconds()))
        self._staging = Staging(self.group.abort, self._completions)
        self._called = 0
        self._in_use.add(self)

    @staticmethod
    def is_supported() -> bool:
        """Whether this torch lets Python implement a backend: its class then has a constructor, since torch 2.14."""
        try:
            c10d.Backend(0, 1)
        except TypeError:
            return False
        return True

    @staticmethod
    def create(store: Store, rank: int, size: int, timeout: datetime.timedelta) -> Backend:
        """Make the backend for `init_process_group` or `new_group`."""
        return Backend(store, rank, size, timeout)

    def split(self, store: Store, ranks: list[int], options: c10d.Backend.Options) -> Backend:
        """Make the backend for `split_group`: its ranks are some of this one's, in this order."""
        if self.rank() not in ranks:
            raise syncopate.Misuse(f"split_group: rank {self.rank()} is in none of the groups, of which the first has the ranks {ranks}; "
                                   "allowed: every rank in one group, or new_group")
        return Backend(store, ranks.index(self.rank()), len(ranks), options._timeout)

    @property
    def options(self) -> c10d.Backend.Options:
        """As torch knows them: the name and the timeout."""
        return c10d.Backend.Options("syncopate", self._timeout)

    def getBackendName(self) -> str:  # noqa: N802 (torch's name)
        """The name in `init_process_group`."""
        return "syncopate"

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Set the bound of operations that begin from now on."""
        self.group.set_timeout(timeout.total_seconds())
        self._sparse_sums.set_timeout(timeout.total_seconds())
        self._timeout = timeout

    def _set_sequence_number_for_group(self) -> None:
        """Operations are numbered by the library."""

    def _get_sequence_number_for_group(self) -> int:
        self._staging.drain()
        return self._called

    def monitored_barrier(self, opts: c10d.BarrierOptions = c10d.BarrierOptions(), wait_all_ranks: bool = False) -> None:
        """A barrier; rank 0's error names the first rank that is missing after the timeout, or all."""
        is_given = opts.timeout >= datetime.timedelta()
        self._monitored_barrier.wait((opts.timeout if is_given else self._timeout).total_seconds(), wait_all_ranks)

    def shutdown(self) -> None:
        """Leave; operations that were started end first."""
        self._in_use.discard(self)
        self._staging.close()
        self._sparse_sums.close()
        self.group.close()
        self._completions.shutdown(wait=False)

    def abort(self) -> None:
        """End every rank's operations with RemoteFailure."""
        if not self.group.closed:
            self.group.abort("its process group was aborted")
        self._sparse_sums.abort("its process group was aborted")
