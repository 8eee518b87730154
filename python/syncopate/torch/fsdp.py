"""Hybrid sharding with FSDP2: FSDP reduces gradients within a host, and the library averages their shards between hosts, with any codec."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor, Shard

import syncopate
from syncopate import _core
from syncopate.torch.device.copies import Copies
from syncopate.torch.shared import codec_choice, errors, parameters, rendezvous


def compress(model: torch.nn.Module, mesh: DeviceMesh, *, timeout_s: float | None = None, **coding: Any) -> ReplicaExchange:
    """Average the gradients' shards of an FSDP2 model between hosts with a codec; a ReplicaExchange. Every rank calls it.

    model: `fully_shard(module, mesh=mesh[second])` has sharded each of its modules within a host. mesh: of two dimensions, the
    hosts and the ranks of a host, as one gives HSDP. codec, and other options of HookState: equal on all ranks, but for
    codec="auto:A+B". A codec sees the shard of each parameter as a gradient of its own, with the shard's rows. With "none" the
    weights equal those of native HSDP.

    FSDP calls the exchange when a module's gradients are reduced, and the backward pass waits for it. Errors are raised by
    `backward`. Raises Misuse for a mesh or model that does not fit.
    """
    host, _ = _place_in(mesh)
    return ReplicaExchange(_units(model, mesh.mesh[host].tolist()), mesh, timeout_s, codec_choice.known(coding))


def _place_in(mesh: DeviceMesh) -> list[int]:
    """The numbers of this rank's host and of its place there. Raises Misuse for a mesh that has no such places, or none for this rank."""
    if mesh.ndim != 2:
        raise syncopate.Misuse(f"a mesh of {mesh.ndim} dimension{'s' * (mesh.ndim != 1)}; allowed: two, the hosts and the ranks of a host: "
                               'init_device_mesh(device, (hosts, ranks), mesh_dim_names=("host", "rank"))')
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        raise syncopate.Misuse("this rank is not in the mesh; allowed: a call by the ranks of the mesh only")
    return list(coordinate)


@dataclass
class _Unit:
    """What FSDP reduces at once, for this module: the shards of these parameters, each of a padded size, one after another.

    first: the number of the first of them among the gradients of all units.
    """

    module: FSDPModule
    named: list[tuple[str, DTensor]]
    first: int
    dtype: torch.dtype

    def placed(self, reduced: torch.Tensor) -> list[tuple[int, torch.Tensor]]:
        """(number, values) of each gradient in these reduced shards; a parameter with fewer rows than ranks may have none here."""
        begins = list(itertools.accumulate((_padded_size(parameter) for _, parameter in self.named), initial=0))
        if reduced.numel() != begins[-1] or reduced.dtype != self.dtype:
            name, _ = self.named[0]
            raise syncopate.Misuse(
                f"FSDP reduced {reduced.numel()} elements of {reduced.dtype} of the module with parameter {name}; allowed: all its "
                f"{begins[-1]}, of {self.dtype}: every parameter of a module that fully_shard was given needs a gradient"
            )
        locals_ = [parameter.to_local() for _, parameter in self.named]
        return [(self.first + i, reduced[begins[i]:begins[i] + own.numel()].view(own.shape)) for i, own in enumerate(locals_) if own.numel()]


def _padded_size(parameter: DTensor) -> int:
    """Elements of the largest shard of a parameter."""
    placement: Any
    (placement,) = parameter.placements
    dimension = parameter.shape[placement.dim]
    return parameter.numel() // dimension * math.ceil(dimension / parameter.device_mesh.size()) if dimension else 0


def _units(model: torch.nn.Module, ranks_of_host: list[int]) -> list[_Unit]:
    """The units of a model, in the order of its modules. Raises Misuse for one that is not sharded over these ranks."""
    modules: dict[Any, list[tuple[str, Any]]] = {}  # by the state of a unit
    for prefix, module in model.named_modules():
        if isinstance(module, FSDPModule):
            modules.setdefault(module._get_fsdp_state(), []).append((prefix, module))  # fully_shard([a, b]) makes one unit of both
    units, number = [], 0
    for state, members in modules.items():
        named = [(name, parameter) for prefix, module in members for name, parameter in _own(prefix, module) if parameter.requires_grad]
        for name, parameter in named:
            _require_sharded(name, parameter, ranks_of_host)
        if named:
            dtype = state._mp_policy.reduce_dtype or state._mp_policy.param_dtype or named[0][1].dtype
            units.append(_Unit(members[-1][1], named, number, dtype))
            number += len(named)
    if not units:
        raise syncopate.Misuse("the model has no module with trained parameters that fully_shard was given; allowed: after fully_shard")
    return units


