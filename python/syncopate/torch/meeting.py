"""Where the ranks of a process group meet: rank 0 says it in the store that torch gives, and the others read it there."""

import os
import secrets
import socket

import torch.distributed as dist

import syncopate


def own_group(process_group=None, timeout_s=1800):
    """A group of its own for the ranks of a process group, of any backend; without torch.distributed, of the job's ranks.

    Its operations keep their order whatever the process group does at the same time.
    """
    if not dist.is_initialized():
        return syncopate.Group.join(timeout_s=timeout_s)
    process_group = process_group or dist.group.WORLD
    _, store = dist.distributed_c10d._world.pg_map[process_group]
    return join(dist.PrefixStore("syncopate/own", store), process_group.rank(), process_group.size(), timeout_s)


def join(store, rank, size, timeout_s):
    """Join the group of these ranks. Ranks of one host meet at a name that nobody else knows, others at rank 0's address."""
    # A store may outlive a process group, and its keys with it: each group of the same name is one generation.
    generation = f"syncopate/{store.add(f'syncopate/joined/{rank}', 1)}"
    store.set(f"{generation}/host/{rank}", _host())
    if rank == 0:
        hosts = {store.get(f"{generation}/host/{other}") for other in range(size)}
        store.set(generation, f"local://{secrets.token_hex(16)}" if len(hosts) == 1 else _own_address())
    meeting = store.get(generation).decode()
    return syncopate.Group.join(rank=rank, size=size, rendezvous=meeting, timeout_s=timeout_s)


def _host():
    """Equal for processes that reach each other by local sockets: one kernel, one network namespace."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip() + os.readlink("/proc/self/ns/net")


def _own_address():
    """A free port at the address by which torch's own rendezvous knows this host."""
    host = os.environ.get("MASTER_ADDR") or socket.gethostname()
    family, _, _, _, (address, *_) = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    with socket.socket(family) as listener:
        listener.bind((address, 0))
        port = listener.getsockname()[1]
    return f"tcp://[{address}]:{port}" if family == socket.AF_INET6 else f"tcp://{address}:{port}"
