"""A program for `syncopate run` with a host for each rank: ranks 1 and 2 make a group, whose rank 0 is not on MASTER_ADDR's host."""

import os
from urllib.parse import urlsplit

import torch
import torch.distributed as dist

import syncopate.torch

assert syncopate.torch

host = urlsplit(os.environ["SYNCOPATE_RENDEZVOUS"]).hostname
os.environ |= {"RANK": os.environ["SYNCOPATE_RANK"], "WORLD_SIZE": os.environ["SYNCOPATE_SIZE"], "MASTER_ADDR": host, "MASTER_PORT": "29511"}
dist.init_process_group("syncopate")
rank, ranks = dist.get_rank(), [1, 2]
group = dist.new_group(ranks)
if rank in ranks:
    total = torch.ones(1) * rank
    dist.all_reduce(total, group=group)
    print(f"sum {total.item():g}")
dist.barrier()
dist.destroy_process_group()
