"""Ray Train with two workers: the library's DistributedDataParallel with a codec, on the backend syncopate."""

import ray
import ray.train
import torch
from outcome import line
from ray.train.torch import TorchConfig, TorchTrainer


def load_backend():
    """Make the backend known in a worker. Needed before torch 2.14, and if the package is not installed but found by PYTHONPATH."""
    import syncopate.torch
    syncopate.torch.register()


def train():
    """Run by each worker, after Ray has made the process group."""
    from ddp import network, samples_of

    from syncopate.torch import DistributedDataParallel

    rank = ray.train.get_context().get_world_rank()
    net = DistributedDataParallel(network(), codec="topk:0.01")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    before, losses = net.hook_state.group.traffic_bytes[0], []  # without what the measurement of the network sent
    for images, labels in zip(*(part.split(32) for part in samples_of(rank, 640)), strict=True):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(line(rank, losses, net, net.hook_state.group.traffic_bytes[0] - before), flush=True)


if __name__ == "__main__":
    ray.init(include_dashboard=False, runtime_env={"worker_process_setup_hook": load_backend})
    scaling = ray.train.ScalingConfig(num_workers=2)
    TorchTrainer(train, torch_config=TorchConfig(backend="syncopate"), scaling_config=scaling).fit()
