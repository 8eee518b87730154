"""What a collective returns to torch: something to wait for, with a future that completes with the tensors."""

import threading

import torch
from torch._C._distributed_c10d import Work

import syncopate


class Ended(Work):
    """An operation that ended before its call returned."""

    def __init__(self, tensors):
        super().__init__()
        self._tensors = tensors

    def wait(self, timeout=None):
        """Nothing is left to wait for."""
        return True

    def is_completed(self):
        """It is."""
        return True

    def result(self):
        """The tensors with the result."""
        return self._tensors

    def get_future(self):
        """A future that is complete."""
        future = torch.futures.Future()
        future.set_result(self._tensors)
        return future


class Pending(Work):
    """Started operations of the group, and what is done with their results: once, by whoever comes first."""

    def __init__(self, works, tensors, finish, completions):
        super().__init__()
        self._works, self._tensors, self._finish = works, tensors, finish
        self._completions = completions
        self._once, self._future = threading.Lock(), None
        if finish is not None:
            works[-1].then(lambda _: self._complete_later(None))

    def wait(self, timeout=None):
        """Return when the tensors hold the result; raise the error that names the rank."""
        seconds = timeout.total_seconds() if timeout else 0
        for work in self._works:
            if seconds <= 0:
                work.wait()
            elif not work.wait_for(seconds):
                raise syncopate.Timeout(f"the operation did not end within {seconds} s; it goes on")
        self._end()
        return True

    def is_completed(self):
        """Whether `wait` would return at once."""
        return all(work.ready() for work in self._works)

    def result(self):
        """The tensors, which hold the result after `wait`."""
        return self._tensors

    def get_future(self):
        """A future of the tensors. Its callbacks run on threads of their own, so they may wait for other operations."""
        with self._once:
            if self._future is None:
                begun = torch.futures.Future()
                self._future = begun.then(self._value)
                self._works[-1].then(lambda _: self._complete_later(begun))
        return self._future

    def _value(self, _):
        self.wait()
        return self._tensors

    def _complete_later(self, begun):
        try:
            self._completions.submit(self._complete, begun)
        except RuntimeError:  # the process group or the interpreter has ended: nobody waits
            pass

    def _complete(self, begun):
        if begun is not None:
            begun.set_result(None)
            return
        try:
            self.wait()
        except syncopate.Error:  # who waits gets it too
            pass

    def _end(self):
        with self._once:
            finish, self._finish = self._finish, None
            if finish is not None:
                finish()
