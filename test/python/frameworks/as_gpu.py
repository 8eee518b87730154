"""Runs an example whose framework treats the device of DEVICE as a GPU: as_gpu.py PROGRAM..."""

import os
import runpy
import sys
from pathlib import Path

import torch
import torch.distributed as dist

sys.argv = sys.argv[1:]
sys.path[:1] = [str(Path(sys.argv[0]).parent), str(Path(__file__).parents[1])]


def accelerate_takes(device):
    """Accelerate has FSDP for devices of its own list only, which lacks the CPU and the pretended accelerator."""
    from accelerate.state import PartialState
    from accelerate.utils import DistributedType

    os.environ["ACCELERATE_TORCH_DEVICE"] = device
    PartialState._prepare_backend = lambda *_: ("gloo", DistributedType.MULTI_GPU)


def lightning_takes(device):
    """Lightning accepts a subclass of its Accelerator, but "auto" chooses vendors' devices only."""
    from lightning.pytorch.accelerators import Accelerator, AcceleratorRegistry
    from lightning.pytorch.trainer.connectors import accelerator_connector

    class Pretended(Accelerator):
        auto_device_count = staticmethod(torch.accelerator.device_count)
        parse_devices = staticmethod(int)
        is_available = staticmethod(lambda: True)
        name = staticmethod(lambda: device)

        def setup_device(self, device):
            torch.accelerator.set_device_index(device.index)

        def teardown(self):
            pass

        @staticmethod
        def get_parallel_devices(devices):
            return [torch.device(device, i % torch.accelerator.device_count()) for i in range(devices)]

    AcceleratorRegistry.register(device, Pretended)
    accelerator_connector._select_auto_accelerator = lambda: device


def begin(device):
    """Only the library's backend takes tensors of the pretended accelerator, and FSDP does not move parameters there."""
    import ddp

    dist.init_process_group("syncopate")
    made = ddp.network
    ddp.network = lambda: made().to(device)


if __name__ == "__main__":
    from device import chosen

    if chosen.DEVICE != "cpu":
        begin(chosen.DEVICE)
    (lightning_takes if "lightning" in sys.argv[0] else accelerate_takes)(chosen.DEVICE)
    runpy.run_path(sys.argv[0], run_name="__main__")
