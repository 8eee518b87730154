"""Data-parallel deep-learning training, fast on ordinary networks: groups, collectives and synchronizers for any framework.

    import numpy, syncopate

    with syncopate.Group.join() as group:  # rank and size come from `syncopate run`, torchrun, Slurm or mpirun
        gradient = numpy.full(1 << 20, group.rank, numpy.float32)
        group.allreduce(gradient, op="average", name="gradient")
"""

from syncopate import _core
from syncopate._core import (
    Bucket,
    Codec,
    CodecStep,
    CodecTensor,
    Combiner,
    Corrupt,
    Error,
    Feedback,
    Gradient,
    Group,
    JobAccess,
    KeptTables,
    Mismatch,
    Misuse,
    NotFinite,
    Optimizer,
    Parameter,
    PeerLost,
    RemoteFailure,
    Server,
    ServerStatus,
    StepStatistics,
    Synchronizer,
    SystemFailure,
    TableWorker,
    Timeout,
    Unauthorized,
    Work,
    WorkerStatistics,
    access_from_environment,
    additive,
    gather,
    scatter,
    status_of,
)

from syncopate.foresight import (
    CollectivePlan,
    Entry,
    Layer,
    Prediction,
    Profile,
    Simulation,
    ddp_buckets,
    info,
    plan,
    plan_collective,
    profile,
    simulate,
)

for _class in vars(_core).values():
    if isinstance(_class, type):
        _class.__module__ = __name__  # where users find it, and what messages show

__version__ = _core.__version__
__all__ = [
    "Bucket", "Codec", "CodecStep", "CodecTensor", "CollectivePlan", "Combiner", "Corrupt", "Entry", "Error", "Feedback", "Gradient", "Group", "JobAccess", "KeptTables", "Layer", "Mismatch",
    "Misuse", "NotFinite", "Optimizer", "Parameter", "PeerLost", "Prediction", "Profile", "RemoteFailure", "Server", "ServerStatus", "Simulation", "StepStatistics", "Synchronizer", "SystemFailure",
    "TableWorker", "Timeout", "Unauthorized", "Work", "WorkerStatistics", "access_from_environment", "additive", "ddp_buckets", "gather", "info", "plan", "plan_collective", "profile", "scatter",
    "simulate", "status_of",
]
