"""An optimizer for any torch program without DistributedDataParallel: gradients are averaged while the backward pass goes on."""

import torch

import syncopate
from syncopate.torch import choosing, meeting, parameters
from syncopate.torch.ruled import RuleOptimizer
from syncopate.torch.wrapping import Wrapping


class DistributedOptimizer(Wrapping):
    """Wraps an optimizer of torch: its step uses gradients averaged over the ranks, which lie in the group's memory.

    model: whose parameters get the gradients; they and its buffers become rank 0's. group: a syncopate.Group; by default
    one of its own for the ranks of torch.distributed, or for those of the job. Other options are the Synchronizer's
    (policy, codec, feedback, exchange, clip_norm ...), equal on all ranks; exchange ends with gradients. If it wraps a
    RuleOptimizer of "lars" or "lamb", the ranks divide the work of the norms.

    `backward` starts the exchanges and `step` waits for them; so does `synchronize`, for what looks at gradients before
    (`clip_grad_norm_`), and reading `param_groups` of a complete backward pass, as GradScaler does. If averages are never
    applied, on any rank, as when GradScaler finds an infinity, the codec's state is as before.
    """

    def __init__(self, optimizer, model, *, group=None, weights=True, **options):
        self._attach(optimizer, parameters.updated(optimizer, model), group or meeting.own_group(), weights, options)
        self._has_own_group = group is None
        parameters.become_those_of_rank_0(self.group, model)

    def _attach(self, optimizer, named, group, weights, options):
        """Make the synchronizer of these parameters, whose backward passes use it from now on."""
        super().__init__(optimizer)
        self._named, self.group, self._has_own_group = named, group, True
        if isinstance(optimizer, RuleOptimizer):
            optimizer.share_norms(group)
        coding = choosing.named(options)
        self.coding = {"codec": coding.get("codec", "none"), "exchange": coding.get("exchange", "allreduce")}
        values = parameters.weights(self._named) if weights else []
        self.synchronizer = syncopate.Synchronizer(self.group, parameters.gradients(self._named), weights=values, **options)
        self._views = [torch.from_dlpack(self.synchronizer.gradient(i)) for i in range(len(self._named))]
        self._ready, self._averaged = set(), False
        self._hooks = []
        for i, (_, parameter) in enumerate(self._named):
            parameter.grad = self._views[i]
            hook = parameter.register_post_accumulate_grad_hook(lambda parameter, i=i: self._accumulated(i, parameter))
            self._hooks.append(hook)

    def _accumulated(self, i, parameter):
        if not self._ready and not self._accumulates:
            self._forget_averages()
        if parameter.grad is not self._views[i]:  # it was set to None, and autograd made another
            self._views[i].copy_(parameter.grad)
            parameter.grad = self._views[i]
        if not self._accumulates:
            self._send(i)

    def _send(self, i):
        """Gradient i of this step is complete."""
        self._ready.add(i)
        self.synchronizer.ready(i)

    def _forget_averages(self):
        """Averages that were never applied do not count in the codec's state."""
        if self._averaged:
            self._averaged = False
            self.synchronizer.discard_step()

    def synchronize(self):
        """Return when the gradients hold the averages; `step` does it too. Raises what the exchange raised."""
        if self._averaged and not self._ready:
            return
        self.synchronizer.wait()
        self._ready.clear()
        self._averaged = True
        for view, (_, parameter) in zip(self._views, self._named, strict=True):
            parameter.grad = view

    def step(self, closure=None):
        """Wait for the averages and update; `closure` computes the loss and its gradients."""
        loss = self._loss_of(closure)
        self.synchronize()
        self.optimizer.step()
        self._averaged = False
        return loss

    def zero_grad(self, set_to_none=True):
        """Zero the gradients in place, also with `set_to_none`: the exchange owns their memory."""
        self._forget_averages()
        for view, (_, parameter) in zip(self._views, self._named, strict=True):
            view.zero_()
            parameter.grad = view

    @property
    def param_groups(self):
        """The wrapped optimizer's, with averages if the backward pass is complete."""
        if len(self._ready) == len(self._named):
            self.synchronize()
        return self.optimizer.param_groups

    def state_dict(self):
        """The wrapped optimizer's, equal on all ranks; what the codec keeps is `synchronizer.save()`, this rank's own."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict):
        """Load the state into the wrapped optimizer."""
        self.optimizer.load_state_dict(state_dict)

    def register_step_pre_hook(self, hook):
        """Called by the wrapped optimizer's step, which follows the wait for the averages."""
        return self.optimizer.register_step_pre_hook(hook)

    def register_step_post_hook(self, hook):
        """Called by the wrapped optimizer's step."""
        return self.optimizer.register_step_post_hook(hook)

    def close(self):
        """Leave the group, on every rank: gradients of later backward passes stay local. A group that was given stays open."""
        for hook in self._hooks:
            hook.remove()
        self.synchronizer.close()
        if self._has_own_group:
            self.group.close()

    def __getstate__(self):
        raise syncopate.Misuse("a DistributedOptimizer belongs to its group; save state_dict() and synchronizer.save()")
