"""Waiting for ranks through the store that torch gives, and watching them while they join a group."""

from __future__ import annotations

import contextlib
import datetime
import json
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TypeVar

from torch.distributed import Store

import syncopate

_LOOK_S = 0.1  # between two looks at the others
_SILENT_S = 8  # a rank that joins and does not count for longer is lost
_CAUSE_S = 2  # for the cause of a failure, which another rank may write
_Error = TypeVar("_Error", bound=syncopate.Error)
_Answer = TypeVar("_Answer")


def come(store: Store, keys: list[str], deadline: float) -> bool:
    """Whether the keys are in the store by then. Some stores raise a plain RuntimeError when they are not."""
    try:
        store.wait(keys, left(deadline))
    except RuntimeError:
        if time.monotonic() < deadline - 0.01:  # stores round to milliseconds
            raise
        return False
    return True


def left(deadline: float) -> datetime.timedelta:
    """Time until then; at least a millisecond, because a store takes none as for ever."""
    return datetime.timedelta(seconds=max(deadline - time.monotonic(), 1e-3))


def named(kind: type[_Error], text: str, rank: int | None, peer: int | None) -> _Error:
    """The exception of that kind on this rank, about that peer."""
    error = kind(text)
    error.rank, error.peer = rank, peer
    return error


class Watch:
    """What a rank shows the others while it joins, and sees of them. Entered by every rank; its own error becomes the others'.

    Every rank counts in the store. Rank 0 watches the counts of all that have come, and the others watch that of rank 0.
    """

    def __init__(self, store: Store, rank: int, size: int) -> None:
        self._store, self._rank = store, rank
        self._watched: Sequence[int] = range(1, size) if rank == 0 else [0]
        self._shown, self._next_look_s, self._next_count_s = 0, 0.0, 0.0
        self._seen: dict[int, tuple[bytes, float]] = {}  # by rank: the last count, and when it was new

    def __enter__(self) -> Watch:
        self._asked(self._count)
        return self

    def _count(self) -> None:
        self._store.set(f"count/{self._rank}", str(self._shown))
        self._shown += 1

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        cause = None
        with contextlib.suppress(RuntimeError):  # the store may have ended
            if error is None:
                self._store.set(f"count/{self._rank}", "joined")
            elif not isinstance(error, syncopate.RemoteFailure):
                cause = self._cause(_CAUSE_S if isinstance(error, (syncopate.PeerLost, syncopate.Mismatch)) else 0)
                if cause is None:
                    self._store.set("failed", json.dumps([self._rank, getattr(error, "peer", None), f"{type(error).__name__}: {error}"]))
        if cause is not None and isinstance(error, Exception):
            raise cause from error

    def come(self, keys: list[str], deadline: float) -> bool:
        """Whether the keys are in the store by then. Raises as `look`."""
        pause_s = 1e-3
        while not self._asked(lambda: self._store.check(keys)):  # TCPStore logs each `wait` that ends without them
            if time.monotonic() >= deadline:
                return False
            self.look()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LOOK_S)
        return True

    def look(self) -> None:
        """Raise RemoteFailure if another rank has failed, PeerLost if one has ended or does not run, or if the store has ended."""
        now = time.monotonic()
        if now < self._next_look_s:
            return
        self._next_look_s = now + _LOOK_S
        if cause := self._asked(lambda: self._cause(0)):
            raise cause
        if now < self._next_count_s:
            return
        self._next_count_s = now + 1
        for other in self._asked(self._silent):
            raise named(syncopate.PeerLost, f"rank {other} has ended, or does not run, while the ranks connected", self._rank, other)

    def _silent(self) -> list[int]:
        """Count, and return the ranks that have come and have not counted for long."""
        self._count()
        now, silent = time.monotonic(), []
        for other in self._watched:
            count: bytes | None = self._seen.get(other, (None, now))[0]
            if count != b"joined" and (count is not None or self._store.check([f"count/{other}"])):
                count = self._store.get(f"count/{other}")
                if count != self._seen.get(other, (None, now))[0]:
                    self._seen[other] = count, now
                elif now - self._seen[other][1] > _SILENT_S:
                    silent.append(other)
        return silent

    def _cause(self, patience_s: float) -> syncopate.RemoteFailure | None:
        """The failure that another rank has written, as an exception; None if there is none."""
        if not (come(self._store, ["failed"], time.monotonic() + patience_s) if patience_s else self._store.check(["failed"])):
            return None
        rank, peer, text = json.loads(self._store.get("failed"))
        culprit = rank if peer is None else peer
        return named(syncopate.RemoteFailure, f"rank {rank} could not join the group: {text}", self._rank, culprit)

    def _asked(self, ask: Callable[[], _Answer]) -> _Answer:
        try:
            return ask()
        except RuntimeError as error:
            raise named(syncopate.PeerLost, "the store of torch does not answer; the process that holds it, rank 0 or torchrun, may have "
                        f"ended: {error}", self._rank, None) from error
