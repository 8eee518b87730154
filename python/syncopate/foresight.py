"""Plans, simulations, profiles and the catalogue as dataclasses, with the values that the command line prints.

The functions call the library without the interpreter's lock; `profile` runs the program. The command line calls the same
functions of the library, so that checks, warnings and defaults exist once. Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from syncopate import _core
from syncopate.command import rows

TYPE_CHECKING = False  # as typing has it, which takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from _typeshed import DataclassInstance

    _Kind = TypeVar("_Kind", bound=DataclassInstance)


@dataclass(frozen=True)
class Layer:
    """Parameters that become ready together, and the seconds of their backward pass."""

    name: str
    elements: int
    backward_s: float
    bytes_per_element: int = 4
    rows: int = 0


@dataclass(frozen=True)
class Profile:
    """A model's step on one rank without communication; layers in the order of the forward pass."""

    model: str
    forward_s: float
    layers: tuple[Layer, ...]

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Profile:
        """The profile in a JSON file (format: docs/scheduling.md)."""
        text = json.loads(Path(path).read_text(encoding="utf-8"))
        width = {"bytes_per_element": text.get("bytes_per_element", 4)}
        return Profile(text.get("model", ""), text["forward_s"], tuple(_known(Layer, width | layer) for layer in text["layers"]))

    def write(self, path: str | os.PathLike[str]) -> None:
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


def plan(profile: Profile | str | os.PathLike[str], cluster: dict[str, Any] | str | os.PathLike[str], *, policies: Iterable[str] = (),
         codec: str = "none", exchange: str = "allreduce", algorithm: str | None = None, ranks: int | None = None) -> list[Prediction]:
    """Predict a step under each policy (none given: under all) and return a list of Prediction.

    profile: a Profile or the path of its file. cluster: the path of a cluster file (`syncopate fit` writes one) or a dict
    of its contents. ranks: instead of the cluster's; its links count then, not its measured costs. A UserWarning states
    what makes the prediction doubtful. Raises Misuse.
    """
    found = _rows(_core.compare_policies(_profile(profile), _cluster(cluster), policies=list(policies), codec=codec,
                                         exchange=exchange, algorithm=algorithm, ranks=ranks))
    return [_known(Prediction, row) for row in found]


def ddp_buckets(profile: Profile | str | os.PathLike[str], cluster: dict[str, Any] | str | os.PathLike[str], *, policy: str = "exact_dp",
                codec: str = "none", ranks: int | None = None) -> list[float]:
    """The buckets of a policy as DistributedDataParallel takes them: `bucket_cap_mb_list`, in MiB."""
    (row,) = _rows(_core.compare_policies(_profile(profile), _cluster(cluster), policies=[policy], codec=codec,
                                          exchange="allreduce", algorithm=None, ranks=ranks))
    caps: list[float] = row["ddp_caps"]
    return caps


def plan_collective(algorithm: str = "auto", *, ranks: int, bytes: int, collective: str = "allreduce",
                    ranks_per_host: int | None = None) -> CollectivePlan:
    """Price one collective of `bytes` bytes (of the full vector) on `ranks` ranks. Raises Misuse."""
    return CollectivePlan(**_core.price_collective(algorithm, collective=collective, ranks=ranks, bytes=bytes,
                                                   ranks_per_host=ranks_per_host or 0))


def simulate(profile: Profile | str | os.PathLike[str], cluster: dict[str, Any] | str | os.PathLike[str], *, ranks: Iterable[int] = (),
             policies: Iterable[str] = (), codec: str = "none", exchange: str = "allreduce", noise: float = 0, steps: int | None = None,
             seed: int | None = None) -> list[Simulation]:
    """Simulate training steps and return a list of Simulation, one for each number of ranks and policy.

    noise: standard deviation of layer times over their mean; then steps are averaged, and seed draws it. Warns as `plan`
    does. Raises Misuse.
    """
    given = {name: value for name, value in (("steps", steps), ("seed", seed)) if value is not None}
    found = _rows(_core.simulate(_profile(profile), _cluster(cluster), ranks=list(ranks), policies=list(policies), codec=codec,
                                 exchange=exchange, noise=noise, **given))
    return [Simulation(**row) for row in found]


def profile(architecture: str, *, throughput_gflops: float, batch: int = 32) -> Profile:
    """Derive the Profile of a published architecture: a step of `batch` samples on a machine of that throughput.

    `syncopate profile --model` measures the models of `syncopate train`. Raises Misuse that lists the architectures.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.json"
        rows("profile", "--architecture", architecture, "--throughput-gflops", throughput_gflops, "--batch", batch,
             "--output", path)
        return Profile.read(path)


def info(shelf: str | None = None) -> list[Entry]:
    """Everything that can be chosen by name, as a list of Entry; `shelf`: only that one's ("codec", "policy" ...)."""
    return [Entry(**row) for row in _core.catalogue_rows(shelf or "")]


def _rows(answer: tuple[list[dict[str, Any]], list[str]]) -> list[dict[str, Any]]:
    """The rows of an answer, with its warnings in the caller of a public function."""
    found, texts = answer
    for text in texts:
        warnings.warn(text, stacklevel=3)
    return found


def _known(kind: type[_Kind], row: Mapping[str, Any]) -> _Kind:
    """A dataclass of those keys of a row that it has; rows may have more."""
    values = {field.name: row[field.name] for field in dataclasses.fields(kind) if field.name in row}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def _without_zeros(profile_text: dict[str, Any]) -> dict[str, Any]:
    """Remove the fields that a layer leaves at zero."""
    for layer in profile_text["layers"]:
        if not layer["rows"]:
            del layer["rows"]
    return profile_text


def _profile(given: Profile | str | os.PathLike[str]) -> _core.ProfileFile:
    if not isinstance(given, Profile):
        return _core.ProfileFile.read(os.fspath(given))
    return _core.ProfileFile.parse(json.dumps(_without_zeros(dataclasses.asdict(given))), "the profile")


def _cluster(given: dict[str, Any] | str | os.PathLike[str]) -> _core.ClusterFile:
    if not isinstance(given, dict):
        return _core.ClusterFile.read(os.fspath(given))
    return _core.ClusterFile.parse(json.dumps(given), "the cluster")
