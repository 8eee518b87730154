"""Predictions from Python equal those of the command line; and `python -m syncopate` is that command line."""

import dataclasses
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import own_environment

import syncopate

DATA = Path(__file__).parents[2] / "data"
PROFILE, CLUSTER = DATA / "profile" / "resnet50_k80.json", DATA / "cluster" / "k80_10gbe.json"
ETHERNET = DATA / "cluster" / "ethernet_1gbit.json"


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "syncopate", *map(str, arguments)], capture_output=True, text=True,
                          check=False, env=own_environment())
    return done.returncode, done.stdout, done.stderr


def rows(*arguments):
    return [json.loads(line) for line in command(*arguments, "--json")[1].splitlines()]


def fields(one):
    """A dataclass as a row of the command line; lists are tuples."""
    return dataclasses.asdict(one)


def shared(row, fields_of):
    """The fields of a row that the dataclass has."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items() if name in fields_of}


@pytest.mark.parametrize(("given", "options"), [
    ({}, []),
    ({"policies": ["wfbp", "exact_dp"], "ranks": 32}, ["--policy", "wfbp,exact_dp", "--ranks", 32]),
    ({"exchange": "sharded", "policies": ["fusion:4MiB"]},
     ["--exchange", "sharded", "--policy", "fusion:4MiB"]),
    ({"codec": "threshold:0.1", "algorithm": "ring"}, ["--codec", "threshold:0.1", "--algorithm", "ring"]),
])
@pytest.mark.filterwarnings("ignore")
def test_plans_are_those_of_the_command(given, options):
    found = [fields(one) for one in syncopate.plan(PROFILE, CLUSTER, **given)]
    assert found == [shared(row, syncopate.Prediction.__dataclass_fields__) for row in rows("plan", PROFILE, "--cluster", CLUSTER, *options)]
    assert found


def test_what_makes_a_plan_doubtful_is_a_warning():
    with pytest.warns(UserWarning, match="no times of codec qsgd") as warned:
        syncopate.plan(PROFILE, CLUSTER, codec="qsgd", policies=["single"])
    assert {Path(warning.filename) for warning in warned} == {Path(__file__)}
    assert warned[0].message.args[0] in command("plan", PROFILE, "--cluster", CLUSTER, "--codec", "qsgd", "--policy", "single")[2]


def test_buckets_for_ddp_are_those_of_the_command():
    (row,) = rows("plan", PROFILE, "--cluster", CLUSTER, "--export", "ddp")
    assert syncopate.ddp_buckets(PROFILE, CLUSTER) == row["bucket_cap_mb_list"]


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


def test_a_layer_has_its_own_width(tmp_path):
    """A gradient of 16 bits sends half the bytes, also after its profile was written and read."""
    half = syncopate.Profile("half", 0.01, (syncopate.Layer("a", 1 << 20, 0.01, bytes_per_element=2),))
    half.write(tmp_path / "half.json")
    whole = syncopate.Profile("half", 0.01, (syncopate.Layer("a", 1 << 19, 0.01),))
    cluster = {"ranks": 4, "links": {"inter": {"alpha_s": 1e-4, "beta_s_per_byte": 8e-9}}}
    expected = syncopate.plan(whole, cluster, policies=["single"])
    assert syncopate.plan(half, cluster, policies=["single"]) == expected == syncopate.plan(tmp_path / "half.json", cluster, policies=["single"])


def test_a_profile_is_derived_and_written(tmp_path):
    derived = syncopate.profile("vgg16", throughput_gflops=1000, batch=8)
    assert len(derived.layers) == 16 and derived.forward_s > 0
    derived.write(tmp_path / "vgg16.json")
    assert syncopate.Profile.read(tmp_path / "vgg16.json") == derived


@pytest.mark.parametrize(("given", "options"), [
    ({"ranks": [4, 16], "policies": ["fusion", "dear"]}, ["--ranks", "4,16", "--policy", "fusion,dear"]),
    ({"policies": ["wfbp"], "noise": 0.2, "steps": 3, "seed": 7}, ["--policy", "wfbp", "--noise", 0.2, "--steps", 3, "--seed", 7]),
    ({"codec": "topk:0.01", "policies": ["single"]}, ["--codec", "topk:0.01", "--policy", "single"]),
    ({"exchange": "parameter_server", "codec": "fp16"}, ["--exchange", "parameter_server", "--codec", "fp16"]),
])
@pytest.mark.filterwarnings("ignore")
def test_simulations_are_those_of_the_command(given, options):
    cluster = ETHERNET if "exchange" in given else CLUSTER
    found = [fields(one) for one in syncopate.simulate(PROFILE, cluster, **given)]
    printed = rows("simulate", PROFILE, "--cluster", cluster, *options)
    assert found == [shared(row, syncopate.Simulation.__dataclass_fields__) for row in printed]
    assert found


@pytest.mark.parametrize(("given", "options"), [
    ({"algorithm": "ring", "ranks": 4, "bytes": 1 << 20}, ["ring", "--ranks", 4, "--bytes", 1 << 20]),
    ({"ranks": 8, "bytes": 4096, "ranks_per_host": 4}, ["auto", "--ranks", 8, "--bytes", 4096, "--ranks-per-host", 4]),
    ({"collective": "barrier", "ranks": 5, "bytes": 0}, ["auto", "--ranks", 5, "--bytes", 0, "--collective", "barrier"]),
])
def test_a_collective_has_the_price_of_the_command(given, options):
    (row,) = rows("plan", "collective", *options)
    assert fields(syncopate.plan_collective(**given)) == shared(row, syncopate.CollectivePlan.__dataclass_fields__)


def test_the_catalogue_is_that_of_the_command_without_its_commands():
    entries = [fields(entry) for entry in syncopate.info()]
    assert entries == [row for row in rows("info") if row["shelf"] != "command"]
    assert {entry.shelf for entry in syncopate.info("codec")} == {"codec"}
    with pytest.raises(syncopate.Misuse, match="did you mean 'codec'"):
        syncopate.info("codecs")


def test_planning_starts_no_program(monkeypatch):
    monkeypatch.setattr(subprocess, "run", None)
    syncopate.plan(PROFILE, CLUSTER, policies=["single"])
    syncopate.simulate(PROFILE, CLUSTER, policies=["single"])
    syncopate.plan_collective(ranks=4, bytes=4096)
    syncopate.info("policy")


@pytest.mark.parametrize("call", [
    lambda: syncopate.plan(PROFILE, CLUSTER),
    lambda: syncopate.simulate(PROFILE, CLUSTER, ranks=[16]),
    lambda: syncopate.plan_collective("ring", ranks=64, bytes=1 << 20),
])
def test_other_threads_run_meanwhile(call):
    """The interpreter switches threads only where a call gives it up."""
    interval, may_run, ran = sys.getswitchinterval(), threading.Lock(), []
    may_run.acquire()
    thread = threading.Thread(target=lambda: (may_run.acquire(), ran.append(True)))
    thread.start()
    try:
        sys.setswitchinterval(1000)
        may_run.release()
        for _ in range(1000):
            call()
            if ran:
                break
    finally:
        sys.setswitchinterval(interval)
    assert ran
    thread.join()


def test_errors_are_exceptions():
    with pytest.raises(syncopate.Misuse, match="exact_dp"):
        syncopate.plan(PROFILE, CLUSTER, policies=["exactdp"])
    with pytest.raises(syncopate.Misuse, match="vgg16"):
        syncopate.profile("vgg", throughput_gflops=1)
    with pytest.raises(syncopate.Error, match="absent"):
        syncopate.plan(DATA / "absent.json", CLUSTER)
    with pytest.raises(syncopate.Misuse, match="the cluster"):
        syncopate.plan(PROFILE, {"ranks": 0})
    with pytest.raises(syncopate.Misuse, match="0 ranks; allowed: 1 or more"):
        syncopate.plan(PROFILE, CLUSTER, ranks=0)


def test_the_module_is_the_command_line():
    code, printed, _ = command("--version")
    assert code == 0 and syncopate.__version__ in printed
    assert command("no-such-command")[0] == 2


def test_the_package_is_typed():
    folder = Path(syncopate.__file__).parent
    stub = (folder / "_core.pyi").read_text(encoding="utf-8")
    assert (folder / "py.typed").is_file()
    assert "def allreduce(self, data: object, op: str = 'sum'" in stub and "class PeerLost(Error):" in stub
