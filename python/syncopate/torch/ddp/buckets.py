"""The sizes of DistributedDataParallel's buckets: a policy's plan of the measured backward pass, or one size for all."""

import dataclasses
import inspect
import logging

import torch

from syncopate import foresight
from syncopate.torch.analysis import planning
from syncopate.torch.shared import parameters

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

    law: of the exchange. measuring: None for equal sizes, which are also what torch before 2.11, its reducer in Python, and a model
    with several types of parameters get, because torch forms the buckets of each type by themselves. is_rebuilt: DDP forms its
    buckets again after the first step, in the order in which gradients arrive; otherwise they stay in the model's order.
    """
    trained = parameters.trained(module)
    if measuring is None or not ACCEPTS_LIST or _is_reducer_in_python() or len({parameter.dtype for _, parameter in trained}) > 1:
        total = sum(parameter.numel() * parameter.element_size() for _, parameter in trained)
        return {"bucket_cap_mb": law.bucket_bytes(total) / (1 << 20)}
    measured = planning.profile(module, measuring.sample, loss=measuring.loss)
    in_order = planning.agreed(group, measured, None if is_rebuilt else [name for name, _ in trained])
    caps = foresight.ddp_buckets(in_order, _cluster(group, law, in_order), policy=measuring.policy)
    if group.rank == 0:
        _log.info("buckets of policy %s: %s MiB", measuring.policy, ", ".join(f"{cap:.3g}" for cap in caps))
    return {"bucket_cap_mb_list": caps if is_rebuilt else caps[::-1]}  # DDP forms its first buckets from the first layer on


def _is_reducer_in_python():
    """Whether DDP will call the hook for each gradient; it forms no buckets then, and takes no list."""
    return torch._dynamo.config.optimize_ddp == "python_reducer"


def _cluster(group, law, profile):
    """The law as a cluster's measured cost, a line up to all bytes of the model."""
    total = sum(layer.elements * layer.bytes_per_element for layer in profile.layers)
    table = [[size, law.seconds(size)] for size in (1, max(total, 2))]
    return {"ranks": group.size, "costs": {"allreduce": {"table": table}}}
