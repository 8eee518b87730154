"""The backend with tensors of an accelerator: calls keep their order, results are the CPU's, and mistakes in the order of copies are found."""

import pytest
import torch_job

import syncopate.torch

if not syncopate.torch.Backend.is_supported():
    pytest.skip("this torch lets no Python class be a backend", allow_module_level=True)


@pytest.fixture
def accelerator(device):
    if device == "cpu":
        pytest.skip("nothing is copied")
    return device


def run(function, size, device):
    return torch_job.run("torch_staging.py", function, size, DEVICE=device)


@pytest.mark.parametrize("size", [2, 3])
def test_calls_on_the_cpu_and_on_the_device_keep_their_order(accelerator, size):
    assert run("order", size, accelerator) == [[]] * size


def test_ranks_whose_calls_are_not_in_order_get_an_error(accelerator):
    if accelerator != "emu":
        pytest.skip("copies are not late")
    assert "Mismatch" in run("unordered", 2, accelerator)


def test_every_mistake_in_the_order_of_copies_is_found(accelerator):
    if accelerator != "emu":
        pytest.skip("only the pretended accelerator shows each of them in each run")
    assert run("undetected", 2, accelerator) == [[]] * 2


def test_a_work_ends_when_the_device_has_the_result(accelerator):
    if accelerator != "emu":
        pytest.skip("copies are not late")
    for facts in run("completion", 2, accelerator):
        assert all(facts.values()), facts


def test_a_call_that_cannot_be_made_is_refused_everywhere(accelerator):
    for rank, found in enumerate(run("refusals", 2, accelerator)):
        assert found["meta"].startswith("Misuse: broadcast: a tensor on meta cannot be used here; allowed: tensors on the CPU, or on an accel"), found
        assert "a sparse tensor (torch.sparse_coo) on meta cannot be used here" in found["sparse"] and "to_dense()" in found["sparse"], found
        assert "one tensor is on cpu and another on" in found["two"] and "allowed: all tensors of a call on one device" in found["two"], found
        assert "for which there is no pinned memory (out of locked memory); allowed: " in found["pinned"] and "ulimit -l" in found["pinned"], found
        assert found["after"] == [2, 2, 2]
        assert found["one rank"].startswith("Misuse: " if rank else ("Mismatch: ", "RemoteFailure: ")), found


def test_an_error_of_the_device_is_raised_everywhere(accelerator):
    one, other = run("lost", 2, accelerator)
    assert one.startswith("RemoteFailure: ") and "the device is lost" in one and "the device is lost" in other


def test_torchs_ddp_has_the_weights_of_the_cpu(accelerator):
    assert run("data_parallel", 2, accelerator) == [[]] * 2


def test_fsdp2_has_the_weights_of_the_cpu(accelerator):
    assert run("fully_sharded", 2, accelerator) == [True] * 2
