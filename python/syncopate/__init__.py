"""Data-parallel deep-learning training, fast on ordinary networks: groups, collectives and synchronizers for any framework.

    import numpy, syncopate

    with syncopate.Group.join() as group:  # rank and size come from `syncopate run`, torchrun, Slurm or mpirun
        gradient = numpy.full(1 << 20, group.rank, numpy.float32)
        group.allreduce(gradient, op="average", name="gradient")
"""

from syncopate import _core
from syncopate._core import (
    Bucket,
    Combiner,
    Corrupt,
    Error,
    Feedback,
    Gradient,
    Group,
    Mismatch,
    Misuse,
    NotFinite,
    PeerLost,
    RemoteFailure,
    StepStatistics,
    Synchronizer,
    SystemFailure,
    Timeout,
    Unauthorized,
    Work,
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
    "Bucket", "CollectivePlan", "Combiner", "Corrupt", "Entry", "Error", "Feedback", "Gradient", "Group", "Layer", "Mismatch", "Misuse", "NotFinite",
    "PeerLost", "Prediction", "Profile", "RemoteFailure", "Simulation", "StepStatistics", "Synchronizer", "SystemFailure",
    "Timeout", "Unauthorized", "Work", "ddp_buckets", "info", "plan", "plan_collective", "profile", "simulate",
]
