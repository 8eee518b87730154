"""CachedDataset(decoded=…): the part of the decoding that draws nothing runs once, within a limit, and changes no batch."""

import collections
import threading

import numpy
import pytest
import torch

import syncopate
from syncopate.torch import CachedDataset
from syncopate.torch.data import forms

RECORDS = 24


class Source:
    """Record i consists of i + 1 bytes of value i."""

    def __len__(self):
        return RECORDS

    def read(self, index):
        return bytes([index]) * (index + 1)

    def size(self, index):
        return index + 1


class Draws:
    """Adds a number of the epoch and the record; changes its argument in place, which harms no other epoch."""

    def decode_at(self, tensor, *, seed, epoch, index):
        tensor += 100 * epoch + index
        return tensor[:1]


def epochs_of(group, decoded_bytes, decoded):
    with CachedDataset(Source(), Draws(), batch_size=3, memory_bytes=10_000, decoded=decoded, decoded_bytes=decoded_bytes,
                       group=group) as data:
        batches = [batch for _ in range(3) for batch in data]
        return batches, [row.decoded for row in data.counters()[:3]]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_batches_are_equal_and_a_form_is_made_once(on_ranks, ranks):
    calls, lock = collections.Counter(), threading.Lock()

    def decoded(record):
        with lock:
            calls[record[0]] += 1
        return torch.tensor(list(record), dtype=torch.float64)
    plain = on_ranks(ranks, lambda group: epochs_of(group, 0, decoded))
    assert set(calls.values()) <= {3, 4}  # steps of a fourth epoch are read ahead
    calls.clear()
    kept = on_ranks(ranks, lambda group: epochs_of(group, 100_000, decoded))
    for (with_forms, counts), (without, none) in zip(kept, plain, strict=True):
        assert none == [0, 0, 0]
        assert counts[2] > 0
        assert len(with_forms) == len(without)
        assert all(torch.equal(one, other) for one, other in zip(with_forms, without, strict=True))
    assert sum(counts[2] for _, counts in kept) == RECORDS
    assert sum(calls.values()) <= RECORDS + 2 * 3 * ranks  # steps that were read ahead of the forms of their records


def test_the_limit_is_kept(on_ranks):
    form = len(forms.packed(torch.zeros(7, dtype=torch.uint8)))
    (_, counts), = on_ranks(1, lambda group: epochs_of(group, 5 * form, lambda record: torch.tensor([record[0]] * 7, dtype=torch.uint8)))
    assert counts[2] == 5


def test_an_error_of_decoded_names_its_record():
    def decoded(record):
        if record[0] == 7:
            raise KeyError("broken")
        return record
    with CachedDataset(Source(), lambda record: len(record), batch_size=RECORDS, memory_bytes=10_000, decoded=decoded,
                       decoded_bytes=10_000) as data:
        steps = iter(data)
        with pytest.raises(KeyError) as raised:
            next(steps)
    assert "record 7" in raised.value.__notes__[-1]


def test_forms_keep_type_shape_and_bytes():
    for value in (torch.arange(6, dtype=torch.int16).reshape(2, 3).t(), torch.tensor(2.5), torch.empty(0, 3), torch.ones(2, dtype=torch.bfloat16),
                  torch.tensor([True, False])):
        back = forms.unpacked(forms.packed(value))
        assert back.dtype == value.dtype and torch.equal(back, value)
    assert torch.equal(forms.unpacked(forms.packed(numpy.arange(3.0))), torch.arange(3.0, dtype=torch.float64))
    assert forms.unpacked(forms.packed(b"")) == b""
    assert forms.unpacked(forms.packed(b"a\nb")) == b"a\nb"
    with pytest.raises(syncopate.Misuse, match="tensor, an array, or bytes"):
        forms.packed(object())


def test_a_limit_without_a_function_is_refused():
    with pytest.raises(syncopate.Misuse, match="without `decoded`"):
        CachedDataset(Source(), batch_size=1, decoded_bytes=5)
