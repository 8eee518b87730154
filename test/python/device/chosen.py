"""The device of a test's tensors: that of the option --device, which jobs find in the variable DEVICE; by default the CPU."""

import contextlib
import os

import torch
import torch.distributed as dist

import syncopate.torch

DEVICE = os.environ.get("DEVICE", "cpu")
if DEVICE == "emu":
    from device import emu  # built for one PyTorch only
    syncopate.torch.register()


def make_default():
    """New tensors of this thread are on the device."""
    if DEVICE != "cpu":
        torch.set_default_device(DEVICE)


def begin(rank, size, store, backend="gloo"):
    """The process group. Only the library's own backend takes tensors of the pretended accelerator."""
    if backend == "gloo":
        backend = {"emu": "syncopate", "cpu": "gloo"}.get(DEVICE, f"cpu:gloo,{DEVICE}:gloo")
    dist.init_process_group(backend, init_method=store, rank=rank, world_size=size)


def late(operator_us=0, copy_us=0, rank=None):
    """Delays of the pretended accelerator, other ones on each rank; by default the process group's."""
    if rank is None:
        rank = dist.get_rank() if dist.is_initialized() else 0
    return emu.delays(operator_us, copy_us, seed=rank + 1) if DEVICE == "emu" else contextlib.nullcontext()


def busy(seconds):
    """The current stream of the pretended accelerator is busy for this time."""
    if DEVICE == "emu":
        emu.busy(seconds)
