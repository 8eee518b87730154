"""Hugging Face Accelerate under torchrun: DistributedDataParallel on the backend syncopate, and a codec."""

import torch
import torch.distributed as dist
from accelerate import Accelerator
from ddp import network, samples_of
from outcome import line
from torch.utils.data import DataLoader, TensorDataset

import syncopate.torch

dist.init_process_group("syncopate")  # first: Accelerate uses a process group that exists, with any backend
accelerator = Accelerator(cpu=True)
net = network()
samples = DataLoader(TensorDataset(*samples_of(0, 1280)), 32)
net, optimizer, samples = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.02), samples)
state = syncopate.torch.HookState(net, codec="topk:0.01")  # `prepare` returned a DistributedDataParallel
net.register_comm_hook(state, syncopate.torch.hook)

losses = []
for images, labels in samples:  # this process's share
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(images), labels)
    accelerator.backward(loss)
    optimizer.step()
    losses.append(loss.item())
print(line(accelerator.process_index, losses, net, state.group.traffic_bytes[0]), flush=True)
accelerator.end_training()
