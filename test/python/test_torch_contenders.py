"""The contenders of `syncopate bench step` train, and print their steps as the training program does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch_job
from conftest import own_environment

from syncopate.command import PROGRAM

CONTENDER = Path(__file__).parents[2] / "bench/contender/pytorch.py"


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A small data set in CIFAR-10's format."""
    folder = tmp_path_factory.mktemp("images")
    subprocess.run([PROGRAM, "data", "draw", "--out", str(folder), "--train", "200", "--test", "20"], check=True, capture_output=True)
    return folder


def arguments(name, images, *more):
    return ["--contender", name, "--steps", "4", "--model", "linear", "--data", str(images), "--batch", "8", *more]


def check(rows):
    """Those of both ranks."""
    of = {event: [row for row in rows if row["event"] == event] for event in ("begin", "step", "end")}
    assert [row["gradient_bytes"] for row in of["begin"]] == [4 * (3072 * 10 + 10)] * 2
    assert sorted(row["step"] for row in of["step"]) == [1, 1, 2, 2, 3, 3, 4, 4]
    for row in of["step"]:
        assert 0 < row["forward_s"] + row["backward_s"] + row["optimizer_s"] <= row["step_s"]
    assert [row["step_seconds"]["median"] > 0 for row in of["end"]] == [True] * 2
    whole = 4 * (3072 * 10 + 10)  # of one vector: SGD has one on each rank, AdamW two, which both divide
    assert sum(row["state_bytes"] for row in of["end"]) == 2 * whole


@pytest.mark.parametrize("name, codec", [("ddp-gloo", "none"), ("ddp-gloo-fp16", "fp16"), ("ddp-gloo-powersgd", "low_rank:1"),
                                         ("ddp-syncopate", "none"), ("ddp-syncopate-hook", "topk:0.1"),
                                         ("syncopate-ddp", "topk:0.1"), ("zero-gloo", "none"), ("syncopate-sharded", "none")])
def test_each_says_its_steps(name, codec, images):
    given = arguments(name, images, "--codec", codec)
    check([row for rows in torch_job.run("torch_contender.py", "rows", 2, CONTENDER=json.dumps(given)) for row in rows])


def started(meeting, given):
    """Two ranks of the program, as `bench step` starts them, ended."""
    program = [sys.executable, str(CONTENDER), "--meeting", str(meeting), *given]
    return subprocess.run([PROGRAM, "run", "-n", "2", "--", *program], check=False, capture_output=True, text=True, env=own_environment())


def test_one_started_as_a_program_does_so_too(images, tmp_path):
    done = started(tmp_path / "meeting", arguments("syncopate-ddp", images, "--codec", "topk:0.1"))
    assert done.returncode == 0, done.stderr
    check([json.loads(line) for line in done.stdout.splitlines()])


def test_what_they_do_not_know_is_named(images, tmp_path):
    done = started(tmp_path / "meeting", arguments("ddp-gloo", images, "--augment"))
    assert done.returncode != 0 and "unrecognized arguments: --augment" in done.stderr
    done = started(tmp_path / "meeting", arguments("ddp-gloo", tmp_path))
    assert done.returncode != 0 and "neither train-images-idx3-ubyte nor data_batch_1.bin" in done.stderr


@pytest.mark.parametrize("model", ["linear", "mlp", "lenet", "vgg11"])
def test_they_train_as_the_training_program_does(model, images, tmp_path):
    same = ["--model", model, "--data", str(images), "--batch", "8", "--steps", "3", "--seed", "5"]
    trained = subprocess.run([PROGRAM, "train", "--json", "--evaluate-every", "0", "--report-every", "1", *same], check=False,
                             capture_output=True, text=True, env=own_environment())
    if "syncopate-train" in trained.stderr:
        pytest.skip(trained.stderr)
    done = subprocess.run([sys.executable, str(CONTENDER), "--contender", "ddp-gloo", "--meeting", str(tmp_path / "meeting"), *same], check=True,
                          capture_output=True, text=True, env=own_environment())
    losses, own = ([json.loads(line)["loss"] for line in output.splitlines() if '"step"' in line and '"loss"' in line]
                   for output in (trained.stdout, done.stdout))
    assert len(own) == 3 and losses == pytest.approx(own, rel=1e-4)
