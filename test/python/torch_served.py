"""Workers with a ServedOptimizer: a net, its training, and processes that are killed or kill a server."""

import os
import signal
import sys
import threading
from pathlib import Path

import torch
from device.chosen import DEVICE
from torch import nn

import syncopate.torch

STEPS, BATCH = 8, 16
SEEDING = threading.Lock()  # torch's seed is that of all threads


class Net(nn.Module):
    """One of its layers is used without a call, as MultiheadAttention uses its projection; another layer is used twice."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.three, self.last = nn.Linear(16, 64), nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 4)

    def forward(self, values):
        hidden = torch.tanh(self.two(torch.tanh(self.two(torch.tanh(self.one(values))))))
        return self.last(torch.tanh(nn.functional.linear(hidden, self.three.weight, self.three.bias)))


def model(worker=0):
    """Every worker begins with other weights."""
    with SEEDING, torch.random.fork_rng():
        torch.manual_seed(worker)
        return Net().to(DEVICE)


def groups(net):
    """Two groups of parameters with their own rates."""
    return [{"params": [*net.one.parameters(), *net.two.parameters()]}, {"params": [*net.three.parameters(), *net.last.parameters()], "lr": 0.02}]


OPTIMIZERS = {
    "sgd": lambda net: torch.optim.SGD(groups(net), 0.05, weight_decay=0.01),
    "momentum": lambda net: torch.optim.SGD(groups(net), 0.05, momentum=0.9),
    "nesterov": lambda net: torch.optim.SGD(groups(net), 0.05, momentum=0.9, nesterov=True),
    "adam": lambda net: torch.optim.Adam(groups(net), 0.01, weight_decay=0.01),
    "adamw": lambda net: torch.optim.AdamW(groups(net), 0.01),
}


def samples(step):
    """The samples of all workers in one step."""
    generator = torch.Generator().manual_seed(step)
    values = torch.randn(BATCH, 16, generator=generator).to(DEVICE)
    return values, values[:, :4] * 2 - values[:, 4:8]


def loss_of(net, batch, worker, workers):
    values, targets = (tensor.chunk(workers)[worker] for tensor in batch)
    return nn.functional.mse_loss(net(values), targets)


def trained(net, optimizer, worker, workers, steps, after=lambda step: None):
    """Losses of these steps, with a rate that falls in the middle."""
    losses = []
    for step in steps:
        if step == STEPS // 2:
            for group in optimizer.param_groups:
                group["lr"] *= 0.5
        optimizer.zero_grad()
        loss = loss_of(net, samples(step), worker, workers)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        after(step)
    return losses


def until_killed(address):
    """Worker 1 of 2, which is killed in the middle of its third step."""
    net = model()
    optimizer = syncopate.torch.ServedOptimizer(torch.optim.SGD(net.parameters(), 0.2), net, servers=[address], worker=1, workers=2)
    print("connected", flush=True)
    trained(net, optimizer, 1, 2, range(2))
    net.one.weight.register_hook(lambda _: os.kill(os.getpid(), signal.SIGKILL))  # the updates of the layers behind it have left
    trained(net, optimizer, 1, 2, range(2, 3))


def kill_a_server():
    """Kill one of the servers that `syncopate run`, the parent of this process, has started."""
    parent = os.getppid()
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        if b"syncopate-server" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(int(child), signal.SIGKILL)
            print("killed server", child, flush=True)
            return


def main(folder):
    """A worker under `syncopate run`; worker 0 kills a server after its third step."""
    net = model()
    optimizer = syncopate.torch.ServedOptimizer(OPTIMIZERS["momentum"](net), net, placement="uniform")
    place = optimizer.worker.worker, optimizer.worker.workers
    trained(net, optimizer, *place, range(STEPS), lambda step: kill_a_server() if step == 2 and place[0] == 0 else None)
    optimizer.finish()
    torch.save([parameter.detach().clone() for parameter in net.parameters()], f"{folder}/worker-{place[0]}")


if __name__ == "__main__":
    main(sys.argv[1])
