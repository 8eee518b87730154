"""The ranks of a job by host: which of them reduce within a host, and which average between hosts. All ranks check it together."""

import json
import socket

import torch
import torch.distributed as dist

import syncopate
from syncopate import ending
from syncopate.torch.shared import rendezvous

_ALLOWED = ('allowed: within="host", or on every rank the process group of the ranks of its own host, as of new_subgroups() or '
            "device_mesh.get_group(dimension); hosts have equally many ranks")


class HostGroups:
    """Groups of this rank: `within`, a process group of torch of its host; `own` has the same ranks, and `across` those that have its
    place on other hosts, both groups of the library, as is `job`, which has all ranks.

    A host is here what a group of `within` has: it may be a part of a machine. host, hosts: this one's number, in the order of first
    ranks, and how many there are. place, ranks: this rank's number in its host, and how many are there.

    Raises Misuse on every rank if the groups of the ranks do not fit together; nothing has been sent by them then.
    """

    def __init__(self, within, process_group, timeout_s):
        if not dist.is_initialized():
            raise syncopate.Misuse("within needs torch.distributed; allowed: after init_process_group")
        self.job = rendezvous.own_group(process_group, timeout_s)
        try:
            self._find(within)
        except BaseException:
            self.job.close()
            raise
        self._is_made = within == "host"
        self.within = dist.new_group(self._members, use_local_synchronization=True) if self._is_made else within
        self.own, self.across = self.job.split(self.host, self.place), self.job.split(self.place, self.host)

    def _find(self, within):
        facts = _gathered(self.job, _fact(within))
        hosts = _hosts(facts)
        rank = dist.get_rank()
        self._members = next(members for members in hosts if rank in members)
        self.host, self.hosts = hosts.index(self._members), len(hosts)
        self.place, self.ranks = self._members.index(rank), len(self._members)

    def abort(self, reason):
        """Every rank's calls in these groups raise from now on: neither ranks of this host nor those of others wait for this one."""
        for group in (self.own, self.across, self.job):
            group.abort(reason)

    def close(self):
        """Leave the groups; the process group of `within` stays if the program made it."""
        ending.close_together([self.own, self.across])
        self.job.close()
        if self._is_made and self.within in dist.distributed_c10d._world.pg_map:
            dist.destroy_process_group(self.within)


def identity():
    """(identity, name) of this host: ranks with the same identity are on one kernel and in one network namespace."""
    return rendezvous._host(), socket.gethostname()


def _fact(within):
    """This rank's part of the check: its number, the ranks of its host (None: those with its identity), and why these are not known."""
    members, problem = None, None
    if isinstance(within, int) and within == dist.GroupMember.NON_GROUP_MEMBER:
        problem = "is a process group of other ranks"
    elif isinstance(within, dist.ProcessGroup):
        try:
            members = dist.get_process_group_ranks(within)
        except (KeyError, ValueError):
            problem = "is a process group that was destroyed"
    elif not (isinstance(within, str) and within == "host"):
        problem = f"is {within!r}, which is not a process group"
    host, name = identity()
    return {"rank": dist.get_rank(), "members": members, "problem": problem, "host": host, "name": name}


def _gathered(group, fact):
    """The fact of each rank, by rank."""
    own = json.dumps(fact).encode()
    sizes = torch.zeros(group.size, dtype=torch.int64, device="cpu")
    sizes[group.rank] = len(own)
    group.allgather(sizes, name="sizes of what ranks know of within")
    ends = sizes.cumsum(0).tolist()
    text = bytearray(ends[-1])
    text[ends[group.rank] - len(own):ends[group.rank]] = own
    group.allgather_v(text, sizes.tolist(), name="what ranks know of within")
    return [json.loads(text[end - size:end]) for end, size in zip(ends, sizes.tolist(), strict=True)]


def _hosts(facts):
    """The ranks of each host, in the order of first ranks. Raises Misuse, the same on all ranks."""
    by_host = {}
    for fact in facts:
        by_host.setdefault(fact["host"], []).append(fact["rank"])
    known = {fact["rank"]: fact for fact in facts}
    hosts = []
    for fact in facts:
        if fact["problem"]:
            raise syncopate.Misuse(f"within of rank {fact['rank']} {fact['problem']}; {_ALLOWED}")
        members = fact["members"] = fact["members"] or by_host[fact["host"]]
        if members not in hosts:
            hosts.append(members)
    for fact in facts:
        for other in fact["members"]:
            _require_together(fact, known.get(other), other)
    if len({len(members) for members in hosts}) > 1:
        raise syncopate.Misuse(f"within has {' and '.join(str(len(members)) for members in hosts)} ranks: {_lists(hosts)}; {_ALLOWED}")
    return hosts


def _require_together(fact, other, number):
    """Raise Misuse unless both ranks give the same group, and are on one host."""
    if other is None:
        raise syncopate.Misuse(f"within of rank {fact['rank']} has rank {number}, which does not train this model; {_ALLOWED}")
    if fact["members"] != other["members"]:
        raise syncopate.Misuse(f"within differs: that of rank {fact['rank']} has ranks {fact['members']}, and that of rank {number} "
                               f"{other['members']}; {_ALLOWED}")
    if fact["host"] != other["host"]:
        raise syncopate.Misuse(f"within of ranks {fact['members']} is on several hosts: rank {fact['rank']} on {fact['name']}, rank {number} on "
                               f"{other['name']}; {_ALLOWED}")


def _lists(hosts):
    return ", ".join(str(members) for members in hosts)
