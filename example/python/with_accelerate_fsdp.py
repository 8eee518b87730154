"""Accelerate with FSDP2 within hosts, and compressed gradients between them: torchrun --nproc-per-node 4 with_accelerate_fsdp.py --hosts 2."""

import argparse
import os

import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin, ParallelismConfig
from ddp import network, samples_of
from outcome import line
from torch.utils.data import DataLoader, TensorDataset

from syncopate.torch import fsdp


class WithinHosts(ParallelismConfig):
    """Its mesh: the hosts, "dp_replicate", and the ranks of a host, "dp_shard". FSDP gets only the second dimension."""

    fsdp_dim_names = property(lambda _: ["dp_shard_cp"])


arguments = argparse.ArgumentParser()
arguments.add_argument("--hosts", type=int, default=2)
hosts = arguments.parse_args().hosts
accelerator = Accelerator(
    fsdp_plugin=FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="size_based_wrap", min_num_params=1000),
    parallelism_config=WithinHosts(dp_replicate_size=hosts, dp_shard_size=int(os.environ["WORLD_SIZE"]) // hosts))
net, samples = network(), DataLoader(TensorDataset(*samples_of(0, 2560)), 32)
net, optimizer, samples = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.02), samples)
exchange = fsdp.compress(net, accelerator.torch_device_mesh, codec="topk:0.01")

losses = []
for images, labels in samples:  # this process's share
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(images), labels)
    accelerator.backward(loss)
    optimizer.step()
    losses.append(loss.item())
print(line(accelerator.process_index, losses, net, exchange.group.traffic_bytes[0]), flush=True)
accelerator.end_training()
