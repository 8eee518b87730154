"""Predicts the gain for an unchanged model: layer times of any module, and a plan from them."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import statistics
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias

import torch

import syncopate
from syncopate import foresight
from syncopate.torch.analysis.clock import Clock, clock_of
from syncopate.torch.shared import codec_choice, parameters, rendezvous

Loss: TypeAlias = "Callable[[Any], torch.Tensor]"  # of the model's output
_Named: TypeAlias = "Sequence[tuple[str, torch.nn.Parameter]]"


def profile(model: torch.nn.Module, sample: Any, *, loss: Loss | None = None, optimizer: torch.optim.Optimizer | None = None,
            process_group: torch.distributed.ProcessGroup | None = None, steps: int = 7, name: str | None = None) -> foresight.Profile:
    """Measure a Profile: forward time, and when the backward pass has each gradient; medians over `steps` steps.

    sample: the model's argument, a tuple of arguments, or a dict of keyword arguments. loss: a function of the output that
    gives a scalar; by default the sum of the floating-point tensors in it that depend on a parameter. Raises Misuse if there
    is none. optimizer: one of torch, whose step, of a copy, is added to the forward time. process_group: one of
    torch.distributed, whose ranks all call this and compute at the same time; the times are those of the slowest rank.
    Layers are in the reverse of the order in which gradients arrive; those without one come first. The model's gradients,
    mode, weights and buffers, the optimizer and torch's random numbers are left as they were.
    """
    if process_group is None:
        return _profile(model, sample, loss, optimizer, steps, name)
    with contextlib.closing(rendezvous.own_group(process_group)) as group:
        group.barrier()
        return agreed(group, _profile(model, sample, loss, optimizer, steps, name))


def agreed(group: syncopate.Group, measured: foresight.Profile, names: Sequence[str] | None = None) -> foresight.Profile:
    """The profile with the slowest rank's times, in the order of the layers' names or in rank 0's."""
    layer_of = {layer.name: layer for layer in measured.layers}
    in_order = sorted(layer_of)
    forward_s, *backward_s = codec_choice.slowest(group, [measured.forward_s, *(layer_of[name].backward_s for name in in_order)])
    order = torch.tensor([in_order.index(name) for name in names or layer_of], device="cpu")
    group.broadcast(order, name="order of the gradients")
    layers = tuple(dataclasses.replace(layer_of[in_order[i]], backward_s=backward_s[i]) for i in order.tolist())
    return dataclasses.replace(measured, forward_s=forward_s, layers=layers)


def _profile(model: torch.nn.Module, sample: Any, loss: Loss | None, optimizer: torch.optim.Optimizer | None, steps: int,
             name: str | None) -> foresight.Profile:
    named = parameters.trained(model)
    clock = clock_of(named[0][1].device if named else torch.device("cpu"))
    call = _call(model, sample)
    with _left_as_it_is(model, named):
        passes = [_measured(named, call, loss or _sum, clock) for _ in range(steps + 1)]
    forward_s = statistics.median(one[0] for one in passes[1:])  # the first one allocates
    if optimizer is not None:
        forward_s += _step_s(optimizer, steps, clock)  # like the forward pass it overlaps no exchange of gradients
    backward_s = [statistics.median(column) for column in zip(*(one[1] for one in passes[1:]), strict=True)]
    layers = [foresight.Layer(text, parameter.numel(), backward_s[i], parameter.element_size(),
                              parameter.shape[0] if parameter.dim() > 1 else 0)
              for i, (text, parameter) in enumerate(named)]
    arrivals = passes[-1][2]
    without = [layer for i, layer in enumerate(layers) if i not in arrivals]
    return foresight.Profile(name or type(model).__name__, forward_s, (*without, *(layers[i] for i in reversed(arrivals))))


def plan(model: torch.nn.Module, sample: Any, cluster: dict[str, Any] | str | PathLike[str], *, codecs: Iterable[str] = ("none",),
         loss: Loss | None = None, optimizer: torch.optim.Optimizer | None = None,
         process_group: torch.distributed.ProcessGroup | None = None, **options: Any) -> list[foresight.Prediction]:
    """Predict a step under each policy and codec, best first: a list of Prediction. No gradient is exchanged, and nothing changed.

    The step has the passes of `profile`, which has loss, optimizer and process_group, and the exchange; a step of the program
    takes longer by what else it does, such as clipping. Without a process group one process is measured, which has the
    machine's processors and memory for itself.

    cluster: a dict or the path of a file that `syncopate fit` wrote on the network. Other options are those of
    `syncopate.plan`: policies, exchange, algorithm, ranks. Coding counts as far as the cluster says what it costs. A warning
    says when the exchange of uncoded gradients is so short under every policy that nothing can help.
    """
    measured = profile(model, sample, loss=loss, optimizer=optimizer, process_group=process_group)
    found = [one for codec in codecs for one in foresight.plan(measured, cluster, codec=codec, **options)]
    uncoded = [one for one in found if one.codec == "none"]
    if uncoded:
        _warn_if_nothing_helps(max(uncoded, key=lambda one: one.iteration_s))
    return sorted(found, key=lambda one: one.iteration_s)


