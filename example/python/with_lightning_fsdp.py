"""Lightning with FSDP2 within hosts, and compressed gradients between them: torchrun --nproc-per-node 4 with_lightning_fsdp.py --hosts 2."""

import argparse
import os

import lightning
from ddp import samples_of
from lightning.pytorch.strategies import ModelParallelStrategy
from outcome import line
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.utils.data import DataLoader, TensorDataset
from with_lightning import Classifier

from syncopate.torch import fsdp


class HybridSharding(ModelParallelStrategy):
    """Its mesh: the hosts, "data_parallel", and the ranks of a host, "tensor_parallel". But each rank has samples of its own."""

    distributed_sampler_kwargs = property(lambda self: {"num_replicas": self.world_size, "rank": self.global_rank})


class Sharded(Classifier):
    def configure_model(self):  # Lightning also calls it before validation and test
        if not isinstance(self.net, FSDPModule):
            fully_shard(self.net, mesh=self.device_mesh["tensor_parallel"])

    def on_train_start(self):  # the parameters have their device
        self.exchange = fsdp.compress(self, self.device_mesh, codec="topk:0.01")


arguments = argparse.ArgumentParser()
arguments.add_argument("--hosts", type=int, default=2)
hosts, module = arguments.parse_args().hosts, Sharded()
local, nodes = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["GROUP_WORLD_SIZE"])
trainer = lightning.Trainer(devices=local, num_nodes=nodes, max_epochs=1, strategy=HybridSharding(hosts, local * nodes // hosts), logger=False,
                            enable_checkpointing=False)
trainer.fit(module, DataLoader(TensorDataset(*samples_of(0, 2560)), 32))
print(line(trainer.global_rank, module.losses, module, module.exchange.group.traffic_bytes[0]), flush=True)
