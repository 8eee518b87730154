"""Batches of CachedDataset on an accelerator: their values, and mistakes in the order of copies."""

import collections
from unittest import mock

import torch
from device.chosen import DEVICE, late

import syncopate
from syncopate.torch import CachedDataset
from syncopate.torch.data import on_device

RECORDS, BATCH, ELEMENTS = 24, 4, 2000
Sample = collections.namedtuple("Sample", ["values", "more"])


class Source:
    """Record i is a byte of value i."""

    def __len__(self):
        return RECORDS

    def size(self, index):
        return 1

    def read(self, index):
        return bytes([index])


def decode(record):
    return Sample(torch.full((ELEMENTS,), float(record[0])), {"number": record[0], "name": str(record[0])})


def taken(device):
    """Values that a program computes from the batches of two epochs, and what else the batches have."""
    (group,) = syncopate.Group.threads(1)
    sums, others = [], []
    with CachedDataset(Source(), decode, batch_size=BATCH, group=group, device=device, threads=2) as data:
        for _ in range(2):
            for batch in data:
                value = batch.values
                for _ in range(3):
                    value = value * 2  # late operators: the batch is dropped before they have run
                sums.append(value.sum(1) + batch.more["number"])
                others.append((type(batch).__name__, batch.values.device.type, batch.more["name"]))
                del batch, value
    return [one.cpu().tolist() for one in sums], others


class NoWait(on_device.Arriving):
    """The current stream does not wait for the copies."""

    def take(self):
        return self._batch


class EarlyEvent(on_device.Upward):
    """The event is before the copies."""

    def begin(self, batch):
        event = torch.Event(self.device)
        event.record(self._stream)
        arriving = super().begin(batch)
        return on_device.Arriving(arriving._batch, event)


MISTAKES = {
    "no wait for the copy": (lambda: mock.patch.object(on_device, "Arriving", NoWait), {"copy_us": 10_000}),
    "the event is before the copy": (lambda: mock.patch("syncopate.torch.data.dataset.Upward", EarlyEvent), {"copy_us": 10_000}),
    "memory of the device is used again too early": (lambda: mock.patch.object(torch.Tensor, "record_stream", lambda *_: None),
                                                     {"operator_us": 10_000}),
}


def mistakes(*_):
    """Names of mistakes with which a program has the values that it should have."""
    wanted, _ = taken(None)
    missed = []
    for name, (planted, delays) in MISTAKES.items():
        with planted(), late(**delays):
            missed += [name] if taken(DEVICE)[0] == wanted else []
    return missed


def values(*_):
    """The differences from the batches of the CPU."""
    wanted, structure = taken(None)
    with late(operator_us=2000, copy_us=5000):
        found, on_it = taken(DEVICE)
    wrong = [] if found == wanted else ["values"]
    return wrong + ([] if on_it == [(kind, DEVICE, names) for kind, _, names in structure] else ["structure"])


def overlaps(*_):
    """Whether the host has the first batch before its copy ends."""
    (group,) = syncopate.Group.threads(1)
    with late(copy_us=600_000), CachedDataset(Source(), decode, batch_size=BATCH, group=group, device=DEVICE, ahead=1) as data:
        next(iter(data))
        return not torch.accelerator.current_stream().query()
