"""The backend's reductions: in place where the library reduces the type itself, else gathered and reduced on every rank."""

from __future__ import annotations

import functools

import torch
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import Work

from syncopate.torch.backend.calls import Call, Calls, all_of, collective
from syncopate.torch.backend.memory import OnDevice, PutBack, Refusal, exported, require_like, require_pairs, to_change, to_fill, to_send
from syncopate.torch.backend.reduce_op import Reducing, native_op, op_of, premultiplied, reduced
from syncopate.torch.backend.sparse_sums import SparseSums
from syncopate.torch.backend.work import Pending


class Reductions(Calls):
    """The collectives that combine vectors."""

    _sparse_sums: SparseSums

    def _reduction(self, tensor: torch.Tensor, opts: Reducing) -> tuple[Call, PutBack]:
        """The call that leaves the reduction of all ranks' tensors in `tensor`, and what is left to do."""
        op = native_op(op_of(opts), tensor.dtype)
        if op is not None:
            data, put_back = to_change(tensor)
            if (scaled := premultiplied(op_of(opts), data)) is not data:
                data.copy_(scaled)
            return ("allreduce", data, {"op": op}), put_back
        vector, put_back = to_fill(tensor)
        call, rows = self._gathering(vector)
        return call, all_of([lambda: vector.copy_(reduced(op_of(opts), rows)), put_back])

    @collective
    def allreduce(self, tensors: list[torch.Tensor], opts: c10d.AllreduceOptions = c10d.AllreduceOptions()) -> Work:
        """Every rank ends with the reduction."""
        (tensor,) = tensors
        if tensor.layout is torch.sparse_coo:
            return self._sparse_sum(tensor, opts)
        call, finish = self._reduction(tensor, opts)
        return self._run([call], tensors, opts, finish)

    def _sparse_sum(self, tensor: torch.Tensor, opts: c10d.AllreduceOptions) -> Work:
        """Start adding all ranks' elements; a call that its caller waits for ends with the sum."""
        if (kind := op_of(opts).op) != c10d.ReduceOp.SUM:
            raise Refusal(f"{kind.name} of a sparse tensor; allowed: SUM")
        if not tensor.is_cpu:
            raise OnDevice
        own = tensor.detach().coalesce()
        counts = torch.zeros(self.size(), dtype=torch.int64, device="cpu")
        counts[self.rank()] = own._nnz()
        self._staging.drain()
        self._called += 1
        adding = self._sparse_sums.start(self.group.start("allgather", *exported(counts)), counts, own)

        def finish() -> None:
            with torch.no_grad():  # not into tensor.detach(), which would get elements of its own
                tensor.copy_(adding.sum)
        work = Pending([adding], [tensor], finish, self._completions)
        if not getattr(opts, "asyncOp", True):
            work.wait()
        return work

    @collective
    def allreduce_coalesced(self, tensors: list[torch.Tensor],
                            opts: c10d.AllreduceCoalescedOptions = c10d.AllreduceCoalescedOptions()) -> Work:
        """As allreduce, of several tensors."""
        calls, finishes = zip(*[self._reduction(tensor, opts) for tensor in tensors], strict=True)
        return self._run(calls, tensors, opts, all_of(finishes))

    @collective
    def reduce(self, tensors: list[torch.Tensor], opts: c10d.ReduceOptions = c10d.ReduceOptions()) -> Work:
        """The root ends with the reduction; tensors of other ranks stay as they are."""
        vector, put_back = to_fill(tensors[0])
        is_root = self.rank() == opts.rootRank
        op = native_op(op_of(opts), vector.dtype)
        if op is None:
            call, rows = self._gathering(vector)
            finish = all_of([lambda: vector.copy_(reduced(op_of(opts), rows)), put_back]) if is_root else None
            return self._run([call], tensors, opts, finish)
        data = premultiplied(op_of(opts), vector)
        if not is_root and data is vector:
            data = vector.clone()
        finish = all_of([(lambda: vector.copy_(data)) if data is not vector else None, put_back]) if is_root else None
        return self._run([("reduce", data, {"root": opts.rootRank, "op": op})], tensors, opts, finish)

    @collective
    def reduce_scatter_single(self, output: torch.Tensor, input_: torch.Tensor,
                              opts: c10d.ReduceScatterOptions = c10d.ReduceScatterOptions()) -> Work:
        """Rank r ends with part r of the reduction of `input_`, which stays as it is."""
        return self._reduce_scatter([output], [input_], opts)

    @collective
    def reduce_scatter_single_coalesced(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                                        opts: c10d.ReduceScatterOptions = c10d.ReduceScatterOptions()) -> Work:
        """As reduce_scatter_single, of several tensors."""
        require_pairs(outputs, inputs)
        return self._reduce_scatter(outputs, inputs, opts)

    def _reduce_scatter(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: c10d.ReduceScatterOptions) -> Work:
        calls: list[Call] = []
        finishes: list[PutBack] = []
        for output, input_ in zip(outputs, inputs, strict=True):
            self.require_part(output, input_)
            (target, put_back), vector = to_fill(output), to_send(input_)
            op, part = native_op(op_of(opts), vector.dtype), self.own_part(target.numel())
            if op is not None:
                data = premultiplied(op_of(opts), vector)
                data = data.clone() if data is vector else data
                calls.append(("reduce_scatter", data, {"op": op}))
                finishes.append(functools.partial(target.copy_, data[part]))
            else:
                call, rows = self._gathering(vector)
                calls.append(call)
                finishes.append(functools.partial(_reduce_into, target, op_of(opts), rows[:, part]))
            finishes.append(put_back)
        return self._run(calls, outputs, opts, all_of(finishes))

    @collective
    def reduce_scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]],
                       opts: c10d.ReduceScatterOptions = c10d.ReduceScatterOptions()) -> Work:
        """Rank r ends with the reduction of tensor r of all lists."""
        output, tensors = outputs[0], inputs[0]
        self.require_list(tensors, output)
        require_like(tensors[self.rank()], output)
        whole = torch.cat([to_send(tensor) for tensor in tensors])
        if len({tensor.numel() for tensor in tensors}) == 1:
            return self._reduce_scatter([output], [whole], opts)
        call, finish = self._reduction(whole, opts)
        begin = sum(tensor.numel() for tensor in tensors[:self.rank()])
        target, put_back = to_fill(output)
        return self._run([call], outputs, opts,
                         all_of([finish, lambda: target.copy_(whole[begin:begin + target.numel()]), put_back]))

    _reduce_scatter_base = reduce_scatter_single


def _reduce_into(target: torch.Tensor, op: c10d.ReduceOp, rows: torch.Tensor) -> None:
    target.copy_(reduced(op, rows))
