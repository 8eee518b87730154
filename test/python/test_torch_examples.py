"""The examples of torch run under torchrun, at small size."""

import re
import subprocess
import sys
from pathlib import Path

import torch_job
from conftest import own_environment

EXAMPLES = Path(__file__).parents[2] / "example" / "python"
assert torch_job


def test_ddp_learns_under_torchrun():
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(EXAMPLES / "ddp.py")],
                          check=False, capture_output=True, text=True, env=own_environment() | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    loss = re.search(r"2 ranks, syncopate: loss (\S+) after 20 steps", done.stdout)
    assert loss and float(loss[1]) < 1.0, done.stdout
