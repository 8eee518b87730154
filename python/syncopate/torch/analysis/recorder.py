"""Records a training for `syncopate report`: times, losses, buckets and bytes of every step, and one step in detail."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.utils.hooks import RemovableHandle

import syncopate
from syncopate.torch.analysis.trace import Span, StepTrace, size_of
from syncopate.torch.device.copies import CopiesObserver
from syncopate.torch.optim.sharded import ShardedOptimizer
from syncopate.torch.server.optimizer import ServedOptimizer
from syncopate.torch.shared import errors, parameters

if TYPE_CHECKING:
    from syncopate.torch.ddp.hook import HookState

PHASES = ("input", "forward", "backward", "wait", "optimizer")
UNMEASURED = 3  # first steps, which medians leave out if there are more than 5


class Recorder:
    """Writes the folder that `syncopate report` reads, and TensorBoard's event files if `tensorboard` is installed.

    net: a module, in DistributedDataParallel of torch (any backend) or of this package, or trained by a
    DistributedOptimizer or a ShardedOptimizer, whose exchange ends in the next step: its row has the bytes. optimizer: the one whose `step` ends a
    step. hook_state: that of a hook registered by hand.
    traced_step: the step whose spans are kept. Every rank makes one; ranks on other hosts need a folder of their own, or
    a shared file system. Rank 0 replaces the records of an earlier run.

        with syncopate.torch.Recorder("run", net, optimizer) as record:
            for images, labels in batches:
                ...
                optimizer.step()
                record.step(loss=loss.item(), samples=len(images))

    Raises OSError if a file cannot be written.
    """

    def __init__(self, folder: str | PathLike[str], net: torch.nn.Module, optimizer: torch.optim.Optimizer, *, hook_state: HookState | None = None,
                 traced_step: int = 5) -> None:
        self.folder, self._net, self._optimizer = Path(folder), net, optimizer
        self._hook_state: HookState | None = hook_state or getattr(net, "hook_state", None)
        self._synchronizer: syncopate.Synchronizer | None = getattr(optimizer, "synchronizer", None)
        self._sharded = optimizer if isinstance(optimizer, ShardedOptimizer) else None
        self.rank, self.ranks = self._place()
        self._named = parameters.trained(net)
        self._places: dict[torch.Tensor, tuple[int, str]] = {parameter: (i, name) for i, (name, parameter) in enumerate(self._named)}
        self._traced_step, self._steps = traced_step, 0
        self._times: list[dict[str, Any]] = []
        self._formed: dict[tuple[int, int], int] = {}  # in this step: the bytes of each bucket, by its first and last parameter
        self._buckets = self._formed  # in the last complete one
        self._trace = StepTrace(time.perf_counter(), self._places)  # of this step
        self._unwritten: StepTrace | None = None  # of the traced step, until its copies have ended

    def _place(self) -> tuple[int, int]:
        if isinstance(self._optimizer, ServedOptimizer):
            raise syncopate.Misuse("a ServedOptimizer is not recorded; allowed: an optimizer of torch, a DistributedOptimizer or a ShardedOptimizer")
        if dist.is_initialized():
            return dist.get_rank(), dist.get_world_size()
        group = getattr(self._optimizer, "group", None)
        return (group.rank, group.size) if group is not None else (0, 1)

    def _group(self) -> syncopate.Group | None:
        group: syncopate.Group | None = self._hook_state.group if self._hook_state is not None else getattr(self._optimizer, "group", None)
        return group

    def __enter__(self) -> Recorder:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.rank == 0:
            for stale in (*self.folder.glob("rank-*.jsonl"), *self.folder.glob("trace-*.jsonl"),
                          *self.folder.glob("events.out.tfevents.*"), self.folder / "run.json"):
                stale.unlink(missing_ok=True)
        if self.ranks > 1:  # no rank writes before rank 0 has cleared the folder
            if dist.is_initialized():
                dist.barrier()
            elif (group := self._group()) is not None:
                group.barrier()
        self._started = time.time()
        self._rows = open(self.folder / f"rank-{self.rank}.jsonl", "w", buffering=1, encoding="utf-8")
        self._tensorboard = _tensorboard(self.folder) if self.rank == 0 else None
        self._write_run({})
        self._hooks = list(self._hooked())
        self._begin_step()
        return self

    def _hooked(self) -> Iterator[RemovableHandle]:
        yield self._net.register_forward_pre_hook(lambda *_: self._end_of("input"))
        yield self._net.register_forward_hook(lambda *_: self._end_of("forward"))
        for i, (_, parameter) in enumerate(self._named):
            yield parameter.register_post_accumulate_grad_hook(lambda _, i=i: self._gradient_ready(i))
        inner = getattr(self._optimizer, "optimizer", self._optimizer)
        yield inner.register_step_pre_hook(lambda *_: self._end_of("wait"))
        yield inner.register_step_post_hook(lambda *_: self._end_of("optimizer"))
        if self._hook_state is not None:
            self._hook_state.observer = self._bucket_combined

    def _begin_step(self) -> None:
        self._begin = self._before = time.perf_counter()
        self._seconds, self._formed, self._is_backward = dict.fromkeys(PHASES, 0.0), {}, False
        self._trace = StepTrace(self._begin, self._places)
        self._observe_copies(self._trace.add if self._steps + 1 == self._traced_step else None)
        group = self._group()
        self._sent = group.traffic_bytes[0] if group is not None and self._steps else None
        self._waited_before = self._waited_at_begin = self._waited_s()

    def _observe_copies(self, observer: CopiesObserver | None) -> None:
        """Those of the optimizer; the hook's are among the spans of its buckets."""
        for copies in getattr(self._optimizer, "copies", []):
            copies.observer = observer

    def _waited_s(self) -> float:
        """Seconds in which passes waited for weights, in all steps."""
        return self._sharded.waited_s if self._sharded else 0

    def _end_of(self, phase: str, name: str | None = None, size: int = 0) -> None:
        """The time since the end of the phase before is this one's: phases divide a step, whatever passes it has."""
        if phase in ("input", "forward") and not torch.is_grad_enabled():
            return  # an evaluation
        begin, self._before = self._before, time.perf_counter()
        waited, self._waited_before = self._waited_before, self._waited_s()
        self._seconds[phase] += self._before - begin - (self._waited_before - waited)
        if phase != "input":
            self._trace.phases.append((phase, name or phase, begin, self._before, size))

    def _gradient_ready(self, i: int) -> None:
        name, parameter = self._named[i]
        self._end_of("backward", name, size_of([parameter]))
        if not self._is_backward:
            self._is_backward = errors.call_after_backward(self._end_backward)

    def _end_backward(self) -> None:
        """After DDP has waited for the averages."""
        self._is_backward = False
        self._end_of("wait")

    def _bucket_combined(self, combined: Sequence[torch.Tensor], spans: Sequence[Span]) -> None:
        """On a thread of the hook's, while the backward pass waits for this bucket."""
        indices = [self._places[parameter][0] for parameter in combined]
        self._formed[min(indices), max(indices)] = size_of(combined)
        self._trace.add(combined, spans)

    def step(self, *, loss: float, samples: int) -> None:
        """End a step: this rank's mean loss, and the number of its samples."""
        end = time.perf_counter()
        self._steps += 1
        row: dict[str, Any] = {"event": "step", "step": self._steps, "loss": float(loss), "step_s": end - self._begin,
               "samples_per_second": samples * self.ranks / (end - self._begin), **self._phases(), **self._exchanged()}
        row["wait_share"] = row["wait_s"] / row["step_s"]
        self._times.append(row)
        self._buckets = self._formed  # DDP forms others after the first step
        self._write(row)
        if self._tensorboard:
            for name in ("loss", "samples_per_second", "wait_share"):
                self._tensorboard.add_scalar(name, row[name], self._steps)
        if self._steps == self._traced_step:
            self._unwritten = self._trace
        if self._unwritten is not None and self._unwritten.has_ended():
            self._write_trace(self._unwritten)
        self._begin_step()

    def _phases(self) -> dict[str, float]:
        """Seconds of the phases. Waiting is the time from a pass's last gradient to its end, and to the optimizer's step; or the
        synchronizer's; or that for weights during the passes.
        """
        seconds = dict(self._seconds)
        if self._sharded:
            seconds["wait"] = self._waited_s() - self._waited_at_begin
        elif self._synchronizer is not None:
            seconds["wait"] = self._synchronizer.statistics().wait_s
        return {f"{phase}_s": value for phase, value in seconds.items()}

    def _exchanged(self) -> dict[str, float]:
        """Bytes that were sent in this step; with a ShardedOptimizer in the step before, whose exchange has ended now."""
        if self._synchronizer is None:
            group = self._group()
            return {} if self._sent is None or group is None else {"wire_bytes": group.traffic_bytes[0] - self._sent}
        if self._sharded and self._steps == 1:
            return {}
        last = self._synchronizer.statistics()
        predicted = {"predicted_s": last.predicted_s} if last.predicted_s > 0 and not self._sharded else {}
        return {"wire_bytes": last.wire_bytes, "payload_bytes": last.payload_bytes, **predicted}

    def _write_trace(self, trace: StepTrace) -> None:
        with open(self.folder / f"trace-{self.rank}.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in trace.rows())
        self._unwritten = None

    def evaluation(self, *, epoch: float, accuracy: float | None = None, top_5_accuracy: float | None = None,
                   loss: float | None = None) -> None:
        """Values of the held-out samples after `epoch` epochs, which may be a fraction. Called between steps: the next one begins here."""
        given = {"accuracy": accuracy, "top_5_accuracy": top_5_accuracy, "loss": loss}
        values = {name: float(value) for name, value in given.items() if value is not None}
        self._write({"event": "epoch", "epoch": epoch, "step": self._steps, **values})
        if self._tensorboard:
            for name, value in values.items():
                self._tensorboard.add_scalar(f"evaluation/{name}", value, self._steps)
        self._begin_step()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for hook in self._hooks:
            hook.remove()
        if self._hook_state is not None:
            self._hook_state.observer = None
        self._observe_copies(None)
        try:
            if kind is None and self._unwritten is not None:
                self._unwritten.wait()
                self._write_trace(self._unwritten)
            if kind is None:
                self._write(self._end())
            self._write_run({"duration_s": time.time() - self._started})
        finally:
            self._rows.close()
            if self._tensorboard:
                self._tensorboard.close()

    def _end(self) -> dict[str, Any]:
        counted = self._times[UNMEASURED:] if len(self._times) > 5 else self._times
        seconds = [row["step_s"] for row in counted]
        if self._sharded:
            self._sharded.synchronize()  # the digest is that of all weights of the last step
        row: dict[str, Any] = {"event": "end", "rank": self.rank, "steps": self._steps, "digest": _digest(self._net)}
        if counted:
            row["step_seconds"] = {"median": statistics.median(seconds), "min": min(seconds), "max": max(seconds), "n": len(seconds)}
            row["forward_seconds"] = statistics.median(row["forward_s"] for row in counted)
        sent = [row["wire_bytes"] for row in counted if "wire_bytes" in row]
        if sent:
            row["wire_bytes_per_step"] = round(statistics.median(sent))
        return row

    def _write(self, row: dict[str, Any]) -> None:
        self._rows.write(json.dumps(row | {"time": time.time()}) + "\n")

    def _write_run(self, more: dict[str, Any]) -> None:
        """Rank 0 describes the run; by another file and a rename, so that a killed rank leaves a whole one."""
        if self.rank != 0:
            return
        inner = self._net.module if isinstance(self._net, torch.nn.parallel.DistributedDataParallel) else self._net
        layers = [{"name": name, "elements": parameter.numel()} for name, parameter in self._named]
        run = {"model": type(inner).__name__, "ranks": self.ranks, "layers": layers, "start_time": self._started,
               "parameters": sum(parameter.numel() for _, parameter in self._named),
               "gradient_bytes": sum(parameter.numel() * parameter.element_size() for _, parameter in self._named),
               "optimizer": type(getattr(self._optimizer, "optimizer", self._optimizer)).__name__, **self._coding(), **more}
        draft = self.folder / "run.json.writing"
        draft.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
        os.replace(draft, self.folder / "run.json")

    def _coding(self) -> dict[str, Any]:
        """The known part of the exchange: its buckets, and the codec."""
        if self._synchronizer is not None:
            coding = {"exchange": "sharded"} if self._sharded else getattr(self._optimizer, "coding", {})
            return coding | {"buckets": [{"first": bucket.first, "last": bucket.last, "bytes": bucket.bytes}
                                         for bucket in self._synchronizer.buckets()]}
        if self._hook_state is None:
            return {}
        buckets = [{"first": first, "last": last, "bytes": size} for (first, last), size in sorted(self._buckets.items(), reverse=True)]
        coding, choice = self._hook_state.coding, self._hook_state.choice  # the choice of "auto:A+B", once it is made
        return {"codec": choice.codec if choice else coding.get("codec", "none"), "exchange": coding.get("exchange", "allreduce"),
                "buckets": buckets}


def _digest(net: torch.nn.Module) -> str:
    """Equal on ranks with equal parameters."""
    digest = hashlib.blake2b(digest_size=8)
    with torch.no_grad():
        for parameter in net.parameters():
            digest.update(parameter.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _tensorboard(folder: Path) -> Any:
    """TensorBoard's own writer, if it is installed."""
    with contextlib.suppress(ImportError):
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 (an optional package)
        return SummaryWriter(str(folder))
    return None
