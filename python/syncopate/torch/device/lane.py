"""The way of gradients between an accelerator and the CPU: copies in streams of their own, through pinned memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch

import syncopate

COPY_DOWN, COPY_UP = "copy down", "copy up"  # tracks of a Recorder's trace
ANCHORS = 5  # attempts to read both clocks at one moment


def is_accelerator(device: torch.device) -> bool:
    """Whether this PyTorch finds an accelerator of this kind, as it does from torch 2.6 on."""
    kind = torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else None
    return kind is not None and kind.type == device.type


def pinning_failure() -> str | Exception | None:
    """Why there is no pinned memory, or None."""
    try:
        return None if torch.empty(1, device="cpu", pin_memory=True).is_pinned() else "torch.empty(1, pin_memory=True) is not pinned"
    except (RuntimeError, NotImplementedError) as error:
        return error


def require_usable(name: str, device: torch.device) -> None:
    """Raise Misuse if gradients of this parameter cannot be copied from its device without blocking it."""
    if not is_accelerator(device):
        raise syncopate.Misuse(f"parameter {name} is on {device}; allowed: on the CPU, or from torch 2.6 on an accelerator that this PyTorch "
                               "finds (torch.accelerator.current_accelerator()); model.to_empty(device=…) gives parameters on meta memory")
    reason = pinning_failure()
    if reason is not None:
        raise syncopate.Misuse(f"parameter {name} is on {device}, for which there is no pinned memory ({reason}); allowed: accelerators with "
                               "pinned memory; else keep the model on the CPU, or raise the limit of locked memory (ulimit -l)")


@dataclass
class Anchor:
    """A moment by the device's clock, an event, and by time.perf_counter, exact to `within_s`: half of a round trip to the device."""

    event: torch.Event
    seconds: float
    within_s: float


@dataclass
class Copy:
    """A copy as a span of a trace. Its stream has reached `begin` when the copy may begin, and `end` when it has ended."""

    lane: Lane
    track: str
    begin: torch.Event
    end: torch.Event
    bytes: int
    is_of_weights: bool = False

    def has_ended(self) -> bool:
        """Whether `times` can be asked for."""
        return self.end.query()

    def times(self, anchor: Anchor) -> tuple[float, float]:
        """(begin, end) of a copy that has ended, as times of time.perf_counter; the anchor is a later one of its lane."""
        begin, end = (anchor.seconds - 1e-3 * event.elapsed_time(anchor.event) for event in (self.begin, self.end))
        return begin, end


Observer: TypeAlias = "Callable[[Copy], object]"


