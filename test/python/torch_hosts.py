"""A program for `syncopate run` with a host for each rank: ranks 1 and 2 make a group, whose rank 0 is not on MASTER_ADDR's host."""

import torch
import torch.distributed as dist

import syncopate.torch

assert syncopate.torch

dist.init_process_group("syncopate")
rank, ranks = dist.get_rank(), [1, 2]
group = dist.new_group(ranks)
if rank in ranks:
    total = torch.ones(1) * rank
    dist.all_reduce(total, group=group)
    print(f"sum {total.item():g}")
dist.barrier()
dist.destroy_process_group()
