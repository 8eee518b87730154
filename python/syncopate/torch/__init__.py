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

from syncopate.torch.analysis.planning import plan, profile
from syncopate.torch.analysis.recorder import Recorder
from syncopate.torch.backend.logging_data import name_backends
from syncopate.torch.backend.process_group import Backend
from syncopate.torch.backend.work import forward_to_python
from syncopate.torch.data.dataset import CachedDataset
from syncopate.torch.data.pictures import PictureDecoder
from syncopate.torch.data.sources import ThrottledSource
from syncopate.torch.ddp.hook import HookState, hook
from syncopate.torch.ddp.within_host import WithinHostState
from syncopate.torch.ddp.wrapper import DistributedDataParallel
from syncopate.torch.device.thread_modes import accelerator
from syncopate.torch.optim.distributed import DistributedOptimizer
from syncopate.torch.optim.rule_optimizer import RuleOptimizer
from syncopate.torch.optim.sharded import ShardedOptimizer
from syncopate.torch.server.embedding import Embedding
from syncopate.torch.server.optimizer import ServedOptimizer

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
    "WithinHostState",
    "hook",
    "plan",
    "profile",
    "register",
]


def register() -> None:
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
