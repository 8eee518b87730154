"""Jobs under torchrun begin again after a failure; groups connect across hosts; an unfit torch gets an error."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch_job
from conftest import on_threads, own_environment, torchrun_command

import syncopate
from syncopate.command import PROGRAM

HERE = Path(__file__).parent
assert torch_job


def test_torchruns_next_attempt_has_ranks_of_its_own(tmp_path):
    command = [*torchrun_command(2), "--max-restarts", "1", "--monitor-interval", "0.2", str(HERE / "torch_restart.py"), str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=own_environment() | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found["attempt-1-rank-0"] == found["attempt-1-rank-1"] == "20.0"
    assert found["attempt-0-rank-0"] == found["attempt-0-rank-1"] == "2.0"


def test_a_group_connects_whose_rank_0_is_not_on_the_host_of_the_jobs_rank_0():
    command = [PROGRAM, "run", "-n", "3", "--lab", "1gbit", "--", sys.executable, str(HERE / "torch_hosts.py")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=own_environment() | {"OMP_NUM_THREADS": "1"})
    if "WITHOUT emulated hosts" in done.stderr:
        pytest.skip("this kernel makes no namespaces")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[1] sum 3", "[2] sum 3"]


def test_a_master_address_that_other_hosts_cannot_reach_is_named(monkeypatch):
    from syncopate.torch.shared import rendezvous

    monkeypatch.setenv("MASTER_ADDR", "127.0.1.1")
    with pytest.raises(syncopate.Misuse, match=r"127\.0\.1\.1.*MASTER_ADDR"):
        rendezvous._own_address()


def test_every_rank_raises_why_rank_0_has_no_address(monkeypatch):
    import torch

    from syncopate.torch.shared import rendezvous

    store, hosts = torch.distributed.HashStore(), iter(["one host", "another host"])
    monkeypatch.setenv("MASTER_ADDR", "127.0.1.1")
    monkeypatch.setattr(rendezvous, "_host", lambda: next(hosts))
    errors = on_threads(2, lambda rank: rendezvous.join(store, rank, 2, 60))
    assert [type(error) for error in errors] == [syncopate.Misuse] * 2
    assert "rank 0" in str(errors[1]) and "MASTER_ADDR" in str(errors[1])


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.modules['torch'] = None; import syncopate.torch", "needs PyTorch"),
        (
            "import torch; torch.__version__ = '2.0.1+cu117'; import syncopate.torch",
            "needs torch 2.1 or later, and its backend 2.14 or later; this is torch 2.0.1",
        ),
    ],
)
def test_an_unfit_torch_is_named(program, words):
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 1 and words in done.stderr.splitlines()[-1] and "ImportError" in done.stderr, done.stderr


def test_the_package_needs_no_torch():
    program = "import sys; sys.modules['torch'] = None; import syncopate; print(syncopate.Group.threads(1)[0].size)"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr
