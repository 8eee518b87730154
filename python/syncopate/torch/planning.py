"""Predicts the gain for an unchanged model: layer times of any module, and a plan from them."""

import contextlib
import dataclasses
import statistics
import time
import warnings
from collections.abc import Mapping

import torch

import syncopate
from syncopate import foresight
from syncopate.torch import parameters

WORTH = 0.05  # of a step: less is lost in the differences between steps


def profile(model, sample, *, loss=None, steps=7, name=None):
    """Measure a Profile: forward time, and when the backward pass has each gradient; medians over `steps` steps.

    sample: the model's argument, a tuple of arguments, or a dict of keyword arguments. loss: a function of the output that
    gives a scalar; by default the sum of the floating-point tensors in it that depend on a parameter. Raises Misuse if there
    is none. Layers are in the reverse of the order in which gradients arrive; those without one come first. The model's
    gradients, mode, weights and buffers and torch's random numbers are left as they were.
    """
    named = parameters.trained(model)
    call = _call(model, sample)
    with _left_as_it_is(model, named):
        passes = [_measured(named, call, loss or _sum) for _ in range(steps + 1)]
    forward_s = statistics.median(one[0] for one in passes[1:])  # the first one allocates
    backward_s = [statistics.median(column) for column in zip(*(one[1] for one in passes[1:]), strict=True)]
    layers = [foresight.Layer(text, parameter.numel(), backward_s[i], parameter.element_size(),
                              parameter.shape[0] if parameter.dim() > 1 else 0)
              for i, (text, parameter) in enumerate(named)]
    arrivals = passes[-1][2]
    without = [layer for i, layer in enumerate(layers) if i not in arrivals]
    return foresight.Profile(name or type(model).__name__, forward_s, (*without, *(layers[i] for i in reversed(arrivals))))


def plan(model, sample, cluster, *, codecs=("none",), loss=None, **options):
    """Predict a step under each policy and codec, best first: a list of Prediction. Nothing is exchanged or changed.

    cluster: a dict or the path of a file that `syncopate fit` wrote on the network. Other options are those of
    `syncopate.plan`: policies, exchange, algorithm, ranks. Coding counts as far as the cluster says what it costs. A warning
    says when the exchange of uncoded gradients is so short under every policy that nothing can help.
    """
    measured = profile(model, sample, loss=loss)
    found = [one for codec in codecs for one in foresight.plan(measured, cluster, codec=codec, **options)]
    uncoded = [one for one in found if one.codec == "none"]
    if uncoded:
        _warn_if_nothing_helps(max(uncoded, key=lambda one: one.iteration_s))
    return sorted(found, key=lambda one: one.iteration_s)


def _warn_if_nothing_helps(worst):
    gain_s = worst.iteration_s - worst.compute_s
    if gain_s < WORTH * worst.iteration_s:
        warnings.warn(f"the network is fast enough: under policy {worst.policy} uncoded gradients delay a step of "
                      f"{1e3 * worst.iteration_s:.1f} ms by {1e3 * gain_s:.1f} ms, and no policy or codec can save more", stacklevel=3)


def _call(model, sample):
    """A function that calls the model with the sample."""
    if isinstance(sample, Mapping):
        return lambda: model(**sample)
    return lambda: model(*(sample if isinstance(sample, tuple) else (sample,)))


def _sum(output):
    """The default loss. Raises Misuse if nothing in the output depends on a parameter."""
    sums = [tensor.sum() for tensor in _tensors(output) if tensor.is_floating_point() and tensor.requires_grad]
    if not sums:
        raise syncopate.Misuse(f"the model's output, of type {type(output).__name__}, has no floating-point tensor that requires a gradient; "
                               "pass loss=, a function of the output that gives a scalar")
    return sum(sums)


def _tensors(output):
    """The tensors of nested tuples, lists, mappings and dataclasses; other objects have none."""
    if isinstance(output, torch.Tensor):
        return [output]
    if isinstance(output, Mapping):
        parts = output.values()
    elif dataclasses.is_dataclass(output):
        parts = [getattr(output, field.name) for field in dataclasses.fields(output)]
    else:
        parts = output if isinstance(output, tuple | list) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


@contextlib.contextmanager
def _left_as_it_is(model, named):
    """Gradients, buffers and random numbers are afterwards those of before."""
    gradients = [parameter.grad for _, parameter in named]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        for (_, parameter), gradient in zip(named, gradients, strict=True):
            parameter.grad = gradient
        for buffer, before in buffers:
            buffer.copy_(before)


def _measured(named, call, loss):
    """Seconds of one forward pass, for each gradient those between the one before and it, and their order of arrival."""
    done = {}
    hooks = [parameter.register_post_accumulate_grad_hook(lambda _, i=i: done.__setitem__(i, time.perf_counter()))
             for i, (_, parameter) in enumerate(named)]
    try:
        for _, parameter in named:
            parameter.grad = None
        begin = time.perf_counter()
        value = loss(call())
        backward = before = time.perf_counter()
        value.backward()
    finally:
        for hook in hooks:
            hook.remove()
    seconds = [0.0] * len(named)
    for i in done:
        seconds[i], before = done[i] - before, done[i]
    return backward - begin, seconds, list(done)
