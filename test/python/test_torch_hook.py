"""The hook for DistributedDataParallel codes as the synchronizer does, and its state is saved."""

import pytest
import torch_job


@pytest.mark.parametrize("size", [2, 4])
def test_averages_are_those_of_plain_ddp_the_synchronizer_and_numpy(size):
    assert torch_job.run("torch_hook.py", "everything", size) == [{}] * size
