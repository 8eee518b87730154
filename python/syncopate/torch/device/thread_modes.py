"""The modes of torch that each thread has for itself: library threads, and threads that wait, work in those of the caller."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch

_Result = TypeVar("_Result")


def in_callers_modes(call: Callable[..., _Result]) -> Callable[..., _Result]:
    """As `call`, but it runs in the inference, grad and autocast modes, and on the device, that this thread has now."""
    modes = _modes()

    def run(*arguments: Any) -> _Result:
        with _within(modes):
            return call(*arguments)
    return run


def _modes() -> tuple[Any, ...]:
    return torch.is_inference_mode_enabled(), torch.is_grad_enabled(), torch.is_autocast_cache_enabled(), _autocast(), _device()


@contextlib.contextmanager
def _within(modes: tuple[Any, ...]) -> Iterator[None]:
    """Enter those modes that differ from the thread's own: entering one takes microseconds."""
    inference, grad, cache, autocast, device = modes
    with contextlib.ExitStack() as entered:
        if inference != torch.is_inference_mode_enabled():
            entered.enter_context(torch.inference_mode(inference))
        if grad != torch.is_grad_enabled():
            entered.enter_context(torch.set_grad_enabled(grad))
        if (cache, autocast) != (torch.is_autocast_cache_enabled(), _autocast()):
            for kind, (is_enabled, dtype) in autocast.items():
                entered.enter_context(torch.autocast(kind, dtype, is_enabled, cache))
        if device != _device():
            entered.enter_context(torch.get_device_module(accelerator()).device(device))
        yield


def accelerator() -> str | None:
    """The kind of accelerators that this torch supports, None before torch 2.6 and without one."""
    found = torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else None
    return found.type if found else None


def _autocast() -> dict[str, tuple[bool, torch.dtype]]:
    """By kind of device: whether autocast is enabled, and its type."""
    if not hasattr(torch, "get_autocast_dtype"):  # torch 2.4
        return {"cpu": (torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype())}
    kinds = ["cpu", *filter(None, [accelerator()])]
    return {kind: (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds}


def _device() -> Any:
    """The current accelerator, if this program uses accelerators."""
    kind = accelerator()
    module = torch.get_device_module(kind) if kind else None
    return module.current_device() if module and getattr(module, "is_initialized", bool)() else None
