"""PyTorch Lightning with two processes on the CPU: its DDP strategy on the backend syncopate, and a codec."""

import lightning
import torch
from ddp import network, samples_of
from lightning.pytorch.strategies import DDPStrategy
from outcome import line
from torch.utils.data import DataLoader, TensorDataset

import syncopate.torch


class Classifier(lightning.LightningModule):
    """The network of ddp.py."""

    def __init__(self):
        super().__init__()
        self.net, self.losses = network(), []

    def training_step(self, batch, _):
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02)


class Coded(lightning.Callback):
    """Registers the hook. The strategy's own option `ddp_comm_hook` has no effect on the CPU."""

    def on_train_start(self, trainer, _):
        self.state = syncopate.torch.HookState(trainer.model, codec="topk:0.01")
        trainer.model.register_comm_hook(self.state, syncopate.torch.hook)


if __name__ == "__main__":
    coded, module = Coded(), Classifier()
    trainer = lightning.Trainer(accelerator="cpu", devices=2, max_epochs=1, strategy=DDPStrategy(process_group_backend="syncopate"),
                                callbacks=[coded], logger=False, enable_checkpointing=False)
    trainer.fit(module, DataLoader(TensorDataset(*samples_of(0, 1280)), 32))
    print(line(trainer.global_rank, module.losses, module, coded.state.group.traffic_bytes[0]), flush=True)
