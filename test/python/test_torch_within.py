"""DDP with a process group within hosts: native weights without a codec, equal weights on all ranks with any, errors, and planted mistakes."""

import tempfile
from pathlib import Path

import pytest
import torch_job

import syncopate.torch

CODECS = "topk:0.05 qsgd:8 int8 low_rank:2 fp16"


def run(function, size, **environment):
    return torch_job.run("torch_within.py", function, size, **environment)


@pytest.fixture(params=["cpu", "device"])
def place(request):
    """The CPU, and the accelerator of --device."""
    if request.param == "cpu":
        return "cpu"
    device = request.getfixturevalue("device")
    if device == "cpu" or not syncopate.torch.Backend.is_supported():
        pytest.skip("no accelerator, or this torch lets no Python class be a backend")
    return device


@pytest.mark.parametrize(("hosts", "backend"), [(2, "gloo"), (4, "syncopate")])
def test_without_a_codec_the_weights_are_those_of_the_same_sums_by_torch(hosts, backend, place):
    if backend == "syncopate" and not syncopate.torch.Backend.is_supported():
        pytest.skip("this torch lets no Python class be a backend, and Gloo adds the parts of more than two hosts in another order")
    for of_hosts, of_plain_ddp, near in run("against_native", 2 * hosts, HOSTS=str(hosts), BACKEND=backend, DEVICE=place):
        assert of_hosts and near
        assert of_plain_ddp or (backend == "gloo" and place == "cpu")  # Gloo adds all ranks in the order of a ring


def test_codecs_leave_equal_weights_on_all_ranks_and_on_every_device(device):
    on_cpu = run("coded", 4, CODECS=CODECS)
    for codec, (weights, sent) in on_cpu[0].items():
        assert all(rank[codec][0] == weights for rank in on_cpu), codec
        assert sent
    if device != "cpu" and syncopate.torch.Backend.is_supported():
        assert run("coded", 4, CODECS=CODECS, DEVICE=device) == on_cpu


@pytest.mark.parametrize("hosts", [2, 3])
def test_a_codec_works_on_shards_of_the_averages_of_hosts(hosts, place):
    assert run("topk_by_its_formula", 2 * hosts, HOSTS=str(hosts), DEVICE=place) == [[]] * 2 * hosts


def test_a_step_that_is_not_finite_on_one_rank_counts_on_none(place):
    assert run("not_finite", 4, DEVICE=place) == [(True, True)] * 4


def test_hosts_send_fewer_bytes_than_in_a_flat_exchange():
    for sharded, flat in run("bytes_between_hosts", 8, HOSTS="4"):
        assert sharded < 0.6 * flat


def test_a_checkpoint_has_what_the_codec_keeps_and_belongs_to_one_place(place):
    for rank, (resumed, fresh, refusal) in enumerate(run("checkpoint", 4, DEVICE=place)):
        assert resumed and not fresh
        other = (rank + 1) % 4
        assert f"is that of rank {other % 2} of 2 on host {other // 2} of 2, and this is rank {rank % 2} of 2 on host {rank // 2} of 2" in refusal


def test_passes_and_models_may_differ_as_under_ddp(place):
    assert run("uses", 4, DEVICE=place) == [[]] * 4


def test_names_of_hosts_decide_who_reduces_and_are_compared_with_groups():
    for rank, (members, average, spanning, unequal) in enumerate(run("by_names", 4)):
        assert (members, average) == ([rank % 2, rank % 2 + 2], 1.5)
        assert "within of ranks [0, 1] is on several hosts: rank 0 on a, rank 1 on b; allowed" in spanning
        assert "Misuse: within has 3 and 1 ranks: [0, 1, 2], [3]; allowed" in unequal


def test_a_pickle_goes_on_where_the_library_made_the_process_group():
    for goes_on, refusal in run("pickled", 4):
        assert goes_on and 'Misuse: a process group cannot be pickled; allowed: within="host", or state_dict()' in refusal


def test_what_does_not_fit_is_refused_on_every_rank():
    for found in run("refusals", 4):
        assert "Misuse: within of rank 2 is a process group of other ranks; allowed" in found["no member"], found
        assert "Misuse: within of rank 0 is 4, which is not a process group; allowed" in found["no group"], found
        assert "Misuse: within differs: that of rank 0 has ranks [0, 1], and that of rank 1 [0, 1, 2, 3]; allowed" in found["differs"], found
        assert "Misuse: within has 3 and 1 ranks: [0, 1, 2], [3]; allowed" in found["unequal"], found
        assert found["some without"].startswith(("Mismatch", "RemoteFailure")), found
        assert "allowed: one codec, chosen before" in found["auto"], found
        assert "nothing" in found["unknown"] and "allowed" in found["unknown"], found


def test_an_error_of_one_rank_is_raised_by_all(place):
    for rank, (first, second) in enumerate(run("raises", 4, DEVICE=place)):
        assert "unfit" in first, (rank, first)
        assert second != "nothing was raised", rank  # it may be that of a rank that has left


def test_a_killed_rank_is_an_error_of_all_others():
    with tempfile.TemporaryDirectory() as folder:
        program = Path(__file__).parent / "torch_within.py"
        ranks = [torch_job.TorchRank(program, "killed", (rank, 4, f"{folder}/store"), {}) for rank in range(4)]
        try:
            assert all(rank.found() != "nothing was raised" for rank in ranks[:3])
        finally:
            for rank in ranks:
                rank.end()


def test_every_planted_mistake_changes_the_weights(place):
    assert run("undetected", 4, DEVICE=place) == [[]] * 4


def test_gathers_follow_all_sums_in_the_order_of_the_buckets():
    for issued in run("order", 4):
        names = issued["WithinHostState"]
        half = len(names) // 2
        assert half > 2 and names == [("reduce", size) for _, size in names[half:]] + [("gather", size) for _, size in names[:half]]
        assert [kind for kind, _ in issued["GathersEarly"]] != [kind for kind, _ in names]
