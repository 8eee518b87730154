"""The commands of an installed package: which PyTorch its training program asks for."""

import shutil
import subprocess
from pathlib import Path

import pytest

from syncopate.command import PROGRAM


@pytest.fixture
def train(tmp_path):
    """`train(pytorch)`: how `syncopate train` ends in a wheel of PyTorch 2.15, next to that version of PyTorch or none."""
    programs = tmp_path / "syncopate" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / "syncopate.libs").symlink_to(Path(PROGRAM).parents[2] / "syncopate.libs")  # where a wheel has its libraries
    shutil.copy(PROGRAM, programs)
    (programs / "syncopate-train").write_text("#!/bin/sh\necho trained $*\n", encoding="utf-8")
    (programs / "syncopate-train").chmod(0o755)
    (programs / "libtorch.txt").write_text("2.15\n", encoding="utf-8")

    def run(pytorch):
        if pytorch:
            (tmp_path / "torch").mkdir()
            (tmp_path / "torch" / "version.py").write_text(f"__all__ = []\n__version__ = '{pytorch}'\n", encoding="utf-8")
        return subprocess.run([programs / "syncopate", "train", "--steps", "3"], check=False, capture_output=True, text=True)
    return run


@pytest.mark.parametrize("pytorch", ["2.15.0", "2.15.1+cpu"])
def test_training_starts_next_to_the_pytorch_that_it_was_linked_against(train, pytorch):
    done = train(pytorch)
    assert (done.returncode, done.stdout) == (0, "trained --steps 3\n"), done.stderr


@pytest.mark.parametrize(("pytorch", "state"), [(None, "is not installed there"), ("2.1.0", "there is 2.1.0"), ("2.150.0", "there is 2.150.0")])
def test_training_names_the_pytorch_that_it_lacks(train, tmp_path, pytorch, state):
    done = train(pytorch)
    assert done.returncode == 2 and not done.stdout
    assert f"needs the libraries of PyTorch 2.15 in {tmp_path / 'torch'}, and {state}" in done.stderr
    assert "pip install 'torch==2.15.*'" in done.stderr
