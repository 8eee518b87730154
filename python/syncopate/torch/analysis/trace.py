"""The spans of one step: phases of the training thread, phases of buckets, and copies."""

from syncopate.torch.device.lane import Copy

OUTSIDE = (-1, "a parameter outside of the net")


class StepTrace:
    """The spans of a step that begins at a time of time.perf_counter, as are all times here.

    places: (number, name) of each parameter, in forward order. The times of a copy are known when it has ended, perhaps
    after the host's step.
    """

    def __init__(self, begin, places):
        self.begin, self._places = begin, places
        self.phases = []  # (track, name, begin, end, bytes)
        self._beside = []  # (parameters, spans): (track, begin, end), or a Copy

    def add(self, parameters, spans):
        """Spans of the exchange or the copies of these parameters; the list may grow until the step ends. Called on any thread."""
        self._beside.append((parameters, spans))

    def _copies(self):
        return [span for _, spans in self._beside for span in spans if isinstance(span, Copy)]

    def has_ended(self):
        """Whether all copies have ended, as `rows` needs."""
        return all(copy.has_ended() for copy in self._copies())

    def settle(self):
        """Return when all copies have ended."""
        for copy in self._copies():
            copy.end.synchronize()

    def rows(self):
        """The spans as a trace file has them: track, name, seconds since the begin of the step, and bytes."""
        anchors = {lane: lane.anchor() for lane in {copy.lane for copy in self._copies()}}
        for track, name, begin, end, size in [*self.phases, *self._spans_beside(anchors)]:
            yield {"track": track, "name": name, "begin_s": begin - self.begin, "end_s": end - self.begin, "bytes": size}

    def _spans_beside(self, anchors):
        for parameters, spans in self._beside:
            name, size = self._name_of(parameters), size_of(parameters)
            for span in spans:
                if isinstance(span, Copy):
                    yield span.track, f"weights of {name}" if span.is_of_weights else name, *span.times(anchors[span.lane]), span.bytes
                else:
                    track, begin, end = span
                    yield track, name, begin, end, size

    def _name_of(self, parameters):
        placed = [self._places.get(parameter, OUTSIDE) for parameter in parameters]
        (first, first_name), (last, last_name) = min(placed), max(placed)
        return first_name if first == last else f"{first_name} .. {last_name}"


def size_of(parameters):
    """Bytes of these parameters, or of their gradients."""
    return sum(parameter.numel() * parameter.element_size() for parameter in parameters)
