"""Horovod's interface for PyTorch: `import syncopate.horovod as hvd` replaces `import horovod.torch as hvd`.

docs/horovod.md lists what is supported, and what to use instead of the rest.
"""

import syncopate.torch  # noqa: F401 (it reports a PyTorch that cannot be used)
from syncopate.horovod.compression import Compression
from syncopate.horovod.job import (
    ProcessSet,
    add_process_set,
    cross_rank,
    cross_size,
    global_process_set,
    init,
    is_homogeneous,
    is_initialized,
    join,
    local_rank,
    local_size,
    rank,
    remove_process_set,
    shutdown,
    size,
)
from syncopate.horovod.objects import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from syncopate.horovod.operations import (
    allgather,
    allgather_async,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall,
    alltoall_async,
    barrier,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    grouped_reducescatter_async,
    poll,
    reducescatter,
    reducescatter_async,
    synchronize,
)
from syncopate.horovod.optimizer import DistributedOptimizer
from syncopate.horovod.reductions import Adasum, Average, Max, Min, Product, Sum
from syncopate.horovod.rejected import Rejected

SyncBatchNorm = Rejected("SyncBatchNorm", "torch.nn.GroupNorm, or batch statistics of each rank")
elastic = Rejected("elastic", "checkpoints, and torchrun --max-restarts, which starts all ranks again after a failure")
run = Rejected("run", "`syncopate run -n N -- python script.py`, torchrun or mpirun")
sparse_allreduce_async = Rejected("sparse_allreduce_async", "allreduce_async(tensor.to_dense())")
start_timeline = Rejected("start_timeline", "torch.profiler")
stop_timeline = Rejected("stop_timeline", "torch.profiler")


def _not_built() -> bool:
    """Whether Horovod was built with this library: no, the transport is Syncopate's own."""
    return False


mpi_enabled = mpi_built = mpi_threads_supported = gloo_enabled = gloo_built = nccl_built = _not_built
ddl_built = ccl_built = cuda_built = rocm_built = _not_built

__all__ = [
    "Adasum", "Average", "Compression", "DistributedOptimizer", "Max", "Min", "ProcessSet", "Product", "Sum",
    "SyncBatchNorm", "add_process_set", "allgather", "allgather_async", "allgather_object", "allreduce", "allreduce_",
    "allreduce_async", "allreduce_async_", "alltoall", "alltoall_async", "barrier", "broadcast", "broadcast_",
    "broadcast_async", "broadcast_async_", "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters",
    "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "elastic", "global_process_set", "gloo_built",
    "gloo_enabled", "grouped_allgather", "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_",
    "grouped_allreduce_async", "grouped_allreduce_async_", "grouped_reducescatter", "grouped_reducescatter_async",
    "init", "is_homogeneous", "is_initialized", "join", "local_rank", "local_size", "mpi_built", "mpi_enabled",
    "mpi_threads_supported", "nccl_built", "poll", "rank", "reducescatter", "reducescatter_async", "remove_process_set",
    "rocm_built", "run", "shutdown", "size", "sparse_allreduce_async", "start_timeline", "stop_timeline", "synchronize",
]
