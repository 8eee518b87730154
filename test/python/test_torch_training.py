"""Training programs of torch run on the backend as they are; a killed rank is named by all others."""

import tempfile
from pathlib import Path

import torch_job


def test_ddp_fsdp_dtensor_and_checkpoints_are_as_in_one_process():
    for wrong in torch_job.run("torch_training.py", "everything", 4):
        assert wrong == {"ddp": [], "fsdp": [], "tensors": []}


def test_a_killed_rank_is_named_and_the_others_go_on():
    with tempfile.TemporaryDirectory() as folder:
        program = Path(__file__).parent / "torch_failures.py"
        ranks = [torch_job.TorchRank(program, "survive", (rank, 3, f"{folder}/store"), {}) for rank in range(3)]
        for rank in (0, 2):
            told = ranks[rank].found()
            assert told == {"ddp": [1, 1], "hook of torch": [1, 1], "class": [1, 1], "hook": [1, 1], "peer": 1, "again": 2}
        ranks[1].process.join(60)
        assert ranks[1].process.exitcode == -9


def test_a_backward_pass_raises_the_errors_of_exchanges_by_their_class():
    assert torch_job.run("torch_failures.py", "raises", 2) == ["RemoteFailure", "Unfit"]
