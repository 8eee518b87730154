"""An optimizer for any torch program without DistributedDataParallel: gradients are averaged while the backward pass goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import torch
from torch.utils.hooks import RemovableHandle

import syncopate
from syncopate.torch.device.copies import Copies
from syncopate.torch.device.gradients import StagedGradients, gradients_of
from syncopate.torch.optim.accumulation import second_gradient
from syncopate.torch.optim.rule_optimizer import RuleOptimizer
from syncopate.torch.optim.wrapper import Wrapping
from syncopate.torch.shared import autograd_hooks, codec_choice, parameters, rendezvous

_FUNCTION_BACKWARD = torch.autograd.function.BackwardCFunction.apply.__code__


class DistributedOptimizer(Wrapping):
    """Wraps an optimizer of torch: its step uses gradients averaged over the ranks, which lie in the group's memory,
    or on the accelerator of the parameters.

    model: whose parameters get the gradients; they and its buffers become rank 0's. group: a syncopate.Group; by default
    one of its own for the ranks of torch.distributed, or for those of the job. Other options are the Synchronizer's
    (policy, codec, feedback, exchange, clip_norm ...), equal on all ranks; exchange ends with gradients. If it wraps a
    RuleOptimizer of "lars" or "lamb", the ranks divide the work of the norms.

    The exchange starts during the backward pass. A pass after which every parameter has its gradient ends when all hold the
    averages, so that a program may read and change them before `step`, as `clip_grad_norm_` and GradScaler do. Gradients
    of several passes, each of which reaches some parameters, are averaged when the last of them has ended. With
    zero_missing every pass outside of `no_sync` ends with averages, and parameters that it did not reach count as zero.
    If averages are never applied, on any rank, because `zero_grad` follows, the codec's state is as before.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, model: torch.nn.Module, *, group: syncopate.Group | None = None, weights: bool = True,
                 **options: Any) -> None:
        self._attach(optimizer, parameters.updated(optimizer, model), group or rendezvous.own_group(), weights, options)
        self._has_own_group = group is None
        parameters.become_those_of_rank_0(self.group, model)

    def _attach(self, optimizer: torch.optim.Optimizer, named: list[tuple[str, torch.nn.Parameter]], group: syncopate.Group,
                weights: bool, options: dict[str, Any]) -> None:
        """Make the synchronizer of these parameters, whose backward passes use it from now on."""
        super().__init__(optimizer)
        self._named, self.group, self._has_own_group = named, group, True
        self._exchanged: set[torch.Tensor] = {parameter for _, parameter in named}
        if isinstance(optimizer, RuleOptimizer):
            optimizer.share_norms(group)
        coding = codec_choice.named(options)
        self.coding = {"codec": coding.get("codec", "none"), "exchange": coding.get("exchange", "allreduce")}
        self._zero_missing: bool = options.get("zero_missing", False)
        values = parameters.weights(self._named) if weights else []
        self.synchronizer = syncopate.Synchronizer(self.group, parameters.gradients(self._named), weights=values, **options)
        self._exchanging, self._views = gradients_of(self.synchronizer, self.group, self._named, in_parts=not options.get("clip_norm"))
        self._reached: set[int] = set()  # parameters with a gradient in this step
        self._sent: set[int] = set()  # those whose gradient has left
        self._averaged = False  # whether gradients hold averages that were not applied
        self._is_queued = False  # whether `_end_pass` follows this backward pass
        self._hooks: list[RemovableHandle] = []
        for i, (_, parameter) in enumerate(self._named):
            parameter.grad = self._views[i]
            self._hooks.append(parameter.register_post_accumulate_grad_hook(autograd_hooks.Hook(self._accumulated, i)))
        autograd_hooks.detach_in_forks(self)

    @property
    def copies(self) -> list[Copies]:
        """The Copies of this optimizer and of the one that it wraps, which a Recorder observes; none on the CPU."""
        own = [self._exchanging.copies] if isinstance(self._exchanging, StagedGradients) else []
        return [*own, *getattr(self.optimizer, "copies", [])]

    def _accumulated(self, i: int) -> None:
        parameter = self._named[i][1]
        is_fresh = parameter.grad is not self._views[i]  # it was set to None, and autograd made another
        if self._averaged and not self._sent:  # a further pass begins before a step
            if is_fresh:
                self._forget_averages()
            self._averaged = False
        if i in self._sent:
            raise second_gradient(self._named[i][0])
        if is_fresh:
            self._put_into_view(i, parameter)
            parameter.grad = self._views[i]
        self._reached.add(i)
        if not self._accumulates:
            self._send(i)
            self._queue_end()

    def _send(self, i: int) -> None:
        """Gradient i of this step is complete."""
        self._sent.add(i)
        self._exchanging.ready(i)

    def _queue_end(self) -> None:
        """Let autograd call `_end_pass` after this backward pass: at its first gradient, and at the last one.

        With reentrant checkpoints the first may belong to a pass within a pass, which ends early.
        """
        if not self._is_queued or len(self._sent) == len(self._named):
            self._is_queued = True
            torch.autograd.Variable._execution_engine.queue_callback(autograd_hooks.Hook(self._end_pass))

    def _end_pass(self) -> None:
        """Average if this pass has completed the gradients; otherwise another one follows, or `step` names those that are missing."""
        self._is_queued = False
        if self._sent and (len(self._sent) == len(self._named) or (self._completes_gradients() and not _is_within_another())):
            self._exchange()

    def _completes_gradients(self) -> bool:
        """Whether no gradient is missing after this pass, although some have not been sent."""
        return self._zero_missing or len(self._reached) == len(self._named)

    def _exchange(self) -> None:
        """Send the rest, and return when all gradients hold averages. Raises what the exchange raised."""
        for i, (_, parameter) in enumerate(self._named):
            if i not in self._sent and (self._zero_missing or i in self._reached):
                self._put_into_view(i, parameter)
                self._send(i)
        self._exchanging.wait()
        self._reached.clear()
        self._sent.clear()
        self._averaged = True
        for view, (_, parameter) in zip(self._views, self._named, strict=True):
            parameter.grad = view

    def _put_into_view(self, i: int, parameter: torch.Tensor) -> None:
        """The gradient may be another tensor's, or none, if the program has set it to None."""
        if parameter.grad is None:
            self._views[i].zero_()
        elif parameter.grad is not self._views[i]:
            self._views[i].copy_(parameter.grad)

    def _forget_averages(self) -> None:
        """Averages that were never applied do not count in the codec's state."""
        if self._averaged:
            self._averaged = False
            self.synchronizer.discard_step()

    def synchronize(self) -> None:
        """Return when the gradients of passes that were not complete, too, hold averages; no effect if there are none."""
        if self._reached:
            self._exchange()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Wait for the averages and update.

        closure: computes the loss and its gradients; the wrapped optimizer may call it several times, as LBFGS does. It gets
        the loss averaged over the ranks, which must all decide alike.
        """
        if closure is None:
            self._complete()
            loss = self.optimizer.step()
        else:
            loss = self.optimizer.step(lambda: self._evaluated(closure))
        self._averaged = False
        return loss

    def _complete(self) -> None:
        """Let the gradients hold averages. Raises Misuse for a gradient that is not exchanged, and for one that is missing."""
        if not self._hooks:
            raise syncopate.Misuse(f"this {type(self).__name__} was closed, or this process was forked from the one that made it; allowed: "
                                   "step() of the optimizer that it wraps, or another one")
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter.numel() and parameter not in self._exchanged:
                    raise syncopate.Misuse(f"a parameter of shape {tuple(parameter.shape)} has a gradient that is not averaged, because it did "
                                           f"not require one when {type(self).__name__} was made; allowed: close() it and make another one "
                                           "after a layer is unfrozen")
        if self._reached or not self._averaged:
            self._exchange()

    def _evaluated(self, closure: Callable[[], Any]) -> Any:
        loss = closure()
        self._complete()
        self._averaged = False  # applied
        return self._mean(loss)

    def _mean(self, loss: Any) -> Any:
        """The loss averaged over the ranks."""
        if loss is None:
            return None
        own = torch.as_tensor(loss).detach()
        mean = own.to("cpu", copy=True)
        self.group.allreduce(mean, op="average", name="loss")
        return mean.to(own.device)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Zero the gradients in place, also with `set_to_none`: the exchange owns their memory. Raises Misuse while some have left."""
        if not self._hooks:
            self.optimizer.zero_grad(set_to_none)
            return
        if self._sent:
            missing = [name for i, (name, _) in enumerate(self._named) if i not in self._sent]
            raise syncopate.Misuse(f"zero_grad() after a backward pass that did not reach {missing[0]} and {len(missing) - 1} more, while the "
                                   "gradients of others are exchanged; allowed: after step(), or no_sync() around a pass whose gradients "
                                   "of this optimizer are not used")
        self._forget_averages()
        self._reached.clear()
        for view, (_, parameter) in zip(self._views, self._named, strict=True):
            view.zero_()
            parameter.grad = view

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's, equal on all ranks; what the codec keeps is `synchronizer.save()`, this rank's own."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state into the wrapped optimizer."""
        self.optimizer.load_state_dict(state_dict)

    def register_step_pre_hook(self, hook: Any) -> RemovableHandle:
        """Called by the wrapped optimizer's step: with averages, or before its closure."""
        return self.optimizer.register_step_pre_hook(hook)

    def register_step_post_hook(self, hook: Any) -> RemovableHandle:
        """Called by the wrapped optimizer's step."""
        return self.optimizer.register_step_post_hook(hook)

    def detach(self) -> None:
        """In a forked process, which has neither the group nor its memory: gradients are local from now on, and at first None."""
        self._remove_hooks()
        for view, (_, parameter) in zip(self._views, self._named, strict=True):
            if parameter.grad is view:
                parameter.grad = None

    def _remove_hooks(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def close(self) -> None:
        """Leave the group, on every rank: gradients of later backward passes stay local. A group that was given stays open."""
        self._remove_hooks()
        self._exchanging.close()
        if self._has_own_group:
            self.group.close()

    def __getstate__(self) -> NoReturn:
        raise syncopate.Misuse("a DistributedOptimizer belongs to its group; save state_dict() and synchronizer.save()")


def _is_within_another() -> bool:
    """Whether this backward pass was begun by a function's backward, as reentrant checkpoints do."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not _FUNCTION_BACKWARD:
        frame = frame.f_back
    return frame is not None
