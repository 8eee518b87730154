"""Jobs of torch: the same function on several ranks, each in a process of its own, and what it returns there."""

import multiprocessing
import os
import pickle
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from conftest import BOUND_S, own_environment

pytest.importorskip("torch", reason="scripts/install --python brings PyTorch")
import torch_rank

ENVIRONMENT = {"OMP_NUM_THREADS": "1"}
# Ranks are forked from one process that has imported all this, and has no threads.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["torch", "torch.nn.parallel", "torch.distributed.fsdp", "torch._dynamo", "syncopate.torch", "syncopate.horovod"])


class TorchRank:
    """A process that runs `function` of a program file."""

    def __init__(self, program, function, place, environment):
        rank, _, store = place
        self._result, self._printed = (Path(store).parent / f"{function}-{rank}.{kind}" for kind in ("pickle", "txt"))
        self.process = _FORKS.Process(target=torch_rank.run, args=(program, function, place, own_environment() | ENVIRONMENT | environment,
                                                                   self._printed, self._result))
        with mock.patch.dict(os.environ, ENVIRONMENT):  # the first rank starts the process that forks
            self.process.start()

    def found(self):
        """The result of its function."""
        self.process.join(2 * BOUND_S)
        assert self.process.exitcode == 0, f"exit code {self.process.exitcode}: {self._printed.read_text()}"
        return pickle.loads(self._result.read_bytes())

    def end(self):
        """Kills it if it runs, and waits for its end."""
        self.process.kill()
        self.process.join()


def run(program, function, size, **environment):
    """The result of that file's `function(rank, size, store)` on every rank of a job."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(__file__).parent / program
        ranks = [TorchRank(path, function, (rank, size, os.path.join(folder, "store")), environment) for rank in range(size)]
        try:
            return [rank.found() for rank in ranks]
        finally:
            for rank in ranks:
                rank.end()
