"""Process groups: work on other threads has the caller's modes, descriptors are few, and no rank waits for one that fails."""

import tempfile
from pathlib import Path

import pytest
import torch_job

pytestmark = pytest.mark.cpu_only("groups, modes and descriptors are those of processes")


def run(function, size):
    return torch_job.run("torch_groups.py", function, size)


def survivors(function, size, ended):
    """The results of the ranks that do not end by a signal."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(__file__).parent / "torch_groups.py"
        ranks = [torch_job.TorchRank(program, function, (rank, size, f"{folder}/store"), {}) for rank in range(size)]
        found = [ranks[rank].found() for rank in range(size) if rank != ended]
        ranks[ended].process.join(60)
        assert ranks[ended].process.exitcode == -9
        return found


def test_library_threads_work_in_the_modes_of_the_caller():
    for facts in run("modes", 2):
        assert facts == {"failed": [], "results": [2.0, 2.0, 2], "callback": True, "hook": True, "autocast in a backward pass": True}


def test_sparse_sums_do_not_wait_for_the_other_ranks():
    for facts in run("sparse", 2):
        assert facts.pop("mixed").startswith("Mismatch: ")
        assert facts == {"sums": [True] * 4, "hybrid": True, "nothing": 0, "dense": 2, "ended": True}


def test_a_group_has_few_descriptors():
    assert [max(counts) for counts in run("descriptors", 2)] <= [4, 4]
    assert max(max(counts) for counts in run("descriptors", 4)) <= 9


def test_a_lack_of_descriptors_is_the_cause_that_every_rank_gets():
    found = run("lacking", 2)
    assert found[0].keys() == found[1].keys() and len(found[0]) > 6
    for limited in (0, 1):
        assert found[0][limited, "last"] < 30
        for free in range(found[0][limited, "last"]):
            own, other = found[limited][limited, free], found[1 - limited][limited, free]
            assert own.startswith("SystemFailure: ") and "Too many open files; raise the limit (ulimit -n)" in own, own
            assert other.startswith(("RemoteFailure: ", "SystemFailure: ")) and f"rank {limited} " in other and "Too many open files" in other, other


def test_a_rank_that_ends_while_a_group_connects_is_named_soon():
    for text in survivors("ending", 3, 1):
        assert text.startswith(("PeerLost: rank 1 has ended", "RemoteFailure: rank 0 could not join the group: PeerLost: rank 1 has ended")), text


def test_a_store_that_ends_while_a_group_connects_is_an_error_at_once():
    (text,) = survivors("without_store", 2, 0)
    assert text.startswith("PeerLost: the store of torch does not answer; the process that holds it"), text
