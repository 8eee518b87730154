"""Data-parallel deep-learning training, fast on ordinary networks: groups, collectives and synchronizers for any framework.

    import numpy, syncopate

    with syncopate.Group.join() as group:  # rank and size come from `syncopate run`, torchrun, Slurm or mpirun
        gradient = numpy.full(1 << 20, group.rank, numpy.float32)
        group.allreduce(gradient, op="average", name="gradient")
"""

from syncopate import _core
from syncopate._core import (
    Bucket,
    ClockView,
    Codec,
    CodecStep,
    CodecTensor,
    Combiner,
    Consistency,
    Corrupt,
    Error,
    Feedback,
    Gradient,
    Group,
    JobAccess,
    KeptRows,
    KeptTables,
    Mismatch,
    Misuse,
    NotFinite,
    Optimizer,
    Pace,
    Parameter,
    PeerLost,
    Placement,
    Policy,
    PolicyLayer,
    PolicyStep,
    RemoteFailure,
    Rule,
    RuleStep,
    Server,
    ServerStatus,
    ServerView,
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

from syncopate.serving import serve

for _class in vars(_core).values():
    if isinstance(_class, type):
        _class.__module__ = __name__  # where users find it, and what messages show

__version__ = _core.__version__
__all__ = [
    "Bucket", "ClockView", "Codec", "CodecStep", "CodecTensor", "CollectivePlan", "Combiner", "Consistency", "Corrupt", "Entry", "Error", "Feedback",
    "Gradient", "Group", "JobAccess", "KeptRows", "KeptTables", "Layer", "Mismatch", "Misuse", "NotFinite", "Optimizer", "Pace", "Parameter", "PeerLost",
    "Placement", "Policy", "PolicyLayer", "PolicyStep", "Prediction", "Profile", "RemoteFailure", "Rule", "RuleStep", "Server", "ServerStatus",
    "ServerView", "Simulation", "StepStatistics", "Synchronizer", "SystemFailure", "TableWorker", "Timeout", "Unauthorized", "Work",
    "WorkerStatistics", "access_from_environment", "additive", "ddp_buckets", "gather", "info", "plan", "plan_collective", "profile", "scatter",
    "serve", "simulate", "status_of",
]
