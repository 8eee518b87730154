"""Optimizers whose parameters are on an accelerator train as on the CPU, and mistakes in the order of copies are found."""

import pytest
import torch_job

PROGRAM = "torch_device_optimizers.py"


def test_weights_are_those_of_training_on_the_cpu(device):
    assert torch_job.run(PROGRAM, "as_on_the_cpu", 2, DEVICE=device) == [[]] * 2


def test_weights_and_states_are_those_of_updates_on_the_cpu(device):
    assert torch_job.run(PROGRAM, "updates_as_on_the_cpu", 2, DEVICE=device) == [[]] * 2


def test_values_of_other_types_are_averaged_as_on_the_cpu(device):
    assert torch_job.run(PROGRAM, "half_types", 2, DEVICE=device) == [[]] * 2


@pytest.mark.parametrize("part", ["undetected", "undetected_of_updates"])
def test_every_mistake_in_the_order_of_copies_is_found(device, part):
    if device != "emu":
        pytest.skip("only the pretended accelerator shows each of them in each run")
    assert torch_job.run(PROGRAM, part, 2, DEVICE=device) == [[]] * 2


def test_an_error_between_the_copies_is_raised_everywhere(device):
    if device == "cpu":
        pytest.skip("nothing is copied")
    for found in torch_job.run(PROGRAM, "errors_between_the_copies", 2, DEVICE=device):
        assert all("the device is lost" in text for text in found), found
