"""The base of optimizers that wrap one of torch: its groups of parameters, its state and its hooks are theirs."""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from torch.utils.hooks import RemovableHandle

import syncopate
from syncopate.torch.optim.accumulation import Accumulating


class Wrapping(Accumulating, torch.optim.Optimizer):
    """Wraps `self.optimizer`, which a subclass sets."""

    # Not called: Optimizer.__init__, because state and groups of parameters are the wrapped optimizer's.
    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]  # torch's attribute, which a wrapper only reads
        """The wrapped optimizer's."""
        return self.optimizer.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]  # the same
        """The wrapped optimizer's."""
        return self.optimizer.state

    @property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]  # the same
        """The wrapped optimizer's."""
        return self.optimizer.defaults

    def add_param_group(self, param_group: dict[str, Any]) -> NoReturn:
        """Refused: what is exchanged is fixed; add groups to the optimizer before it is wrapped."""
        raise syncopate.Misuse(f"add groups of parameters to the optimizer before {type(self).__name__} wraps it")

    def register_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Called by the wrapped optimizer's `state_dict`."""
        return self.optimizer.register_state_dict_pre_hook(hook, prepend)

    def register_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Called by the wrapped optimizer's `state_dict`."""
        return self.optimizer.register_state_dict_post_hook(hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Called by the wrapped optimizer's `load_state_dict`."""
        return self.optimizer.register_load_state_dict_pre_hook(hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Called by the wrapped optimizer's `load_state_dict`."""
        return self.optimizer.register_load_state_dict_post_hook(hook, prepend)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.optimizer!r})"
