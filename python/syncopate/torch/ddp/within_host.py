"""DDP over hosts with fast devices: a process group of torch reduces within each host, and a codec averages shards between the hosts."""

import contextlib
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import torch
import torch.distributed as dist

import syncopate
from syncopate import _core
from syncopate.torch.ddp.hook import HookState, _Bucket
from syncopate.torch.ddp.host_groups import HostGroups
from syncopate.torch.device.thread_modes import in_callers_modes
from syncopate.torch.shared import codec_choice, parameters


class _Division:
    """How the ranks of a host divide the gradient of a parameter: by the rows of its memory, each rank as many, the last ones fewer or none.

    width: elements of the largest shard, to which all are padded. shape: of this rank's shard, whose rows begin at row `first`.
    """

    def __init__(self, parameter, place, ranks):
        self.memory = _in_order_of_memory(parameter.detach())
        rows, *row = self.memory.shape or (1,)
        most = math.ceil(rows / ranks)
        self.width = most * math.prod(row)
        self.first = min(place * most, rows)
        self.shape = (min(most, rows - self.first), *row)

    @property
    def is_empty(self):
        """Whether this rank has no row."""
        return self.shape[0] == 0

    def gradient(self, name):
        """The shard as a gradient; the library's have elements, and one without rows takes part in no exchange."""
        return syncopate.Gradient(name, (1,) if self.is_empty else self.shape, parameters.DTYPES[self.memory.dtype])

    def weights(self):
        """The shard of the weights, in place."""
        if self.is_empty:
            return self.memory.new_zeros(1)
        return self.memory.reshape(-1, *self.shape[1:])[self.first:self.first + self.shape[0]]


def _in_order_of_memory(parameter):
    """The parameter as DDP's buckets have its gradient, with its dimensions from the outermost one; so rows are parts of memory."""
    ordered = parameter.permute(sorted(range(parameter.dim()), key=lambda d: -parameter.stride(d)))
    return ordered if ordered.is_contiguous() else parameter


@dataclass
class _Divided(_Bucket):
    """A bucket of DDP's whose shards are under way: `padded` has the shards of all ranks, a row for each, and `shard` this rank's sum.

    pieces: (part of DDP's memory, first element in a row of `padded`, row) of each shard. The pairs of `placed` are in `shard`.
    """

    number: int = 0
    shard: torch.Tensor | None = None
    pieces: list = field(default_factory=list)
    reducing: object = None  # the work of the process group

    def _promise(self):
        return torch.futures.Future(devices=[] if self.buffer.is_cpu else [self.buffer.device])

    def end(self, error=None):
        """Complete the future in the current stream."""
        self.error = error
        self._ended.set_result(self.buffer)

    def pairs(self, padded):
        """([part of DDP's memory], [its place in `padded`])."""
        return [part for part, _, _ in self.pieces], [padded[row, begin:begin + part.numel()] for part, begin, row in self.pieces]


