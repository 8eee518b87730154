"""The job: init and shutdown, ranks, process sets, and join."""

from __future__ import annotations

import atexit
import collections
import os
import sys
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import torch

import syncopate
from syncopate import ending  # imported first: at the end of the program its function runs after that of this module
from syncopate.horovod.collectives import Collectives
from syncopate.horovod.journal import Call, Journal

if TYPE_CHECKING:
    from syncopate.horovod.optimizer import DistributedOptimizer

_TIMEOUT_S = 1800  # of a collective, unless SYNCOPATE_TIMEOUT_MS is set: ranks may evaluate or save for minutes
Ranks: TypeAlias = "list[int] | tuple[int, ...] | range | set[int]"
_Key: TypeAlias = "tuple[int | None, int]"  # of an optimizer: its process set's number, and its own in this set
_ONE_HOST = "tcp://127.0.0.1:29500"


class ProcessSet:
    """Ranks of the job that call collectives among themselves: every one of them, in the same order."""

    def __init__(self, ranks: Ranks) -> None:
        if not isinstance(ranks, (list, tuple, range, set)) or not all(isinstance(rank, int) for rank in ranks):
            raise syncopate.Misuse(f"ProcessSet({ranks!r}): allowed: a list of ranks of the job; communicators of "
                                   "mpi4py are not supported")
        self.ranks = sorted(set(ranks))
        self.process_set_id: int | None = None
        self._collectives: Collectives | None = None

    def included(self) -> bool:
        """Whether this rank belongs to it."""
        return self._known().ranks.count(rank()) == 1

    def rank(self) -> int:
        """This rank's index in the set."""
        return self.collectives().rank()

    def size(self) -> int:
        """The number of its ranks."""
        return len(self._known().ranks)

    def collectives(self) -> Collectives:
        """Its calls. Raises Misuse on a rank that is not in it."""
        collectives = self._known()._collectives
        if collectives is None:
            raise syncopate.Misuse(
                f"rank {rank()} is not in the process set of the ranks {self.ranks}; allowed: calls by its ranks; "
                "ask process_set.included()")
        return collectives

    def index(self, root_rank: int) -> int:
        """The index of a rank of the job in the set."""
        if root_rank not in self._known().ranks:
            raise syncopate.Misuse(
                f"root_rank={root_rank!r} is not in the process set; allowed: its ranks {self.ranks}")
        return self.ranks.index(root_rank)

    def _known(self) -> ProcessSet:
        _running()
        if self.process_set_id is None:
            raise syncopate.Misuse(
                f"the process set of the ranks {self.ranks} is not part of the job; call hvd.add_process_set on every "
                "rank first, or give it to hvd.init(process_sets=[...])")
        return self

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


global_process_set = ProcessSet([])


class _Job:
    """The result of init: the group of all ranks, the journal, and the process sets by their ids."""

    def __init__(self) -> None:
        self.group = syncopate.Group.join(rendezvous=_rendezvous(os.environ),
                                          timeout_s=None if "SYNCOPATE_TIMEOUT_MS" in os.environ else _TIMEOUT_S)
        self.journal = Journal(cast("syncopate.Group", self.group.split(0, self.group.rank)))  # None only for a negative colour
        self.sets, self.added = {0: global_process_set}, 1
        self.optimizers: weakref.WeakValueDictionary[_Key, DistributedOptimizer] = weakref.WeakValueDictionary()
        self.wrapped: collections.Counter[int | None] = collections.Counter()
        global_process_set.ranks, global_process_set.process_set_id = list(range(self.group.size)), 0
        global_process_set._collectives = Collectives(
            self.group, global_process_set.ranks, self.journal.left, self.journal)

    def close(self) -> None:
        """Leave optimizers, process sets, and the group. The others' journals learn it first, for their errors."""
        self.journal.leave()
        collectives = [process_set._collectives for process_set in self.sets.values() if process_set._collectives]
        for process_set in self.sets.values():
            _forget(process_set)
        try:
            ending.close_together([*self.optimizers.values(), *collectives])
        finally:
            self.journal.close()


_job: _Job | None = None


def _rendezvous(environment: Mapping[str, str]) -> str:
    """Loopback if Open MPI's variables name no job and no address, and all ranks are on this host.

    Otherwise "": the library finds it (docs/run.md).
    """
    named = ("SYNCOPATE_RANK", "SYNCOPATE_RENDEZVOUS", "RANK", "MASTER_ADDR", "PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri")
    size = environment.get("OMPI_COMM_WORLD_SIZE")
    is_one_host = size is not None and size == environment.get("OMPI_COMM_WORLD_LOCAL_SIZE")
    return _ONE_HOST if is_one_host and not any(name in environment for name in named) else ""


def init(comm: None = None, process_sets: Iterable[ProcessSet | Ranks] | Literal["dynamic"] | None = None) -> None:
    """Join the job that the environment describes, with these process sets; again without effect."""
    global _job  # noqa: PLW0603 (Horovod has one job in a process)
    if comm is not None:
        raise syncopate.Misuse(f"init(comm={comm!r}): allowed: None; ranks come from the environment, and parts of the "
                               "job are process sets")
    if _job is not None:
        return
    _job = _Job()
    for process_set in [] if process_sets is None or process_sets == "dynamic" else process_sets:
        add_process_set(process_set)


