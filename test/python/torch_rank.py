"""One rank of a job of torch, as a child of a process that has imported PyTorch: an import takes seconds of a processor."""

import atexit
import os
import pickle
import runpy
import sys
from pathlib import Path

import torch


def run(program, function, place, environment, printed, result):
    """Write what the program file's `function(rank, size, store)` returns into `result`, and what it prints into `printed`."""
    output = os.open(printed, os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.environ.clear()
    os.environ.update(environment)
    torch.distributed.set_debug_level_from_env()  # torch has read it when it was imported
    sys.path.insert(0, str(Path(program).parent))
    rank, size, store = place
    made = runpy.run_path(str(program))[function](rank, size, "file://" + store)
    with open(result, "wb") as file:
        pickle.dump(made, file)
    atexit._run_exitfuncs()  # as at the end of a program; multiprocessing leaves them out
