"""A backend of torch.distributed for device "emu": what DDP calls when it is made, by copies to the CPU that block."""

import torch
import torch.distributed as dist

from syncopate.torch import Backend
from syncopate.torch.work import Ended


def _through_the_cpu(name):
    call = getattr(Backend, name)

    def method(self, *arguments):
        copies = []

        def on_cpu(argument):
            if isinstance(argument, torch.Tensor) and not argument.is_cpu:
                copies.append((argument, argument.detach().cpu()))
                return copies[-1][1]
            return [on_cpu(one) for one in argument] if isinstance(argument, list | tuple) else argument

        call(self, *[on_cpu(argument) for argument in arguments]).wait()
        for there, here in copies:
            there.detach().copy_(here)
        return Ended([there for there, _ in copies])
    return method


class Staged(Backend):
    """The backend "staged"."""

    broadcast, allreduce, allgather = (_through_the_cpu(name) for name in ("broadcast", "allreduce", "allgather"))
    all_gather_single = _allgather_base = _through_the_cpu("all_gather_single")

    @staticmethod
    def create(store, rank, size, timeout):
        return Staged(store, rank, size, timeout)


dist.Backend.register_backend("staged", Staged.create, devices=["emu", "cpu"])
