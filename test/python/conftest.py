"""Helpers of tests with several ranks: ranks as threads, and jobs of processes."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import pytest

import syncopate

LIBRARY_OF_EMU = Path(syncopate.__file__).parents[2] / "test" / "python" / "libemu.so"
WITHOUT_EMU = f"no {LIBRARY_OF_EMU}: the target python_device builds it with the PyTorch of scripts/install --python"
BOUND_S = 300  # of a job that is expected to end by itself


def pytest_addoption(parser):
    """The device of tests with PyTorch."""
    parser.addoption("--device", help="cpu, emu (the pretended accelerator), or one of torch's accelerators, such as cuda; "
                                      "by default cpu, and emu for tests of accelerators")


def pytest_configure(config):
    """Programs and modules of tests find the device that was chosen in the variable DEVICE (device/chosen.py)."""
    config.addinivalue_line("markers", "cpu_only(reason): a test that no other device can run")
    chosen = config.getoption("--device")
    if chosen == "emu" and not LIBRARY_OF_EMU.is_file():
        raise pytest.UsageError(WITHOUT_EMU)
    os.environ.pop("DEVICE", None)
    if chosen:
        os.environ["DEVICE"] = chosen


def pytest_runtest_setup(item):
    """Skip what the device cannot run."""
    mark = item.get_closest_marker("cpu_only")
    if mark and os.environ.get("DEVICE", "cpu") != "cpu":
        pytest.skip(f"on the CPU only: {mark.args[0]}")


@pytest.fixture
def device():
    """The device of tests of accelerators."""
    name = os.environ.get("DEVICE", "emu")
    if name == "emu" and not LIBRARY_OF_EMU.is_file():
        pytest.skip(WITHOUT_EMU)
    return name


def on_threads(size, body):
    """Return what `body(index)` returns, or raises, on each of `size` threads."""
    results = [None] * size

    def run(index):
        try:
            results[index] = body(index)
        except BaseException as error:  # noqa: BLE001 (the test looks at it)
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def outcomes(groups, body):
    """Run `body(group)` on a thread for each group; return what each returned or raised."""
    return on_threads(len(groups), lambda rank: body(groups[rank]))


@pytest.fixture
def on_ranks():
    """`on_ranks(size, body)`: what `body(group)` returns on every rank of a group of threads; its exceptions are raised."""
    def run(size, body):
        groups = syncopate.Group.threads(size, timeout_s=BOUND_S)
        results = outcomes(groups, body)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results
    return run


class Rank:
    """A process that is one rank of a job; it talks to the test in lines of JSON."""

    def __init__(self, rank, size, folder, program):
        prelude = f"import json, os, sys, syncopate\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n" \
            f"rank, size, meeting = {rank}, {size}, 'file://{folder}'\n" \
            "def join(**more):\n    return syncopate.Group.join(rank=rank, size=size, rendezvous=meeting, **more)\n" \
            "def say(value):  # in one write: two threads may print\n    os.write(1, (json.dumps(value) + '\\n').encode())\n" \
            "def ask():\n    return json.loads(sys.stdin.readline())\n"
        self.process = subprocess.Popen([sys.executable, "-c", prelude + textwrap.dedent(program)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own_environment())

    def hear(self):
        """The next line that it prints."""
        line = self.process.stdout.readline()
        assert line, f"it ended without a word: {self.process.stderr.read()}"
        return json.loads(line)

    def tell(self, value=None):
        """Give it a line, which it reads by `ask()`."""
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def kill(self):
        self.process.kill()

    def end(self):
        """Its exit code, and what it wrote to stderr."""
        _, errors = self.process.communicate(timeout=BOUND_S)
        return self.process.returncode, errors


def own_environment():
    """The environment without what a starter of jobs has put there; a rank of a busy machine may be silent for long."""
    starters = ("SYNCOPATE_", "OMPI_", "PMI", "SLURM_", "RANK", "WORLD_SIZE")
    return {name: value for name, value in os.environ.items() if not name.startswith(starters)} | {"SYNCOPATE_SILENCE_MS": "20000"}


def quiet_port():
    """A port that is free, as the next one, and that the system gives to no other program: torchrun and `Group.join` listen on the two."""
    for port in random.sample(range(20000, 32000, 2), 100):
        try:
            with socket.create_server(("127.0.0.1", port)), socket.create_server(("127.0.0.1", port + 1)):
                return port
        except OSError:
            continue
    raise AssertionError("no two free ports")


def torchrun_command(ranks):
    """The command of torchrun; its further options, a program and its arguments follow."""
    return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--master-port", str(quiet_port())]


@pytest.fixture
def job():
    """`job(size, program)`: that many ranks as processes, which have `join`, `say` and `ask`; they are ended with the test."""
    ranks = []
    with tempfile.TemporaryDirectory() as root:
        def begin(size, program, started=None):
            folder = tempfile.mkdtemp(dir=root)
            begun = [Rank(rank, size, folder, program) for rank in range(started or size)]
            ranks.extend(begun)
            return begun
        yield begin
        for rank in ranks:
            rank.process.kill()
            rank.process.communicate()
