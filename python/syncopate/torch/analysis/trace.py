"""The spans of one step: phases of the training thread, phases of buckets, and copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from syncopate.torch.device.lane import Anchor, Copy, Lane

OUTSIDE = (-1, "a parameter outside of the net")
Span: TypeAlias = "tuple[str, float, float] | Copy"  # (track, begin, end), or a copy


class StepTrace:
    """The spans of a step that begins at a time of time.perf_counter, as are all times here.

    places: (number, name) of each parameter, in forward order. The times of a copy are known when it has ended, perhaps
    after the host's step.
    """

    def __init__(self, begin: float, places: dict[torch.Tensor, tuple[int, str]]) -> None:
        self.begin, self._places = begin, places
        self.phases: list[tuple[str, str, float, float, int]] = []  # (track, name, begin, end, bytes)
        self._beside: list[tuple[Sequence[torch.Tensor], Sequence[Span]]] = []  # (parameters, spans)

    def add(self, parameters: Sequence[torch.Tensor], spans: Sequence[Span]) -> None:
        """Spans of the exchange or the copies of these parameters; the list may grow until the step ends. Called on any thread."""
        self._beside.append((parameters, spans))

    def _copies(self) -> list[Copy]:
        return [span for _, spans in self._beside for span in spans if isinstance(span, Copy)]

    def has_ended(self) -> bool:
        """Whether all copies have ended, as `rows` needs."""
        return all(copy.has_ended() for copy in self._copies())

    def wait(self) -> None:
        """Return when all copies have ended."""
        for copy in self._copies():
            copy.end.synchronize()

    def rows(self) -> Iterator[dict[str, Any]]:
        """The spans as a trace file has them: track, name, seconds since the begin of the step, and bytes."""
        anchors = {lane: lane.anchor() for lane in {copy.lane for copy in self._copies()}}
        for track, name, begin, end, size in [*self.phases, *self._spans_beside(anchors)]:
            yield {"track": track, "name": name, "begin_s": begin - self.begin, "end_s": end - self.begin, "bytes": size}

    def _spans_beside(self, anchors: Mapping[Lane, Anchor]) -> Iterator[tuple[str, str, float, float, int]]:
        for parameters, spans in self._beside:
            name, size = self._name_of(parameters), size_of(parameters)
            for span in spans:
                if isinstance(span, Copy):
                    yield span.track, f"weights of {name}" if span.is_of_weights else name, *span.times(anchors[span.lane]), span.bytes
                else:
                    track, begin, end = span
                    yield track, name, begin, end, size

    def _name_of(self, parameters: Sequence[torch.Tensor]) -> str:
        placed = [self._places.get(parameter, OUTSIDE) for parameter in parameters]
        (first, first_name), (last, last_name) = min(placed), max(placed)
        return first_name if first == last else f"{first_name} .. {last_name}"


def size_of(parameters: Sequence[torch.Tensor]) -> int:
    """Bytes of these parameters, or of their gradients."""
    return sum(parameter.numel() * parameter.element_size() for parameter in parameters)
