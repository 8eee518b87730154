"""The examples of torch run under torchrun, at small size."""

import re
import subprocess
import sys
from pathlib import Path

import torch_job
from conftest import own_environment

EXAMPLES = Path(__file__).parents[2] / "example" / "python"
assert torch_job


def torchrun(name, *arguments, ranks=2):
    """What the example prints under torchrun."""
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), str(EXAMPLES / name), *arguments],
                          check=False, capture_output=True, text=True, env=own_environment() | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def loss_in(printed, words):
    """The loss that rank 0 says after these words."""
    found = re.search(rf"2 ranks, {words}: loss (\S+) after", printed)
    assert found, printed
    return float(found[1])


def test_ddp_learns_under_torchrun():
    assert loss_in(torchrun("ddp.py"), "syncopate") < 1.0


def test_ddp_learns_from_one_gradient_in_a_hundred_and_goes_on_from_checkpoints(tmp_path):
    first = loss_in(torchrun("ddp_topk.py", "--checkpoints", str(tmp_path)), "topk:0.01")
    assert {path.name for path in tmp_path.iterdir()} == {"rank-0.pt", "rank-1.pt"}
    assert loss_in(torchrun("ddp_topk.py", "--checkpoints", str(tmp_path)), "topk:0.01") < first < 2.3
