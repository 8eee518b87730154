"""DDP's logging data with the name of the backend: torch's C++ calls every backend that is not its own "custom"."""

from __future__ import annotations

import functools
from typing import Any

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def name_backends() -> None:
    """Let `_get_ddp_logging_data` of DDP return the name that `get_backend` returns."""
    of_torch = DistributedDataParallel._get_ddp_logging_data

    @functools.wraps(of_torch)
    def named(self: DistributedDataParallel) -> dict[str, Any]:
        data: dict[str, Any] = of_torch(self)
        if data.get("backend_name") == "custom":
            data["backend_name"] = dist.get_backend(self.process_group)
        return data

    DistributedDataParallel._get_ddp_logging_data = named  # type: ignore[method-assign]  # the purpose of this function
