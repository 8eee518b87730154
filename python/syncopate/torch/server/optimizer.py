"""An optimizer whose steps the parameter server makes: updates leave during the backward pass, weights arrive during the forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import torch
from torch.utils.hooks import RemovableHandle

import syncopate
from syncopate.torch.device.copies import on_host
from syncopate.torch.device.weights import StagedTables
from syncopate.torch.optim import rules
from syncopate.torch.optim.accumulation import second_gradient
from syncopate.torch.optim.wrapper import Wrapping
from syncopate.torch.shared import autograd_hooks, parameters
from syncopate.torch.shared.weight_arrival import Arrivals


class ServedOptimizer(Wrapping):
    """Wraps torch's SGD, Adam or AdamW: servers keep the weights of `net`, a table for each parameter, and apply its rule.

    An update leaves when its gradient is ready; a layer waits for its weights in its forward pre-hook; `step` ends the step
    of this worker and does not wait. Options are those of TableWorker.connect (consistency, placement, codec, feedback,
    answers, timeout_s ...), equal on all workers; servers and place come from the environment that `syncopate run
    --servers K` sets. The job starts with worker 0's weights, in the first forward pass; buffers stay each worker's own.

    Parameters are contiguous, of float32, float16 or bfloat16: servers keep float32, and each worker a copy in it, from which
    weights of 16 bits are rounded. Those on an accelerator are tables in the memory of the CPU: gradients are copied down, and
    weights up; a gradient that has left is None. Their memory changes between the backward and the forward pass: call
    `synchronize` before weights are read otherwise than by layers of `net`; its `state_dict` does so itself. Raises as
    TableWorker does, also from the backward and the forward pass.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, net: torch.nn.Module, **options: Any) -> None:
        super().__init__(optimizer)
        rule, hyperparameters = rules.rule_of(optimizer)
        self._named = parameters.in_place(parameters.updated(optimizer, net), (torch.float32, torch.float16, torch.bfloat16))
        self.worker = syncopate.TableWorker.connect(optimizer=rule, hyperparameters=hyperparameters, **options)
        hosts = on_host([parameter for _, parameter in self._named])
        for (name, _), host in zip(self._named, hosts, strict=True):
            self.worker.create_table(name, host)
        self._tables = self.worker if parameters.on_cpu(self._named) else StagedTables(self.worker, self._named, hosts)
        self._rule = (rule, hyperparameters)
        self._earlier: syncopate.KeptTables | None = None
        self._residuals: tuple[int, list[bytes]] | None = None
        self._take_groups()
        self._started = self._finished = False
        self._sent: set[int] = set()  # tables that were updated in this step
        self._arrivals = Arrivals(net, self._named, self._receive)
        self._hooks = list(self._hooked(net))
        autograd_hooks.detach_in_forks(self)

    def _take_groups(self) -> None:
        groups = {parameter: group for group in self.optimizer.param_groups for parameter in group["params"]}
        self._groups = [groups[parameter] for _, parameter in self._named]

    def _hooked(self, net: torch.nn.Module) -> Iterator[RemovableHandle]:
        yield net.register_forward_pre_hook(autograd_hooks.Hook(self.start), prepend=True)
        yield net.register_state_dict_pre_hook(autograd_hooks.Hook(self.synchronize))
        for i, (_, parameter) in enumerate(self._named):
            yield parameter.register_post_accumulate_grad_hook(autograd_hooks.Hook(self._accumulated, i))

    def start(self) -> None:
        """Take the weights of worker 0, or of the job if it is in progress; the first forward pass does it too."""
        if self._started:
            return
        self._tables.start(self._earlier)
        if self._residuals is not None:
            self.worker.restore(*self._residuals)
        self._earlier, self._started = None, True

    def _receive(self, i: int) -> None:
        self.start()
        self._tables.sync(i)

    def _accumulated(self, i: int) -> None:
        if self._accumulates or self._finished:
            return
        name, parameter = self._named[i]
        if i in self._sent:
            raise second_gradient(name)
        self._arrivals.used(i)
        gradient = parameter.grad
        if gradient is None:
            return  # autograd calls this when there is one
        if not gradient.is_contiguous():
            gradient = parameter.grad = gradient.contiguous()
        self._tables.update(i, gradient, self._rate(i))
        self._sent.add(i)
        self._arrivals.leave(i)

    def _rate(self, i: int) -> float:
        return float(self._groups[i]["lr"])

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """End this worker's step; `closure` computes the loss and its gradients. A parameter without a gradient counts as zero."""
        loss = self._loss_of(closure)
        self.start()
        rate = self._rate(0)
        for i, (_, parameter) in enumerate(self._named):
            if i not in self._sent and self._rate(i) != rate:
                self._tables.update(i, torch.zeros_like(parameter), self._rate(i))
        self._tables.clock(rate)
        self._sent.clear()
        self._arrivals.end_step()
        return loss

    def synchronize(self) -> None:
        """Return when all weights are as fresh as the consistency model requires, and stay so until the next backward pass."""
        if not self._finished:
            self.start()
            self._arrivals.wait_for_all()

    def finish(self) -> None:
        """End the worker after its last step: every parameter then has all workers' updates, bitwise equal on all workers."""
        self.start()
        self._tables.finish()
        self.detach()

    def close(self) -> None:
        """Disconnect, and leave the net as it is. Without `finish`, servers wait for the worker until their patience ends."""
        self.detach()
        self._tables.close()

    def detach(self) -> None:
        """From now on the net is trained without this optimizer, as in a forked process."""
        self._finished = True
        self._arrivals.remove()
        for hook in self._hooks:
            hook.remove()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget gradients that were not sent; those that were sent are zero."""
        self.optimizer.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """The state as the wrapped optimizer would have it, the servers' exact weights, and what this worker's codec keeps.

        Called between steps, by every worker at the same step, or by one under a model with staleness 0.
        """
        self.start()
        kept, (packets, residuals) = self.worker.gather(), self.worker.kept_by_codec()
        vectors = {name: torch.from_dlpack(array) for name, array in kept.state.items()}
        rules.put_state(self.optimizer, self._named, kept.optimizer, kept.step, vectors)
        weights = torch.from_dlpack(kept.weights).split([parameter.numel() for _, parameter in self._named])
        served = {"step": kept.step, "weights": dict(zip([name for name, _ in self._named], weights, strict=True)),
                  "worker": self.worker.worker, "packets": packets, "residuals": [_bytes_as_tensor(part) for part in residuals]}
        state = self.optimizer.state_dict() | {"served": served}
        self.optimizer.state.clear()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from this state: of any worker, with any number of workers and servers, or of torch's optimizer alone.

        Called by every worker, before the first forward pass. Weights of the net become those of the state, if it has them.
        Residuals are loaded by the worker that saved them; others begin with zero.
        """
        if self._started:
            raise syncopate.Misuse("the job has started; allowed: load_state_dict before the first forward pass")
        rules.load(self.optimizer, state_dict)
        self._take_groups()
        if (loaded := rules.rule_of(self.optimizer)) != self._rule:
            raise syncopate.Misuse(f"the state is of {loaded}, and this worker has connected with {self._rule}; allowed: equal ones")
        steps, vectors = rules.taken_state(self.optimizer, self._named, self._rule[0])
        served = state_dict.get("served", {})
        weights = torch.cat([served["weights"][name].view(-1) for name, _ in self._named]) if served else None
        self._earlier = syncopate.KeptTables(served.get("step", steps), self._rule[0], vectors, weights)
        is_own = served.get("worker") == self.worker.worker
        self._residuals = (served["packets"], [part.numpy().tobytes() for part in served["residuals"]]) if is_own else None
        if served:
            with torch.no_grad():
                for name, parameter in self._named:
                    parameter.copy_(served["weights"][name].view_as(parameter))

    def register_step_pre_hook(self, hook: Any) -> NoReturn:
        """Refused: servers make the steps."""
        raise syncopate.Misuse("servers make the steps of this optimizer; call the hook before step()")

    def register_step_post_hook(self, hook: Any) -> NoReturn:
        """Refused: servers make the steps."""
        raise syncopate.Misuse("servers make the steps of this optimizer; call the hook after step()")

    def __getstate__(self) -> NoReturn:
        raise syncopate.Misuse("a ServedOptimizer belongs to its worker; save state_dict()")


def _bytes_as_tensor(content: bytes) -> torch.Tensor:
    """In a tensor, so that torch.load reads a saved state as weights only."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8, device="cpu")