class WithinHostState(HookState):
    """A HookState with which each rank averages one shard of each gradient between the hosts.

    The hook reduce-scatters a bucket in `within`, averages this rank's shards with those of the same place on other hosts (codec,
    feedback), and all-gathers the averages in `within`. A codec sees the shard of each parameter as a gradient with that name and
    with the shard's rows. `group` has the ranks of this place; with one host there is nothing to code, and averages are exact.

    within: "host", or the process group of this rank's host, see HostGroups; no other code uses it during a backward pass. codec:
    one, not "auto:A+B". Others: those of HookState. Every rank calls the constructor or `attach`, where the ranks meet. A pickle
    needs within="host". Raises Misuse on every rank if the ranks' groups do not fit together.
    """

    # Order of the process group's collectives. All ranks of a host must issue them in one order, else NCCL waits for ever and Gloo
    # mixes them up. Reduce-scatters are issued by the thread of the backward pass, in the order of DDP's buckets, which is equal on
    # all ranks. When an average arrives depends on the network, so an all-gather that were issued then would come between other
    # reduce-scatters on each rank. So all-gathers are issued by one thread, in the order of the buckets, and the first one after the
    # last reduce-scatter of the step. The next step's reduce-scatters follow, because DDP waits for all buckets.

    def __init__(self, within="host", model=None, process_group=None, **options):
        codec = codec_choice.named(options).get("codec", "none")
        if _core.auto_codecs(codec):
            raise syncopate.Misuse(f"codec={codec!r} with within; allowed: one codec, chosen before")
        self._within, self._hosts = within, None
        self._local = None  # the thread that waits for the process group
        self._waiting, self._is_reduced = [], False  # of this step, on that thread: averaged buckets; whether all were reduced
        self._is_finite = True  # all averages of this step on this rank
        self._failure = None  # the first one
        self._streams = {}  # by device: what follows the process group's collectives
        super().__init__(model, process_group, **options)

    def attach(self, model, process_group=None):
        """As HookState, but the ranks of the process group (default: all) meet now."""
        if self._hosts is None:
            self._hosts = HostGroups(self._within, process_group, self._timeout_s)
        super().attach(model, process_group)
        if self.parts == 1:
            return
        named = parameters.trained(model)
        self._divisions = [_Division(parameter, self._hosts.place, self.parts) for _, parameter in named]
        self._gradients = [division.gradient(name) for division, (name, _) in zip(self._divisions, named, strict=True)]
        is_in_place = parameters.on_cpu(named) and all(division.memory.is_contiguous() for division in self._divisions)
        self._weights = [division.weights() for division in self._divisions] if is_in_place else []

    @property
    def group(self):
        """The syncopate.Group of the ranks with this one's place on their hosts, which exchange shards."""
        return self._hosts.across

    @property
    def job(self):
        """The syncopate.Group of all ranks."""
        return self._hosts.job

    @property
    def parts(self):
        """The ranks of a host."""
        return self._hosts.ranks

    def law(self, coding):
        """That of the slowest place; all measure at once, as they exchange."""
        own = super().law(coding)
        return codec_choice.Law(*codec_choice.slowest(self.job, [own.start_s, own.s_per_byte]))

    def _place(self):
        hosts = self._hosts
        return hosts.host, hosts.hosts, hosts.place, hosts.ranks

    @staticmethod
    def _named(place):
        host, hosts, *rank = place
        return f"rank {rank[0]} of {rank[1]} on host {host} of {hosts}" if rank else HookState._named(place)

    def _save(self):
        codec, steps, _, _, gradients = super()._save()
        return codec, steps, *self._place(), gradients

    def __getstate__(self):
        if self._within != "host":
            raise syncopate.Misuse('a process group cannot be pickled; allowed: within="host", or state_dict()')
        return super().__getstate__()

    def _begin(self):
        super()._begin()
        self._local = ThreadPoolExecutor(1, thread_name_prefix="syncopate host")

    def combine_at_once(self, gradient, parameter):
        """Raise Misuse: the reducer waits for each gradient, and the ranks of a host gather after the last one."""
        if self.parts > 1:
            raise syncopate.Misuse("optimize_ddp='python_reducer' with within; allowed: optimize_ddp=True, or no `within`")
        return super().combine_at_once(gradient, parameter)

    def _started(self, bucket):
        self._require_use()
        if self.parts == 1:
            return super()._started(bucket)
        under_way = self._divided(bucket)
        try:  # also after a failure: the host's other ranks, which may not know of it, wait in this collective
            under_way.reducing = self._reduce_scatter(under_way)
        except Exception as error:  # noqa: BLE001 (every error belongs to the bucket's future)
            self._fail(error)
        self._local.submit(in_callers_modes(self._reduced), under_way)
        return under_way

    def _divided(self, bucket):
        """The bucket's shards; memory for this rank's is not written yet."""
        buffer, place = bucket.buffer(), self._hosts.place
        begin, own, pieces = 0, [], []
        for i, gradient in self._given(bucket):
            first, width = gradient.storage_offset() - buffer.storage_offset(), self._divisions[i].width
            parts = buffer[first:first + gradient.numel()].split(width)
            pieces += [(part, begin, row) for row, part in enumerate(parts)]
            own += [(i, begin)] if place < len(parts) else []
            begin += width
        shard = buffer.new_empty(begin)
        placed = [(i, shard[at:at + math.prod(shape)].view(shape)) for i, at in own for shape in [self._divisions[i].shape]]
        return _Divided(placed, buffer, bucket.is_last(), number=bucket.index(), shard=shard, pieces=pieces)

    def _reduce_scatter(self, bucket):
        """Begin to add this rank's shard over the host. Each rank divides before, as DDP does: a sum of f16 then stays in its range."""
        padded = bucket.buffer.new_zeros(self.parts, bucket.shard.numel())
        parts, places = bucket.pairs(padded)
        if parts:
            torch._foreach_copy_(places, parts)
            padded.mul_(1 / self.parts)
        return dist.reduce_scatter_tensor(bucket.shard, padded.view(-1), group=self._hosts.within, async_op=True), padded

    def _reduced(self, bucket):
        """Give this rank's shards to the codec when the host's sums are there, for the device by its streams."""
        with self._errors_to(bucket):
            self._raise_failure()
            (work, padded), bucket.reducing = bucket.reducing, None
            with self._in_stream(bucket, padded, bucket.shard):
                work.wait()
                averaged = self._averaged(bucket.number, bucket.placed, bucket.shard, bucket.is_last).future if self._hosts.hosts > 1 else None
            gather = in_callers_modes(self._gather)
            if averaged is None:
                self._waiting.append((gather, bucket, None))
            else:
                averaged.add_done_callback(lambda averaged: self._local.submit(self._gather_in_turn, gather, bucket, averaged))
        if bucket.is_last:
            self._is_reduced = True
            self._gather_waiting()

    def _gather_in_turn(self, *turn):
        self._waiting.append(turn)
        if self._is_reduced:
            self._gather_waiting()

    def _gather_waiting(self):
        waiting, self._waiting = self._waiting, []
        for gather, bucket, averaged in waiting:
            self._is_reduced = not bucket.is_last
            gather(bucket, averaged)

    def _gather(self, bucket, averaged):
        """Gather the averages of the host's shards, and write them into DDP's memory."""
        with self._errors_to(bucket):
            self._raise_failure()
            with self._in_stream(bucket, bucket.shard, bucket.buffer):
                if averaged is not None:
                    averaged.wait()  # for a device the stream waits
                self._meet(bucket)
                gathered = bucket.buffer.new_empty(self.parts, bucket.shard.numel())
                dist.all_gather_into_tensor(gathered.view(-1), bucket.shard, group=self._hosts.within, async_op=True).wait()
                parts, places = bucket.pairs(gathered)
                if parts:
                    torch._foreach_copy_(parts, places)
                bucket.end()

    def _meet(self, bucket):
        """Return when all ranks of the host are about to gather: none waits in the process group for one that has failed.

        After the last bucket none counts a step in which another one has an average that is not finite.
        """
        if not bucket.is_last:
            self._hosts.own.barrier()
            return
        is_finite, self._is_finite = self._is_finite, True
        faults = torch.tensor([float(not is_finite)], device="cpu")
        self._hosts.own.allreduce(faults, op="max", name="averages that are not finite")
        if is_finite and faults.item():
            self.discard_step()

    def _end(self, bucket, error, phases):
        if error is None and self.coding.get("codec", "none") != "none":
            self._is_finite = self._is_finite and all(bool(values.isfinite().all()) for _, values in bucket.placed)
        super()._end(bucket, error, phases)

    @contextlib.contextmanager
    def _in_stream(self, bucket, *used):
        """A block whose operations on these tensors of a device follow the process group's collectives, in a stream of its own."""
        device = bucket.buffer.device
        if device.type == "cpu":
            yield
            return
        if device not in self._streams:
            self._streams[device] = torch.Stream(device)
        for tensor in used:
            tensor.record_stream(self._streams[device])
        with self._streams[device]:
            yield

    @contextlib.contextmanager
    def _errors_to(self, bucket):
        """The backward pass raises them, and so does every later one: a step that failed cannot be repeated."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (every error belongs to the bucket's future)
            self._fail(error)
            bucket.end(error)

    def _fail(self, error):
        self._failure = self._failure or error
        self._hosts.abort(str(error))

    def _raise_failure(self):
        if self._failure is not None:
            raise self._failure

    def close(self):
        """Leave the groups of this state, on every rank; buckets that are under way end first, and none may follow."""
        if self._is_closed:
            return
        if self._local is not None:
            self._local.submit(lambda: None).result()  # what was reduced has been given to the codec
        super().close()
        if self._local is not None:
            self._local.shutdown()
        if self._hosts is not None:
            self._hosts.close()
