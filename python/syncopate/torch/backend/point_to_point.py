"""Sending and receiving, as a part of the backend."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NoReturn

import torch
from torch._C._distributed_c10d import Work

import syncopate
from syncopate.torch.backend.memory import OnDevice, PutBack, Refusal, exported, to_fill, to_send
from syncopate.torch.backend.reduce_op import movable
from syncopate.torch.backend.work import Pending

if TYPE_CHECKING:
    from syncopate.torch.backend.device_calls import Staging


class Messages:
    """Messages of two ranks are matched by tag, and those of one tag in the order of the calls."""

    group: syncopate.Group
    _staging: Staging
    _completions: ThreadPoolExecutor

    def send(self, tensors: list[torch.Tensor], to: int, tag: int) -> Work:
        """Start sending; several may be in progress."""
        return self._started(tensors, self.group.start_send, to, tag, lambda tensor: (to_send(tensor), None))

    def recv(self, tensors: list[torch.Tensor], from_: int, tag: int) -> Work:
        """Start receiving; several may be in progress."""
        return self._started(tensors, self.group.start_recv, from_, tag, to_fill)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int) -> NoReturn:
        """Refused: a message has one sender, whom its receiver names."""
        raise syncopate.Misuse("the backend syncopate does not receive from any source; name the rank")

    def _started(self, tensors: list[torch.Tensor], start: Callable[..., syncopate.Work], peer: int, tag: int,
                 memory: Callable[[torch.Tensor], tuple[torch.Tensor, PutBack]]) -> Work:
        try:
            try:
                vector, put_back = memory(tensors[0])
            except OnDevice:
                read, written = ([], [0]) if memory is to_fill else ([0], [])
                return self._staging.start(self._started, [tensors, start, peer, tag, memory], read=read, written=written)
        except Refusal as refusal:  # the peer may wait for the message
            self.group.abort(str(refusal))
            raise syncopate.Misuse(str(refusal)) from refusal
        self._staging.drain()
        return Pending([start(peer, *exported(movable(vector)[0]), tag=tag)], tensors, put_back, self._completions)
