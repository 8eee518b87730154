"""The library's DistributedDataParallel: buckets for the network, a codec if it shortens the step, and checkpoints."""

import argparse
import logging
from pathlib import Path

import torch
import torch.distributed as dist
from ddp import SIDE, network, report, train

from syncopate.torch import DistributedDataParallel


def main():
    """Train, resume from this rank's checkpoint if there is one, and print rank 0's result."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--codec", default="auto:topk:0.01+none", help="a codec of `syncopate info codec`, or auto:A+B")
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--batch", type=int, default=32, help="samples of each rank")
    arguments.add_argument("--checkpoints", type=Path, help="folder with a file of each rank")
    given = arguments.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # shows the choice and its reason

    dist.init_process_group("syncopate")
    net = DistributedDataParallel(network(), codec=given.codec, sample=torch.zeros(given.batch, 3, SIDE, SIDE))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    file = given.checkpoints / f"rank-{dist.get_rank()}.pt" if given.checkpoints else None
    if file and file.exists():
        saved = torch.load(file, weights_only=False)
        net.load_state_dict(saved["model"])
        net.load_codec_state(saved["codec"])  # what this rank has not sent yet
    loss = train(net, optimizer, given)
    if file:
        given.checkpoints.mkdir(parents=True, exist_ok=True)
        torch.save({"model": net.state_dict(), "codec": net.codec_state()}, file)
    report(loss, given.steps, net.choice.codec if net.choice else given.codec)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
