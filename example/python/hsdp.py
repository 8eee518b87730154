"""FSDP2 within hosts, and compressed gradients between them: torchrun --nproc-per-node 4 hsdp.py --hosts 2."""

import argparse

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from syncopate.torch import fsdp

arguments = argparse.ArgumentParser()
arguments.add_argument("--hosts", type=int, default=2)
arguments.add_argument("--codec", default="topk:0.05")
given = arguments.parse_args()

device = "cuda" if torch.cuda.is_available() else "cpu"
dist.init_process_group("cpu:gloo,cuda:nccl" if device == "cuda" else "gloo")
mesh = init_device_mesh(device, (given.hosts, dist.get_world_size() // given.hosts), mesh_dim_names=("host", "rank"))
torch.manual_seed(0)
net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.Tanh()) for _ in range(3)]).to(device)
for block in net:
    fully_shard(block, mesh=mesh["rank"])  # NCCL or Gloo reduces and gathers within a host
fully_shard(net, mesh=mesh["rank"])
exchange = fsdp.compress(net, mesh, codec=given.codec)  # between hosts

optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
drawn = torch.Generator().manual_seed(dist.get_rank())
for _ in range(60):
    values = torch.randn(64, 128, generator=drawn).to(device)
    loss = (net(values) - values.roll(1, 1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    print(f"loss {loss.item():.3f}; {exchange.group.traffic_bytes[0]} bytes sent to other hosts")
exchange.close()
dist.destroy_process_group()
