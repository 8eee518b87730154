"""A small GPT with what a training script has: micro-batches, autocast, clipping, a schedule, checkpoints, torch.compile, evaluation."""

import argparse
import contextlib
import math
from pathlib import Path

import outcome
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import syncopate
import syncopate.torch

TEXT = Path(__file__).parent  # the model learns the bytes of these programs
CONTEXT = 32


class Block(nn.Module):
    """Causal attention and a perceptron, each with a residual connection."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_perceptron = nn.LayerNorm(width), nn.LayerNorm(width)
        self.keys, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = self.keys(self.before_attention(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.perceptron(self.before_perceptron(x))


class GPT(nn.Module):
    """Mean loss of predicting each byte of x by those before it. The output layer has the weights of the embedding."""

    def __init__(self, width, layers, heads=4):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)
        self.head.weight = self.bytes.weight
        nn.init.normal_(self.bytes.weight, std=0.02)

    def forward(self, x):
        given, wanted = x[:, :-1], x[:, 1:]
        hidden = self.bytes(given) + self.places(torch.arange(CONTEXT))
        return F.cross_entropy(self.head(self.norm(self.blocks(hidden))).flatten(0, 1).float(), wanted.flatten())


def batch(text, size, *seeds):
    """`size` random pieces of the text."""
    generator = torch.Generator().manual_seed(hash(seeds))
    begins = torch.randint(len(text) - CONTEXT - 1, (size,), generator=generator)
    return torch.stack([text[begin:begin + CONTEXT + 1] for begin in begins])


def wrapped(net, given):
    """The net in a DistributedDataParallel, and an object that keeps the codec's state."""
    buckets = {"bucket_cap_mb": given.bucket_mb} if given.bucket_mb else {}
    if given.wrap == "syncopate":
        model = syncopate.torch.DistributedDataParallel(net, codec=given.codec, feedback=given.feedback, **buckets)
        return model, model.hook_state
    model, state = nn.parallel.DistributedDataParallel(net, **buckets), None
    if given.wrap == "hook":
        state = syncopate.torch.HookState(model, codec=given.codec, feedback=given.feedback)
        model.register_comm_hook(state, syncopate.torch.hook)
    return model, state


@torch.no_grad()
def evaluated(net, text):
    """The mean loss of the held-out text. Ranks have different numbers of pieces, so the module is called without its wrapper."""
    pieces = text[:len(text) // (CONTEXT + 1) * (CONTEXT + 1)].view(-1, CONTEXT + 1)[:21][dist.get_rank()::dist.get_world_size()]
    losses = [net(part) * len(part) for part in pieces.split(8)]
    total = torch.stack([torch.stack(losses).sum(), torch.tensor(float(len(pieces)))])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def train(net, model, optimizer, scaler, text, steps, given):
    """Train for these steps; yields each step's number and loss."""
    rank = dist.get_rank()
    for step in steps:
        optimizer.zero_grad()
        total = 0.0
        for micro in range(given.accumulate):
            is_last = micro == given.accumulate - 1
            with contextlib.nullcontext() if is_last else model.no_sync():
                with torch.autocast("cpu", torch.bfloat16, enabled=given.amp):
                    loss = model(batch(text, given.batch, step, micro, rank)) / given.accumulate
                scaler.scale(loss).backward()
            total += loss.item()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        yield step, total


def main():
    """Train, evaluate, and print this rank's result."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--backend", default="syncopate")
    arguments.add_argument("--wrap", default="syncopate", choices=["torch", "syncopate", "hook"])
    arguments.add_argument("--codec", default="none")
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--accumulate", type=int, default=1, help="micro-batches of a step")
    arguments.add_argument("--batch", type=int, default=4, help="samples of each rank in a micro-batch")
    arguments.add_argument("--width", type=int, default=64)
    arguments.add_argument("--layers", type=int, default=2)
    arguments.add_argument("--lr", type=float, default=1e-3)
    arguments.add_argument("--warmup-steps", type=int, default=0, help="in which the density of a sparse codec falls")
    arguments.add_argument("--bucket-mb", type=float, help="size of DDP's buckets; by default measured")
    arguments.add_argument("--amp", action="store_true", help="bfloat16 autocast and a GradScaler")
    arguments.add_argument("--compile", help="a back end of torch.compile")
    arguments.add_argument("--checkpoints", type=Path, help="folder with a file of each rank, which is loaded if it is there")
    arguments.add_argument("--record", type=Path, help="folder for `syncopate report`")
    given = arguments.parse_args()
    warmup = {"warmup_density": 0.25, "warmup_steps": given.warmup_steps} if given.warmup_steps else {}
    given.feedback = syncopate.Feedback("auto", **warmup)

    dist.init_process_group(given.backend)
    torch.manual_seed(0)
    net = GPT(given.width, given.layers)
    optimizer = torch.optim.AdamW(net.parameters(), lr=given.lr, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * min(1, step / 1000))))
    scaler = torch.amp.GradScaler("cpu", enabled=given.amp)
    model, state = wrapped(torch.compile(net, backend=given.compile) if given.compile else net, given)
    text = torch.frombuffer(bytearray(b"".join(file.read_bytes() for file in sorted(TEXT.glob("*.py")))), dtype=torch.uint8).long()
    held_out, text = text[:2000], text[2000:]

    begin = 0
    parts = {"net": net, "optimizer": optimizer, "schedule": schedule, "scaler": scaler} | ({"codec": state} if state else {})
    file = given.checkpoints / f"rank-{dist.get_rank()}.pt" if given.checkpoints else None  # the codec's state is this rank's own
    if file and file.exists():
        saved = torch.load(file, weights_only=False)
        begin = saved.pop("step")
        for name, part in parts.items():
            part.load_state_dict(saved[name])

    losses = []
    record = syncopate.torch.Recorder(given.record, model, optimizer, hook_state=state) if given.record else contextlib.nullcontext()
    with record:
        for _, loss in train(net, model, optimizer, scaler, text, range(begin, given.steps), given):
            schedule.step()
            losses.append(loss)
            if given.record:
                record.step(loss=loss, samples=given.batch * given.accumulate)
        held = evaluated(net, held_out)
        if given.record:
            record.evaluation(epoch=1, loss=held)
    if file:
        given.checkpoints.mkdir(parents=True, exist_ok=True)
        torch.save({name: part.state_dict() for name, part in parts.items()} | {"step": given.steps}, file)
    print(f"{outcome.line(dist.get_rank(), losses, net)}, held-out loss {held:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
