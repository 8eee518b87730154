"""The contenders of `syncopate bench step` train, and print their steps as the training program does."""

import json
import subprocess
import sys

import pytest
import torch_job
from conftest import own_environment
from syncopate.command import PROGRAM

assert torch_job


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A small data set in CIFAR-10's format."""
    folder = tmp_path_factory.mktemp("images")
    subprocess.run([PROGRAM, "data", "draw", "--out", str(folder), "--train", "200", "--test", "20"], check=True, capture_output=True)
    return folder


def contender(name, images, meeting, *more):
    """Two ranks of it, ended."""
    program = [sys.executable, "-m", "syncopate.torch.contender", "--contender", name, "--meeting", str(meeting), "--steps", "4",
               "--model", "linear", "--data", str(images), "--batch", "8", *more]
    return subprocess.run([PROGRAM, "run", "-n", "2", "--", *program], check=False, capture_output=True, text=True, env=own_environment())


@pytest.mark.parametrize("name, codec", [("ddp-gloo", "none"), ("ddp-gloo-fp16", "fp16"), ("ddp-gloo-powersgd", "low_rank:1"),
                                         ("ddp-syncopate", "none"), ("ddp-syncopate-hook", "topk:0.1"),
                                         ("syncopate-ddp", "topk:0.1"), ("zero-gloo", "none"), ("syncopate-sharded", "none")])
def test_each_says_its_steps(name, codec, images, tmp_path):
    done = contender(name, images, tmp_path / "meeting", "--codec", codec)
    assert done.returncode == 0, done.stderr
    rows = {event: [] for event in ("begin", "step", "end")}  # of both ranks
    for row in map(json.loads, done.stdout.splitlines()):
        rows[row["event"]].append(row)
    assert [row["gradient_bytes"] for row in rows["begin"]] == [4 * (3072 * 10 + 10)] * 2
    assert sorted(row["step"] for row in rows["step"]) == [1, 1, 2, 2, 3, 3, 4, 4]
    for row in rows["step"]:
        assert 0 < row["forward_s"] + row["backward_s"] + row["optimizer_s"] <= row["step_s"]
    assert [row["step_seconds"]["median"] > 0 for row in rows["end"]] == [True] * 2
    whole = 4 * (3072 * 10 + 10)  # of one vector: SGD has one on each rank, AdamW two, which both divide
    assert sum(row["state_bytes"] for row in rows["end"]) == 2 * whole


def test_what_they_do_not_know_is_named(images, tmp_path):
    done = contender("ddp-gloo", images, tmp_path / "meeting", "--augment")
    assert done.returncode != 0 and "unrecognized arguments: --augment" in done.stderr
    done = contender("ddp-gloo", tmp_path, tmp_path / "meeting")
    assert done.returncode != 0 and "has no data_batch_1.bin" in done.stderr