def _warn_if_nothing_helps(worst: foresight.Prediction) -> None:
    gain_s = worst.iteration_s - worst.compute_s
    if gain_s < codec_choice.WORTH * worst.iteration_s:
        warnings.warn(f"the network is fast enough: under policy {worst.policy} uncoded gradients delay a step of "
                      f"{1e3 * worst.iteration_s:.1f} ms by {1e3 * gain_s:.1f} ms, and no policy or codec can save more", stacklevel=3)


def _call(model: torch.nn.Module, sample: Any) -> Callable[[], Any]:
    """A function that calls the model with the sample."""
    if isinstance(sample, Mapping):
        return lambda: model(**sample)
    return lambda: model(*(sample if isinstance(sample, tuple) else (sample,)))


def _step_s(optimizer: torch.optim.Optimizer, steps: int, clock: Clock) -> float:
    """Seconds of a step of the optimizer, measured on a copy of it and of its parameters."""
    copied = copy.deepcopy(optimizer)
    for parameter in (parameter for group in copied.param_groups for parameter in group["params"]):
        parameter.grad = torch.zeros_like(parameter)
    seconds = []
    for _ in range(steps + 1):
        begin = clock.mark()
        copied.step()
        seconds.append(clock.seconds(begin, clock.mark()))
    return statistics.median(seconds[1:])  # the first one allocates


def _sum(output: Any) -> torch.Tensor:
    """The default loss. Raises Misuse if nothing in the output depends on a parameter."""
    sums = [tensor.sum() for tensor in _tensors(output) if tensor.is_floating_point() and tensor.requires_grad]
    if not sums:
        raise syncopate.Misuse(f"the model's output, of type {type(output).__name__}, has no floating-point tensor that requires a gradient; "
                               "pass loss=, a function of the output that gives a scalar")
    return sum(sums[1:], sums[0])


def _tensors(output: Any) -> list[torch.Tensor]:
    """The tensors of nested tuples, lists, mappings and dataclasses; other objects have none."""
    if isinstance(output, torch.Tensor):
        return [output]
    parts: Iterable[Any]
    if isinstance(output, Mapping):
        parts = output.values()
    elif dataclasses.is_dataclass(output):
        parts = [getattr(output, field.name) for field in dataclasses.fields(output)]
    else:
        parts = output if isinstance(output, tuple | list) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


@contextlib.contextmanager
def _left_as_it_is(model: torch.nn.Module, named: _Named) -> Iterator[None]:
    """Gradients, buffers and random numbers are afterwards those of before."""
    gradients = [parameter.grad for _, parameter in named]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        with _random_numbers_left([parameter.device for _, parameter in named]):
            yield
    finally:
        for (_, parameter), gradient in zip(named, gradients, strict=True):
            parameter.grad = gradient
        for buffer, before in buffers:
            buffer.copy_(before)


def _random_numbers_left(devices: Iterable[torch.device]) -> contextlib.AbstractContextManager[None]:
    """Those of the CPU, and of the accelerators among these."""
    others = sorted({device for device in devices if device.type != "cpu"}, key=str)
    return torch.random.fork_rng(devices=others, device_type=others[0].type if others else "cuda")


def _measured(named: _Named, call: Callable[[], Any], loss: Loss, clock: Clock) -> tuple[float, list[float], list[int]]:
    """Seconds of one forward pass, for each gradient those between the one before and it, and their order of arrival."""
    done: dict[int, Any] = {}
    hooks = [parameter.register_post_accumulate_grad_hook(lambda _, i=i: done.__setitem__(i, clock.mark()))
             for i, (_, parameter) in enumerate(named)]
    try:
        for _, parameter in named:
            parameter.grad = None
        begin = clock.mark()
        value = loss(call())
        backward = before = clock.mark()
        value.backward()
    finally:
        for hook in hooks:
            hook.remove()
    seconds = [0.0] * len(named)
    for i, moment in done.items():
        seconds[i], before = clock.seconds(before, moment), moment
    return clock.seconds(begin, backward), seconds, list(done)
