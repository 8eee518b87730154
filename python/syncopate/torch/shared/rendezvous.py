"""Where the ranks of a process group meet: rank 0 writes the address into the store that torch gives, and the others read it there."""

from __future__ import annotations

import errno
import ipaddress
import os
import secrets
import socket
import time

import torch
import torch.distributed as dist
from torch.distributed import ProcessGroup, Store

import syncopate
from syncopate.torch.shared.membership import Watch, come, left, named

DEFAULT_TIMEOUT_S = 1800  # torch's
_REFUSED = "refused:"  # in the place of an address: why rank 0 has none
_CONNECTING_S = 60  # when all ranks have come


def own_group(process_group: ProcessGroup | None = None, timeout_s: float | None = None) -> syncopate.Group:
    """A group of its own for the ranks of a process group, of any backend; without torch.distributed, of the job's ranks.

    Its operations keep their order whatever the process group does at the same time. timeout_s: by default the process group's;
    without torch.distributed SYNCOPATE_TIMEOUT_MS, or torch's default.
    """
    if not dist.is_initialized():
        is_set = timeout_s is not None or "SYNCOPATE_TIMEOUT_MS" in os.environ
        return syncopate.Group.join(timeout_s=timeout_s if is_set else DEFAULT_TIMEOUT_S)
    process_group = process_group or dist.distributed_c10d._get_default_group()
    timeout_s = _timeout_of(process_group) if timeout_s is None else timeout_s
    _, store = dist.distributed_c10d._world.pg_map[process_group]
    rank = process_group.rank()
    return join(generation(dist.PrefixStore("syncopate/own", store), rank), rank, process_group.size(), timeout_s)


def place(process_group: ProcessGroup | None = None) -> tuple[int, int] | None:
    """This rank and the number of ranks in the process group, by default of all; None without torch.distributed."""
    if not dist.is_initialized():
        return None
    process_group = process_group or dist.distributed_c10d._get_default_group()
    return process_group.rank(), process_group.size()


def _timeout_of(process_group: ProcessGroup) -> float:
    """That of `init_process_group(timeout=…)`, in seconds, if its backend has this option."""
    try:
        return process_group._get_backend(torch.device("cpu")).options._timeout.total_seconds()
    except (AttributeError, RuntimeError):  # no backend for the CPU, or one without such options
        return DEFAULT_TIMEOUT_S


def generation(store: Store, rank: int) -> Store:
    """The part of a store for its next group: a store may outlive a process group, and the keys with it."""
    return dist.PrefixStore(f"syncopate/{store.add(f'syncopate/joined/{rank}', 1)}", store)


def join(store: Store, rank: int, size: int, timeout_s: float) -> syncopate.Group:
    """Join the group of these ranks. Ranks of one host meet at a name that nobody else knows, others at rank 0's address.

    Raises Timeout, which names the ranks that are missing; RemoteFailure or PeerLost, soon, if another rank fails or ends.
    """
    deadline = time.monotonic() + timeout_s
    with Watch(store, rank, size) as watch:
        meeting = _meeting(store, rank, size, timeout_s, deadline, watch)
        if not meeting.startswith(_REFUSED):
            bound_s = min(left(deadline).total_seconds(), _CONNECTING_S)
            return syncopate.Group.join(rank=rank, size=size, rendezvous=meeting, timeout_s=timeout_s, join_timeout_s=bound_s,
                                        while_joining=watch.look)
    raise syncopate.Misuse(meeting.removeprefix(_REFUSED))


