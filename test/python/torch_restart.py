"""A program for torchrun that fails once: the ranks of the next attempt meet one another, and no straggler of the last one."""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

import syncopate.torch  # noqa: F401 (it registers the backend)

attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("syncopate")
total = torch.full((4,), float(10 ** attempt))
dist.all_reduce(total)
folder = Path(sys.argv[1])
(folder / f"attempt-{attempt}-rank-{dist.get_rank()}").write_text(str(total[0].item()))
if attempt == 0:
    if dist.get_rank() == 1:
        os._exit(7)
    dist.all_reduce(total)  # its peer is gone: the error ends this rank, and torchrun begins again
dist.destroy_process_group()
