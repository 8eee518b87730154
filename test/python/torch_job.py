"""Jobs of torch: the same program as several ranks, each of which prints its result."""

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conftest import BOUND_S, own_environment

pytest.importorskip("torch", reason="scripts/install --python brings PyTorch")


class TorchRank:
    """A process that runs `function` of a program file, with the variables that torchrun sets."""

    def __init__(self, program, function, place, environment):
        rank, size, store = place
        self.result = Path(store).parent / f"{function}-{rank}.pickle"
        command = "import sys, pickle, runpy; program, function, store, rank, size, out = sys.argv[1:]; " \
            "made = runpy.run_path(program)[function](int(rank), int(size), 'file://' + store); pickle.dump(made, open(out, 'wb'))"
        self.process = subprocess.Popen(
            [sys.executable, "-c", command, str(program), function, store, str(rank), str(size), str(self.result)],
            env=own_environment() | {"OMP_NUM_THREADS": "1", "PYTHONPATH": _path(program)} | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)

    def found(self):
        """The result of its function."""
        printed, errors = self.process.communicate(timeout=2 * BOUND_S)
        assert self.process.returncode == 0, printed + errors
        return pickle.loads(self.result.read_bytes())


def _path(program):
    """Where ranks find modules: as the test does, and next to their program."""
    return os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(Path(program).parent))))


def run(program, function, size, **environment):
    """The result of that file's `function(rank, size, store)` on every rank of a job."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(__file__).parent / program
        ranks = [TorchRank(path, function, (rank, size, os.path.join(folder, "store")), environment) for rank in range(size)]
        try:
            return [rank.found() for rank in ranks]
        finally:
            for rank in ranks:
                rank.process.kill()
                rank.process.communicate()
