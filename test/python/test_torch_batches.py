"""CachedDataset with a device: batches have the values of the CPU, and mistakes in the order of copies are found."""

import pytest
import torch
import torch_job

import syncopate
import syncopate.torch


def run(function, device):
    return torch_job.run("torch_batches.py", function, 1, DEVICE=device)[0]


@pytest.fixture
def accelerator(device):
    if device == "cpu":
        pytest.skip("nothing is copied")
    return device


def test_batches_have_the_values_and_the_structure_of_the_cpu(accelerator):
    assert run("values", accelerator) == []


def test_every_mistake_in_the_order_of_copies_is_found(accelerator):
    if accelerator != "emu":
        pytest.skip("only the pretended accelerator shows each of them in each run")
    assert run("mistakes", accelerator) == []


def test_the_host_does_not_wait_for_the_copies(accelerator):
    if accelerator != "emu":
        pytest.skip("copies are not late")
    assert run("overlaps", accelerator)


@pytest.mark.parametrize("device", ["cpu", "meta", torch.device("cpu")])
def test_a_device_to_which_nothing_can_be_copied_is_refused(device):
    with pytest.raises(syncopate.Misuse, match=r"device (cpu|meta); allowed: None, for batches in the memory of the CPU, or .* an accelerator"):
        syncopate.torch.CachedDataset([b"1"], batch_size=1, device=device)
