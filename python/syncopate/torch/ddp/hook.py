"""The communication hook for DistributedDataParallel: any codec with feedback, on DDP's own buckets in place."""

import os
import time
from dataclasses import dataclass, field
from functools import partial

import torch

import syncopate
from syncopate import _core
from syncopate.torch.ddp.one_by_one import OneByOne
from syncopate.torch.device.lane import Crossing, Lane
from syncopate.torch.device.thread_modes import in_callers_modes
from syncopate.torch.shared import codec_choice, errors, parameters, rendezvous
from syncopate.torch.shared.untraced import untraced


@dataclass
class _Bucket:
    """A bucket of DDP's that is under way: (index, gradient) pairs, their memory, and the future that DDP waits for.

    There are no pairs if its parameters have no elements.
    """

    placed: list
    buffer: torch.Tensor
    is_last: bool
    spans: list = field(default_factory=list)  # (phase, begin, end), in seconds of time.perf_counter, or a Copy; set when it has ended
    error: Exception | None = None
    copy_s = 0.0  # seconds of the copy from a device to the CPU

    def __post_init__(self):
        # DDP takes the exception of Future.set_exception for the bucket's tensor; one that a callback raises is an error to it.
        self._ended, self._deferred = self._promise(), errors.Deferred()
        self.future = self._ended.then(self._result)

    @staticmethod
    def _promise():
        return torch.futures.Future()

    def _result(self, _):
        with self._deferred:
            if self.error is not None:
                raise self.error
        return self.buffer

    def end(self, error=None):
        """Complete the future."""
        self.error = error
        self._ended.set_result(None)

    def arrive(self, ready_s):
        """Return when `placed` has the gradients: when that was."""
        return ready_s

    def observed(self):
        """Its spans, to which those that begin later are added."""
        return self.spans


@dataclass
class _StagedBucket(_Bucket):
    """A bucket on an accelerator: `placed` is in the pinned memory of its crossing, and `buffer` on the device."""

    crossing: Crossing | None = None
    is_observed = False

    def _promise(self):
        return torch.futures.Future(devices=[self.buffer.device])

    def arrive(self, ready_s):
        """Wait for the copy down; when it ended."""
        del ready_s  # the device has computed the gradients later than the host has asked for them
        return self.crossing.wait()

    @property
    def copy_s(self):
        """That of the copy down; the copy up has the same size."""
        return self.crossing.copy_s

    def observed(self):
        """Its spans with the copy down; the copy up is added when it begins, before the future is complete."""
        self.is_observed = True
        self.spans.insert(0, self.crossing.copy_down)
        return self.spans

    def end(self, error=None):
        """Begin the copy up, and complete the future in its stream; after an error the device's gradients stay as they are."""
        self.error = error
        if error is not None:
            self._ended.set_result(self.buffer)
        else:
            self.crossing.up(lambda: self._ended.set_result(self.buffer), self.spans.append if self.is_observed else None)


