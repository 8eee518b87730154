"""Gradients of an accelerator are averaged as those of the CPU, and mistakes in the order of copies are found."""

import pytest
import torch_job


@pytest.mark.parametrize("size", [2, 4])
def test_weights_are_those_of_training_on_the_cpu(device, size):
    assert torch_job.run("torch_device.py", "as_on_the_cpu", size, DEVICE=device) == [[]] * size


def test_the_class_plans_and_chooses_by_the_times_of_the_device(device):
    assert torch_job.run("torch_device.py", "class_on_the_device", 2, DEVICE=device) == [[]] * 2


def test_values_of_other_types_are_averaged_as_on_the_cpu(device):
    assert torch_job.run("torch_device.py", "half_types", 2, DEVICE=device) == [[]] * 2


@pytest.mark.parametrize("size", [2, 3])
def test_a_device_casts_to_the_16_bits_of_a_codec_and_any_value_has_the_average_of_the_cpu(device, size):
    assert torch_job.run("torch_device.py", "casts_on_the_device", size, DEVICE=device) == [[]] * size


def test_every_mistake_in_the_order_of_copies_is_found(device):
    if device != "emu":
        pytest.skip("only the pretended accelerator shows each of them in each run")
    assert torch_job.run("torch_device.py", "undetected", 2, DEVICE=device) == [[]] * 2


def test_an_error_between_the_copies_is_raised_everywhere_and_leaves_gradients_as_they_are(device):
    if device == "cpu":
        pytest.skip("nothing is copied")
    for found in torch_job.run("torch_device.py", "errors_between_the_copies", 2, DEVICE=device):
        assert all("the device is lost" in text and keeps for text, keeps in found)