class Lane:
    """Two streams of one device, one for each direction, and pinned memory for each of what is copied, by its number.

    `down` is called on the thread and in the stream that have computed the values; `Crossing.up` on any thread.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.down_stream, self.up_stream = torch.Stream(device), torch.Stream(device)
        self._crossings: dict[object, Crossing] = {}  # by number: the last one
        self._origin = self.anchor()

    def mark(self, stream: torch.Stream) -> torch.Event:
        """An event in the stream, after what it has been given so far."""
        event = torch.Event(self.device, enable_timing=True)
        event.record(stream)
        return event

    def anchor(self) -> Anchor:
        """The present moment on both clocks. Waits for an event in an idle stream, not for work of the device."""
        stream = torch.Stream(self.device)
        return min((self._anchored(stream) for _ in range(ANCHORS)), key=lambda anchor: anchor.within_s)

    def _anchored(self, stream: torch.Stream) -> Anchor:
        before = time.perf_counter()
        event = self.mark(stream)
        event.synchronize()
        after = time.perf_counter()
        return Anchor(event, (before + after) / 2, (after - before) / 2)

    def time_s(self, event: torch.Event) -> float:
        """When the device reached it, as a time of `time.perf_counter`."""
        return self._origin.seconds + 1e-3 * self._origin.event.elapsed_time(event)

    def down(self, number: object, values: torch.Tensor, host: torch.Tensor | None = None, dtype: torch.dtype | None = None) -> Crossing:
        """Begin to copy these values to the host, once the current stream has computed them; a Crossing.

        number: of the bucket or tensor. host: pinned memory for them, whose copies up the current stream follows; by
        default the lane's own for this number. dtype: to which the current stream casts them first, rounding to nearest
        even; by default their own.
        """
        before = self._crossings.get(number)
        moved = values if dtype is None else values.to(dtype)
        crossing = self._crossings[number] = Crossing(self, values, moved, self._pinned(before, moved) if host is None else host)
        self.down_stream.wait_stream(torch.accelerator.current_stream(self.device))
        if before is not None and before.returned is not None:
            self.down_stream.wait_event(before.returned)  # the same pinned memory
        crossing.begin = self.mark(self.down_stream)
        with self.down_stream:
            crossing.host.copy_(moved, non_blocking=True)
        moved.record_stream(self.down_stream)
        crossing.arrived = self.mark(self.down_stream)
        return crossing

    def up(self, values: torch.Tensor, host: torch.Tensor, observer: Observer | None = None) -> torch.Event:
        """Begin to copy pinned memory into the device's tensor; the event after it. observer: called with the Copy."""
        begin = self.mark(self.up_stream) if observer is not None else None
        with self.up_stream:
            values.copy_(host, non_blocking=True)
        values.record_stream(self.up_stream)
        end = self.mark(self.up_stream)
        if observer is not None and begin is not None:
            observer(Copy(self, COPY_UP, begin, end, values.nbytes))
        return end

    @staticmethod
    def _pinned(before: Crossing | None, values: torch.Tensor) -> torch.Tensor:
        """Memory of the last values of this number, or new memory: DDP forms other buckets after the first step."""
        if before is not None and (before.host.shape, before.host.dtype) == (values.shape, values.dtype):
            return before.host
        return torch.empty(values.shape, dtype=values.dtype, device="cpu", pin_memory=True)


class Crossing:
    """The values of one number in one step: on the device, there as they are copied (`moved`), and in pinned memory of the host.

    host: valid after `wait`. begin, arrived: the events around the copy down, which the lane sets. returned: the event after the copy
    up, None before.
    """

    begin: torch.Event
    arrived: torch.Event

    def __init__(self, lane: Lane, values: torch.Tensor, moved: torch.Tensor, host: torch.Tensor) -> None:
        self._lane, self.host = lane, host
        self._values: torch.Tensor | None = values
        self._moved: torch.Tensor | None = moved
        self.returned: torch.Event | None = None

    def wait(self) -> float:
        """Return when `host` has the values: when that was, as a time of `time.perf_counter`."""
        self.arrived.synchronize()
        return self._lane.time_s(self.arrived)

    @property
    def copy_s(self) -> float:
        """Seconds of the copy down."""
        return 1e-3 * self.begin.elapsed_time(self.arrived)

    @property
    def copy_down(self) -> Copy:
        """The copy down, for a trace."""
        return Copy(self._lane, COPY_DOWN, self.begin, self.arrived, self.host.nbytes)

    def release(self) -> None:
        """The values do not come back: the device may use their memory again after the copy."""
        self._values = self._moved = None

    def up(self, complete: Callable[[], object], observer: Observer | None = None) -> None:
        """Begin to copy `host` into the device's tensor, and call `complete` in the stream of this copy, which futures then wait for.

        observer: called with the Copy before `complete`.
        """
        values, moved = self._values, self._moved
        if values is None or moved is None:
            raise syncopate.Misuse("the values were released or have come back; allowed: one copy up of each crossing that was not released")
        self.returned = self._lane.up(moved, self.host, observer)
        with self._lane.up_stream:
            if moved is not values:
                values.copy_(moved)  # converts
                values.record_stream(self._lane.up_stream)
            complete()
        self._values = self._moved = None  # DDP may give its memory back
