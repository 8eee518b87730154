"""Measures the exchange on the job itself: a law of its time, and the codec that makes the step shortest."""

import itertools
import logging
import math
import statistics
import time
from dataclasses import dataclass

import torch

import syncopate
from syncopate import _core

WORTH = 0.05  # of a step: less is lost in the differences between steps
STEPS = 5  # of which the medians count
PROBES = (32 << 10, 4 << 20)  # bytes of vectors that codecs code by default
KEYWORDS = {"catalogue", "exchange", "algorithm", *(name.split(".")[0] for name in syncopate.coding_settings())}
REPEATS = 3  # of which the first one allocates
_log = logging.getLogger("syncopate")


@dataclass(frozen=True)
class Law:
    """Seconds of coding and exchanging m bytes: start_s + s_per_byte * m."""

    start_s: float
    s_per_byte: float

    def seconds(self, size):
        """The time of one bucket of `size` bytes."""
        return self.start_s + self.s_per_byte * size

    def of_parts(self, parts):
        """The Law of m bytes of which a rank codes and exchanges one of this many parts."""
        return Law(self.start_s, self.s_per_byte / parts)

    def bucket_bytes(self, total):
        """The size of buckets of `total` bytes of gradients: sqrt(S a / b) as that of policy fusion, rounded to a power of two.

        At a factor of sqrt(2) the exposed time is 6 % more; so rounding costs little, and runs on one network have the same buckets.
        """
        return 2 ** round(math.log2(math.sqrt(total * self.start_s / self.s_per_byte)))


@dataclass(frozen=True)
class Choice:
    """The codec of `auto:A+B`; predicted_s: a step with each of them; reason: a sentence; passes_s: a step without an exchange."""

    codec: str
    predicted_s: dict
    reason: str
    passes_s: float = 0.0


class Timeline:
    """When buckets are complete, in seconds after the end of the step before: STEPS steps with the same buckets."""

    def __init__(self):
        self.sizes, self._steps = (), []
        self._begin, self._ready = None, []

    def bucket(self, ready_s, size):
        """A bucket of this many bytes was complete at that time of `time.perf_counter`."""
        self._ready.append((ready_s, size))

    def end_step(self):
        """The step's last average has arrived."""
        sizes = tuple(size for _, size in self._ready)
        if sizes != self.sizes:  # DDP forms other buckets after the first step
            self.sizes, self._steps = sizes, []
        elif self._begin is not None and not self.is_complete:
            self._steps.append([ready_s - self._begin for ready_s, _ in self._ready])
        self.restart()

    def restart(self):
        """Leave out the time that has passed since the last end."""
        self._begin, self._ready = time.perf_counter(), []

    @property
    def is_complete(self):
        """On all ranks in the same step, because their buckets are the same."""
        return len(self._steps) == STEPS

    def ready_s(self):
        """Each bucket's median."""
        return [statistics.median(column) for column in zip(*self._steps, strict=True)]


def named(coding):
    """These options of a Combiner with the codec's name, whether a codec or its name was given."""
    codec, catalogue = coding.get("codec", "none"), list(coding.get("catalogue", []))
    if isinstance(codec, syncopate.Codec):
        return coding | {"codec": codec.name, "catalogue": catalogue + [codec] * (codec not in catalogue)}
    return coding


def known(coding):
    """`named` options that a Combiner has. Raises TypeError for another one."""
    unknown = sorted(coding.keys() - KEYWORDS)
    if unknown:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}; allowed: {', '.join(sorted(KEYWORDS))}")
    return named(coding)


def with_codec(coding, codec):
    """These options of a Combiner with another codec; without one nothing is left out, and feedback is refused."""
    return {name: value for name, value in coding.items() if name != "feedback" or codec != "none"} | {"codec": codec}


def required_gain(codec, at_least):
    """The share of a step by which the codecs of `codec` must shorten it. Raises Misuse for one that has no effect or no meaning."""
    if at_least is None:
        return WORTH
    if "none" not in _core.auto_codecs(codec) or not 0 <= at_least < 1:
        raise syncopate.Misuse(f"at_least={at_least} with codec={codec!r}; allowed: 0 to 1 with codec='auto:A+none', whose codec A must "
                               "shorten a step by that share")
    return at_least


