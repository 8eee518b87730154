"""The backend: torch's collectives as those of a group, in place where torch's own memory allows it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch._C import _distributed_c10d as c10d

import syncopate
from syncopate.torch import meeting
from syncopate.torch.messages import Messages
from syncopate.torch.reduction import flat, movable, native_op, plain, premultiplied, reduced
from syncopate.torch.work import Ended, Pending


class Backend(Messages, c10d.Backend):
    """One process group. Its ranks connect when it is first used, so that groups that are never used cost nothing."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self._store, self._timeout, self._lock, self._joined = store, timeout, threading.Lock(), None
        # Futures complete here and not on the group's thread: hooks such as PowerSGD's wait for a second operation in the
        # callback of the first.
        self._completions = ThreadPoolExecutor(4, thread_name_prefix="syncopate")
        self._called = 0

    @staticmethod
    def create(store, rank, size, timeout):
        """What torch.distributed calls for `init_process_group` and `new_group`."""
        try:
            return Backend(store, rank, size, timeout)
        except TypeError as error:
            raise syncopate.Misuse(f"torch {torch.__version__} does not let Python implement a backend ({error}); take torch 2.15, or another "
                                   "backend with syncopate.torch.hook or DistributedOptimizer") from error

    @property
    def group(self):
        """The syncopate.Group under it, joined by the first use."""
        return self._joined or self._join()

    def _join(self):
        with self._lock:
            if self._joined is None:
                self._joined = meeting.join(self._store, self.rank(), self.size(), self._timeout.total_seconds())
            return self._joined

    def _run(self, calls, tensors, opts=None, finish=None):
        """Carry out `calls`, each the arguments of Group.start; then `finish()`, and the result is in `tensors`.

        A call that its caller waits for at once runs on the caller's own thread.
        """
        self._called += 1
        group = self.group
        if opts is not None and not getattr(opts, "asyncOp", True):
            for name, data, keywords in calls:
                getattr(group, name)(*([] if data is None else [data]), **keywords)
            if finish is not None:
                finish()
            return Ended(tensors)
        works = [group.start(name, data, **keywords) for name, data, keywords in calls]
        if not works:
            return Ended(tensors)
        return Pending(works, tensors, finish, self._completions)

    # Reductions.

    def _reduction(self, tensor, opts):
        """The call that leaves the reduction of all ranks' tensors in `tensor`, and what is left to do."""
        op = native_op(opts.reduceOp, tensor.dtype)
        if op is not None:
            data = plain(tensor)
            if (scaled := premultiplied(opts.reduceOp, data)) is not data:
                data.copy_(scaled)
            return ("allreduce", data, {"op": op}), None
        vector = flat(tensor)
        call, rows = self._gathering(vector)
        return call, lambda: vector.copy_(reduced(opts.reduceOp, rows))

    def allreduce(self, tensors, opts=c10d.AllreduceOptions()):  # noqa: B008: torch's own default
        """Every rank ends with the reduction."""
        (tensor,) = tensors
        call, finish = self._reduction(tensor, opts)
        return self._run([call], tensors, opts, finish)

    def allreduce_coalesced(self, tensors, opts=c10d.AllreduceCoalescedOptions()):  # noqa: B008
        """As allreduce, of several tensors."""
        calls, finishes = zip(*[self._reduction(tensor, opts) for tensor in tensors], strict=True)
        return self._run(calls, tensors, opts, _all(finishes))

    def reduce(self, tensors, opts=c10d.ReduceOptions()):  # noqa: B008
        """The root ends with the reduction; tensors of other ranks stay as they are."""
        vector = flat(tensors[0])
        op = native_op(opts.reduceOp, vector.dtype)
        if op is None:
            call, rows = self._gathering(vector)
            finish = (lambda: vector.copy_(reduced(opts.reduceOp, rows))) if self.rank() == opts.rootRank else None
            return self._run([call], tensors, opts, finish)
        data = premultiplied(opts.reduceOp, vector)
        if self.rank() != opts.rootRank and data is vector:
            data = vector.clone()
        finish = (lambda: vector.copy_(data)) if self.rank() == opts.rootRank and data is not vector else None
        return self._run([("reduce", data, {"root": opts.rootRank, "op": op})], tensors, opts, finish)

    def reduce_scatter_single(self, output, input_, opts=c10d.ReduceScatterOptions()):  # noqa: B008
        """Rank r ends with part r of the reduction of `input_`, which stays as it is."""
        return self.reduce_scatter_single_coalesced([output], [input_], opts)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=c10d.ReduceScatterOptions()):  # noqa: B008
        """As reduce_scatter_single, of several tensors."""
        calls, finishes = [], []
        for output, input_ in zip(outputs, inputs, strict=True):
            target, vector = flat(output), flat(input_)
            op, part = native_op(opts.reduceOp, vector.dtype), self._own(target.numel())
            if op is not None:
                data = premultiplied(opts.reduceOp, vector)
                data = data.clone() if data is vector else data
                calls.append(("reduce_scatter", data, {"op": op}))
                finishes.append(lambda target=target, data=data, part=part: target.copy_(data[part]))
            else:
                call, rows = self._gathering(vector)
                calls.append(call)
                finishes.append(lambda target=target, rows=rows, part=part: target.copy_(reduced(opts.reduceOp, rows[:, part])))
        return self._run(calls, outputs, opts, _all(finishes))

    def reduce_scatter(self, outputs, inputs, opts=c10d.ReduceScatterOptions()):  # noqa: B008
        """Rank r ends with the reduction of tensor r of all lists."""
        output, tensors = outputs[0], inputs[0]
        if len({tensor.numel() for tensor in tensors}) == 1:
            return self.reduce_scatter_single_coalesced([output], [torch.cat([flat(tensor) for tensor in tensors])], opts)
        whole = torch.cat([flat(tensor) for tensor in tensors])
        call, finish = self._reduction(whole, opts)
        begin = sum(tensor.numel() for tensor in tensors[:self.rank()])
        target = flat(output)
        return self._run([call], outputs, opts,
                         _all([finish, lambda: target.copy_(whole[begin:begin + target.numel()])]))

    # What is moved.

    def broadcast(self, tensors, opts=c10d.BroadcastOptions()):  # noqa: B008
        """Every rank ends with the root's tensor."""
        calls = [("broadcast", movable(flat(tensor))[0], {"root": opts.rootRank}) for tensor in tensors]
        return self._run(calls, tensors, opts)

    def all_gather_single(self, output, input_, opts=c10d.AllgatherOptions()):  # noqa: B008
        """Every rank ends with the inputs of all, one behind the other."""
        return self.all_gather_single_coalesced([output], [input_], opts)

    def all_gather_single_coalesced(self, outputs, inputs, opts=c10d.AllgatherOptions()):  # noqa: B008
        """As all_gather_single, of several tensors."""
        calls = []
        for output, input_ in zip(outputs, inputs, strict=True):
            whole, own = flat(output), flat(input_)
            self._place(whole, own)
            calls.append(("allgather", movable(whole)[0], {}))
        return self._run(calls, outputs, opts)

    def allgather(self, outputs, inputs, opts=c10d.AllgatherOptions()):  # noqa: B008
        """Every rank ends with the tensors of all, which may differ in size."""
        return self.allgather_coalesced(outputs, inputs, opts)

    def allgather_coalesced(self, outputs, inputs, opts=c10d.AllgatherOptions()):  # noqa: B008
        """As allgather, of several tensors: list i has every rank's tensor i."""
        calls, finishes = [], []
        for tensors, input_ in zip(outputs, inputs, strict=True):
            lengths = [tensor.numel() for tensor in tensors]
            whole = input_.new_empty(sum(lengths))
            pieces = whole.split(lengths)
            pieces[self.rank()].copy_(flat(input_))
            data, width = movable(whole)
            calls.append(("allgather_v", data, {"parts": [width * length for length in lengths]}))
            finishes.append(lambda tensors=tensors, pieces=pieces: _spread(pieces, tensors))
        return self._run(calls, [tensor for tensors in outputs for tensor in tensors], opts, _all(finishes))

    def gather(self, outputs, inputs, opts=c10d.GatherOptions()):  # noqa: B008
        """The root ends with the tensors of all."""
        vector = flat(inputs[0])
        whole = vector.new_empty((self.size(), vector.numel()))
        whole[self.rank()].copy_(vector)
        data = movable(whole.view(-1))[0]
        finish = (lambda: _spread(whole, outputs[0])) if self.rank() == opts.rootRank else None
        return self._run([("gather", data, {"root": opts.rootRank})], outputs[0] if outputs else [], opts, finish)

    def scatter(self, outputs, inputs, opts=c10d.ScatterOptions()):  # noqa: B008
        """Rank r ends with tensor r of the root's list."""
        target = flat(outputs[0])
        is_root = self.rank() == opts.rootRank
        whole = torch.cat([flat(tensor) for tensor in inputs[0]]) if is_root else target.new_empty(self.size() * target.numel())
        part = self._own(target.numel())
        return self._run([("scatter", movable(whole)[0], {"root": opts.rootRank})], outputs, opts,
                         lambda: target.copy_(whole[part]))

    def all_to_all_single(self, output, input_, output_lengths, input_lengths, opts=c10d.AllToAllOptions()):  # noqa: B008
        """Rank s sends piece r of its rows to rank r; without lengths the pieces are equal."""
        (data, width), (out, _) = movable(flat(input_)), movable(flat(output))
        if not input_lengths and not output_lengths:
            return self._run([("alltoall", data, {"out": out})], [output], opts)
        parts = self._parts(input_, input_lengths, width)
        return self._run([("alltoall_v", data, {"parts": parts, "out": out,
                                                "out_parts": self._parts(output, output_lengths, width)})], [output], opts)

    def alltoall(self, outputs, inputs, opts=c10d.AllToAllOptions()):  # noqa: B008
        """Rank s sends its tensor r to rank r, which receives it as tensor s."""
        lengths, out_lengths = [tensor.numel() for tensor in inputs], [tensor.numel() for tensor in outputs]
        whole = torch.cat([flat(tensor) for tensor in inputs])
        received = whole.new_empty(sum(out_lengths))
        (data, width), (out, _) = movable(whole), movable(received)
        keywords = {"parts": [width * n for n in lengths], "out": out, "out_parts": [width * n for n in out_lengths]}
        return self._run([("alltoall_v", data, keywords)], outputs, opts,
                         lambda: _spread(received.split(out_lengths), outputs))

    def barrier(self, opts=c10d.BarrierOptions()):  # noqa: B008
        """Ends when every rank has called it."""
        return self._run([("barrier", None, {})], [], opts)

    def monitored_barrier(self, opts=None, wait_all_ranks=False):
        """A barrier; the error of any names the ranks that are missing."""
        self.group.barrier()

    _allgather_base, _reduce_scatter_base, alltoall_base = all_gather_single, reduce_scatter_single, all_to_all_single

    # The group itself.

    def getBackendName(self):  # noqa: N802: torch's name
        """The name in `init_process_group`."""
        return "syncopate"

    def set_timeout(self, timeout):
        """For a group that has not connected yet; the bound of one that has is fixed."""
        if self._joined is not None:
            raise syncopate.Misuse("the timeout of a group that has connected is fixed; give it to init_process_group or new_group")
        self._timeout = timeout

    def _set_sequence_number_for_group(self):
        """Operations are numbered by the library."""

    def _get_sequence_number_for_group(self):
        return self._called

    def shutdown(self):
        """Leave; operations that were started end first."""
        if self._joined is not None:
            self._joined.close()
        self._completions.shutdown(wait=False)

    def abort(self):
        """End every rank's operations with RemoteFailure."""
        if self._joined is not None and not self._joined.closed:
            self._joined.abort("its process group was aborted")

    # Parts of vectors.

    def _own(self, count):
        return slice(self.rank() * count, (self.rank() + 1) * count)

    def _place(self, whole, own):
        """Put this rank's part where it belongs in the whole, unless it is there."""
        place = whole[self._own(own.numel())]
        if place.data_ptr() != own.data_ptr():
            place.copy_(own)

    def _gathering(self, vector):
        """The call that gathers all ranks' vectors, and the rows in which they lie then."""
        rows = vector.new_empty((self.size(), vector.numel()))
        rows[self.rank()].copy_(vector)
        return ("allgather", movable(rows.view(-1))[0], {}), rows

    def _parts(self, tensor, lengths, width):
        """Elements of each piece: of as many rows as given, or equal."""
        rows = tensor.shape[0] if tensor.dim() else 1
        row = tensor.numel() // rows if rows else 0
        return [width * row * n for n in (lengths or [rows // self.size()] * self.size())]


def _all(finishes):
    """One function for those that are given, or None."""
    given = [finish for finish in finishes if finish is not None]
    return (lambda: [finish() for finish in given] and None) if given else None


def _spread(pieces, tensors):
    for piece, tensor in zip(pieces, tensors, strict=True):
        tensor.detach().copy_(piece.view(tensor.shape))
