"""Optimizers of torch that apply a rule of the library: the whole of it on one rank, or with norms that ranks divide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

import syncopate
from syncopate.torch.device.copies import Copies, on_host
from syncopate.torch.device.weights import StagedUpdates
from syncopate.torch.optim import rules
from syncopate.torch.shared import parameters

if TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

LAYER_WISE = ("lars", "lamb")


class Ruled(torch.optim.Optimizer):
    """The base: groups of parameters with their "lr" and "spared", and a rule with its hyperparameters."""

    def __init__(self, params: ParamsT, rule: str, lr: float, hyperparameters: dict[str, float]) -> None:
        if rule not in rules.STATE:
            raise syncopate.Misuse(f"rule {rule!r} is unknown; allowed: {', '.join(rules.STATE)}")
        for name, value in hyperparameters.items():
            if not isinstance(value, (int, float)):
                raise syncopate.Misuse(f"hyperparameter {name} is {value!r}; allowed: a number, by one of the rule's names (docs/optimizers.md)")
        self.rule, self._hyperparameters = rule, hyperparameters
        super().__init__(params, {"lr": lr, "spared": None})
        for group in self.param_groups:
            if not float(group["lr"]) >= 0:
                raise syncopate.Misuse(f"lr is {group['lr']}; allowed: 0 and more")

    def _made(self, named: list[tuple[str, torch.nn.Parameter]], group: syncopate.Group | None,
              own_shards_only: bool) -> tuple[syncopate.Optimizer, list[torch.Tensor]]:
        """The library's optimizer of these (name, parameter), and its memory of their weights."""
        options = self._by_parameter()
        spared = [name for name, parameter in named if self._is_spared(parameter, options[parameter]["spared"])]
        hosts = on_host([parameter for _, parameter in parameters.in_place(named)])
        weights = {name: host for (name, _), host in zip(named, hosts, strict=True)}
        made = syncopate.Optimizer(weights, self.rule, spared=spared, hyperparameters=self._hyperparameters, group=group,
                                   own_shards_only=own_shards_only)
        return made, hosts

    def _by_parameter(self) -> dict[torch.nn.Parameter, dict[str, Any]]:
        """Each parameter's group."""
        return {parameter: group for group in self.param_groups for parameter in group["params"]}

    def _is_spared(self, parameter: torch.Tensor, spared: bool | None) -> bool:
        return parameter.dim() < 2 and self.rule in LAYER_WISE if spared is None else spared

    def state_dict(self) -> dict[str, Any]:
        """The state in torch's format, and the rule."""
        return super().state_dict() | {"rule": self.rule}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned, or the state of torch's SGD, Adam or AdamW. Hyperparameters but "lr" stay.

        Raises Misuse for the state of another rule.
        """
        found = state_dict.get("rule", self.rule)
        vectors = {name for state in state_dict["state"].values() for name in state if state[name] is not None} - {"step"}
        if found != self.rule or vectors - set(rules.STATE[self.rule].values()):
            raise syncopate.Misuse(f"the state is of {found} with {sorted(vectors)}, and this optimizer is {self.rule} with "
                                   f"{sorted(rules.STATE[self.rule].values())}; allowed: the state of the same rule")
        spared = [group["spared"] for group in self.param_groups]
        super().load_state_dict(state_dict)
        for group, own in zip(self.param_groups, spared, strict=True):
            group["spared"] = own


class RuleOptimizer(Ruled):
    """Applies a rule of the library: "sgd", "momentum", "nesterov", "adagrad", "adam", "adamw", "lars" or
    "lamb".

    params: as torch's optimizers take them, float32. Those on an accelerator are updated on the CPU: a step copies gradients and
    weights down and weights up, and waits for the former; the state stays on the CPU. Groups may have their own "lr", and "spared": without weight
    decay, and under lars and lamb with a trust ratio of 1; by default parameters of fewer than two dimensions under these
    two. hyperparameters: by the library's names, weight_decay, momentum, trust, beta1, beta2, epsilon (docs/optimizers.md).

    A step sets the gradients to zero. In a DistributedOptimizer the ranks divide the work of the norms. Raises Misuse.
    """

    def __init__(self, params: ParamsT, rule: str, lr: float, **hyperparameters: float) -> None:
        super().__init__(params, rule, lr, hyperparameters)
        self._group: syncopate.Group | None = None
        self._library: syncopate.Optimizer | None = None
        self._staged: StagedUpdates | None = None
        self._prepare()

    @property
    def copies(self) -> list[Copies]:
        """The Copies of this optimizer, which a Recorder observes; none on the CPU."""
        return [self._staged.copies] if self._staged else []

    def share_norms(self, group: syncopate.Group | None) -> None:
        """From now on the ranks of the group divide the work of the norms, bit for bit with the same result; None: they do not."""
        self._group, self._library = group, None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters that have a gradient; `closure` computes the loss and its gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        library = self._prepare()
        found = self._staged.take() if self._staged else list(map(_contiguous, self._parameters))
        gradients: list[torch.Tensor] = []
        first, at = 0, None
        for i, parameter in enumerate(self._parameters):
            gradient = found[i]
            here = self._next_update_of(parameter) if gradient is not None else None
            if here != at:
                _update(library, first, gradients, at)
                first, gradients, at = i, [], here
            if gradient is not None:
                gradients.append(gradient)
        _update(library, first, gradients, at)
        if self._staged:
            self._staged.give()
        return loss

    def _next_update_of(self, parameter: torch.nn.Parameter) -> tuple[float, int]:
        """(rate, step), and count the step."""
        state = self.state[parameter] if rules.counts_steps(self.rule) else {"step": 0}
        state["step"] += 1
        return float(self._options[parameter]["lr"]), int(state["step"])

    def _prepare(self) -> syncopate.Optimizer:
        """Make the library's optimizer if there is none, with the state that torch has of this one; then both are the same memory."""
        self._options = self._by_parameter()
        if self._library is not None:
            return self._library
        self._parameters = [parameter for parameter in self._options if parameter.numel() > 0]
        named = [(f"parameter {i}", parameter) for i, parameter in enumerate(self._parameters)]
        library, hosts = self._made(named, self._group, False)
        self._library = library
        self._staged = None if parameters.on_cpu(named) else StagedUpdates(named, hosts)
        lengths = [parameter.numel() for parameter in self._parameters]
        for name, array in library.state.items():
            theirs = rules.STATE[self.rule][name]
            for parameter, part in zip(self._parameters, torch.from_dlpack(array).split(lengths), strict=True):
                if (before := self.state[parameter].get(theirs)) is not None:
                    part.copy_(before.reshape(-1))
                self.state[parameter][theirs] = part.view_as(parameter)
        if rules.counts_steps(self.rule):
            for parameter in self._parameters:
                self.state[parameter].setdefault("step", torch.tensor(0.0, device="cpu"))
        return library

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, whose state is zero."""
        super().add_param_group(param_group)
        self._library = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"rule": self.rule, "_hyperparameters": self._hyperparameters}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._library, self._group = None, self.__dict__.get("_group")


def _update(library: syncopate.Optimizer, first: int, gradients: Sequence[torch.Tensor], at: tuple[float, int] | None) -> None:
    """Update the tensors from `first` on with this (rate, step); None: they have no gradients."""
    if at is not None:
        library.update(first, gradients, rate=at[0], step=at[1])


def _contiguous(parameter: torch.Tensor) -> torch.Tensor | None:
    """Its gradient, which becomes contiguous, or None."""
    if parameter.grad is not None:
        parameter.grad = parameter.grad.contiguous()
    return parameter.grad
