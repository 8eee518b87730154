"""Programs for Horovod get Horovod's results from syncopate.horovod; what it does not have is rejected by name."""

import tempfile
from pathlib import Path

import pytest
import torch_job

REFUSED = {
    "adasum": "does not have the reduction Adasum; use op=hvd.Average", "adasum optimizer": "Adasum",
    "both": "give only op", "op": "op=7 is not a reduction", "number": "got float; allowed: torch.Tensor",
    "device": "accelerator that this PyTorch finds", "sparse": "to_dense()", "root": "is not in the process set", "splits": "splits",
    "rows": "without splits", "no dimension": "reshape(1)", "group": "reshape(1)",
    "number in a group": "got float; allowed: torch.Tensor", "set": "allowed: at least one", "same set": "already part",
    "communicator": "mpi4py", "comm": "process sets", "handle": "_async", "elastic": "elastic; use",
    "timeline": "start_timeline; use torch.profiler", "norm": "SyncBatchNorm", "compressor": "Compression.fp16",
    "names": "named_parameters has 3", "twice": "['w'] twice", "predivide": "op=hvd.Average, or 1.0",
    "passes": "whole number from 1", "too many": "backward_passes_per_step=1", "zero_grad": "before its step"
}


@pytest.mark.parametrize("size", [2, 3])
def test_results_are_those_of_one_process(size):
    for rank, wrong in enumerate(torch_job.run("torch_horovod.py", "everything", size)):
        refused = wrong.pop("refusals")
        assert {name: text for name, text in refused.items() if REFUSED[name] not in text} == {}
        assert refused.keys() == REFUSED.keys()
        assert "hvd.init()" in wrong.pop("before") and not wrong.pop("known before") and not wrong.pop("known after")
        assert wrong.pop("places") == [rank, size, rank, size, 0, 1, True, True, False]
        assert rank == 0 or "rank 0 has left the job without joining" in wrong.pop("left")
        assert {part: found for part, found in wrong.items() if found} == {}


def test_tensors_on_an_accelerator_have_the_same_results(device):
    for wrong in torch_job.run("torch_horovod.py", "on_the_device", 2, DEVICE=device):
        assert {part: found for part, found in wrong.items() if found} == {}


def test_every_mistake_in_the_copies_is_found(device):
    if device != "emu":
        pytest.skip("only the pretended accelerator shows each of them in each run")
    assert torch_job.run("torch_horovod.py", "undetected", 2, DEVICE=device) == [["nothing is planted"]] * 2


def test_different_names_are_a_mismatch_that_has_both():
    for text in torch_job.run("torch_horovod.py", "mismatches", 2):
        assert "one" in text and "other" in text, text


@pytest.mark.parametrize(("call", "reason"), [("joined_root", "broadcast needs data of rank 0, which has called join"),
                                              ("joined_alltoall", "alltoall needs data of rank 0"),
                                              ("joined_set", "rank 0 has called join; allowed")])
def test_a_joined_rank_refuses_calls_that_need_it(call, reason):
    for text in torch_job.run("torch_horovod.py", call, 2):
        assert reason in text, text


def test_a_rank_that_has_more_batches_than_one_that_left_gets_the_remedy():
    left, *others = torch_job.run("torch_horovod.py", "uneven", 3)
    assert left == {}
    for rank, errors in enumerate(others, 1):
        assert errors.pop("no call") is None
        assert rank == 2 or errors.pop("process set") is None
        for call, error in errors.items():
            kind, text, peer = error or ("no error", "", None)
            assert kind == "PeerLost" and peer is not None and "has left the job" in text, (rank, call, error)
            assert ("hvd.join() on every rank" in text) == (call != "process set"), (rank, call, error)
            assert ("the same number of batches" in text) == ("joining" not in text), (rank, call, error)


@pytest.mark.parametrize("call", ["allreduce", "join", "step", "shutdown"])
@pytest.mark.parametrize("end", ["killed", "exception"])
def test_ranks_that_wait_for_one_that_fails_name_it(call, end):
    with tempfile.TemporaryDirectory() as folder:
        program = Path(__file__).parent / "torch_horovod.py"
        environment = {"TEST_CALL": call, "TEST_END": end}
        ranks = [torch_job.TorchRank(program, "failing", (rank, 3, f"{folder}/store"), environment) for rank in range(3)]
        try:
            for rank in ranks[:2]:
                kind, text, peer = rank.found()
                assert (kind, peer) == ("PeerLost" if end == "killed" else "RemoteFailure", 2), text
                assert end == "killed" or "the data ran out" in text
        finally:
            for rank in ranks:
                rank.end()


def test_variables_of_open_mpi_without_an_address_mean_loopback_on_one_host():
    from syncopate.horovod.job import _rendezvous

    one_host = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    assert _rendezvous(one_host) == "tcp://127.0.0.1:29500"
    for other in ({"OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, {"MASTER_ADDR": "10.0.0.1"}, {"PMIX_NAMESPACE": "job"},
                  {"SYNCOPATE_RANK": "0"}, {"RANK": "0"}):
        assert _rendezvous(one_host | other) == ""
    assert _rendezvous({}) == ""
