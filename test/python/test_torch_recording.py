"""Recorder writes what `syncopate report` reads."""

import itertools
import json
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch_job
from torch_recording import EVALUATED, KINDS, MICRO_BATCHES, STEPS

import syncopate.torch
from syncopate import command
from syncopate.torch.analysis import recorder


@pytest.fixture(scope="module")
def folders():
    found, _ = torch_job.run("torch_recording.py", "recorded", 2)
    yield {(kind if micro_batches == 1 else (kind, micro_batches)): Path(folder) for (kind, micro_batches), folder in found.items()}
    for folder in found.values():
        shutil.rmtree(folder)


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("kind", [*KINDS, *((kind, MICRO_BATCHES) for kind in KINDS)])
def test_a_run_is_reported(folders, kind):
    (row,) = command.rows("report", folders[kind])
    assert (row["model"], row["ranks"], row["steps"], row["notes"]) == ("Sequential", 2, STEPS, [])
    assert row["digests_equal"] is True and row["accuracy"] == 0.5 and row["gradient_bytes"] == 4 * (40 * 200 + 200 + 200 * 200 + 200 + 804 + 1)
    assert row["forward_s"] > 0 and row["backward_s"] > 0
    for line in lines_of(folders[kind] / "rank-0.jsonl"):  # medians of phases do not add up to that of the step
        assert line["event"] != "step" or line["forward_s"] + line["backward_s"] <= line["step_s"]
    evaluations = [line for line in lines_of(folders[kind] / "rank-0.jsonl") if "accuracy" in line]
    assert [line["step"] for line in evaluations] == [EVALUATED]


