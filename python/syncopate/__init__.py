"""Data-parallel deep-learning training, fast on ordinary networks: groups, collectives and synchronizers for any framework.

    import numpy, syncopate

    with syncopate.Group.join() as group:  # rank and size come from `syncopate run`, torchrun, Slurm or mpirun
        gradient = numpy.full(1 << 20, group.rank, numpy.float32)
        group.allreduce(gradient, op="average", name="gradient")
"""

from typing import TYPE_CHECKING

from syncopate import _core, serving
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
    Mismatch,
    Misuse,
    NotFinite,
    Optimizer,
    Parameter,
    PeerLost,
    RemoteFailure,
    StepStatistics,
    Synchronizer,
    SystemFailure,
    Timeout,
    Unauthorized,
    Work,
    additive,
    gather,
    scatter,
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

if TYPE_CHECKING:
    from syncopate._server import (
        JobAccess as JobAccess,
        KeptTables as KeptTables,
        Server as Server,
        ServerStatus as ServerStatus,
        TableWorker as TableWorker,
        WorkerStatistics as WorkerStatistics,
        access_from_environment as access_from_environment,
        make_certificates as make_certificates,
        status_of as status_of,
    )

for _class in vars(_core).values():
    if isinstance(_class, type):
        _class.__module__ = __name__  # where users find it, and what messages show


def __getattr__(name):
    if name not in serving.NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = serving.load(name)
    return globals()[name]


def __dir__():
    return sorted({*globals(), *serving.NAMES})


__version__ = _core.__version__
__all__ = [
    "Bucket", "Codec", "CodecStep", "CodecTensor", "CollectivePlan", "Combiner", "Corrupt", "Entry", "Error", "Feedback", "Gradient", "Group", "Layer", "Mismatch", "Misuse", "NotFinite", "Optimizer",
    "Parameter", "PeerLost", "Prediction", "Profile", "RemoteFailure", "Simulation", "StepStatistics", "Synchronizer", "SystemFailure",
    "Timeout", "Unauthorized", "Work", "additive", "ddp_buckets", "gather", "info", "plan", "plan_collective", "profile", "scatter", "simulate",
]
