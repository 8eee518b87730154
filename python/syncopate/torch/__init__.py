"""The backend "syncopate" of torch.distributed: `init_process_group("syncopate")`, and DDP, FSDP2, DTensor and DCP go on as they are.

From torch 2.14 the name is known once the package is installed; before, `import syncopate.torch` makes it known. Tensors of
accelerators are copied to the CPU and back; `init_process_group("cpu:syncopate,cuda:nccl")` uses another backend for them.
docs/python.md and docs/gpu.md have what it can do.
"""

try:
    import torch.distributed
except ImportError as missing:
    raise ImportError("syncopate.torch needs PyTorch, which this Python does not have: pip install torch") from missing

if not torch.distributed.is_available():
    raise ImportError("syncopate.torch needs a PyTorch with torch.distributed")
if torch.torch_version.TorchVersion(torch.__version__) < "2.1":
    raise ImportError(f"syncopate.torch needs torch 2.1 or later, and its backend 2.14 or later; this is torch {torch.__version__} in "
                      f"{torch.__path__[0]}: pip install 'torch>=2.1'")

from syncopate.torch.backend import Backend
from syncopate.torch.cached import CachedDataset
from syncopate.torch.ddp_hook import HookState, hook
from syncopate.torch.distributed import DistributedDataParallel
from syncopate.torch.embedding import Embedding
from syncopate.torch.logging_data import name_backends
from syncopate.torch.modes import accelerator
from syncopate.torch.optimizer import DistributedOptimizer
from syncopate.torch.pictures import PictureDecoder
from syncopate.torch.planning import plan, profile
from syncopate.torch.recording import Recorder
from syncopate.torch.ruled import RuleOptimizer
from syncopate.torch.served import ServedOptimizer
from syncopate.torch.sharded import ShardedOptimizer
from syncopate.torch.sources import ThrottledSource
from syncopate.torch.work import forward_to_python

__all__ = [
    "Backend",
    "CachedDataset",
    "DistributedDataParallel",
    "DistributedOptimizer",
    "Embedding",
    "HookState",
    "PictureDecoder",
    "Recorder",
    "RuleOptimizer",
    "ServedOptimizer",
    "ShardedOptimizer",
    "ThrottledSource",
    "hook",
    "plan",
    "profile",
    "register",
]


def register():
    """Make the backend "syncopate" known to torch.distributed, for the CPU and the accelerator that torch knows by now.

    Again it has no effect, unless the module of an accelerator has been imported since.
    """
    names, devices = torch.distributed.Backend, ["cpu", *filter(None, [accelerator()])]
    if "SYNCOPATE" not in names._plugins:
        forward_to_python()
        name_backends()
    if names.backend_capability.get("syncopate") != devices:
        defaults = getattr(names, "default_device_backend_map", {})
        unclaimed = set(devices) - set(defaults)
        names.register_backend("syncopate", Backend.create, devices=devices)
        for device in unclaimed:  # programs that name no backend get the vendor's, which may be registered later
            defaults.pop(device, None)


register()
