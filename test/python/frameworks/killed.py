"""Runs a program under torchrun, and in the first attempt kills rank 1 when its optimizer begins a step: killed.py STEP PROGRAM..."""

import itertools
import os
import runpy
import signal
import sys
from pathlib import Path

from torch.optim.optimizer import register_optimizer_step_pre_hook

last, program, *_ = sys.argv[1:]
count = itertools.count(1)


def die(*_):
    """Called before each step of an optimizer."""
    if next(count) == int(last):
        os.kill(os.getpid(), signal.SIGKILL)


if (os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]) == ("1", "0"):
    register_optimizer_step_pre_hook(die)
sys.argv = sys.argv[2:]
sys.path[0] = str(Path(program).parent)
runpy.run_path(program, run_name="__main__")
