"""Times of a model's passes on its own device: the host's clock for the CPU, events for an accelerator."""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch


class Clock(Protocol):
    """Marks of a computation, and the time between two of them."""

    def mark(self) -> Any:
        """Now, or where the device is in its work."""

    def seconds(self, begin: Any, end: Any) -> float:
        """The time between two marks."""


def clock_of(device: torch.device) -> Clock:
    """The clock of computations on this device."""
    return _Host() if device.type == "cpu" else _Events(device)


class _Host:
    """The CPU has computed when the call returns."""

    @staticmethod
    def mark() -> float:
        """Now."""
        return time.perf_counter()

    @staticmethod
    def seconds(begin: float, end: float) -> float:
        """The time between two marks."""
        return end - begin


class _Events:
    """The host runs ahead of an accelerator: a mark is an event in the current stream."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def mark(self) -> torch.Event:
        """A mark after what the device has been given so far."""
        event = torch.Event(self._device, enable_timing=True)
        event.record(torch.accelerator.current_stream(self._device))
        return event

    @staticmethod
    def seconds(begin: torch.Event, end: torch.Event) -> float:
        """The time between two marks, when the device has reached both."""
        end.synchronize()
        return 1e-3 * begin.elapsed_time(end)
