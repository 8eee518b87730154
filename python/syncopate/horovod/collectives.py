"""Collectives of one process set: those of the backend of torch.distributed, with names, on a group of the library."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import torch
from torch._C._distributed_c10d import Work

import syncopate
from syncopate.horovod.journal import Journal
from syncopate.horovod.on_host import OnHost, Returning
from syncopate.torch.backend.calls import Call
from syncopate.torch.backend.data_movement import Moves
from syncopate.torch.backend.device_calls import Staging
from syncopate.torch.backend.memory import PutBack
from syncopate.torch.backend.reductions import Reductions

_SYNCHRONIZING = {"allreduce", "allgather", "allgather_v", "barrier"}  # they end after every rank has begun them
_REPEATED = ("op", "root", "parts", "name")  # arguments that a joined rank needs


class Collectives(Reductions, Moves):
    """The calls of one group. With a journal, ranks that have joined take part in them.

    ranks: the numbers of its ranks in the job. left: the ranks of the job that have left it.
    """

    def __init__(self, group: syncopate.Group, ranks: Sequence[int], left: Collection[int], journal: Journal | None = None) -> None:
        self.group, self.journal = group, journal
        self._ranks, self._left = ranks, left
        self._completions = ThreadPoolExecutor(1, thread_name_prefix="syncopate.horovod")
        self._staging = Staging(group.abort, self._completions)  # makes no call: `call` copies tensors of an accelerator
        self._called = 0
        self._lock, self._name = threading.RLock(), ""  # the lock guards the name and the order of calls

    def rank(self) -> int:
        """This rank among those of the set."""
        return self.group.rank

    def size(self) -> int:
        """The number of ranks of the set."""
        return self.group.size

    def call(self, method: str, name: str | None, *arguments: Any, blocking: bool = False, **options: Any) -> Work | Returning:
        """Begin the backend's collective; all ranks give the same name. Returns the backend's work.

        Tensors on an accelerator are copied to the CPU first, and results to the accelerator by `wait`.
        """
        copies = OnHost(method)
        on_host = copies.arguments(arguments)
        with self._lock, self.naming_the_remedy():
            self._name = name or ""
            return copies.returning(getattr(self, method)(*on_host, SimpleNamespace(asyncOp=not blocking, device_ids=None, **options)))

    def split(self, color: int) -> syncopate.Group | None:
        """A group of the ranks with this colour, for calls at the same time; None for a negative one."""
        number = None if self.journal is None else self.journal.add(("split",))
        with self.naming_the_remedy():
            group = self.group.split(color, self.rank())
        if self.journal is not None and number is not None:
            self.journal.ended(number)
        return group

    @contextlib.contextmanager
    def naming_the_remedy(self) -> Iterator[None]:
        """A loss of a rank that has left the job is the program's mistake."""
        try:
            yield
        except syncopate.PeerLost as error:
            rank = None if error.peer is None else self._ranks[error.peer]
            if rank in self._left:
                remedy = "give every rank the same number of batches"
                if self.journal is not None:
                    remedy += ", or call hvd.join() on every rank after its last one"
                error.args = (f"{error}; rank {rank} has left the job: {remedy}",)
            raise

    def close(self) -> None:
        """End what was started, and leave the group."""
        self.group.close()
        self._completions.shutdown(wait=False)

    def _run(self, calls: Sequence[Call], tensors: Sequence[torch.Tensor], opts: Any = None, finish: PutBack = None) -> Work:
        calls = [(kind, data, keywords if kind == "barrier" else {**keywords, "name": self._name})
                 for kind, data, keywords in calls]
        if self.journal is None:
            return super()._run(calls, tensors, opts, finish)
        number = None
        for kind, data, keywords in calls:
            begun = self.journal.add(("collective", kind, None if data is None else (data.numel(), data.dtype),
                                      {key: keywords[key] for key in _REPEATED if key in keywords}))
            number = begun if kind in _SYNCHRONIZING else number
        work = super()._run(calls, tensors, opts, finish)
        if number is not None and not opts.asyncOp:
            self.journal.ended(number)
        elif number is not None:
            work.journaled = number  # type: ignore[attr-defined]  # torch declares no attributes of a Work
        return work

    def wait(self, work: Work | Returning) -> None:
        """Wait for a work of `call`."""
        with self.naming_the_remedy():
            work.wait()
        number: int | None = getattr(work, "journaled", None)
        if self.journal is not None and number is not None:
            self.journal.ended(number)
