"""Horovod's DistributedOptimizer, on that of syncopate.torch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, cast

import torch

import syncopate
import syncopate.torch
from syncopate.horovod import job
from syncopate.horovod.compression import Compression, Compressor
from syncopate.horovod.reductions import Average, Sum, checked
from syncopate.torch.shared import parameters


class DistributedOptimizer(syncopate.torch.DistributedOptimizer):
    """Wraps an optimizer of torch: its step uses gradients that were reduced over the ranks during the backward pass.

    named_parameters: as of the model; without it parameters have numbers. compression: of Compression, or the name of a
    codec of the library. backward_passes_per_step: gradients of this number of backward passes add up before they are
    sent. gradient_predivide_factor: gradients are divided by it before the sum and multiplied after it. num_groups and
    groups have no effect: the library merges gradients by its policy. Every rank of the process set makes it, with
    equal arguments.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, named_parameters: Iterable[tuple[str, torch.nn.Parameter]] | None = None,
                 compression: type[Compressor] | Compressor | str = Compression.none, backward_passes_per_step: int = 1,
                 op: str = Average, gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Any = None,
                 sparse_as_dense: bool = False, process_set: job.ProcessSet = job.global_process_set) -> None:
        op = checked(op, (Average, Sum))
        if op == Sum and gradient_predivide_factor != 1:
            raise syncopate.Misuse(f"gradient_predivide_factor={gradient_predivide_factor} with op=hvd.Sum; allowed: "
                                   "op=hvd.Average, or 1.0")
        collectives = process_set.collectives()
        named, codec = _named(optimizer, named_parameters), _codec(compression)
        self._before = 1 / gradient_predivide_factor
        self._after = collectives.size() if op == Sum else gradient_predivide_factor
        self._sparse_as_dense, self._journal = sparse_as_dense, collectives.journal
        self._number: int | None = None
        self._passes, self._naming_the_remedy = [0] * len(named), collectives.naming_the_remedy
        self.set_backward_passes_per_step(backward_passes_per_step)
        # Its own group: exchanges run at the same time as other collectives.
        group = cast("syncopate.Group", collectives.split(0))  # None only for a negative colour
        self._attach(optimizer, named, group, True, {"codec": codec})
        self._zero_missing = True  # Horovod's rule
        self._key = job.wrapped(self, process_set)

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Change how many backward passes add up before gradients are sent."""
        if not isinstance(passes, int) or passes < 1:
            raise syncopate.Misuse(f"backward_passes_per_step={passes!r}; allowed: a whole number from 1")
        self.backward_passes_per_step = passes

    def _accumulated(self, i: int) -> None:
        parameter = self._named[i][1]
        if parameter.grad is not None and parameter.grad.is_sparse:
            if not self._sparse_as_dense:
                raise syncopate.Misuse(
                    f"the gradient of parameter {self._named[i][0]} is sparse; pass sparse_as_dense=True")
            parameter.grad = parameter.grad.to_dense()
        self._passes[i] += 1
        if self._passes[i] > self.backward_passes_per_step:
            raise syncopate.Misuse(
                f"parameter {self._named[i][0]} got gradients from {self._passes[i]} backward passes before a step; "
                f"allowed: backward_passes_per_step={self.backward_passes_per_step}, then step() or synchronize()")
        self._accumulates = self._passes[i] < self.backward_passes_per_step
        super()._accumulated(i)

    def _send(self, i: int) -> None:
        self._begin_step()
        if self._before != 1:
            self._views[i].mul_(self._before)
        super()._send(i)

    def _begin_step(self) -> None:
        if self._journal is not None and self._number is None:
            self._number = self._journal.add(("step", self._key))

    def _completes_gradients(self) -> bool:
        """A pass that reaches some of the parameters may be followed by one that reaches the others."""
        return False

    def synchronize(self) -> None:
        """Return when the gradients are reduced; `step` does it too. Gradients without a backward pass are sent too."""
        if self._reached or not self._averaged:
            self._exchange()
        self._forget_passes()

    def _complete(self) -> None:
        super()._complete()
        self._forget_passes()

    def _forget_passes(self) -> None:
        self._passes = [0] * len(self._named)

    def _exchange(self) -> None:
        """As before, with the factors of the reduction, and an entry in the journal."""
        with self._naming_the_remedy():
            super()._exchange()
        if self._journal is not None and self._number is not None:
            self._journal.ended(self._number)
        self._number = None
        for view in self._views if self._after != 1 else ():
            view.mul_(self._after)

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """For a step after synchronize(). It has no effect: a step uses gradients that are reduced already."""
        yield

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Zero the gradients, in place; refused before the last of the backward passes that add up to a step."""
        if any(self._passes) and not self._averaged:
            raise syncopate.Misuse(
                "zero_grad() after a backward pass and before its step; allowed: after step() or synchronize()")
        super().zero_grad(set_to_none)
        self._forget_passes()

    def _mean(self, loss: Any) -> Any:
        """The loss of this rank: ranks that have joined have none to average."""
        return loss

    def contribute_zeros(self) -> None:
        """Take part in a step of the ranks that have not joined."""
        for i, view in enumerate(self._views):
            view.zero_()
            self._exchanging.ready(i)
        with self._naming_the_remedy():
            self._exchanging.wait()


def _named(optimizer: torch.optim.Optimizer,
           named_parameters: Iterable[tuple[str, torch.nn.Parameter]] | None) -> list[tuple[str, torch.nn.Parameter]]:
    """(name, parameter) of those that the optimizer updates, in the order given."""
    updated = [
        parameter for group in optimizer.param_groups for parameter in group["params"]
        if parameters.is_exchanged(parameter)
    ]
    if named_parameters is None:
        return parameters.usable([(f"parameter.{i}", parameter) for i, parameter in enumerate(updated)])
    given = list(named_parameters)
    names = [name for name, _ in given]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise syncopate.Misuse(f"named_parameters has {repeated} twice; allowed: each name once")
    wanted = set(updated)
    named = [(name, parameter) for name, parameter in given if parameter in wanted]
    if len(named) < len(updated):
        raise syncopate.Misuse(
            f"the optimizer updates {len(updated)} parameters, of which named_parameters has {len(named)}; allowed: "
            "all of them, as model.named_parameters() gives them")
    return parameters.usable(named)


def _codec(compression: type[Compressor] | Compressor | str) -> str:
    """The library's codec for a compressor."""
    if isinstance(compression, str):
        return compression
    if compression is Compression.none or compression is Compression.fp16:
        return "none" if compression is Compression.none else "fp16"
    raise syncopate.Misuse(
        f"compression={compression!r}; allowed: hvd.Compression.none, hvd.Compression.fp16, or the name of a codec, as "
        '"topk:0.01" (syncopate info)')
