"""An optimizer whose work and state the ranks divide: gradients are reduce-scattered, and weights arrive during the forward pass."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch.utils.hooks import RemovableHandle

import syncopate
import syncopate.ending  # it leaves groups at the end of the program, after `_arrive`, if it is known before
from syncopate.torch.device.copies import Copies
from syncopate.torch.device.weights import StagedShards
from syncopate.torch.optim import rules
from syncopate.torch.optim.accumulation import Accumulating, second_gradient
from syncopate.torch.optim.rule_optimizer import Ruled
from syncopate.torch.shared import autograd_hooks, parameters, rendezvous
from syncopate.torch.shared.weight_arrival import Arrivals

if TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

_open: weakref.WeakValueDictionary[int, ShardedOptimizer] = weakref.WeakValueDictionary()
_numbers = itertools.count()  # in the order of creation, which is equal on all ranks


class ShardedOptimizer(Accumulating, Ruled):
    """Trains `net` by a rule of the library: "sgd", "momentum", "nesterov", "adagrad", "adam", "adamw", "lars" or
    "lamb".

    Each rank keeps the state of its shards, 1/N of every parameter up to blocks of 4096 elements, and updates them. An
    update follows the reduce-scatter of its gradients, during the backward pass; the rates are those when it begins. Weights
    are gathered during the next forward pass; a layer waits for its own in its forward pre-hook. `step` does not wait.

    net: the same on all ranks; its parameters (float32, contiguous) and buffers become rank 0's. Parameters on an accelerator
    are updated on the CPU: gradients, and weights of this rank's shards, are copied down, and all weights up. groups: groups
    of its parameters, as torch's optimizers take them, with their own "lr" and "spared" (see RuleOptimizer); by default all
    that require gradients. group: a syncopate.Group; by default one of its own for the ranks of torch.distributed, or for
    those of the job. policy, fusion_bytes, algorithm, clip_norm: those of the Synchronizer. zero_missing: parameters without
    a gradient count as zero; otherwise they are an error. hyperparameters: by the library's names (docs/optimizers.md).

    The memory of weights changes between the backward and the forward pass: call `synchronize` before they are read or
    written otherwise than by layers of `net`; its `state_dict` and `load_state_dict` do so themselves. A gradient that has
    left is None. Raises Misuse, and in all passes what the exchange raises.
    """

    def __init__(self, net: torch.nn.Module, rule: str, lr: float, *, groups: ParamsT | None = None, group: syncopate.Group | None = None,
                 policy: str | syncopate.Policy = "fusion", fusion_bytes: int = 0, algorithm: str = "auto", clip_norm: float = 0.0,
                 zero_missing: bool = False, **hyperparameters: float) -> None:
        if isinstance(net, torch.nn.parallel.DistributedDataParallel):
            raise syncopate.Misuse("net is in DistributedDataParallel, which exchanges gradients too; give the module that it wraps")
        self._is_made = False
        super().__init__(groups or [p for p in net.parameters() if p.requires_grad], rule, lr, hyperparameters)
        self._named = parameters.updated(self, net)
        self._has_own_group, self.group = group is None, group or rendezvous.own_group()
        self._library, hosts = self._made(self._named, self.group, own_shards_only=True)
        parameters.become_those_of_rank_0(self.group, net)
        self.synchronizer = syncopate.Synchronizer(
            self.group, parameters.gradients(self._named), weights=hosts, exchange="sharded", update=self._library, policy=policy,
            fusion_bytes=fusion_bytes, algorithm=algorithm, clip_norm=clip_norm)
        self._views: list[torch.Tensor] = [torch.from_dlpack(self.synchronizer.gradient(i)) for i in range(len(self._named))]
        self._staged = None if parameters.on_cpu(self._named) else self._made_staged(hosts)
        self._exchanging = self._staged or self.synchronizer
        self._zero_missing, self._steps = zero_missing, 0
        self._sent: set[int] = set()
        self._is_underway = False
        self.waited_s = 0.0  # for weights, in all steps
        self._arrivals = Arrivals(net, self._named, self._receive)
        self._hooks = list(self._hooked(net))
        autograd_hooks.detach_in_forks(self)
        self._is_made = True
        self._number = next(_numbers)
        _open[self._number] = self

    @property
    def copies(self) -> list[Copies]:
        """The Copies of this optimizer, which a Recorder observes; none on the CPU."""
        return [self._staged.copies] if self._staged else []

    def _made_staged(self, hosts: list[torch.Tensor]) -> StagedShards:
        shards = [self._library.shard(i, self.group.rank) for i in range(len(self._named))]
        return StagedShards(self.synchronizer, self.group, self._named, hosts, shards)

    def _hooked(self, net: torch.nn.Module) -> Iterator[RemovableHandle]:
        synchronize = autograd_hooks.Hook(self.synchronize)
        yield net.register_state_dict_pre_hook(synchronize)
        before_loading = getattr(net, "register_load_state_dict_pre_hook", net._register_load_state_dict_pre_hook)  # its name before torch 2.5
        yield before_loading(synchronize)
        for i, (_, parameter) in enumerate(self._named):
            yield parameter.register_post_accumulate_grad_hook(autograd_hooks.Hook(self._accumulated, i))

    def _receive(self, i: int) -> None:
        if self._is_underway:
            with self._timed():
                self._exchanging.wait_for_gradient(i)

    def _accumulated(self, i: int) -> None:
        if self._accumulates:
            return
        name, parameter = self._named[i]
        if i in self._sent:
            raise second_gradient(name)
        self._begin_step()
        self._arrivals.used(i)
        self._send(i, parameter)

    def _begin_step(self) -> None:
        """At the first gradient of a step."""
        if self._sent:
            return
        self._end_exchange()
        options = self._by_parameter()
        self._steps += 1
        self._library.begin_step([float(options[parameter]["lr"]) for _, parameter in self._named], self._steps)

    def _send(self, i: int, parameter: torch.Tensor) -> None:
        """Nothing but the exchange uses the gradient's memory until the next step."""
        gradient, parameter.grad = parameter.grad, None
        self._sent.add(i)
        if self._staged:
            self._staged.send(i, gradient)
            return
        if gradient is not None:
            self._views[i].copy_(gradient)
        self.synchronizer.ready(i)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """End this rank's step; `closure` computes the loss and its gradients. Raises Misuse, on every rank, for a missing gradient."""
        loss = self._loss_of(closure)
        self._begin_step()
        for i, (_, parameter) in enumerate(self._named):
            if i not in self._sent and (self._zero_missing or parameter.grad is not None):  # it is of an earlier micro-batch
                self._send(i, parameter)
        if len(self._sent) < len(self._named):
            self._exchanging.wait()  # which names one that is missing
        self._sent.clear()
        self._is_underway = True
        self._arrivals.end_step()
        return loss

    def _end_exchange(self) -> None:
        if self._is_underway:
            self._is_underway = False
            with self._timed():
                self._exchanging.wait()

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.waited_s += time.perf_counter() - begin

    def synchronize(self) -> None:
        """Return when the net has all weights of the last step, which then stay until the next backward pass."""
        if self._sent:
            raise syncopate.Misuse("the backward pass has begun to change weights; call step() before they are read or written")
        self._end_exchange()
        self._arrivals.wait_for_all()

    def detach(self) -> None:
        """In a forked process, which has neither the group nor its threads: the net has the weights that had arrived, and stays as it is."""
        self._arrivals.remove()
        for hook in self._hooks:
            hook.remove()
        _open.pop(self._number, None)

    def close(self) -> None:
        """End it with the last step's weights in the net, which from then on is trained without it. Every rank calls it."""
        self.synchronize()
        self.detach()
        self._exchanging.close()
        if self._has_own_group:
            self.group.close()

    def state_dict(self, sharded: bool = False) -> dict[str, Any]:
        """The state of all parameters in torch's format, gathered on every rank; every rank calls it. sharded: this rank's alone."""
        self.synchronize()
        if sharded:
            own = {name: torch.from_dlpack(array).clone() for name, array in self._library.state.items()}
            return super().state_dict() | {"shard": {"rank": self.group.rank, "ranks": self.group.size, "step": self._steps, "state": own}}
        rules.put_state(self, self._named, self.rule, self._steps, self._gathered())
        whole = super().state_dict()
        self.state.clear()
        return whole

    def _gathered(self) -> dict[str, torch.Tensor]:
        """The vectors of all ranks' states by the library's names, parameter after parameter."""
        ranks = range(self.group.size)
        whole: dict[str, torch.Tensor] = {}
        lengths = [sum(place.stop - place.start for place in self._places(rank)) for rank in ranks]
        for name, array in self._library.state.items():
            parts = torch.empty(sum(lengths), device="cpu")
            parts.split(lengths)[self.group.rank].copy_(torch.from_dlpack(array))
            self.group.allgather_v(parts, lengths, name="optimizer state")
            whole[name] = torch.empty_like(parts)
            for rank, part in zip(ranks, parts.split(lengths), strict=True):
                for own, of_all in self._shards(rank, part, whole[name]):
                    of_all.copy_(own)
        return whole

    def _places(self, rank: int) -> Iterator[slice]:
        """Where the rank's shard of each parameter lies, in vectors with parameter after parameter."""
        begin = 0
        for i, (_, parameter) in enumerate(self._named):
            first, end = self._library.shard(i, rank)
            yield slice(begin + first, begin + end)
            begin += parameter.numel()

    def _shards(self, rank: int, part: torch.Tensor, whole: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """(shard in `part`, the same in `whole`) of each parameter; `part` has the rank's shards one after another."""
        at = 0
        for place in self._places(rank):
            length = place.stop - place.start
            yield part[at:at + length], whole[place]
            at += length

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a whole state, of any number of ranks or of torch's SGD, Adam or AdamW, or this rank's own; every rank calls it.

        Raises Misuse for the state of another rule, and for a shard of another rank or of another number of ranks.
        """
        self.synchronize()
        shard = state_dict.get("shard")
        place = (self.group.rank, self.group.size)
        if shard and (shard["rank"], shard["ranks"]) != place:
            raise syncopate.Misuse(f"the state is the shard of rank {shard['rank']} of {shard['ranks']}, and this is rank {place[0]} of "
                                   f"{place[1]}; allowed: its own, or a whole state, which state_dict() returns")
        super().load_state_dict(state_dict)
        self._steps, whole = rules.taken_state(self, self._named, self.rule)
        for name, array in self._library.state.items():
            own = torch.from_dlpack(array)
            if shard:
                own.copy_(shard["state"][name])
            elif name in whole:
                for mine, of_all in self._shards(self.group.rank, own, whole[name]):
                    mine.copy_(of_all)
            else:
                own.zero_()
        if shard:
            self._steps = shard["step"]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Refused after construction: what is exchanged is fixed."""
        if self._is_made:
            raise syncopate.Misuse("what is exchanged is fixed; give all groups of parameters to ShardedOptimizer(groups=...)")
        super().add_param_group(param_group)

    def __getstate__(self) -> NoReturn:
        raise syncopate.Misuse("a ShardedOptimizer belongs to its group; save state_dict()")


@atexit.register
def _arrive() -> None:
    """Other ranks may wait for weights of this one."""
    if getattr(sys, "last_value", None) is None:
        for one in list(_open.values()):
            one._end_exchange()
