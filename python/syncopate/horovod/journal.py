"""The calls that a rank has begun, for ranks that have joined: they repeat the calls of the others with zeros.

A call costs one entry in a list until it ends. Only when a rank joins are entries sent: it notifies every rank of its
number of calls, and each of them sends it its own calls from that number on, until it joins itself. The journal has
connections of its own, so that a rank which waits in a collective can answer.

A rank that leaves the job sends each of the others a last notice. A thread of the other rank answers with that rank's
own last notice. So no rank waits for another one's program, and no receive is left open between the two.
"""

from __future__ import annotations

import collections
import pickle
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

import syncopate

Call: TypeAlias = "tuple[Any, ...]"  # its kind, and what a rank that has joined needs to take part
_NOTICE, _ENTRY = 0, 1  # tags of messages
_LEAVES = -1  # the round in the notice of a rank that leaves the job
_NO_BOUND_S = 3e7
_KNOWN_S = 5  # limit of waiting for answers before the groups are left: another rank's answer may wait for its GIL


class Journal:
    """One rank's calls. A round ends when all ranks have joined. The group is used by the journal only."""

    def __init__(self, group: syncopate.Group) -> None:
        self._group = group
        group.set_timeout(_NO_BOUND_S)  # a notice may come at any time, or never
        self._others = [other for other in range(group.size) if other != group.rank]
        self._changed = threading.Condition()  # guards what follows
        self._begun = 0
        self._open: collections.deque[tuple[int, Call]] = collections.deque()  # (number, call) of those that some rank may not have begun
        self._round = 0
        self._joined: dict[int, dict[int, int]] = collections.defaultdict(dict)  # by round: the number of calls of ranks that have joined
        self._last: Call | None = None  # what ends the calls of this rank in this round
        self.left: set[int] = set()  # ranks whose last notice has come
        self._parted: set[int] = set()  # those to which this rank's was sent
        self._failure: BaseException | None = None
        for other in self._others:
            self._expect(other)

    def add(self, call: Call) -> int:
        """Note a call before it begins; returns its number."""
        with self._changed:
            number = self._begun
            self._begun += 1
            self._open.append((number, call))
            for other, begun in self._joined[self._round].items():
                if number >= begun:  # a root may end its broadcast, and join, before others begin it
                    self._send(other, call)
            return number

    def ended(self, number: int) -> None:
        """Every rank has begun this call, and those before it."""
        with self._changed:
            while self._open and self._open[0][0] <= number:
                self._open.popleft()

    def join(self, repeat: Callable[[Call], object]) -> int:
        """Repeat the others' calls by `repeat(call)` until all ranks have joined; returns the rank that joined last."""
        with self._changed:
            if self.left:
                raise _left_before_joining(min(self.left))
            number = self._begun
            self._end_with(("joined", number))
            for other in self._others:
                self._group.start_send(other, torch.tensor((self._round, number), device="cpu"), tag=_NOTICE)
        ends, active = {self._group.rank: number}, list(self._others)
        while active:
            calls = {other: self._receive(other) for other in active}
            ends |= {other: call[1] for other, call in calls.items() if call[0] == "joined"}
            active = [other for other in active if other not in ends]
            if active:
                repeat(calls[active[0]])
                number += 1
        with self._changed:
            # Each of them needs the end of this rank's calls, which is sent when its notice arrives.
            self._changed.wait_for(lambda: self._failure is not None or len(self._joined[self._round]) == len(self._others))
            if self._failure:
                raise self._failure
            del self._joined[self._round]
            self._round += 1
            self._begun, self._last = number, None
            self._open.clear()
        return max(ends, key=lambda rank: (ends[rank], rank))

    def leave(self) -> None:
        """Notify the others that this rank leaves the job, and return when they know it, or soon."""
        with self._changed:
            self._end_with(("left", self._group.rank))
            for other in self._others:
                self._part_from(other)
            self._changed.wait_for(self._is_over, _KNOWN_S)

    def close(self) -> None:
        """End it after `leave`. Raises why a rank failed before it knew that this one leaves."""
        with self._changed:
            self._changed.wait_for(self._is_over)
        self._group.close()
        if self._failure:
            raise self._failure

    def _is_over(self) -> bool:
        return self._failure is not None or len(self.left) == len(self._others)

    def _end_with(self, last: Call) -> None:
        self._last = last
        for other in self._joined[self._round]:
            self._send(other, last)

    def _part_from(self, other: int) -> None:
        """Send the last notice to that rank, once."""
        if other not in self._parted:
            self._parted.add(other)
            self._group.start_send(other, torch.tensor((_LEAVES, 0), device="cpu"), tag=_NOTICE)

    def _expect(self, other: int) -> None:
        notice = torch.zeros(2, dtype=torch.int64, device="cpu")
        self._group.start_recv(other, notice, tag=_NOTICE).then(lambda error: self._noticed(other, notice, error))

    def _noticed(self, other: int, notice: torch.Tensor, error: BaseException | None) -> None:
        with self._changed:
            joined_in, begun = notice.tolist()
            if error is not None:
                self._failure = error
            elif joined_in == _LEAVES:
                self.left.add(other)
                self._part_from(other)
            else:
                self._joined[joined_in][other] = begun
                if joined_in == self._round:
                    self._catch_up(other, begun)
                self._expect(other)
            self._changed.notify_all()

    def _catch_up(self, other: int, begun: int) -> None:
        for number, call in self._open:
            if number >= begun:
                self._send(other, call)
        if self._last is not None:
            self._send(other, self._last)

    def _send(self, other: int, call: Call) -> None:
        if other in self.left:
            return
        body = bytearray(pickle.dumps(call))
        self._group.start_send(other, torch.tensor([len(body)], device="cpu"), tag=_ENTRY)
        self._group.start_send(other, torch.frombuffer(body, dtype=torch.uint8), tag=_ENTRY)

    def _receive(self, other: int) -> Call:
        length = torch.zeros(1, dtype=torch.int64, device="cpu")
        self._group.recv(other, length, tag=_ENTRY)
        body = torch.empty(int(length), dtype=torch.uint8, device="cpu")
        self._group.recv(other, body, tag=_ENTRY)
        call: Call = pickle.loads(body.numpy().tobytes())
        if call[0] == "left":
            raise _left_before_joining(other)
        return call


def _left_before_joining(other: int) -> syncopate.PeerLost:
    error = syncopate.PeerLost(f"join: rank {other} has left the job without joining; call hvd.join() on every rank")
    error.peer = other
    return error