class HookState:
    """What `hook` needs: how gradients are coded, and what the codec keeps of every gradient between steps.

    codec, exchange, algorithm: names from `syncopate info`; exchange ends with gradients. codec may be a syncopate.Codec,
    and catalogue has those that it names. feedback: a kind, or a syncopate.Feedback. Every rank gives the same. The state
    can be pickled, as can `state_dict()`; it differs from rank to rank, and belongs to parameters by name, so that DDP may
    form other buckets. A loaded one needs `attach(model)`. Gradients of an accelerator are copied to the CPU and back, while
    others are computed and exchanged. timeout_s: of its exchanges; by default the process group's.

    codec="auto:A+B": the first steps are uncoded; then each codec is timed on copies of the buckets, `choice` has the one
    that makes the step shortest and why, and it is used from then on, after loading too. at_least: the share by which a codec
    must shorten the step if "none" is among them, by default 0.05.
    """

    def __init__(self, model=None, process_group=None, *, timeout_s=None, at_least=None, **coding):
        self.coding, self._timeout_s, self._at_least = codec_choice.known(coding), timeout_s, at_least
        self._gain = codec_choice.required_gain(self.coding.get("codec", "none"), at_least)
        self._model = self._process_group = self._group = self._combiner = self._saved = None
        self._is_closed, self._process = False, os.getpid()
        self._has_ended_step = False  # with the present combiner
        self.choice, self.timeline, self._copies = None, codec_choice.Timeline(), []
        self._lanes = {}  # by device
        self.observer = None  # called with the parameters of each combined bucket and its spans, on a thread of the combiner
        if model is not None:
            self.attach(model, process_group)

    def attach(self, model, process_group=None):
        """Take the parameters of this model; the ranks of the process group (default: all) meet at the first bucket."""
        if self._combiner is not None:
            raise syncopate.Misuse("this state serves a model already; make another HookState")
        self._model, self._process_group = model, process_group
        self._require_own(self._saved)
        named = parameters.trained(model)
        self._parameters = [parameter for _, parameter in named]
        self._index = {parameter: i for i, parameter in enumerate(self._parameters)}
        self._one_by_one = OneByOne(self._parameters)
        self._gradients, self._weights = parameters.gradients(named), parameters.weights(named)
        codec_choice.require_codecs(self._gradients, self._weights, self.coding)

    @property
    def group(self):
        """The syncopate.Group of this state; all ranks meet when it is first asked for."""
        if self._group is None:
            self._group = rendezvous.own_group(self._process_group, self._timeout_s)
        return self._group

    @property
    def job(self):
        """The syncopate.Group of all ranks that train the model."""
        return self.group

    @property
    def parts(self):
        """A rank exchanges one of this many parts of each bucket."""
        return 1

    def law(self, coding):
        """Measure the Law of exchanging what a rank has of a bucket, with this coding; all ranks call it and get the same."""
        return codec_choice.law(self.group, **coding)

    def state_dict(self):
        """This rank's state after the last step, for a checkpoint of this rank's own."""
        if self._is_closed:
            raise syncopate.Misuse("this state was closed; save it before close()")
        self._wait()
        saved = self._saved if self._combiner is None else self._save()
        return {"coding": self._compared(), "choice": self.choice and vars(self.choice), "saved": saved}

    def _save(self):
        return self._combiner.save()

    def _wait(self):
        """Return when no bucket is under way: the last one of a step may choose a codec."""
        if self._combiner is not None:
            self._combiner.wait()

    def _compared(self):
        """The coding without the objects of its catalogue, whose names it has."""
        return {name: value for name, value in self.coding.items() if name != "catalogue"}

    def load_state_dict(self, state):
        """Load what `state_dict()` gave on this rank; the coding and the number of ranks must be the same."""
        if state["coding"] != self._compared():
            raise syncopate.Misuse(f"the saved state is of {state['coding']}; this one is of {self._compared()}")
        self._require_own(state["saved"])
        self._wait()
        self._take(state)
        if self._combiner is not None:
            self._make_combiner()

    def _require_own(self, saved):
        """Raise Misuse for another rank's state: it would count twice, and this rank's would be lost."""
        if saved is None or self._model is None:
            return
        _, _, *of, gradients = saved
        place = self._place()
        if place and tuple(of) != place and any(content for _, content in gradients):
            raise syncopate.Misuse(f"the saved state is that of {self._named(of)}, and this is {self._named(place)}; allowed: "
                                   "the state that this rank has saved; every rank saves its own, in a file of its own")

    def _place(self):
        """The place of this rank among those that exchange gradients, to which the codec's state belongs; None without torch.distributed."""
        return rendezvous.place(self._process_group)

    @staticmethod
    def _named(place):
        """A place in words."""
        return f"rank {place[0]} of {place[1]}"

    def _take(self, state):
        choice = state.get("choice")
        self.choice, self._saved = choice and codec_choice.Choice(**choice), state["saved"]

    def __getstate__(self):
        return {"timeout_s": self._timeout_s, "at_least": self._at_least, "catalogue": self.coding.get("catalogue", []), **self.state_dict()}

    def __setstate__(self, state):
        self.__init__(timeout_s=state["timeout_s"], at_least=state.get("at_least"), catalogue=state.get("catalogue", []), **state["coding"])
        self._take(state)

    def discard_step(self):
        """Discard what the last step changed in the codec's state, because no rank applies its averages. Between steps, on every rank.

        Not needed after a step with a value that is not finite, on any rank: it changes no state.
        """
        if self._combiner is None:
            raise syncopate.Misuse("there is no step to discard; allowed: once after each step")
        self._wait()
        if self._has_ended_step:  # otherwise "auto" has just chosen a codec, which has no state yet
            self._combiner.discard_step()

    def close(self):
        """Leave the group of this state, on every rank; buckets that are under way end first, and none may follow."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._combiner is not None:
            self._combiner.close()
        if self._group is not None:
            self._group.close()

    def combine(self, bucket):
        """Start averaging a bucket of DDP's; a future of its memory."""
        return self._started(bucket).future

    def combine_at_once(self, gradient, parameter):
        """Return when the gradient is the average; for the reducer in Python, which goes on with it."""
        started = self._started(self._one_by_one.bucket(gradient, parameter))
        started.future.wait()
        if started.error is not None:
            raise started.error  # a compiled backward pass has no end at which the future could raise it
        return gradient

    def _started(self, bucket):
        """The bucket of DDP's, which is under way."""
        self._require_use()
        return self._averaged(bucket.index(), self._given(bucket), bucket.buffer(), bucket.is_last())

    def _require_use(self):
        """Make the combiner if there is none. Raises Misuse where this state cannot be used."""
        if self._is_closed:
            raise syncopate.Misuse("this state was closed; make another HookState, and register its hook")
        if os.getpid() != self._process:
            raise syncopate.Misuse("this state is used in a process that was forked from the one that made it, and has no connection to other "
                                   "ranks; allowed there: the module that DistributedDataParallel wraps")
        if self._combiner is None:
            self._begin()

    def _given(self, bucket):
        """(index, gradient) of the bucket's parameters with elements."""
        return [(self._index[parameter], gradient.detach())
                for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True) if parameter.numel() > 0]

    def _averaged(self, number, placed, buffer, is_last):
        """Start averaging these (index, gradient) in their memory, the buffer: a bucket under way. number: for pinned memory of its own."""
        ready_s = time.perf_counter()
        under_way = _Bucket(placed, buffer, is_last) if buffer.is_cpu else self._staged(number, placed, buffer, is_last)
        arrive = None
        if buffer.is_cpu and not self._is_choosing():
            self.timeline.bucket(ready_s, buffer.nbytes)
        else:
            arrive = in_callers_modes(partial(self._arrive, under_way, ready_s))
        self._combiner.start(under_way.placed, in_callers_modes(partial(self._end, under_way)), arrive=arrive, ends_step=under_way.is_last)
        return under_way

    def _staged(self, number, placed, buffer, is_last):
        """The bucket of a device: the same pairs in pinned memory, to which they are copied."""
        try:
            if buffer.device not in self._lanes:
                self._lanes[buffer.device] = Lane(buffer.device)
            crossing = self._lanes[buffer.device].down(number, buffer, dtype=self._cast_type(buffer))
        except Exception as error:
            self.group.abort(str(error))
            raise
        begin = buffer.storage_offset()
        staged = [(i, crossing.host.as_strided(gradient.size(), gradient.stride(), gradient.storage_offset() - begin)) for i, gradient in placed]
        return _StagedBucket(staged, buffer, is_last, crossing=crossing)

    def _cast_type(self, buffer):
        """That of 16 bits to which the codec rounds the bucket, if its device can do so: fewer bytes are copied, and the averages are the same."""
        return codec_choice.cast_type(self._combiner) if buffer.dtype == torch.float32 else None

    def _begin(self):
        if self._model is None:
            raise syncopate.Misuse("this state has no model; call attach(model) after loading it")
        self._make_combiner()

    def _make_combiner(self):
        """Begin with the codec that is given or chosen, in the state that was saved."""
        if self._combiner is not None:
            self._combiner.close()
        coding = self.coding
        if self._candidates():
            coding = codec_choice.with_codec(coding, self.choice.codec if self.choice else "none")
        # Ranks agree on the order of operations only if no other code uses the group.
        self._combiner = syncopate.Combiner(self.group, self._gradients, weights=self._weights, **coding)
        self._has_ended_step = False
        if self._saved is not None:
            codec, steps, rank, ranks, *_, gradients = self._saved
            self._combiner.restore(codec, steps, rank, ranks, gradients)

    def _candidates(self):
        return _core.auto_codecs(self.coding.get("codec", "none"))

    def _is_choosing(self):
        return self.choice is None and bool(self._candidates())

    # Calls of a bucket, on a thread of the combiner. An error of theirs is one of the combiner, which reports it to the other ranks. The
    # backward pass raises it, and so does every later one: a step that failed cannot be repeated.

    def _arrive(self, bucket, ready_s):
        ready_s = bucket.arrive(ready_s)
        if self._is_choosing():
            self._copies.append([(i, gradient.clone()) for i, gradient in bucket.placed])
        self.timeline.bucket(ready_s, bucket.buffer.nbytes)

    def _end(self, bucket, error, phases):
        if error is not None:
            bucket.end(error)
            return
        try:
            bucket.spans = phases
            if self.observer is not None and bucket.placed:
                self.observer([self._parameters[i] for i, _ in bucket.placed], bucket.observed())
            if bucket.is_last:
                self._step_ended(bucket.copy_s)
            bucket.end()
        except Exception as failure:
            bucket.end(failure)
            raise

    def _step_ended(self, copy_s):
        self._has_ended_step = True
        self.timeline.end_step()
        if self._is_choosing() and self.timeline.is_complete:
            self._choose(copy_s)
            self.timeline.restart()
        self._copies = []

    def _choose(self, copy_s):
        """Time every codec on this step's gradients, which are averaged already, and go on with the best one.

        The step ends when the last bucket is back on its device. Copies up of other buckets overlap coding and exchange.
        """
        cost_s = codec_choice.costs(self.group, self._gradients, self._copies, self._candidates(), self._weights, self.coding, copy_s)
        self.choice = codec_choice.choose(self.group, self.timeline.ready_s(), cost_s, self._gain)
        if self.group.rank == 0:
            codec_choice.report(self.choice)
        self._saved = None
        self._make_combiner()


@untraced
def hook(state, bucket):
    """For `ddp.register_comm_hook(state, hook)`, with a HookState."""
    return state.combine_at_once(*bucket) if isinstance(bucket, tuple) else state.combine(bucket)
