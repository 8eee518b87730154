"""What the command line foretells, as dataclasses: plans, simulations, profiles and the catalogue.

Each function runs the command of the same name and reads its `--json` rows, which are its contract: one implementation
of checks, warnings and defaults serves the terminal and Python. Times are in seconds, sizes in bytes.
"""

import dataclasses
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from syncopate.command import rows


@dataclass(frozen=True)
class Layer:
    """Parameters that become ready together, and the seconds of their backward pass."""

    name: str
    elements: int
    backward_s: float
    bytes_per_element: float = 4
    rows: int = 0


@dataclass(frozen=True)
class Profile:
    """A model's step on one rank without communication; layers in the order of the forward pass."""

    model: str
    forward_s: float
    layers: tuple[Layer, ...]

    @staticmethod
    def read(path):
        """The profile in a JSON file (format: docs/scheduling.md)."""
        text = json.loads(Path(path).read_text(encoding="utf-8"))
        return Profile(text.get("model", ""), text["forward_s"], tuple(_known(Layer, layer) for layer in text["layers"]))

    def write(self, path):
        """Write the JSON file that `syncopate plan` and `simulate` read."""
        Path(path).write_text(json.dumps(_without_zeros(dataclasses.asdict(self))), encoding="utf-8")


@dataclass(frozen=True)
class Prediction:
    """A training step under one policy. `groups`: the last layer of each bucket, counted from 1 in forward order."""

    policy: str
    groups: tuple[int, ...]
    iteration_s: float
    compute_s: float
    exposed_s: float
    over_optimum: float
    best_change: str
    with_merging_s: float
    with_bandwidth_s: float
    with_latency_s: float
    codec: str
    exchange: str
    ranks: int


@dataclass(frozen=True)
class CollectivePlan:
    """The price of one collective; `rounds` counts blocks if every rank has one port to send and one to receive."""

    collective: str
    algorithm: str
    ranks: int
    bytes: int
    rounds: int
    wire_bytes_per_rank: int
    predicted_s: float


@dataclass(frozen=True)
class Simulation:
    """A training step of many ranks in virtual time: mean over steps of the slowest rank."""

    policy: str
    ranks: int
    algorithm: str
    iteration_s: float
    compute_s: float
    exposed_s: float
    speedup: float
    efficiency: float


@dataclass(frozen=True)
class Entry:
    """An entry of the catalogue, which is chosen by its name."""

    shelf: str
    name: str
    summary: str
    source: str


def plan(profile, cluster, *, policies=(), codec="none", exchange="allreduce", algorithm=None, ranks=None):
    """Predict a step under each policy (none given: under all) and return a list of Prediction, best first.

    profile: a Profile or the path of its file. cluster: the path of a cluster file (`syncopate fit` writes one) or a dict
    of its contents. ranks: instead of the cluster's; its links count then, not its measured costs. Raises Misuse.
    """
    options = _options(policy=",".join(policies), codec=codec, exchange=exchange, algorithm=algorithm, ranks=ranks)
    with tempfile.TemporaryDirectory() as folder:
        found = rows("plan", _profile_file(profile, folder), "--cluster", _cluster_file(cluster, folder), *options)
    return [_known(Prediction, row) for row in found if "policy" in row]


def ddp_buckets(profile, cluster, *, policy="exact_dp", codec="none", ranks=None):
    """The buckets of a policy as DistributedDataParallel takes them: `bucket_cap_mb_list`, in MiB."""
    options = _options(policy=policy, codec=codec, ranks=ranks)
    with tempfile.TemporaryDirectory() as folder:
        found = rows("plan", _profile_file(profile, folder), "--cluster", _cluster_file(cluster, folder), "--export", "ddp",
                     *options)
    return next(row["bucket_cap_mb_list"] for row in found if "bucket_cap_mb_list" in row)


def plan_collective(algorithm="auto", *, ranks, bytes, collective="allreduce", ranks_per_host=None):  # noqa: A002
    """Price one collective of `bytes` bytes (of the full vector) on `ranks` ranks. Raises Misuse."""
    found = rows("plan", "collective", algorithm, "--ranks", ranks, "--bytes", bytes, "--collective", collective,
                 *_options(ranks_per_host=ranks_per_host))
    return _known(CollectivePlan, found[-1])


def simulate(profile, cluster, *, ranks=(), policies=(), codec="none", exchange="allreduce", noise=0, steps=None, seed=None):
    """Simulate training steps and return a list of Simulation, one for each number of ranks and policy.

    noise: standard deviation of layer times over their mean; then steps are averaged, and seed draws it. Raises Misuse.
    """
    options = _options(ranks=",".join(map(str, ranks)), policy=",".join(policies), codec=codec, exchange=exchange,
                       noise=noise or None, steps=steps, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        found = rows("simulate", _profile_file(profile, folder), "--cluster", _cluster_file(cluster, folder), *options)
    return [_known(Simulation, row) for row in found if "policy" in row and "iteration_s" in row]


def profile(architecture, *, throughput_gflops, batch=32):
    """Derive the Profile of a published architecture: a step of `batch` samples on a machine of that throughput.

    `syncopate profile --model` measures the models of `syncopate train`. Raises Misuse that lists the architectures.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.json"
        rows("profile", "--architecture", architecture, "--throughput-gflops", throughput_gflops, "--batch", batch,
             "--output", path)
        return Profile.read(path)


def info(shelf=None):
    """Everything that can be chosen by name, as a list of Entry; `shelf`: only that one's ("codec", "policy" ...)."""
    return [_known(Entry, row) for row in rows("info", *([shelf] if shelf else []))]


def _known(kind, row):
    """A dataclass of those keys of a row that it has; rows may have more."""
    values = {field.name: row[field.name] for field in dataclasses.fields(kind) if field.name in row}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def _without_zeros(profile_text):
    """Remove the fields that a layer leaves at zero."""
    for layer in profile_text["layers"]:
        if not layer["rows"]:
            del layer["rows"]
    return profile_text


def _options(**values):
    """`--name value` of those that are given."""
    given = {name: value for name, value in values.items() if value not in (None, "")}
    return [text for name, value in given.items() for text in ("--" + name.replace("_", "-"), value)]


def _profile_file(given, folder):
    if not isinstance(given, Profile):
        return given
    path = Path(folder) / "profile.json"
    given.write(path)
    return path


def _cluster_file(cluster, folder):
    if not isinstance(cluster, dict):
        return cluster
    path = Path(folder) / "cluster.json"
    path.write_text(json.dumps(cluster), encoding="utf-8")
    return path