def _own(prefix: str, module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """(name, parameter) of a module without those of modules in it that are units of their own."""
    for name, parameter in module.named_parameters(recurse=False):
        yield f"{prefix}.{name}" if prefix else name, parameter
    for name, child in module.named_children():
        if not isinstance(child, FSDPModule):
            yield from _own(f"{prefix}.{name}" if prefix else name, child)


def _require_sharded(name: str, parameter: Any, ranks: list[int]) -> None:
    mesh = parameter.device_mesh if isinstance(parameter, DTensor) else None
    if mesh is None or mesh.ndim != 1 or mesh.mesh.tolist() != ranks or not isinstance(parameter.placements[0], Shard):
        found = "is not sharded" if mesh is None else f"is sharded over ranks {mesh.mesh.tolist()}"
        raise syncopate.Misuse(f"parameter {name} {found}; allowed: over the ranks {ranks} of the host only: fully_shard(module, mesh=mesh[second "
                               "dimension]); FSDP then leaves the exchange between hosts to this one")


class ReplicaExchange:
    """Averages the shards of gradients between the ranks that have the same place on their hosts, see `compress`.

    It is Stateful for torch.distributed.checkpoint: `state_dict` has what the codec keeps, which differs from rank to rank.
    """

    def __init__(self, units: list[_Unit], mesh: DeviceMesh, timeout_s: float | None, coding: dict[str, Any]) -> None:
        if _core.auto_codecs(coding.get("codec", "none")):
            raise syncopate.Misuse(f"codec={coding['codec']!r}; allowed: one codec, chosen before")
        self._units = units
        local = [(name, parameter.to_local(), unit.dtype) for unit in units for name, parameter in unit.named]
        gradients = [syncopate.Gradient(name, tuple(own.shape) if own.numel() else (1,), _type_of(name, dtype)) for name, own, dtype in local]
        weights = parameters.weights([(name, own) for name, own, _ in local]) if all(own.numel() for _, own, _ in local) else []
        self.group = rendezvous.own_group(mesh.get_group(0), timeout_s)
        self._combiner = syncopate.Combiner(self.group, gradients, weights=weights, **coding)
        self.group.barrier()  # a rank whose coding differs is an error on every rank
        self._copies = Copies(self.group.abort, [unit.named[0][1] for unit in units])
        self._is_in_step = False
        for number, unit in enumerate(units):
            unit.module.set_all_reduce_hook(functools.partial(self._combine, number, unit))

    def _combine(self, number: int, unit: _Unit, reduced: torch.Tensor) -> None:
        """Return when `reduced` has the average, or the current stream will."""
        if not self._is_in_step:
            self._is_in_step = errors.call_after_backward(self._end_step)
        if reduced.is_cpu:
            self._combiner.combine(unit.placed(reduced))
            return
        unit.placed(reduced)  # raises before anything is copied
        crossing = self._copies.down(number, reduced)
        crossing.wait()
        self._combiner.combine(unit.placed(crossing.host))
        self._copies.back(number, crossing)

    def _end_step(self) -> None:
        self._is_in_step = False
        self._combiner.end_step()

    def discard_step(self) -> None:
        """Discard what the last step changed in the codec's state, because no rank applies its averages. Between steps, on every rank."""
        self._combiner.discard_step()

    def _place(self) -> str:
        return f"rank {dist.get_rank()} of {dist.get_world_size()}"

    def state_dict(self) -> dict[str, Any]:
        """The codec's state on this rank after the last step, under the rank's number."""
        return {self._place(): self._combiner.save()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` gave on this rank, of the same number. Raises Misuse for another coding, model or number of ranks."""
        if self._place() not in state:
            raise syncopate.Misuse(f"the saved state is of {', '.join(state)}; this is {self._place()}; allowed: the same number of ranks and hosts")
        self._combiner.restore(*state[self._place()])

    def close(self) -> None:
        """Leave the group, on every rank; the model's gradients are then averaged within a host only."""
        for unit in self._units:
            unit.module.set_all_reduce_hook(lambda _: None)
        self._copies.close()
        self._combiner.close()
        self.group.close()


def _type_of(name: str, dtype: torch.dtype) -> str:
    if dtype not in parameters.DTYPES:
        raise syncopate.Misuse(f"gradients of {name} are reduced in {dtype}; allowed: {', '.join(map(str, parameters.DTYPES))}")
    return parameters.DTYPES[dtype]
