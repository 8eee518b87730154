"""Copies between accelerators and the CPU in both directions, and what is to follow them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch

from syncopate.torch.device.lane import Copy, Crossing, Lane, Observer


@dataclass(frozen=True)
class Weights:
    """The number of a parameter's weights."""

    i: int


CopiesObserver: TypeAlias = "Callable[[list[torch.Tensor], list[Copy]], object]"


class Copies:
    """Copies between accelerators and the CPU: each begins without waiting, and what follows its arrival runs on one thread in that order.

    abort: called with the text of an error of a copy, or of what follows it: other ranks do not know of an error of this device.
    parameters: what is copied belongs to these, by number: i is the gradient of parameter i, and Weights(i) are its weights.
    """

    def __init__(self, abort: Callable[[str], object], parameters: Sequence[torch.Tensor]) -> None:
        self._abort, self._parameters = abort, parameters
        self._lanes: dict[torch.device, Lane] = {}
        self._under_way: list[Future[None]] = []
        self.observer: CopiesObserver | None = None  # called with [a parameter] and [a Copy] of it, which has begun
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="syncopate copies")

    def down(self, number: int | Weights, values: torch.Tensor, host: torch.Tensor | None = None) -> Crossing:
        """Begin to copy these values to the host, once the current stream has computed them; a Crossing. See `Lane.down`."""
        with self._errors_to_all():
            crossing = self._lane_of(values.device).down(number, values, host)
            if (observer := self._observer_of(number)) is not None:
                observer(crossing.copy_down)
            return crossing

    def _observer_of(self, number: int | Weights) -> Observer | None:
        """The function to call with a Copy of this number; None without an observer."""
        observer = self.observer
        if observer is None:
            return None
        is_of_weights = isinstance(number, Weights)
        parameter = self._parameters[number.i if isinstance(number, Weights) else number]
        return lambda copy: observer([parameter], [replace(copy, is_of_weights=is_of_weights)])

    def _lane_of(self, device: torch.device) -> Lane:
        if device not in self._lanes:
            self._lanes[device] = Lane(device)
        return self._lanes[device]

    def then(self, crossing: Crossing, call: Callable[..., object], *arguments: Any) -> None:
        """Call it on the thread when the copy down has arrived."""
        self._under_way.append(self._thread.submit(self._after, crossing, call, arguments))

    def _after(self, crossing: Crossing, call: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        with self._errors_to_all():
            crossing.wait()
            call(*arguments)

    def land(self) -> None:
        """Return when all copies down have arrived, and what follows them has been called; then `follow`. Raises the first error."""
        under_way, self._under_way = self._under_way, []
        if not under_way:
            return
        errors = [error for error in (one.exception() for one in under_way) if error is not None]
        if errors:
            raise errors[0]
        self.follow()

    def follow(self) -> None:
        """Copies up that begin from now on follow what the devices have been given by now: it may use the values of before."""
        for lane in self._lanes.values():
            lane.up_stream.wait_stream(torch.accelerator.current_stream(lane.device))

    def up(self, number: int | Weights, values: torch.Tensor, host: torch.Tensor) -> torch.Event:
        """Begin to copy pinned memory of the host into a device's tensor; the current stream goes on with it. The event after it."""
        end = self._lane_of(values.device).up(values, host, self._observer_of(number))
        self._await(end)
        return end

    def back(self, number: int | Weights, crossing: Crossing) -> None:
        """Begin to copy a crossing's `host` into the tensor that it came from; the current stream goes on with it."""
        crossing.up(lambda: None, self._observer_of(number))
        if crossing.returned is not None:
            self._await(crossing.returned)

    @staticmethod
    def _await(event: torch.Event) -> None:
        torch.accelerator.current_stream(event.device).wait_event(event)

    @contextlib.contextmanager
    def _errors_to_all(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._abort(str(error))
            raise

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def on_host(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Memory of the CPU with the values of these tensors: their own, or pinned memory for those on an accelerator."""
    own = [tensor.detach() for tensor in tensors]
    return [one if one.is_cpu else torch.empty(one.shape, dtype=one.dtype, device="cpu", pin_memory=True).copy_(one) for one in own]
