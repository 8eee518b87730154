"""A model's parameters as the library's gradients: by name, in the order of the forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch

import syncopate
from syncopate.torch.device.lane import require_usable

DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16"}
_Named = TypeVar("_Named", bound="list[tuple[str, torch.nn.Parameter]] | list[tuple[str, torch.Tensor]]")


def is_exchanged(parameter: torch.Tensor) -> bool:
    """Whether ranks exchange its gradient. That of a parameter without elements has nothing to average."""
    return parameter.requires_grad and parameter.numel() > 0


def trained(model: torch.nn.Module) -> list[tuple[str, torch.nn.Parameter]]:
    """(name, parameter) of those that get a gradient; DistributedDataParallel's wrapping does not change names."""
    inner = model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model
    return usable([(name, parameter) for name, parameter in inner.named_parameters() if is_exchanged(parameter)])


def usable(named: _Named) -> _Named:
    """These (name, parameter). Raises Misuse if the library cannot reduce the gradient of one."""
    _require_devices(named)
    for name, parameter in named:
        if parameter.dtype not in DTYPES:
            raise syncopate.Misuse(f"parameter {name} is of {parameter.dtype}; allowed: {', '.join(map(str, DTYPES))}; for other types, "
                                   'init_process_group("syncopate") with torch.nn.parallel.DistributedDataParallel')
    return named


def _require_devices(named: Sequence[tuple[str, torch.Tensor]]) -> None:
    """Raise Misuse unless all are on the CPU, or all on accelerators from which gradients can be copied."""
    first: dict[torch.device, str] = {}
    for name, parameter in named:
        first.setdefault(parameter.device, name)
    if len({device.type for device in first}) > 1:
        places = ", ".join(f"{name} on {device}" for device, name in first.items())
        raise syncopate.Misuse(f"parameters are on devices of several kinds: {places}; allowed: all on the CPU, or all on accelerators of "
                               "one kind; move the model by model.to(device)")
    for device, name in first.items():
        if device.type != "cpu":
            require_usable(name, device)


def updated(optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> list[tuple[str, torch.nn.Parameter]]:
    """The model's parameters that the optimizer updates, by name, in forward order."""
    updated = {parameter for group in optimizer.param_groups for parameter in group["params"] if is_exchanged(parameter)}
    named = [(name, parameter) for name, parameter in trained(model) if parameter in updated]
    if len(named) < len(updated):
        raise syncopate.Misuse(f"the optimizer updates {len(updated)} parameters, of which the model has {len(named)}; "
                               "give the model that has all of them")
    return named


def on_cpu(named: Sequence[tuple[str, torch.Tensor]]) -> bool:
    """Whether all of these are on the CPU, where the library works."""
    return all(parameter.is_cpu for _, parameter in named)


def gradients(parameters: Sequence[tuple[str, torch.Tensor]]) -> list[syncopate.Gradient]:
    """The gradients of these parameters, for a Synchronizer or Combiner."""
    return [syncopate.Gradient(name, tuple(parameter.shape), DTYPES[parameter.dtype]) for name, parameter in parameters]


def weights(parameters: Sequence[tuple[str, torch.Tensor]]) -> list[torch.Tensor]:
    """The values of these, for codecs that look at them; empty if one cannot be used in place."""
    in_place = on_cpu(parameters) and all(parameter.is_contiguous() for _, parameter in parameters)
    return [parameter.detach() for _, parameter in parameters] if in_place else []


def in_place(named: _Named, dtypes: tuple[torch.dtype, ...] = (torch.float32,)) -> _Named:
    """These (name, parameter). Raises Misuse if the library cannot use the weights of one as they lie, or, on an accelerator, copies."""
    _require_devices(named)
    for name, parameter in named:
        if parameter.dtype not in dtypes or not parameter.is_contiguous():
            raise syncopate.Misuse(f"parameter {name} is of {parameter.dtype}{'' if parameter.is_contiguous() else ', not contiguous'}; "
                                   f"allowed: contiguous ones of {', '.join(map(str, dtypes))}")
    return named


def become_those_of_rank_0(group: syncopate.Group, model: torch.nn.Module) -> None:
    """Give the model rank 0's parameters and buffers. A collective."""
    for name, tensor in model.state_dict().items():
        if isinstance(tensor, torch.Tensor) and tensor.numel():
            own = tensor.detach().cpu().contiguous()
            group.broadcast(own.view(-1).view(torch.uint8), name=name)
            if own.data_ptr() != tensor.data_ptr():
                tensor.copy_(own)