@pytest.mark.parametrize("kind", KINDS)
def test_micro_batches_have_spans_of_their_own_in_order(folders, kind):
    spans = [span for span in lines_of(folders[kind, MICRO_BATCHES] / "trace-0.jsonl") if span["track"] in recorder.PHASES]
    assert all(before["begin_s"] <= before["end_s"] <= after["begin_s"] for before, after in itertools.pairwise(spans))
    tracks = [track for track, _ in itertools.groupby(span["track"] for span in spans)]
    assert tracks == MICRO_BATCHES * ["forward", "backward", "wait"] + ["optimizer"]
    names = [span["name"] for span in spans if span["track"] == "backward"]
    assert sorted(names[:len(names) // 2]) == sorted(names[len(names) // 2:]) and len(set(names)) == len(names) // 2


@pytest.mark.parametrize("kind", ["ours", "optimizer"])
def test_bytes_and_buckets_are_those_of_the_library(folders, kind):
    (row,) = command.rows("report", folders[kind])
    assert 0 < row["wire_bytes_per_step"] < row["gradient_bytes"] / 2  # a tenth of the large gradients, and their indices
    run = json.loads((folders[kind] / "run.json").read_text())
    assert (run["codec"], run["exchange"]) == ("topk:0.1", "allreduce")
    assert sum(bucket["bytes"] for bucket in run["buckets"]) == row["gradient_bytes"]


def test_the_codec_that_was_chosen_is_recorded(tmp_path):
    state = SimpleNamespace(coding={"codec": "auto:topk:0.01+none"}, choice=None)
    net = torch.nn.Linear(2, 2)
    record = recorder.Recorder(tmp_path, net, torch.optim.SGD(net.parameters(), 0.1), hook_state=state)
    assert record._coding()["codec"] == "auto:topk:0.01+none"
    state.choice = SimpleNamespace(codec="none")
    assert record._coding()["codec"] == "none"


def test_a_divided_step_has_its_bytes_in_the_next_one(folders):
    """Each of two ranks sends half of the gradients and half of the weights."""
    (row,) = command.rows("report", folders["sharded"])
    assert row["gradient_bytes"] <= row["wire_bytes_per_step"] < 1.1 * row["gradient_bytes"]
    run = json.loads((folders["sharded"] / "run.json").read_text())
    assert run["exchange"] == "sharded" and sum(bucket["bytes"] for bucket in run["buckets"]) == row["gradient_bytes"]
    first, *others = (line for line in lines_of(folders["sharded"] / "rank-0.jsonl") if line["event"] == "step")
    assert "wire_bytes" not in first and all(line["wire_bytes"] > 0 for line in others)
    for line in others:
        phases = [line[phase] for phase in ("input_s", "forward_s", "backward_s", "wait_s", "optimizer_s")]
        assert min(phases) >= 0 and sum(phases) <= line["step_s"] and line["wait_s"] > 0


def test_a_skipped_step_of_the_optimizer_is_recorded_too(tmp_path):
    net = torch.nn.Linear(1, 1)
    with recorder.Recorder(tmp_path, net, torch.optim.SGD(net.parameters(), 0.1), traced_step=1) as record:
        net(torch.ones(1, 1)).sum().backward()
        record.step(loss=0, samples=1)
    assert [span["track"] for span in lines_of(tmp_path / "trace-0.jsonl")] == ["forward", "backward", "backward", "wait"]


def test_phases_of_a_bucket_lie_between_the_backward_pass_and_the_optimizer(folders):
    spans = lines_of(folders["ours"] / "trace-0.jsonl")
    assert {span["track"] for span in spans} >= {"forward", "backward", "exchange", "wait", "optimizer"}
    (forward,), (optimizer,) = ([span for span in spans if span["track"] == track] for track in ("forward", "optimizer"))
    exchanged = [span for span in spans if span["track"] in ("encode", "exchange", "decode")]
    assert all(forward["end_s"] <= span["begin_s"] <= span["end_s"] <= optimizer["begin_s"] for span in exchanged)


@pytest.mark.parametrize("kind", ["hook", "optimizer", "rule", "sharded"])
def test_copies_of_a_device_are_spans(device, kind):
    if device == "cpu":
        pytest.skip("nothing is copied")
    for found in torch_job.run("torch_device_recording.py", "recorded", 2, DEVICE=device, KIND=kind):
        assert found == []


@pytest.mark.parametrize("kind", ["hook", "rule"])
def test_copies_are_not_timed_without_an_observer(device, kind):
    if device == "cpu":
        pytest.skip("nothing is copied")
    assert torch_job.run("torch_device_recording.py", "unobserved", 2, DEVICE=device, KIND=kind) == [0] * 2


def test_runs_are_compared(folders):
    runs = [str(folders["plain"]), str(folders["ours"])]
    rows = command.rows("report", *runs)
    assert [row["run"] for row in rows] == runs
    done = subprocess.run([command.PROGRAM, "report", *runs], capture_output=True, text=True, check=True)
    (median,) = (line for line in done.stdout.splitlines() if line.startswith("median step"))
    assert float(median.split("(x")[1].rstrip(")")) == pytest.approx(rows[1]["step_s"] / rows[0]["step_s"], abs=0.01)


def test_an_optimizer_of_servers_is_refused(tmp_path):
    optimizer = object.__new__(syncopate.torch.ServedOptimizer)
    with pytest.raises(syncopate.Misuse, match="DistributedOptimizer"):
        syncopate.torch.Recorder(tmp_path, torch.nn.Linear(1, 1), optimizer)


def test_an_earlier_run_is_replaced(folders):
    assert not (folders["plain"] / "rank-7.jsonl").exists()


def test_event_files_of_an_earlier_run_are_removed(tmp_path):
    old = tmp_path / "events.out.tfevents.1.host"
    old.write_bytes(b"")
    net = torch.nn.Linear(1, 1)
    with recorder.Recorder(tmp_path, net, torch.optim.SGD(net.parameters(), 0.1)):
        assert not old.exists()


@pytest.mark.parametrize("is_reported", [True, False])
def test_an_evaluation_is_no_forward_pass_of_a_step(tmp_path, monkeypatch, is_reported):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(recorder, "time", SimpleNamespace(time=time.time, perf_counter=lambda: clock.now))
    net = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with recorder.Recorder(tmp_path, net, optimizer) as record:
        for _ in range(2):
            clock.now += 1
            net(torch.ones(1, 1)).sum().backward()
            optimizer.step()
            record.step(loss=0, samples=1)
            with torch.no_grad():
                net(torch.ones(1, 1))
            clock.now += 100
            if is_reported:
                record.evaluation(epoch=1, loss=0)
    first, second = (line for line in lines_of(tmp_path / "rank-0.jsonl") if line["event"] == "step")
    assert (first["step_s"], second["step_s"]) == (1, 1 if is_reported else 101)
    assert second["forward_s"] == 0 and second["input_s"] == second["step_s"]