def require_codecs(gradients, weights, coding):
    """Raise Misuse for an unknown codec of "auto:A+B" at once, and not after the first steps."""
    (alone,) = syncopate.Group.threads(1)
    for codec in _core.auto_codecs(coding.get("codec", "none")):
        syncopate.Combiner(alone, gradients, weights=weights, **with_codec(coding, codec)).close()
    alone.close()


def law(group, **coding):
    """Measure the Law of these options of a Combiner on this group: all ranks call it and get the same."""
    seconds, generator = [], torch.Generator("cpu").manual_seed(0)  # the job's own random numbers stay as they are
    for size in PROBES:
        gradient = torch.randn(size // 4096, 1024, generator=generator, device="cpu")
        combiner = syncopate.Combiner(group, [syncopate.Gradient("probe", tuple(gradient.shape))], weights=[gradient.clone()], **coding)
        seconds.append(min(_timed(combiner, [[(0, gradient.clone())]])[0] for _ in range(REPEATS)))
        combiner.close()
    small, large = slowest(group, seconds)
    s_per_byte = max(large - small, 1e-9) / (PROBES[1] - PROBES[0])
    return Law(max(small - s_per_byte * PROBES[0], 1e-7), s_per_byte)


def choose(group, ready_s, cost_s, at_least):
    """The Choice from the buckets' times and, by codec, their costs; the same on all ranks."""
    longest = slowest(group, itertools.chain(ready_s, *cost_s.values()))
    count = len(ready_s)
    ready_s, *rows = (longest[i:i + count] for i in range(0, len(longest), count))
    return _choice(ready_s, dict(zip(cost_s, rows, strict=True)), at_least)


def cast_type(combiner):
    """torch's type to which the combiner's codec casts f32 gradients, or None."""
    return {None: None, "f16": torch.float16, "bf16": torch.bfloat16}[combiner.casts_to]


def costs(group, gradients, bucket_copies, codecs, weights, coding, copy_s=0.0):
    """For each codec the seconds of each bucket on this rank: encoding, exchange and decoding of the job's gradients.

    copy_s: of the last bucket's copy up to its device, which the time of that bucket contains; 0 for gradients on the CPU. A
    device casts f32 gradients to the 16 bits of a codec itself, and copies half the bytes.
    """
    found = {}
    for codec in codecs:
        combiner = syncopate.Combiner(group, gradients, weights=weights, **with_codec(coding, codec))
        kind = cast_type(combiner) if copy_s else None
        given = [[(i, values.to(kind) if kind and values.dtype == torch.float32 else values) for i, values in bucket] for bucket in bucket_copies]
        rounds = [_timed(combiner, [[(i, values.clone()) for i, values in bucket] for bucket in given]) for _ in range(REPEATS)]
        found[codec] = [statistics.median(column) for column in zip(*rounds[1:], strict=True)]
        found[codec][-1] += copy_s * _bytes(given[-1]) / max(_bytes(bucket_copies[-1]), 1)
        combiner.close()
    return found


def _bytes(bucket):
    return sum(values.nbytes for _, values in bucket)


def _choice(ready_s, cost_s, at_least=WORTH):
    predicted = {codec: _core.exchanges_end_s(ready_s, cost) for codec, cost in cost_s.items()}
    best = list(predicted)[_core.quickest_way([*predicted], [*predicted.values()], at_least)]
    steps = ", ".join(f"{1e3 * seconds:.1f} ms with {codec}" for codec, seconds in predicted.items())
    rest = f"a step takes {steps}; the backward pass ends after {1e3 * ready_s[-1]:.1f} ms"
    rule = f"a codec must shorten the step by {at_least:.0%}" if best == "none" else "the shortest step counts"
    return Choice(best, predicted, f"{rest}; {rule}", ready_s[-1])


def report(choice):
    """Log the choice and its reason."""
    _log.info("codec %s: %s", choice.codec, choice.reason)


def _timed(combiner, step):
    """The seconds of each bucket of a step."""
    seconds = []
    for bucket in step:
        begin = time.perf_counter()
        combiner.combine(bucket)
        seconds.append(time.perf_counter() - begin)
    combiner.end_step()
    return seconds


def slowest(group, seconds):
    """Each time on the rank where it is longest."""
    agreed = torch.tensor(list(seconds), dtype=torch.float64, device="cpu")
    group.allreduce(agreed, op="max", name="seconds")
    return agreed.tolist()
