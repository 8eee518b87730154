"""DDP in which NCCL or Gloo reduces within a host, and compressed shards travel between hosts: torchrun within_host.py on each host."""

import argparse

import torch
import torch.distributed as dist

from syncopate.torch import DistributedDataParallel

arguments = argparse.ArgumentParser()
arguments.add_argument("--codec", default="topk:0.05")
arguments.add_argument("--ranks-per-host", type=int, help="treat this number of neighbouring ranks as a host; by default the real hosts")
given = arguments.parse_args()

device = "cuda" if torch.cuda.is_available() else "cpu"
dist.init_process_group("cpu:gloo,cuda:nccl" if device == "cuda" else "gloo")
if device == "cuda":
    torch.cuda.set_device(dist.get_node_local_rank(0))
within = dist.new_subgroups(given.ranks_per_host)[0] if given.ranks_per_host else "host"

torch.manual_seed(0)
net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.Tanh()) for _ in range(3)]).to(device)
net = DistributedDataParallel(net, codec=given.codec, within=within)
sent = net.hook_state.group.traffic_bytes[0]  # by the constructor, which measures the network
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
drawn = torch.Generator().manual_seed(dist.get_rank())
for _ in range(60):
    values = torch.randn(64, 128, generator=drawn).to(device)
    loss = (net(values) - values.roll(1, 1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    print(f"loss {loss.item():.3f}; {net.hook_state.group.traffic_bytes[0] - sent} bytes sent to other hosts")
net.close()
dist.destroy_process_group()
