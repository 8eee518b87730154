"""Predictions from Python equal those of the command line; and `python -m syncopate` is that command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import syncopate
from conftest import own_environment

DATA = Path(__file__).parents[2] / "data"
PROFILE, CLUSTER = DATA / "profile" / "resnet50_k80.json", DATA / "cluster" / "k80_10gbe.json"


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "syncopate", *map(str, arguments)], capture_output=True, text=True,
                          check=False, env=own_environment())
    return done.returncode, done.stdout, done.stderr


def rows(*arguments):
    return [json.loads(line) for line in command(*arguments, "--json")[1].splitlines()]


def test_plans_are_those_of_the_command():
    predictions = syncopate.plan(PROFILE, CLUSTER, policies=["wfbp", "exact_dp"])
    printed = {row["policy"]: row for row in rows("plan", PROFILE, "--cluster", CLUSTER, "--policy", "wfbp,exact_dp")}
    assert {prediction.policy for prediction in predictions} == set(printed) == {"wfbp", "exact_dp"}
    for prediction in predictions:
        row = printed[prediction.policy]
        assert prediction.iteration_s == row["iteration_s"] and list(prediction.groups) == row["groups"]


def test_a_plan_is_a_list_for_ddp():
    buckets = syncopate.ddp_buckets(PROFILE, CLUSTER)
    layers = syncopate.Profile.read(PROFILE).layers
    total = sum(layer.elements * layer.bytes_per_element for layer in layers) / 2**20
    assert len(buckets) > 1 and sum(buckets) == pytest.approx(total)


def test_a_profile_is_a_value():
    own = syncopate.Profile("mine", 0.01, tuple(syncopate.Layer(f"layer{i}", 1 << 20, 0.01) for i in range(4)))
    cluster = {"ranks": 4, "links": {"inter": {"alpha_s": 1e-4, "beta_s_per_byte": 8e-9}}}
    best = min(syncopate.plan(own, cluster), key=lambda prediction: prediction.iteration_s)
    assert best.ranks == 4 and best.iteration_s >= 0.05 and best.compute_s == pytest.approx(0.05)


def test_a_profile_is_derived_and_written(tmp_path):
    derived = syncopate.profile("vgg16", throughput_gflops=1000, batch=8)
    assert len(derived.layers) == 16 and derived.forward_s > 0
    derived.write(tmp_path / "vgg16.json")
    assert syncopate.Profile.read(tmp_path / "vgg16.json") == derived


def test_simulations_are_those_of_the_command():
    simulations = syncopate.simulate(PROFILE, CLUSTER, ranks=[4, 16], policies=["fusion"])
    printed = rows("simulate", PROFILE, "--cluster", CLUSTER, "--ranks", "4,16", "--policy", "fusion")
    assert [(s.ranks, s.iteration_s, s.speedup) for s in simulations] == \
        [(row["ranks"], row["iteration_s"], row["speedup"]) for row in printed]


def test_a_collective_has_a_price():
    price = syncopate.plan_collective("ring", ranks=4, bytes=1 << 20)
    assert (price.algorithm, price.rounds, price.wire_bytes_per_rank) == ("ring", 6, 2 * 3 * (1 << 20) // 4)


def test_the_catalogue_is_that_of_the_command():
    entries = syncopate.info()
    assert [(entry.shelf, entry.name) for entry in entries] == [(row["shelf"], row["name"]) for row in rows("info")]
    assert {"ring", "topk", "fusion"} <= {entry.name for entry in entries}
    assert {entry.shelf for entry in syncopate.info("codec")} == {"codec"}


def test_errors_of_the_command_are_exceptions():
    with pytest.raises(syncopate.Misuse, match="exact_dp"):
        syncopate.plan(PROFILE, CLUSTER, policies=["exactdp"])
    with pytest.raises(syncopate.Misuse, match="vgg16"):
        syncopate.profile("vgg", throughput_gflops=1)
    with pytest.raises(syncopate.Error, match="absent"):
        syncopate.plan(DATA / "absent.json", CLUSTER)


def test_the_module_is_the_command_line():
    code, printed, _ = command("--version")
    assert code == 0 and syncopate.__version__ in printed
    assert command("no-such-command")[0] == 2


def test_the_package_is_typed():
    folder = Path(syncopate.__file__).parent
    stub = (folder / "_core.pyi").read_text(encoding="utf-8")
    assert (folder / "py.typed").is_file()
    assert "def allreduce(self, data: object, op: str = 'sum'" in stub and "class PeerLost(Error):" in stub
