"""A transformer sharded by FSDP2 over all ranks: it learns the letters of a text, by default its own source."""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import syncopate.torch  # noqa: F401 (it registers the backend)

BYTES, WIDTH, LENGTH = 256, 64, 64


class Transformer(nn.Module):
    """Predicts every next byte."""

    def __init__(self, layers=2):
        super().__init__()
        self.bytes, self.places = nn.Embedding(BYTES, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, batch_first=True) for _ in range(layers))
        self.out = nn.Linear(WIDTH, BYTES)

    def forward(self, text):
        """Logits of shape (batch, length, 256)."""
        ahead = nn.Transformer.generate_square_subsequent_mask(text.shape[1])
        hidden = self.bytes(text) + self.places(torch.arange(text.shape[1]))
        for layer in self.layers:
            hidden = layer(hidden, src_mask=ahead, is_causal=True)
        return self.out(hidden)


def main():
    """Train, and print the average over all ranks."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--text", type=Path, default=Path(__file__))
    arguments.add_argument("--backend", default="syncopate")
    arguments.add_argument("--steps", type=int, default=40)
    arguments.add_argument("--batch", type=int, default=16, help="samples of each rank")
    given = arguments.parse_args()

    dist.init_process_group(given.backend)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    net = Transformer()
    for layer in net.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    text = torch.frombuffer(bytearray(given.text.read_bytes()), dtype=torch.uint8).long()
    drawn = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(given.steps):
        begin = torch.randint(len(text) - LENGTH, (given.batch,), generator=drawn)
        window = torch.stack([text[i:i + LENGTH + 1] for i in begin])
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        loss.backward()
        optimizer.step()
    dist.all_reduce(loss.detach(), op=dist.ReduceOp.AVG)
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, {given.backend}: loss {loss.item():.3f} after {given.steps} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
