"""Times of a model's passes on its own device: the host's clock for the CPU, events for an accelerator."""

import time

import torch


def clock_of(device):
    """The clock of computations on this device."""
    return _Host() if device.type == "cpu" else _Events(device)


class _Host:
    """The CPU has computed when the call returns."""

    @staticmethod
    def mark():
        """Now."""
        return time.perf_counter()

    @staticmethod
    def seconds(begin, end):
        """The time between two marks."""
        return end - begin


class _Events:
    """The host runs ahead of an accelerator: a mark is an event in the current stream."""

    def __init__(self, device):
        self._device = device

    def mark(self):
        """A mark after what the device has been given so far."""
        event = torch.Event(self._device, enable_timing=True)
        event.record(torch.accelerator.current_stream(self._device))
        return event

    @staticmethod
    def seconds(begin, end):
        """The time between two marks, when the device has reached both."""
        end.synchronize()
        return 1e-3 * begin.elapsed_time(end)
