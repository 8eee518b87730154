"""Gradients and weights of accelerators for the library, which works in the memory of the CPU: both ways of the copies."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import torch

from syncopate.torch.lane import Lane


class Copies:
    """Copies between accelerators and the CPU: each begins without waiting, and what follows its arrival runs on one thread in that order.

    An error on that thread ends the exchanges of all ranks of the group, which do not know of an error of this device.
    """

    def __init__(self, group):
        self._group, self._lanes, self._under_way = group, {}, []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="syncopate copies")

    def down(self, number, values, host=None):
        """Begin to copy these values to the host, once the current stream has computed them; a Crossing. See `Lane.down`."""
        with self._errors_to_all():
            if values.device not in self._lanes:
                self._lanes[values.device] = Lane(values.device)
            return self._lanes[values.device].down(number, values, host)

    def then(self, crossing, call, *arguments):
        """Call it on the thread when the copy down has arrived."""
        self._under_way.append(self._thread.submit(self._after, crossing, call, arguments))

    def _after(self, crossing, call, arguments):
        with self._errors_to_all():
            crossing.wait()
            call(*arguments)

    def land(self):
        """Return when all copies down have arrived. Copies up follow what the devices have been given by now. Raises the first error."""
        under_way, self._under_way = self._under_way, []
        if not under_way:
            return
        errors = [error for error in (one.exception() for one in under_way) if error is not None]
        if errors:
            raise errors[0]
        for lane in self._lanes.values():
            lane.up_stream.wait_stream(torch.accelerator.current_stream(lane.device))  # it may use the values of the step before

    def up(self, values, host):
        """Begin to copy pinned memory of the host into a device's tensor; the current stream goes on with it."""
        self._await(self._lanes[values.device].up(values, host))

    def back(self, crossing):
        """Begin to copy a crossing's `host` into the tensor that it came from; the current stream goes on with it."""
        crossing.up(lambda: None)
        self._await(crossing.returned)

    @staticmethod
    def _await(event):
        torch.accelerator.current_stream(event.device).wait_event(event)

    @contextlib.contextmanager
    def _errors_to_all(self):
        try:
            yield
        except Exception as error:
            self._group.abort(str(error))
            raise

    def close(self):
        """End the thread."""
        self._thread.shutdown()


class StagedGradients:
    """The gradients of a Synchronizer whose exchange ends with gradients, for parameters on accelerators; it has its `ready`, `wait` and `close`.

    views: the gradients on their devices. They are copied into pinned memory, from there into the synchronizer's, and back
    in the same way; with `in_parts` (no operation follows on all averages) averages of a bucket go up while others are exchanged.
    """

    def __init__(self, synchronizer, group, named, *, in_parts):
        self._synchronizer, self._copies, self._in_parts = synchronizer, Copies(group), in_parts
        self._memory = [torch.from_dlpack(synchronizer.gradient(i)) for i in range(len(named))]
        self.views = [torch.zeros(parameter.shape, dtype=parameter.dtype, device=parameter.device) for _, parameter in named]
        self._crossings = {}  # of this step

    def ready(self, i):
        """View i is completely written by the current stream. Returns at once."""
        self._crossings[i] = self._copies.down(i, self.views[i])
        self._copies.then(self._crossings[i], self._arrived, i, self._crossings[i].host)

    def _arrived(self, i, host):
        self._memory[i].copy_(host)
        self._synchronizer.ready(i)

    def wait(self):
        """Return when the host has every average; the current stream goes on when the views have them. Raises as `Synchronizer.wait`."""
        crossings, self._crossings = self._crossings, {}
        self._copies.land()
        order = reversed(range(len(self.views)))  # that of the exchange
        if self._in_parts and len(crossings) == len(self.views):
            for i in order:
                self._synchronizer.wait_for_gradient(i)
                self._return(i, crossings[i])
            self._synchronizer.wait()
        else:
            self._synchronizer.wait()
            for i in order:
                self._return(i, crossings[i])

    def _return(self, i, crossing):
        crossing.host.copy_(self._memory[i])
        self._copies.back(crossing)

    def close(self):
        """End the thread of the copies, and the synchronizer."""
        self._copies.close()
        self._synchronizer.close()


def gradients_of(synchronizer, group, named, *, in_parts):
    """(what has `ready`, `wait` and `close`, the gradients of these parameters): the synchronizer and its own memory, or those on accelerators."""
    if all(parameter.is_cpu for _, parameter in named):
        return synchronizer, [torch.from_dlpack(synchronizer.gradient(i)) for i in range(len(named))]
    staged = StagedGradients(synchronizer, group, named, in_parts=in_parts)
    return staged, staged.views
