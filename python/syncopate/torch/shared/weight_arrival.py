"""Weights that arrive during the forward pass: a layer waits for its own before it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch.utils.hooks import RemovableHandle

import syncopate
from syncopate.torch.shared.autograd_hooks import Hook


class Arrivals:
    """Hooks of `net`, which call `receive(i)` before a layer uses parameter i of `named`: once in each step.

    A parameter that layers use without a call of the module which owns it is found in the first step, in which all are
    fresh; from the next one on, `net` waits for it.
    """

    def __init__(self, net: torch.nn.Module, named: Sequence[tuple[str, torch.Tensor]], receive: Callable[[int], object]) -> None:
        self._named, self._receive = named, receive
        self._fresh: set[int] = set()
        self._early: set[int] = set()
        self._called: set[int] = set()  # those that hooks waited for in the first step
        self._is_first = True
        self._hooks = list(self._hooked(net))

    def _hooked(self, net: torch.nn.Module) -> Iterator[RemovableHandle]:
        index: dict[torch.Tensor, int] = {parameter: i for i, (_, parameter) in enumerate(self._named)}
        yield net.register_forward_pre_hook(Hook(self._wait_in_forward, self._early))
        for module in net.modules():
            own = [index[parameter] for parameter in module.parameters(recurse=False) if parameter in index]
            if own:
                yield module.register_forward_pre_hook(Hook(self._wait_in_forward, own))

    def _wait_in_forward(self, parameters: Iterable[int]) -> None:
        if self._is_first:
            self._called.update(parameters)
        self._wait(parameters)

    def _wait(self, parameters: Iterable[int]) -> None:
        for i in parameters:
            if i not in self._fresh:
                self._receive(i)
                self._fresh.add(i)

    def wait_for_all(self) -> None:
        """Return when all have the weights of this step."""
        self._wait(range(len(self._named)))

    def used(self, i: int) -> None:
        """The backward pass has reached parameter i. Raises Misuse if its layer did not wait for it."""
        if self._is_first and i not in self._called:
            self._early.add(i)
        elif not self._is_first and i not in self._fresh:
            raise syncopate.Misuse(f"parameter {self._named[i][0]} was used before its weights had arrived, outside of the forward pass of "
                                   "the module that owns it; call synchronize() before such a forward pass")

    def leave(self, i: int) -> None:
        """From now on parameter i has to be waited for."""
        self._fresh.discard(i)

    def end_step(self) -> None:
        """From now on all have to be waited for."""
        self._fresh.clear()
        self._is_first = False

    def remove(self) -> None:
        """Remove the hooks."""
        for hook in self._hooks:
            hook.remove()
