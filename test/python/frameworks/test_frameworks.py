"""The examples of other frameworks train: both ranks end with the same weights, the loss falls, and the codec saves bytes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BOUND_S, own_environment

EXAMPLES = Path(__file__).parents[3] / "example" / "python"
RUN = ("-m", "syncopate", "run", "-n", "2", "--", sys.executable)
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval", "0.2")
LINE = re.compile(r"rank (\d): (\d+) steps, loss (\S+) to (\S+), weights (\w+)(?:, sent (\S+) of the gradients)?")


def trained(name, *arguments, launcher=()):
    """The output of the example, and its lines by rank: (steps, first loss, last loss, digest of the weights, share of the bytes)."""
    done = subprocess.run([sys.executable, *launcher, str(EXAMPLES / name), *arguments], check=False, capture_output=True, text=True,
                          timeout=BOUND_S, env=own_environment() | {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"})
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {int(rank): (int(steps), float(first), float(last), digest, float(share or 0))
             for rank, steps, first, last, digest, share in LINE.findall(done.stdout + done.stderr)}
    assert sorted(lines) == [0, 1], done.stdout + done.stderr
    return done.stdout, lines


@pytest.mark.parametrize(("example", "launcher"), [("with_lightning", ()), ("with_accelerate", TORCHRUN), ("with_transformers", TORCHRUN),
                                                   ("with_ray", ()), ("jax_data_parallel", RUN)])
def test_a_framework_trains_with_a_codec(example, launcher):
    _, lines = trained(f"{example}.py", launcher=launcher)
    (steps, first, last, digest, share), other = lines[0], lines[1]
    assert steps == other[0] == 20 and digest == other[3]
    assert last < first - 0.2 and other[2] < other[1] - 0.2
    assert 0 < share < 0.1 and 0 < other[4] < 0.1


def test_after_a_kill_training_ends_with_the_steps_and_bits_of_one_without(tmp_path):
    ends = {}
    for attempts, killer in ((1, ()), (2, (str(Path(__file__).parent / "killed.py"), "12"))):
        folder = tmp_path / str(attempts)
        folder.mkdir()
        printed, ends[attempts] = trained("elastic.py", "--checkpoints", str(folder), launcher=TORCHRUN + killer)
        assert re.findall(r"attempt (\d)", printed) == [str(attempts - 1)] * 2
    assert ends[1] == ends[2] and ends[1][0][0] == 20 and ends[1][0][3] == ends[1][1][3]
