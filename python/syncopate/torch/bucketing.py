"""The sizes of DistributedDataParallel's buckets: a policy's plan of the measured backward pass, or one size for all."""

import dataclasses
import inspect
import logging

import torch

from syncopate import foresight
from syncopate.torch import choosing, parameters, planning

ACCEPTS_LIST = "bucket_cap_mb_list" in inspect.signature(torch.nn.parallel.DistributedDataParallel).parameters  # since torch 2.11
_log = logging.getLogger("syncopate")


@dataclasses.dataclass(frozen=True)
class Measuring:
    """How a plan is made. sample, loss: those of `planning.profile`; policy: a name from `syncopate info policy`."""

    sample: object
    loss: object = None
    policy: str = "exact_dp"


def sizes(group, law, module, measuring, *, is_rebuilt):
    """Options of torch's DistributedDataParallel in MiB, equal on all ranks: `bucket_cap_mb_list`, or else `bucket_cap_mb`.

    law: of the exchange. measuring: None for equal sizes, which are also what torch before 2.11 and a model with several types
    of parameters get, because torch forms the buckets of each type by themselves. is_rebuilt: DDP forms its buckets again after
    the first step, in the order in which gradients arrive; otherwise they stay in the model's order.
    """
    trained = parameters.trained(module)
    if measuring is None or not ACCEPTS_LIST or len({parameter.dtype for _, parameter in trained}) > 1:
        total = sum(parameter.numel() * parameter.element_size() for _, parameter in trained)
        return {"bucket_cap_mb": law.bucket_bytes(total) / (1 << 20)}
    measured = planning.profile(module, measuring.sample, loss=measuring.loss)
    in_order = _agreed(group, measured, [name for name, _ in trained], is_rebuilt)
    caps = foresight.ddp_buckets(in_order, _cluster(group, law, in_order), policy=measuring.policy)
    if group.rank == 0:
        _log.info("buckets of policy %s: %s MiB", measuring.policy, ", ".join(f"{cap:.3g}" for cap in caps))
    return {"bucket_cap_mb_list": caps if is_rebuilt else caps[::-1]}  # DDP forms its first buckets from the first layer on


def _agreed(group, measured, names, is_rebuilt):
    """The profile with the slowest rank's times, in rank 0's order of arrival or in that of the names."""
    layer_of = {layer.name: layer for layer in measured.layers}
    forward_s, *backward_s = choosing.slowest(group, [measured.forward_s, *(layer_of[name].backward_s for name in names)])
    order = torch.tensor([names.index(layer.name) for layer in measured.layers] if is_rebuilt else range(len(names)))
    group.broadcast(order, name="order of the gradients")
    layers = tuple(dataclasses.replace(layer_of[names[i]], backward_s=backward_s[i]) for i in order.tolist())
    return dataclasses.replace(measured, forward_s=forward_s, layers=layers)


def _cluster(group, law, profile):
    """The law as a cluster's measured cost, a line up to all bytes of the model."""
    total = sum(layer.elements * layer.bytes_per_element for layer in profile.layers)
    table = [[size, law.seconds(size)] for size in (1, max(total, 2))]
    return {"ranks": group.size, "costs": {"allreduce": {"table": table}}}
