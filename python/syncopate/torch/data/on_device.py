"""Batches on an accelerator: their tensors are copied from pinned memory, in a stream of their own, before the program asks for them."""

import torch
from torch.utils import _pytree as pytree

import syncopate
from syncopate.torch.device.lane import is_accelerator, pinning_failure


def usable(device):
    """The device with its index. Raises Misuse if batches cannot be copied to it without blocking the host."""
    device = torch.device(device)
    if not is_accelerator(device):
        raise syncopate.Misuse(f"device {device}; allowed: None, for batches in the memory of the CPU, or from torch 2.6 on an accelerator that "
                               "this PyTorch finds (torch.accelerator.current_accelerator())")
    reason = pinning_failure()
    if reason is not None:
        raise syncopate.Misuse(f"device {device}, for which there is no pinned memory ({reason}); allowed: None, for batches in the memory of "
                               "the CPU, or accelerators with pinned memory; or raise the limit of locked memory (ulimit -l)")
    return device if device.index is not None else torch.device(device.type, torch.accelerator.current_device_index())


class Upward:
    """The copies of batches to one device. `begin` may be called on any thread."""

    def __init__(self, device):
        self.device = usable(device)
        self._stream = torch.Stream(self.device)

    def begin(self, batch):
        """Begin to copy its tensors that are in the memory of the CPU; an Arriving. Structure and other values are kept."""
        def copied(tensor):
            if not tensor.is_cpu:
                return tensor
            pinned = torch.empty_like(tensor, pin_memory=True).copy_(tensor)
            with self._stream:
                return pinned.to(self.device, non_blocking=True)  # PyTorch gives pinned memory to others when its copies have ended
        made, arrived = pytree.tree_map_only(torch.Tensor, copied, batch), torch.Event(self.device)
        arrived.record(self._stream)
        return Arriving(made, arrived)

    def close(self):
        """Return when all copies have ended."""
        self._stream.synchronize()


class Arriving:
    """A batch whose copies have begun."""

    def __init__(self, batch, arrived):
        self._batch, self._arrived = batch, arrived

    def take(self):
        """The batch: the current stream goes on when it has arrived, and its memory is not used again before that stream is done with it."""
        current = torch.accelerator.current_stream(self._arrived.device)
        current.wait_event(self._arrived)
        for tensor in pytree.tree_leaves(self._batch):
            if isinstance(tensor, torch.Tensor) and tensor.device == self._arrived.device:
                tensor.record_stream(current)
        return self._batch
