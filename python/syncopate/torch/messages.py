"""Sending and receiving, as a part of the backend."""

import syncopate
from syncopate.torch.reduction import flat, movable
from syncopate.torch.work import Pending


class Messages:
    """Messages of two ranks are matched in the order of the calls; a tag is the message's name, which both must say alike."""

    def send(self, tensors, to, tag):
        """Start sending; several may be in progress."""
        return self._started(self.group.start_send, to, tensors, tag)

    def recv(self, tensors, from_, tag):
        """Start receiving; several may be in progress."""
        return self._started(self.group.start_recv, from_, tensors, tag)

    def recv_anysource(self, tensors, tag):
        """Refused: a message has one sender, whom its receiver names."""
        raise syncopate.Misuse("the backend syncopate does not receive from any source; name the rank")

    def _started(self, start, peer, tensors, tag):
        data = movable(flat(tensors[0]))[0]
        return Pending([start(peer, data, name=f"tag {tag}")], tensors, None, self._completions)
