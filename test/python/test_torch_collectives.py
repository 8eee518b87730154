"""torch's collectives through the backend: right for every operation and type, and equal to Gloo's where Gloo has them."""

import importlib
from pathlib import Path

import pytest
import tomllib
import torch_job


@pytest.fixture(params=["cpu", "device"])
def where(request):
    """The CPU, and the device of the option `--device`."""
    name = "cpu" if request.param == "cpu" else request.getfixturevalue("device")
    if request.param == "device" and name == "cpu":
        pytest.skip("the same again")
    return name


def test_collectives_are_those_of_gloo_and_of_torch_alone(where):
    assert torch_job.run("torch_collectives.py", "compared", 4, DEVICE=where) == [[], [], [], []]


def test_the_entry_point_makes_the_name_known():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, name = project["entry-points"]["torch.distributed.backends"]["syncopate"].split(":")
    register = getattr(importlib.import_module(module), name)
    register()
    import torch.distributed
    assert torch.distributed.Backend.SYNCOPATE == "syncopate"
    assert torch.distributed.Backend.backend_capability["syncopate"][0] == "cpu"


def test_messages_match_by_tag_as_with_gloo(where):
    for rank, found in enumerate(torch_job.run("torch_collectives.py", "tagged", 3, DEVICE=where)):
        assert found["syncopate"] == found["gloo"]
        assert found["syncopate"]["started, 1000"][2] == [10 * ((rank - 1) % 3) + 2]
        assert found.get("blocking", []) == [2, 3, 1] * 3 * (rank == 1)
        assert all(part in found["sizes"] for part in ("tag 4", "f32 x 3 (12 bytes)", "f32 x 5 (20 bytes)"))


def test_what_gloo_does_not_have(where):
    size = 3
    for rank, facts in enumerate(torch_job.run("torch_collectives.py", "others", size, DEVICE=where)):
        left = (rank - 1) % size
        assert facts["premul_sum"] == [3, 3, 3]
        assert facts["future"] == [[3, 3, 3]]
        assert facts["a callback waits for the next"] == 27
        assert facts["all_to_all"] == [float(other) for other in range(size) for _ in range(rank + 1)]
        assert facts["reduce_scatter"] == [3.0] * (rank + 1)
        assert facts["objects"] == [0, 1, 2]
        assert facts["messages"] == [10 * left + tag for tag in range(3)]
        assert facts["coalesced"] == [0, 3, 6]
        assert facts["generations"] == [size, size]
        bitwise, later, anybody = facts["refused"]
        assert later == bitwise
        assert "BAND of torch.float32" in bitwise and "any source" in anybody
