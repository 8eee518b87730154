"""A ShardedOptimizer: each rank keeps 1/N of LAMB's state, and a checkpoint continues with any number of ranks."""

import argparse
import os

import torch
import torch.distributed as dist
from ddp import network, report, train

from syncopate.torch import ShardedOptimizer


def main():
    """Train, resume from the checkpoint if there is one, and print rank 0's result."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rule", default="lamb", help="a rule of `syncopate info optimizer`")
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--batch", type=int, default=32, help="samples of each rank")
    arguments.add_argument("--checkpoint", help="file")
    given = arguments.parse_args()

    dist.init_process_group("syncopate")
    net = network()
    optimizer = ShardedOptimizer(net, given.rule, lr=0.01, weight_decay=0.01)
    if given.checkpoint and os.path.exists(given.checkpoint):
        saved = torch.load(given.checkpoint)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
    loss = train(net, optimizer, given)  # layers wait for their weights
    state = optimizer.state_dict()  # every rank calls it
    if given.checkpoint and dist.get_rank() == 0:
        torch.save({"net": net.state_dict(), "optimizer": state}, given.checkpoint)
    report(loss, given.steps, given.rule)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
