"""Records a training for `syncopate report`: times, losses, buckets and bytes of every step, and one step in detail."""

import contextlib
import hashlib
import json
import os
import statistics
import time
from pathlib import Path

import torch
import torch.distributed as dist

import syncopate
from syncopate.torch import parameters
from syncopate.torch.served import ServedOptimizer
from syncopate.torch.sharded import ShardedOptimizer

UNMEASURED = 3  # first steps, which medians leave out if there are more than 5


class Recorder:
    """Writes the folder that `syncopate report` reads, and TensorBoard's event files if `tensorboard` is installed.

    net: a module, in DistributedDataParallel of torch (any backend) or of this package, or trained by a
    DistributedOptimizer or a ShardedOptimizer, whose exchange ends in the next step: its row has the bytes. optimizer: the one whose `step` ends a step. hook_state: that of a hook registered by hand.
    traced_step: the step whose spans are kept. Every rank makes one; ranks on other hosts need a folder of their own, or
    a shared file system. Rank 0 replaces the records of an earlier run.

        with syncopate.torch.Recorder("run", net, optimizer) as record:
            for images, labels in batches:
                ...
                optimizer.step()
                record.step(loss=loss.item(), samples=len(images))

    Raises OSError if a file cannot be written.
    """

    def __init__(self, folder, net, optimizer, *, hook_state=None, traced_step=5):
        self.folder, self._net, self._optimizer = Path(folder), net, optimizer
        self._hook_state = hook_state or getattr(net, "hook_state", None)
        self._synchronizer = getattr(optimizer, "synchronizer", None)
        self._sharded = optimizer if isinstance(optimizer, ShardedOptimizer) else None
        self.rank, self.ranks = self._place()
        self._named = parameters.trained(net)
        self._traced_step, self._steps, self._times, self._last = traced_step, 0, [], {}
        self._marks, self._spans = {}, []
        self._formed = self._buckets = {}  # in this step; in the last complete one

    def _place(self):
        if isinstance(self._optimizer, ServedOptimizer):
            raise syncopate.Misuse("a ServedOptimizer is not recorded; allowed: an optimizer of torch, a DistributedOptimizer or a ShardedOptimizer")
        if dist.is_initialized():
            return dist.get_rank(), dist.get_world_size()
        group = getattr(self._optimizer, "group", None)
        return (group.rank, group.size) if group is not None else (0, 1)

    def _group(self):
        return self._hook_state.group if self._hook_state is not None else getattr(self._optimizer, "group", None)

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.rank == 0:
            for stale in (*self.folder.glob("rank-*.jsonl"), *self.folder.glob("trace-*.jsonl"),
                          *self.folder.glob("events.out.tfevents.*"), self.folder / "run.json"):
                stale.unlink(missing_ok=True)
        if self.ranks > 1:  # no rank writes before rank 0 has cleared the folder
            (dist if dist.is_initialized() else self._optimizer.group).barrier()
        self._started = time.time()
        self._rows = open(self.folder / f"rank-{self.rank}.jsonl", "w", buffering=1, encoding="utf-8")  # noqa: SIM115: closed by __exit__
        self._tensorboard = _tensorboard(self.folder) if self.rank == 0 else None
        self._write_run({})
        self._hooks = list(self._hooked())
        self._begin_step()
        return self

    def _hooked(self):
        yield self._net.register_forward_pre_hook(lambda *_: self._mark("forward"))
        yield self._net.register_forward_hook(lambda *_: self._mark("backward"))
        for i, (_, parameter) in enumerate(self._named):
            yield parameter.register_post_accumulate_grad_hook(lambda _, i=i: self._gradient_ready(i))
        inner = getattr(self._optimizer, "optimizer", self._optimizer)
        yield inner.register_step_pre_hook(lambda *_: self._mark("optimizer"))
        yield inner.register_step_post_hook(lambda *_: self._mark("end"))
        if self._hook_state is not None:
            self._hook_state.observer = self._bucket_combined

    def _begin_step(self):
        self._begin, self._marks, self._ready, self._spans, self._formed = time.perf_counter(), {}, [], [], {}
        group = self._group()
        self._sent = group.traffic_bytes[0] if group is not None and self._steps else None
        self._waited_s = self._waited_forward_s = self._sharded.waited_s if self._sharded else 0

    def _mark(self, phase):
        """The first forward pass of a step counts, and the last mark of each other phase: micro-batches are one step."""
        if phase in ("forward", "backward") and not torch.is_grad_enabled():
            return  # an evaluation
        if phase != "forward" or phase not in self._marks:
            self._marks[phase] = time.perf_counter()
            if self._sharded and phase == "backward":
                self._waited_forward_s = self._sharded.waited_s

    def _gradient_ready(self, i):
        self._ready.append((i, time.perf_counter()))

    def _bucket_combined(self, indices, spans):
        """On a thread of the hook's, while the backward pass waits for this bucket."""
        first, last = min(indices), max(indices)
        size = sum(self._named[i][1].numel() * self._named[i][1].element_size() for i in indices)
        self._formed[first, last] = size
        name = self._named[first][0] if first == last else f"{self._named[first][0]} .. {self._named[last][0]}"
        self._spans += [(phase, name, begin, end, size) for phase, begin, end in spans]

    def step(self, *, loss, samples):
        """End a step: this rank's mean loss, and the number of its samples."""
        end = time.perf_counter()
        self._steps += 1
        row = {"event": "step", "step": self._steps, "loss": float(loss), "step_s": end - self._begin,
               "samples_per_second": samples * self.ranks / (end - self._begin), **self._phases(end)}
        row["wait_share"] = row["wait_s"] / row["step_s"]
        self._times.append(row)
        self._buckets = self._formed  # DDP forms others after the first step
        self._write(row)
        if self._tensorboard:
            for name in ("loss", "samples_per_second", "wait_share"):
                self._tensorboard.add_scalar(name, row[name], self._steps)
        if self._steps == self._traced_step:
            self._write_trace()
        self._begin_step()

    def _phases(self, end):
        """Seconds of the passes. Waiting is the time from the last gradient to the optimizer's step, the synchronizer's, or that for
        weights during the passes."""
        forward, backward, optimizer = (self._marks.get(phase, end) for phase in ("forward", "backward", "optimizer"))
        ready = self._ready[-1][1] if self._ready else optimizer
        waited, found, in_passes = optimizer - ready, {}, (0, 0)
        if self._sharded:
            in_passes = (self._waited_forward_s - self._waited_s, self._sharded.waited_s - self._waited_forward_s)
            waited = sum(in_passes)
            if self._steps > 1:
                last = self._sharded.synchronizer.statistics()
                found = {"wire_bytes": last.wire_bytes, "payload_bytes": last.payload_bytes}
        elif self._synchronizer is not None:
            last = self._synchronizer.statistics()
            waited = last.wait_s
            found = {"wire_bytes": last.wire_bytes, "payload_bytes": last.payload_bytes}
            if last.predicted_s > 0:
                found["predicted_s"] = last.predicted_s
        elif self._sent is not None:
            found = {"wire_bytes": self._group().traffic_bytes[0] - self._sent}
        return {"input_s": forward - self._begin, "forward_s": backward - forward - in_passes[0], "backward_s": ready - backward - in_passes[1],
                "wait_s": waited, "optimizer_s": self._marks.get("end", end) - optimizer, **found}

    def _write_trace(self):
        marks, spans = self._marks, []
        if {"forward", "backward", "optimizer", "end"} <= marks.keys():
            spans.append(("forward", "forward", marks["forward"], marks["backward"], 0))
            before = marks["backward"]
            for i, ready in self._ready:
                name, parameter = self._named[i]
                spans.append(("backward", name, before, ready, parameter.numel() * parameter.element_size()))
                before = ready
            spans.append(("wait", "wait", before, marks["optimizer"], 0))
            spans.append(("optimizer", "optimizer", marks["optimizer"], marks["end"], 0))
        with open(self.folder / f"trace-{self.rank}.jsonl", "w", encoding="utf-8") as file:
            for track, name, begin, end, size in spans + self._spans:
                row = {"track": track, "name": name, "begin_s": begin - self._begin, "end_s": end - self._begin, "bytes": size}
                file.write(json.dumps(row) + "\n")

    def evaluation(self, *, epoch, accuracy=None, loss=None):
        """Values of the held-out samples after `epoch` epochs, which may be a fraction. Called between steps: the next one begins here."""
        self._last = {name: float(value) for name, value in (("accuracy", accuracy), ("loss", loss)) if value is not None}
        self._write({"event": "epoch", "epoch": epoch, "step": self._steps, **self._last})
        if self._tensorboard:
            for name, value in self._last.items():
                self._tensorboard.add_scalar(f"evaluation/{name}", value, self._steps)
        self._begin_step()

    def __exit__(self, kind, error, trace):
        for hook in self._hooks:
            hook.remove()
        if self._hook_state is not None:
            self._hook_state.observer = None
        try:
            if kind is None:
                self._write(self._end())
            self._write_run({"duration_s": time.time() - self._started})
        finally:
            self._rows.close()
            if self._tensorboard:
                self._tensorboard.close()

    def _end(self):
        counted = self._times[UNMEASURED:] if len(self._times) > 5 else self._times
        seconds = [row["step_s"] for row in counted]
        if self._sharded:
            self._sharded.synchronize()  # the digest is that of all weights of the last step
        row = {"event": "end", "rank": self.rank, "steps": self._steps, "digest": _digest(self._net), **self._last}
        if counted:
            row["step_seconds"] = {"median": statistics.median(seconds), "min": min(seconds), "max": max(seconds), "n": len(seconds)}
            row["forward_seconds"] = statistics.median(row["forward_s"] for row in counted)
        sent = [row["wire_bytes"] for row in counted if "wire_bytes" in row]
        if sent:
            row["wire_bytes_per_step"] = round(statistics.median(sent))
        return row

    def _write(self, row):
        self._rows.write(json.dumps(row | {"time": time.time()}) + "\n")

    def _write_run(self, more):
        """Rank 0 describes the run; by another file and a rename, so that a killed rank leaves a whole one."""
        if self.rank != 0:
            return
        inner = self._net.module if isinstance(self._net, torch.nn.parallel.DistributedDataParallel) else self._net
        layers = [{"name": name, "elements": parameter.numel()} for name, parameter in self._named]
        run = {"model": type(inner).__name__, "ranks": self.ranks, "layers": layers, "start_time": self._started,
               "parameters": sum(layer["elements"] for layer in layers),
               "gradient_bytes": sum(parameter.numel() * parameter.element_size() for _, parameter in self._named),
               "optimizer": type(getattr(self._optimizer, "optimizer", self._optimizer)).__name__, **self._coding(), **more}
        draft = self.folder / "run.json.writing"
        draft.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
        os.replace(draft, self.folder / "run.json")

    def _coding(self):
        """The known part of the exchange: its buckets, and the codec."""
        if self._synchronizer is not None:
            coding = {"exchange": "sharded"} if self._sharded else self._optimizer.coding
            return coding | {"buckets": [{"first": bucket.first, "last": bucket.last, "bytes": bucket.bytes}
                                         for bucket in self._synchronizer.buckets()]}
        if self._hook_state is None:
            return {}
        buckets = [{"first": first, "last": last, "bytes": size} for (first, last), size in sorted(self._buckets.items(), reverse=True)]
        coding, choice = self._hook_state.coding, self._hook_state.choice  # the choice of "auto:A+B", once it is made
        return {"codec": choice.codec if choice else coding.get("codec", "none"), "exchange": coding.get("exchange", "allreduce"),
                "buckets": buckets}


def _digest(net):
    """Equal on ranks with equal parameters."""
    digest = hashlib.blake2b(digest_size=8)
    with torch.no_grad():
        for parameter in net.parameters():
            digest.update(parameter.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _tensorboard(folder):
    """TensorBoard's own writer, if it is installed."""
    with contextlib.suppress(ImportError):
        from torch.utils.tensorboard import SummaryWriter
        return SummaryWriter(str(folder))
    return None
