"""The examples of other frameworks train: all ranks end with the same weights, the loss falls, and the codec saves bytes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BOUND_S, own_environment

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[2] / "example" / "python"
RUN = ("-m", "syncopate", "run", "-n", "2", "--", sys.executable)
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval", "0.2")
TWO_HOSTS = ("-m", "torch.distributed.run", "--nproc-per-node", "4")
DEVICE = os.environ.get("DEVICE", "cpu")
cpu_only = pytest.mark.cpu_only("the example trains there")
LINE = re.compile(r"rank (\d): (\d+) steps, loss (\S+) to (\S+), weights (\w+)(?:, sent (\S+) of the gradients)?")


def trained(name, *arguments, launcher=(), ranks=2):
    """The output of the example, and its lines by rank: (steps, first loss, last loss, digest of the weights, share of the bytes)."""
    done = subprocess.run([sys.executable, *launcher, str(EXAMPLES / name), *arguments], check=False, capture_output=True, text=True,
                          timeout=BOUND_S, env=own_environment() | {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"})
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {int(rank): (int(steps), float(first), float(last), digest, float(share or 0))
             for rank, steps, first, last, digest, share in LINE.findall(done.stdout + done.stderr)}
    assert sorted(lines) == list(range(ranks)), done.stdout + done.stderr
    return done.stdout, lines


@cpu_only
@pytest.mark.parametrize(("example", "launcher"), [("with_lightning", ()), ("with_accelerate", TORCHRUN), ("with_transformers", TORCHRUN),
                                                   ("with_ray", ()), ("jax_data_parallel", RUN)])
def test_a_framework_trains_with_a_codec(example, launcher):
    _, lines = trained(f"{example}.py", launcher=launcher)
    (steps, first, last, digest, share), other = lines[0], lines[1]
    assert steps == other[0] == 20 and digest == other[3]
    assert last < first - 0.2 and other[2] < other[1] - 0.2
    assert 0 < share < 0.1 and 0 < other[4] < 0.1


@pytest.mark.skipif(DEVICE not in ("cpu", "emu"), reason="the ranks need a device each")
@pytest.mark.parametrize(("example", "is_for_cpu"), [("with_lightning_fsdp", True), ("with_accelerate_fsdp", False)])
def test_a_framework_shards_within_hosts_and_a_codec_works_between_them(example, is_for_cpu):
    driver = () if DEVICE == "cpu" and is_for_cpu else (str(HERE / "as_gpu.py"),)
    _, lines = trained(f"{example}.py", launcher=TWO_HOSTS + driver, ranks=4)
    steps, digests = ({line[i] for line in lines.values()} for i in (0, 3))
    assert steps == {20} and len(digests) == 1
    assert len({first for _, first, *_ in lines.values()}) == 4  # samples of its own for each rank
    assert all(last < first - 0.2 for _, first, last, *_ in lines.values())
    assert all(0 < share < 0.2 for *_, share in lines.values()), lines  # without a codec 0.5


@cpu_only
def test_ddp_of_a_framework_sums_within_hosts_and_a_codec_works_between_them():
    _, lines = trained("with_accelerate.py", launcher=(*TWO_HOSTS, str(HERE / "within_hosts.py")), ranks=4)
    steps, digests = ({line[i] for line in lines.values()} for i in (0, 3))
    assert steps == {10} and len(digests) == 1
    assert all(last < first - 0.05 for _, first, last, *_ in lines.values())
    assert all(0 < share < 0.2 for *_, share in lines.values()), lines  # without a codec 0.5


@cpu_only
def test_after_a_kill_training_ends_with_the_steps_and_bits_of_one_without(tmp_path):
    ends = {}
    for attempts, killer in ((1, ()), (2, (str(HERE / "killed.py"), "12"))):
        folder = tmp_path / str(attempts)
        folder.mkdir()
        printed, ends[attempts] = trained("elastic.py", "--checkpoints", str(folder), launcher=TORCHRUN + killer)
        assert re.findall(r"attempt (\d)", printed) == [str(attempts - 1)] * 2
    assert ends[1] == ends[2] and ends[1][0][0] == 20 and ends[1][0][3] == ends[1][1][3]