def _meeting(store: Store, rank: int, size: int, timeout_s: float, deadline: float, watch: Watch) -> str:
    """Where the ranks meet, when all have come, or why they cannot."""
    hosts = [f"host/{other}" for other in range(size)]
    store.set(hosts[rank], _host())
    if rank == 0 and watch.come(hosts, deadline):
        is_one_host = len({store.get(host) for host in hosts}) == 1
        store.set("meeting", f"local://{secrets.token_hex(16)}" if is_one_host else _address_or_reason())
    if not watch.come(["meeting"], deadline):
        missing = [other for other, host in enumerate(hosts) if not store.check([host])] or [0]
        raise named(syncopate.Timeout, f"connecting a group of {size} ranks did not finish within the timeout of {timeout_s:g} s; missing: "
                    f"{_ranks(missing)}", rank, missing[0])
    return store.get("meeting").decode()


class MonitoredBarrier:
    """torch's monitored barrier of one process group: through the store, so that it does not disturb the group's operations."""

    def __init__(self, store: Store, rank: int, size: int) -> None:
        self._store, self._rank, self._size = dist.PrefixStore("monitored", store), rank, size

    def wait(self, timeout_s: float, names_all: bool) -> None:
        """Return when every rank is here. Raises Timeout on every rank; rank 0's names the first rank that is missing, or all."""
        if self._rank != 0:
            self._wait_for_rank_0(timeout_s)
            return
        if timeout_s <= 0:
            raise named(syncopate.Timeout, f"[Rank 0]: Rank 0 timed out in monitoredBarrier after {1000 * timeout_s:.0f} ms.", 0, None)
        deadline, missing = time.monotonic() + timeout_s, []
        for other in range(1, self._size):
            if not come(self._store, [f"here/{other}"], deadline):
                missing.append(other)
                if not names_all:
                    break
        if missing:
            raise named(
                syncopate.Timeout,
                f"[Rank 0]: {_ranks(missing).capitalize()} failed to pass monitoredBarrier in {1000 * timeout_s:.0f} ms",
                0,
                missing[0],
            )
        for other in range(1, self._size):
            self._store.delete_key(f"here/{other}")
            self._store.set(f"pass/{other}", "")

    def _wait_for_rank_0(self, timeout_s: float) -> None:
        here, passed = f"here/{self._rank}", f"pass/{self._rank}"
        self._store.set(here, "")
        if come(self._store, [passed], time.monotonic() + timeout_s):
            self._store.delete_key(passed)
            return
        self._store.delete_key(here)
        raise named(
            syncopate.Timeout,
            f"[Rank {self._rank}]: Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting "
            f"for send/recv from rank 0: no answer in {1000 * timeout_s:.0f} ms. Please check rank 0 logs for faulty rank.",
            self._rank,
            0,
        )


def _ranks(missing: list[int]) -> str:
    return f"rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"


def _host() -> str:
    """Equal for processes that reach each other by local sockets: one kernel, one network namespace."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip() + os.readlink("/proc/self/ns/net")
    except OSError as error:
        remedy = "; raise the limit (ulimit -n)" if error.errno == errno.EMFILE else ""
        raise syncopate.SystemFailure(f"cannot read the identity of this host: {error.strerror}{remedy}") from error


def _address_or_reason() -> str:
    try:
        return _own_address()
    except (syncopate.Misuse, OSError) as error:  # every rank raises it
        return f"{_REFUSED}rank 0: {error}"


def _own_address() -> str:
    """A free port at this host's address from which it reaches MASTER_ADDR: rank 0 of a group may run on any host."""
    host = os.environ.get("MASTER_ADDR") or socket.gethostname()
    family, _, _, _, master = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(master)  # sends nothing: it queries the routing table
        address = probe.getsockname()[0]
    if ipaddress.ip_address(address).is_loopback:
        raise syncopate.Misuse(f"the ranks are on several hosts, but this host resolves {host} to the loopback address {master[0]}; set "
                               "MASTER_ADDR (torchrun --master-addr) to an address of rank 0's host that the other hosts reach")
    with socket.socket(family) as listener:
        listener.bind((address, 0))
        port = listener.getsockname()[1]
    return f"tcp://[{address}]:{port}" if family == socket.AF_INET6 else f"tcp://{address}:{port}"
