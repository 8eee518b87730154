"""Optimizers of torch as rules of the library: SGD, Adam and AdamW, their options, and the state of a rule as torch has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

import syncopate

ALLOWED = "allowed: torch.optim.SGD, Adam, AdamW"
_VELOCITY = {"velocity": "momentum_buffer"}
_MOMENTS = {"mean": "exp_avg", "square": "exp_avg_sq"}
# Rule -> its vectors, by the library's name and by torch's. Those with moments count steps.
STATE: dict[str, dict[str, str]] = {
    "sgd": {}, "momentum": _VELOCITY, "nesterov": _VELOCITY, "adam": _MOMENTS, "adamw": _MOMENTS, "lars": _VELOCITY, "lamb": _MOMENTS,
    "adagrad": {"square": "sum"}
}


def rule_of(optimizer: torch.optim.Optimizer) -> tuple[str, dict[str, float]]:
    """(rule, hyperparameters) of an optimizer. Raises Misuse for one that no rule computes; rates may differ by group."""
    found = {_of_group(optimizer, group) for group in optimizer.param_groups}
    if len(found) > 1:
        raise syncopate.Misuse("groups of parameters differ in more than their rate, and servers apply one rule to all; allowed: "
                               "equal momentum, betas, eps, weight_decay")
    rule, hyperparameters = found.pop()
    return rule, dict(hyperparameters)


def _of_group(optimizer: torch.optim.Optimizer, group: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, float], ...]]:
    refused = [name for name in ("maximize", "amsgrad", "differentiable", "dampening") if group.get(name)]
    if refused:
        raise syncopate.Misuse(f"{type(optimizer).__name__} with {refused[0]}={group[refused[0]]}; allowed: without it")
    decay: tuple[str, float] = ("weight_decay", group.get("weight_decay", 0))
    if type(optimizer) is torch.optim.SGD:
        if not group["momentum"]:
            return "sgd", (decay,)
        return "nesterov" if group["nesterov"] else "momentum", (decay, ("momentum", group["momentum"]))
    if type(optimizer) in (torch.optim.Adam, torch.optim.AdamW):
        decoupled = type(optimizer) is torch.optim.AdamW or group.get("decoupled_weight_decay", False)
        moments = (("beta1", float(group["betas"][0])), ("beta2", float(group["betas"][1])), ("epsilon", group["eps"]))
        return "adamw" if decoupled else "adam", (decay, *moments)
    raise syncopate.Misuse(f"servers cannot apply {type(optimizer).__name__}; {ALLOWED}")


def counts_steps(rule: str) -> bool:
    """Whether the rule's state has the number of the step."""
    return STATE[rule] is _MOMENTS


def put_state(optimizer: torch.optim.Optimizer, named: Sequence[tuple[str, torch.Tensor]], rule: str, steps: int,
              vectors: Mapping[str, torch.Tensor]) -> None:
    """Give torch's optimizer the state of all parameters after these steps, in the memory of `vectors` by the library's names."""
    lengths = [parameter.numel() for _, parameter in named]
    parts = {STATE[rule][name]: vector.split(lengths) for name, vector in vectors.items()}
    for i, (_, parameter) in enumerate(named):
        state = {name: part[i].view_as(parameter) for name, part in parts.items()}
        if counts_steps(rule):
            state["step"] = torch.tensor(float(steps), device="cpu")
        if state:
            optimizer.state[parameter] = state


def load(optimizer: torch.optim.Optimizer, state_dict: dict[str, Any]) -> None:
    """Load the state as it is; `optimizer.load_state_dict` alone rounds it to the types of the parameters."""
    optimizer.load_state_dict(state_dict)
    numbers = [number for group in state_dict["param_groups"] for number in group["params"]]
    loaded = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, parameter in zip(numbers, loaded, strict=True):
        if number in state_dict["state"]:
            optimizer.state[parameter] = dict(state_dict["state"][number])


def taken_state(optimizer: torch.optim.Optimizer, named: Sequence[tuple[str, torch.Tensor]],
                rule: str) -> tuple[int, dict[str, torch.Tensor]]:
    """(steps, vectors by the library's names) from torch's optimizer, which has none afterwards; absent parts are zero."""
    states: list[dict[str, Any]] = [optimizer.state.get(parameter, {}) for _, parameter in named]
    steps = max((int(state.get("step", 0)) for state in states), default=0)
    vectors: dict[str, torch.Tensor] = {}
    if any(states):
        for name, theirs in STATE[rule].items():
            parts = [_vector(state.get(theirs), parameter) for state, (_, parameter) in zip(states, named, strict=True)]
            vectors[name] = torch.cat(parts)
    optimizer.state.clear()
    return steps, vectors


def _vector(part: torch.Tensor | None, parameter: torch.Tensor) -> torch.Tensor:
    return torch.zeros(parameter.numel(), device="cpu") if part is None else part.detach().reshape(-1).float().cpu()
