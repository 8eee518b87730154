"""The backend's collectives that only move: every type, in place or through copies."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import Work

from syncopate.torch.backend.calls import Call, Calls, all_of, collective
from syncopate.torch.backend.memory import PutBack, Refusal, overlap, require_like, require_pairs, spread, to_fill, to_send
from syncopate.torch.backend.reduce_op import movable
from syncopate.torch.device.thread_modes import accelerator


class Moves(Calls):
    """The collectives that move vectors without arithmetic."""

    @collective
    def broadcast(self, tensors: list[torch.Tensor], opts: c10d.BroadcastOptions = c10d.BroadcastOptions()) -> Work:
        """Every rank ends with the root's tensor."""
        vectors, put_backs = zip(*map(to_fill, tensors), strict=True)
        calls = [("broadcast", movable(vector)[0], {"root": opts.rootRank}) for vector in vectors]
        return self._run(calls, tensors, opts, all_of(put_backs))

    @collective
    def all_gather_single(self, output: torch.Tensor, input_: torch.Tensor,
                          opts: c10d.AllgatherOptions = c10d.AllgatherOptions()) -> Work:
        """Every rank ends with the inputs of all, one after the other."""
        return self._all_gather([output], [input_], opts)

    @collective
    def all_gather_single_coalesced(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                                    opts: c10d.AllgatherOptions = c10d.AllgatherOptions()) -> Work:
        """As all_gather_single, of several tensors."""
        require_pairs(outputs, inputs)
        return self._all_gather(outputs, inputs, opts)

    def _all_gather(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: c10d.AllgatherOptions) -> Work:
        calls: list[Call] = []
        finishes: list[PutBack] = []
        for output, input_ in zip(outputs, inputs, strict=True):
            self.require_part(input_, output)
            (whole, put_back), own = to_fill(output), to_send(input_)
            self._place(whole, own)
            calls.append(("allgather", movable(whole)[0], {}))
            finishes.append(put_back)
        return self._run(calls, outputs, opts, all_of(finishes))

    @collective
    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor],
                  opts: c10d.AllgatherOptions = c10d.AllgatherOptions()) -> Work:
        """Every rank ends with the tensors of all, which may differ in size: list i has every rank's tensor i."""
        return self._gather_lists(outputs, inputs, opts)

    @collective
    def allgather_coalesced(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor],
                            opts: c10d.AllgatherOptions = c10d.AllgatherOptions()) -> Work:
        """As allgather, in another order: list r has all tensors of rank r."""
        if len(outputs) != self.size() or any(len(tensors) != len(inputs) for tensors in outputs):
            raise Refusal(f"the lists of outputs have the lengths {[len(tensors) for tensors in outputs]}; allowed: {self.size()} lists, "
                          f"one for each rank, of {len(inputs)} tensors, as many as inputs")
        return self._gather_lists(list(zip(*outputs, strict=True)), inputs, opts)

    def _gather_lists(self, outputs: Sequence[Sequence[torch.Tensor]], inputs: list[torch.Tensor],
                      opts: c10d.AllgatherOptions) -> Work:
        require_pairs(outputs, inputs)
        calls: list[Call] = []
        finishes: list[PutBack] = []
        for tensors, input_ in zip(outputs, inputs, strict=True):
            self.require_list(tensors, input_)
            require_like(tensors[self.rank()], input_)
            lengths, own = [tensor.numel() for tensor in tensors], to_send(input_)
            whole = own.new_empty(sum(lengths))
            pieces = whole.split(lengths)
            pieces[self.rank()].copy_(own)
            data, width = movable(whole)
            calls.append(("allgather_v", data, {"parts": [width * length for length in lengths]}))
            finishes.append(functools.partial(spread, pieces, tensors))
        return self._run(calls, [tensor for tensors in outputs for tensor in tensors], opts, all_of(finishes))

    @collective
    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor],
               opts: c10d.GatherOptions = c10d.GatherOptions()) -> Work:
        """The root ends with the tensors of all."""
        vector = to_send(inputs[0])
        is_root = self.rank() == opts.rootRank
        if is_root:
            self.require_list(outputs[0], vector)
            for output in outputs[0]:
                require_like(output, vector)
        whole = vector.new_empty((self.size(), vector.numel()))
        whole[self.rank()].copy_(vector)
        data = movable(whole.view(-1))[0]
        finish = (lambda: spread(whole, outputs[0])) if is_root else None
        return self._run([("gather", data, {"root": opts.rootRank})], outputs[0] if outputs else [], opts, finish)

    @collective
    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]],
                opts: c10d.ScatterOptions = c10d.ScatterOptions()) -> Work:
        """Rank r ends with tensor r of the root's list."""
        target, put_back = to_fill(outputs[0])
        if self.rank() == opts.rootRank:
            self.require_list(inputs[0], target)
            for tensor in inputs[0]:
                require_like(tensor, target)
            whole = torch.cat([to_send(tensor) for tensor in inputs[0]])
        else:
            whole = target.new_empty(self.size() * target.numel())
        part = self.own_part(target.numel())
        return self._run([("scatter", movable(whole)[0], {"root": opts.rootRank})], outputs, opts,
                         all_of([lambda: target.copy_(whole[part]), put_back]))

    @collective
    def all_to_all_single(self, output: torch.Tensor, input_: torch.Tensor, output_lengths: list[int], input_lengths: list[int],
                          opts: c10d.AllToAllOptions = c10d.AllToAllOptions()) -> Work:
        """Rank s sends piece r of its rows to rank r; without lengths the pieces are equal."""
        if output.dtype != input_.dtype:
            raise Refusal(f"the output is of {output.dtype} and the input of {input_.dtype}; allowed: one type")
        sent, (target, put_back) = to_send(input_), to_fill(output)
        (data, width), (out, _) = movable(sent.clone() if overlap(sent, target) else sent), movable(target)
        parts, out_parts = self._parts(input_, input_lengths, width), self._parts(output, output_lengths, width)
        if not input_lengths and not output_lengths:
            return self._run([("alltoall", data, {"out": out})], [output], opts, put_back)
        return self._run([("alltoall_v", data, {"parts": parts, "out": out, "out_parts": out_parts})], [output], opts, put_back)

    @collective
    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                 opts: c10d.AllToAllOptions = c10d.AllToAllOptions()) -> Work:
        """Rank s sends its tensor r to rank r, which receives it as tensor s."""
        self.require_list(inputs, inputs[0])
        self.require_list(outputs, inputs[0])
        lengths, out_lengths = [tensor.numel() for tensor in inputs], [tensor.numel() for tensor in outputs]
        whole = torch.cat([to_send(tensor) for tensor in inputs])
        received = whole.new_empty(sum(out_lengths))
        (data, width), (out, _) = movable(whole), movable(received)
        keywords = {"parts": [width * n for n in lengths], "out": out, "out_parts": [width * n for n in out_lengths]}
        return self._run([("alltoall_v", data, keywords)], outputs, opts,
                         lambda: spread(received.split(out_lengths), outputs))

    @collective
    def barrier(self, opts: c10d.BarrierOptions = c10d.BarrierOptions()) -> Work:
        """Ends when every rank has called it; with `device_ids`, after what the current stream of that device has been given."""
        if opts.device_ids and (kind := accelerator()):
            return self._staging.start_on(torch.device(kind, opts.device_ids[0]), self._barrier, [opts])
        return self._barrier(opts)

    def _barrier(self, opts: c10d.BarrierOptions) -> Work:
        return self._run([("barrier", None, {})], [], opts)

    _allgather_base, alltoall_base = all_gather_single, all_to_all_single

    def _place(self, whole: torch.Tensor, own: torch.Tensor) -> None:
        """Put this rank's part where it belongs in the whole, unless it is there."""
        place = whole[self.own_part(own.numel())]
        if place.data_ptr() != own.data_ptr():
            place.copy_(own)

    def _parts(self, tensor: torch.Tensor, lengths: list[int], width: int) -> list[int]:
        """Elements of each piece: of as many rows as given, or equal."""
        rows = tensor.shape[0] if tensor.dim() else 1
        if lengths and (len(lengths) != self.size() or sum(lengths) != rows):
            raise Refusal(f"the pieces have {lengths} rows; allowed: {self.size()} pieces, of {rows} rows together")
        if not lengths and rows % self.size():
            raise Refusal(f"{rows} rows do not make {self.size()} equal pieces; pass the lengths of the pieces")
        row = tensor.numel() // rows if rows else 0
        return [width * row * n for n in (lengths or [rows // self.size()] * self.size())]
