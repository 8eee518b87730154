"""The way of gradients between an accelerator and the CPU: copies in streams of their own, through pinned memory."""

import time

import torch

import syncopate


def is_accelerator(device):
    """Whether it is one of the accelerators that this PyTorch finds; never before torch 2.6."""
    kind = torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else None
    return kind is not None and kind.type == device.type


def is_accelerator(device):
    """Whether this PyTorch finds an accelerator of this kind, as it does from torch 2.6 on."""
    kind = torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else None
    return kind is not None and kind.type == device.type


def pinning_failure():
    """Why there is no pinned memory, or None."""
    try:
        return None if torch.empty(1, device="cpu", pin_memory=True).is_pinned() else "torch.empty(1, pin_memory=True) is not pinned"
    except (RuntimeError, NotImplementedError) as error:
        return error


def require_usable(name, device):
    """Raise Misuse if gradients of this parameter cannot be copied from its device without blocking it."""
    if not is_accelerator(device):
        raise syncopate.Misuse(f"parameter {name} is on {device}; allowed: on the CPU, or from torch 2.6 on an accelerator that this PyTorch "
                               "finds (torch.accelerator.current_accelerator()); model.to_empty(device=…) gives parameters on meta memory")
    reason = pinning_failure()
    if reason is not None:
        raise syncopate.Misuse(f"parameter {name} is on {device}, for which there is no pinned memory ({reason}); allowed: accelerators with "
                               "pinned memory; else keep the model on the CPU, or raise the limit of locked memory (ulimit -l)")


class Lane:
    """Two streams of one device, one for each direction, and pinned memory for each of what is copied, by its number.

    `down` is called on the thread and in the stream that have computed the values; `Crossing.up` on any thread.
    """

    def __init__(self, device):
        self.device = device
        self.down_stream, self.up_stream = torch.Stream(device), torch.Stream(device)
        self._crossings = {}  # by number: the last one
        self._origin = self.mark(self.down_stream)
        self._origin.synchronize()
        self._origin_s = time.perf_counter()

    def mark(self, stream):
        """An event in the stream, after what it has been given so far."""
        event = torch.Event(self.device, enable_timing=True)
        event.record(stream)
        return event

    def time_s(self, event):
        """When the device reached it, as a time of `time.perf_counter`."""
        return self._origin_s + 1e-3 * self._origin.elapsed_time(event)

    def down(self, number, values, host=None):
        """Begin to copy these values to the host, once the current stream has computed them; a Crossing.

        number: of the bucket or tensor. host: pinned memory for them, whose copies up the current stream follows; by
        default the lane's own for this number.
        """
        before = self._crossings.get(number)
        crossing = self._crossings[number] = Crossing(self, values, self._pinned(before, values) if host is None else host)
        self.down_stream.wait_stream(torch.accelerator.current_stream(self.device))
        if before is not None and before.returned is not None:
            self.down_stream.wait_event(before.returned)  # the same pinned memory
        crossing.begin = self.mark(self.down_stream)
        with self.down_stream:
            crossing.host.copy_(values, non_blocking=True)
        values.record_stream(self.down_stream)
        crossing.arrived = self.mark(self.down_stream)
        return crossing

    def up(self, values, host):
        """Begin to copy pinned memory into the device's tensor; the event after it."""
        with self.up_stream:
            values.copy_(host, non_blocking=True)
        values.record_stream(self.up_stream)
        return self.mark(self.up_stream)

    @staticmethod
    def _pinned(before, values):
        """Memory of the last values of this number, or new memory: DDP forms other buckets after the first step."""
        if before is not None and (before.host.shape, before.host.dtype) == (values.shape, values.dtype):
            return before.host
        return torch.empty(values.shape, dtype=values.dtype, device="cpu", pin_memory=True)


class Crossing:
    """The values of one number in one step: on the device, and in pinned memory of the host.

    host: valid after `wait`. returned: the event after the copy up, None before.
    """

    def __init__(self, lane, values, host):
        self._lane, self._values, self.host = lane, values, host
        self.begin = self.arrived = self.returned = None

    def wait(self):
        """Return when `host` has the values: when that was, as a time of `time.perf_counter`."""
        self.arrived.synchronize()
        return self._lane.time_s(self.arrived)

    @property
    def copy_s(self):
        """Seconds of the copy down."""
        return 1e-3 * self.begin.elapsed_time(self.arrived)

    def release(self):
        """The values do not come back: the device may use their memory again after the copy."""
        self._values = None

    def up(self, complete):
        """Begin to copy `host` into the device's tensor, and call `complete` in the stream of this copy, which futures then wait for."""
        with self._lane.up_stream:
            self._values.copy_(self.host, non_blocking=True)
            self._values.record_stream(self._lane.up_stream)
            self.returned = self._lane.mark(self._lane.up_stream)
            complete()
        self._values = None  # DDP may give its memory back
