"""Two epochs of files behind a slow link, with torch's DataLoader and with CachedDataset: the time of each, and where records came from."""

import argparse
import secrets
import tempfile
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader

import syncopate.torch


def decode(record):
    """A record as 1024 numbers: the place for a decoder of pictures."""
    return torch.frombuffer(bytearray(record), dtype=torch.uint8)[:1024].float() / 255


def seconds_of(epoch):
    """The time of taking its batches."""
    begin = time.perf_counter()
    list(epoch)
    return time.perf_counter() - begin


arguments = argparse.ArgumentParser()
arguments.add_argument("--folder", help="of files of at least 1 KiB, the same for all ranks; default: one is drawn")
arguments.add_argument("--rate", type=float, default=2e6, help="bytes per second for each rank, as of a network file system")
given = arguments.parse_args()
with tempfile.TemporaryDirectory() as drawn, syncopate.Group.join() as group:
    for i in range(0 if given.folder else 100):
        Path(drawn, f"{i:02}").write_bytes(secrets.token_bytes(40_000))
    slow = syncopate.torch.ThrottledSource(given.folder or drawn, given.rate)
    share = range(group.rank, len(slow), group.size)
    loader = DataLoader(share, 10, shuffle=True, collate_fn=lambda chosen: torch.stack([decode(slow.read(i)) for i in chosen]))
    cached = syncopate.torch.CachedDataset(slow, decode, batch_size=10, memory_bytes=1 << 30, group=group)
    for epoch in range(2):
        print(f"epoch {epoch}: DataLoader {seconds_of(loader):.2f} s, CachedDataset {seconds_of(cached):.3f} s;", end=" ")
        print("from source {0.origin.records}, memory {0.memory.records}, peers {0.peers.records}".format(cached.counters()[epoch]), flush=True)
