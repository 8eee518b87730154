"""Sending and receiving, as a part of the backend."""

import syncopate
from syncopate.torch.backend.memory import OnDevice, Refusal, exported, to_fill, to_send
from syncopate.torch.backend.reduce_op import movable
from syncopate.torch.backend.work import Pending


class Messages:
    """Messages of two ranks are matched by tag, and those of one tag in the order of the calls."""

    def send(self, tensors, to, tag):
        """Start sending; several may be in progress."""
        return self._started(tensors, self.group.start_send, to, tag, lambda tensor: (to_send(tensor), None))

    def recv(self, tensors, from_, tag):
        """Start receiving; several may be in progress."""
        return self._started(tensors, self.group.start_recv, from_, tag, to_fill)

    def recv_anysource(self, tensors, tag):
        """Refused: a message has one sender, whom its receiver names."""
        raise syncopate.Misuse("the backend syncopate does not receive from any source; name the rank")

    def _started(self, tensors, start, peer, tag, memory):
        try:
            try:
                vector, put_back = memory(tensors[0])
            except OnDevice:
                read, written = ([], [0]) if memory is to_fill else ([0], [])
                return self._staging.start(self._started, [tensors, start, peer, tag, memory], read=read, written=written)
        except Refusal as refusal:  # the peer may wait for the message
            self.group.abort(str(refusal))
            raise syncopate.Misuse(str(refusal)) from refusal
        self._staging.settle()
        return Pending([start(peer, *exported(movable(vector)[0]), tag=tag)], tensors, put_back, self._completions)
