"""The Trainer of Transformers under torchrun: a small GPT-2 on the backend syncopate, and a codec."""

import tempfile

import torch
import torch.distributed as dist
from outcome import line
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

import syncopate.torch

LETTERS, LENGTH = 16, 24


class Coded(TrainerCallback):
    """Registers the hook on the trainer's DistributedDataParallel, and keeps the losses of this process."""

    losses = []

    def on_train_begin(self, args, state, control, **_):
        self.state = syncopate.torch.HookState(trainer.model_wrapped, codec="topk:0.01")
        trainer.model_wrapped.register_comm_hook(self.state, syncopate.torch.hook)

    def on_log(self, args, state, control, logs, **_):
        self.losses += [float(logs["loss"])] if "loss" in logs else []


dist.init_process_group("syncopate")  # first: the Trainer's Accelerate uses a process group that exists
torch.manual_seed(0)
net = GPT2LMHeadModel(GPT2Config(vocab_size=LETTERS, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=2))
samples = [{"input_ids": row, "labels": row} for row in (torch.arange(LENGTH) + torch.arange(640).unsqueeze(1)) % LETTERS]
coded = Coded()
arguments = TrainingArguments(tempfile.mkdtemp(), use_cpu=True, per_device_train_batch_size=16, num_train_epochs=1, learning_rate=5e-3,
                              logging_steps=1, save_strategy="no", report_to="none", disable_tqdm=True)
trainer = Trainer(net, arguments, train_dataset=samples, callbacks=[coded])
trainer.train()
print(line(dist.get_rank(), coded.losses, net, coded.state.group.traffic_bytes[0]), flush=True)
dist.destroy_process_group()
