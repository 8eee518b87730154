"""Training that goes on after a rank was killed: torchrun starts all ranks again, and they load the last checkpoint that all have."""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from ddp import network, samples_of
from outcome import line

from syncopate.torch import DistributedDataParallel

arguments = argparse.ArgumentParser()
arguments.add_argument("--checkpoints", type=Path, required=True, help="folder with a file of each rank and step")
folder = arguments.parse_args().checkpoints

dist.init_process_group("syncopate")
rank, losses = dist.get_rank(), []
net = DistributedDataParallel(network(), codec="topk:0.01", bucket_cap_mb=25)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
steps = torch.tensor(len(list(folder.glob(f"{rank}-*.pt"))))
dist.all_reduce(steps, op=dist.ReduceOp.MIN)  # a rank may have one checkpoint more than another
if steps > 0:
    kept = torch.load(folder / f"{rank}-{steps}.pt", weights_only=False)
    net.load_state_dict(kept["model"])
    net.load_codec_state(kept["codec"])  # what this rank has not sent yet
    losses = kept["losses"]
for images, labels in list(zip(*(part.split(32) for part in samples_of(rank, 640)), strict=True))[steps:]:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    torch.save({"model": net.state_dict(), "codec": net.codec_state(), "losses": losses}, folder / f"{rank}.part")
    (folder / f"{rank}.part").rename(folder / f"{rank}-{len(losses)}.pt")  # complete, or absent
print(f"attempt {os.environ['TORCHELASTIC_RESTART_COUNT']},", line(rank, losses, net), flush=True)
dist.destroy_process_group()