def shutdown() -> None:
    """Leave the job, without waiting for the other ranks; `init` may follow. Raises why a rank failed before."""
    global _job
    if _job is not None:
        left, _job = _job, None
        left.close()


@atexit.register
def _leave() -> None:
    """As shutdown, unless an exception ends the program: then syncopate.ending aborts the groups with it."""
    if getattr(sys, "last_value", None) is None:
        shutdown()


def _running() -> _Job:
    if _job is None:
        raise syncopate.Misuse("syncopate.horovod is not initialized; call hvd.init() first")
    return _job


def is_initialized() -> bool:
    """Whether `init` was called, and `shutdown` not since then."""
    return _job is not None


def rank() -> int:
    """This rank of the job."""
    return _running().group.rank


def size() -> int:
    """The number of ranks of the job."""
    return _running().group.size


def _of_host() -> list[int]:
    """The ranks of this rank's host."""
    hosts = _running().group.hosts
    return [other for other, host in enumerate(hosts) if host == hosts[rank()]]


def _across() -> list[int]:
    """The ranks with this rank's place on their hosts."""
    hosts, place = _running().group.hosts, local_rank()
    members = [[other for other, on in enumerate(hosts) if on == host] for host in sorted(set(hosts))]
    return [ranks[place] for ranks in members if len(ranks) > place]


def local_rank() -> int:
    """This rank's place among the ranks of its host."""
    return _of_host().index(rank())


def local_size() -> int:
    """The number of ranks of this host."""
    return len(_of_host())


def cross_rank() -> int:
    """This rank's index among the ranks of equal place on every host."""
    return _across().index(rank())


def cross_size() -> int:
    """The number of hosts that have a rank of this place."""
    return len(_across())


def is_homogeneous() -> bool:
    """Whether every host has the same number of ranks."""
    hosts = _running().group.hosts
    return len({hosts.count(host) for host in hosts}) == 1


def add_process_set(process_set: ProcessSet | Ranks) -> ProcessSet:
    """Make a ProcessSet, or a list of ranks, part of the job. Every rank calls it; returns the ProcessSet."""
    job = _running()
    made = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    if not made.ranks or not set(made.ranks) <= set(range(size())):
        raise syncopate.Misuse(
            f"a process set of the ranks {made.ranks}; allowed: at least one, from 0 to {size() - 1}")
    if any(made.ranks == other.ranks for other in job.sets.values()):
        raise syncopate.Misuse(
            f"a process set of the ranks {made.ranks} is already part of the job; allowed: one for the same ranks")
    group = global_process_set.collectives().split(0 if rank() in made.ranks else -1)
    made.process_set_id, made._collectives = job.added, None
    if group is not None:
        made._collectives = Collectives(group, made.ranks, job.journal.left)
    job.sets[job.added] = made
    job.added += 1
    return made


def remove_process_set(process_set: ProcessSet) -> bool:
    """Remove a process set from the job. Every rank calls it; returns whether it was part of the job."""
    number = process_set.process_set_id
    if number is None or number == 0 or _running().sets.get(number) is not process_set:
        return False
    del _running().sets[number]
    if process_set._collectives is not None:
        process_set._collectives.close()
    _forget(process_set)
    return True


def _forget(process_set: ProcessSet) -> None:
    process_set.process_set_id = process_set._collectives = None


def wrapped(optimizer: DistributedOptimizer, process_set: ProcessSet) -> _Key:
    """Register an optimizer; returns its key, equal on all ranks, by which those that have joined find theirs."""
    job, number = _running(), process_set.process_set_id
    key = (number, job.wrapped[number])
    job.wrapped[number] += 1
    job.optimizers[key] = optimizer
    return key


def join(device: int = -1) -> int:
    """Take part in the others' collectives with zeros until every rank has called it; returns the last rank."""
    return _running().journal.join(_repeat)


def _repeat(call: Call) -> None:
    """Take part in another rank's call."""
    if call[0] == "step":
        _running().optimizers[call[1]].contribute_zeros()
        return
    own = global_process_set.collectives()
    if call[0] == "split":
        own.group.refuse(f"rank {own.rank()} has called join; allowed until all have called it: no new process set or "
                         "DistributedOptimizer")
    _, kind, vector, keywords = call
    if kind.startswith("alltoall") or (kind == "broadcast" and keywords["root"] == own.rank()):
        own.group.refuse(
            f"{kind} needs data of rank {own.rank()}, which has called join; allowed until all have called it: "
            "allreduce, allgather, reducescatter, barrier, DistributedOptimizer, and broadcast from another rank")
    data = () if vector is None else (torch.zeros(vector[0], dtype=vector[1], device="cpu"),)
    with own.naming_the_remedy():
        getattr(own.group, kind)(*data, **keywords)
