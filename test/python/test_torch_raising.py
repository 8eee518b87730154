"""The error of an operation is raised once: by the backward pass in which its future was made, or by the future."""

import pytest
import torch
import torch_job  # skips where there is no torch

from syncopate.torch.shared import errors

assert torch_job


class Lost(RuntimeError):
    """That of an operation."""


def fail(deferred):
    with deferred:
        raise Lost


def backward(in_pass):
    """A backward pass that calls this function."""
    weight = torch.ones(1, requires_grad=True)
    weight.register_hook(lambda _: in_pass())
    weight.sum().backward()


def test_a_backward_pass_raises_the_error_of_an_operation_that_ended_in_it():
    seen = []
    with pytest.raises(Lost):
        backward(lambda: seen.append(fail(errors.Deferred())))
    assert seen == [None]
    backward(lambda: seen.append(errors.Deferred().__exit__(None, None, None)))


def test_the_future_raises_the_error_of_an_operation_that_ends_later():
    kept = []
    backward(lambda: kept.append(errors.Deferred()))
    with pytest.raises(Lost):
        fail(kept[0])


def test_the_future_raises_the_error_outside_of_a_backward_pass():
    with pytest.raises(Lost):
        fail(errors.Deferred())


def test_the_call_follows_those_that_were_queued_in_the_pass():
    order = []

    def in_pass():
        assert errors.call_after_backward(lambda: order.append("after"))
        torch.autograd.Variable._execution_engine.queue_callback(lambda: order.append("DDP"))

    backward(in_pass)
    assert order == ["DDP", "after"] and not errors.call_after_backward(order.clear)
