"""A program for Horovod, of which only the import of `hvd` was changed: two layers learn images like those of MNIST."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import syncopate.horovod as hvd  # before: import horovod.torch as hvd

EPOCHS, BATCH, LEARNING_RATE = 3, 32, 0.02


def images(count, seed):
    """Ten patterns of 28 x 28 with noise, as MNIST has ten digits."""
    patterns = torch.randn(10, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=generator)
    return TensorDataset(patterns[labels] + torch.randn(count, 1, 28, 28, generator=generator), labels)


def metric_average(value, name):
    """The average of a number over the ranks."""
    return hvd.allreduce(torch.tensor(value), name=name).item()


def main():
    """Train and test."""
    hvd.init()
    torch.manual_seed(42 + hvd.rank())
    train = images(1536, seed=1)
    sampler = DistributedSampler(train, num_replicas=hvd.size(), rank=hvd.rank())
    test = DataLoader(images(256, seed=2), BATCH)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE * hvd.size(), momentum=0.5)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(),
                                         compression=hvd.Compression.fp16)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for data, target in DataLoader(train, BATCH, sampler=sampler):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data), target)
            loss.backward()
            optimizer.step()
        if hvd.rank() == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}")
    with torch.no_grad():
        right = sum((model(data).argmax(1) == target).sum().item() for data, target in test)
    accuracy = metric_average(right / len(test.dataset), "accuracy")
    if hvd.rank() == 0:
        print(f"{hvd.size()} ranks: accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
