"""DistributedDataParallel with a communication hook that sends 1 % of the gradients, and checkpoints its state."""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from ddp import network, report, train
from torch.nn.parallel import DistributedDataParallel

import syncopate.torch


def main():
    """Train, resume from this rank's checkpoint if there is one, and print rank 0's result."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--codec", default="topk:0.01", help="a codec of `syncopate info codec`")
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--batch", type=int, default=32, help="samples of each rank")
    arguments.add_argument("--checkpoints", type=Path, help="folder with a file of each rank")
    given = arguments.parse_args()

    dist.init_process_group("syncopate")
    net = DistributedDataParallel(network())
    state = syncopate.torch.HookState(net, codec=given.codec)
    net.register_comm_hook(state, syncopate.torch.hook)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    file = given.checkpoints / f"rank-{dist.get_rank()}.pt" if given.checkpoints else None
    if file and file.exists():
        saved = torch.load(file, weights_only=False)
        net.load_state_dict(saved["model"])
        state.load_state_dict(saved["hook"])  # what this rank has not sent yet
    loss = train(net, optimizer, given)
    if file:
        given.checkpoints.mkdir(parents=True, exist_ok=True)
        torch.save({"model": net.state_dict(), "hook": state.state_dict()}, file)
    report(loss, given.steps, given.codec)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
