"""torch.compile with the hook, the class and FSDP2: compiled training has the weights of training that is not compiled."""

import pytest
import torch
import torch_job

pytest.importorskip("torch.distributed.fsdp", reason="FSDP2 came with torch 2.6")
if not hasattr(torch.distributed.fsdp, "fully_shard"):
    pytest.skip("FSDP2 came with torch 2.6", allow_module_level=True)
pytestmark = pytest.mark.cpu_only("compiled DDP on a device is not tested")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """By claim: what each rank of one job found, in which back ends are loaded once."""
    ranks = torch_job.run("torch_compile.py", "everything", 2, TORCHINDUCTOR_CACHE_DIR=str(tmp_path_factory.mktemp("inductor")))
    return {claim: [rank[claim] for rank in ranks] for claim in ranks[0]}


def differing(distances):
    return {name: distance for name, distance in distances.items() if distance != 0}


@pytest.mark.parametrize(("claim", "count"), [("without_rounding", 16), ("modes", 10)])
def test_weights_are_those_of_the_program_that_is_not_compiled(found, claim, count):
    for distances in found[claim]:
        assert len(distances) == count and not differing(distances)


def test_inductors_weights_are_those_without_the_hook(found):
    for distances in found["fused"]:
        assert distances.pop("rounding") < 1e-6
        assert len(distances) == 10 and not differing(distances)


def test_the_compiler_does_not_look_into_the_hook(found):
    for modes in found["whole_steps"]:
        for mode, (difference, frames, of_library) in modes.items():
            assert difference == 0 and frames > 0 and of_library == [], mode


def test_passes_add_up_and_must_reach_all_parameters_in_the_reducer_in_python(found):
    for difference, errors in found["accumulated"]:
        assert difference == 0
        assert len(errors) == 2
        assert all("while 4 of 6 parameters have none in this step; allowed with optimize_ddp='python_reducer'" in error for error in errors)


def test_errors_of_an_exchange_are_raised_by_class(found):
    for errors in found["failing"]:
        assert errors.keys() == {"ddp_optimizer", "python_reducer", "traced"}
        assert all("enough" in text for text in errors.values()), errors


def test_measured_buckets_have_one_size_in_the_reducer_in_python(found):
    for has_list in found["measured_buckets"]:
        assert not has_list["python_reducer"]


def test_the_class_divides_the_module_at_small_buckets(found):
    for ways in found["small_buckets"]:
        assert len(ways) == 4 and all(difference == 0 and graphs >= 2 for difference, graphs in ways.values()), ways
