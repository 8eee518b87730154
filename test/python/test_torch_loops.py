"""Users' training loops: gradients between backward and step, steps that do not count, forks, copies and dropped models."""

import pytest
import torch_job
import torch_loops


def test_every_loop_trains_alike_on_all_ranks():
    for wrong in torch_job.run("torch_loops.py", "everything", 2):
        assert wrong == {part.__name__: [] for part in torch_loops.PARTS}


@pytest.mark.cpu_only("a forked process cannot use the device of its parent")
def test_a_forked_process_trains_alone():
    assert torch_job.run("torch_loops.py", "forking", 2) == [{"forks": []}] * 2
