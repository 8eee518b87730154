"""The examples of torch run under torchrun, at small size."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch_job
from conftest import BOUND_S, own_environment, torchrun_command

from syncopate.command import PROGRAM

EXAMPLES = Path(__file__).parents[2] / "example" / "python"
assert torch_job


def accuracy_in(printed):
    """The accuracy that rank 0 of two prints."""
    found = re.search(r"2 ranks: accuracy (\S+)", printed)
    assert found, printed
    return float(found[1])


def torchrun(name, *arguments, ranks=2):
    """The output of the example under torchrun."""
    done = subprocess.run([*torchrun_command(ranks), str(EXAMPLES / name), *arguments], check=False, capture_output=True, text=True,
                          env=own_environment() | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def loss_in(printed, words):
    """The loss that rank 0 prints after these words."""
    found = re.search(rf"2 ranks, {words}: loss (\S+) after", printed)
    assert found, printed
    return float(found[1])


def test_ddp_learns_under_torchrun():
    assert loss_in(torchrun("ddp.py"), "syncopate") < 1.0


@pytest.mark.parametrize("backend", ["syncopate", "gloo"])
def test_ddp_learns_under_run(backend):
    done = subprocess.run([PROGRAM, "run", "-n", "2", "--", sys.executable, str(EXAMPLES / "ddp.py"), "--backend", backend], check=False,
                          capture_output=True, text=True, env=own_environment() | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert loss_in(done.stdout, backend) < 1.0


def test_ddp_learns_from_one_gradient_in_a_hundred_and_goes_on_from_checkpoints(tmp_path):
    first = loss_in(torchrun("ddp_topk.py", "--checkpoints", str(tmp_path)), "topk:0.01")
    assert {path.name for path in tmp_path.iterdir()} == {"rank-0.pt", "rank-1.pt"}
    assert loss_in(torchrun("ddp_topk.py", "--checkpoints", str(tmp_path)), "topk:0.01") < first < 2.3


def test_ranks_divide_the_statistics_of_gradients_and_the_last_has_all_rows():
    printed = torchrun("gradient_statistics.py", "--steps", "2", ranks=3)
    rows = re.findall(r"^\d\.(weight|bias)  rank (\d)  mean (\S+)  deviation (\S+)  largest (\S+)  zeros (\S+)$", printed, re.MULTILINE)
    assert len(rows) == 6 and {rank for _, rank, *_ in rows} == {"0", "1", "2"}, printed
    for _, _, mean, deviation, largest, zeros in rows:
        assert 0 <= abs(float(mean)) <= float(largest) > float(deviation) > 0 <= float(zeros) < 1, printed


def test_ddp_chooses_a_codec():
    assert loss_in(torchrun("ddp_auto.py", "--codec", "auto:topk:0.01"), "topk:0.01") < 2.3


def test_a_network_learns_from_cached_pictures(tmp_path):
    subprocess.run([PROGRAM, "data", "draw", "--format", "folder", "--size", "40", "--train", "48", "--test", "1", "--seed", "1", "--out",
                    str(tmp_path)], check=True, capture_output=True)
    printed = torchrun("cached_pictures.py", "--data", str(tmp_path / "train"), "--batch", "4", "--epochs", "4")
    losses = [float(loss) for loss in re.findall(r"epoch \d: loss (\S+)", printed)]
    assert len(losses) == 4 and losses[-1] < losses[0], printed


def test_ddp_learns_images_in_cifar10s_format(tmp_path):
    subprocess.run([PROGRAM, "data", "draw", "--out", str(tmp_path), "--train", "640", "--test", "100", "--seed", "1"], check=True,
                   capture_output=True)
    printed = torchrun("ddp_cifar10.py", "--data", str(tmp_path), "--epochs", "5")
    losses = [float(loss) for loss in re.findall(r"epoch \d: loss (\S+), accuracy \S+", printed)]
    assert len(losses) == 5 and losses[-1] < losses[0] - 0.1, printed


def test_a_parameter_server_trains_and_goes_on_from_a_checkpoint(tmp_path):
    def served(*arguments):
        command = [PROGRAM, "run", "-n", "2", "--servers", "2", "--", sys.executable, str(EXAMPLES / "served.py"), *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=own_environment() | {"OMP_NUM_THREADS": "1"})
        assert done.returncode == 0, done.stderr
        return float(re.search(r"2 workers, \S+: loss (\S+) after", done.stdout)[1])

    file = str(tmp_path / "checkpoint")
    first = served("--consistency", "bsp", "--checkpoint", file)
    assert served("--consistency", "ssp:2", "--codec", "fp16", "--steps", "10", "--checkpoint", file) < max(first, 0.5) < 1.5


def test_a_sharded_transformer_learns_letters():
    assert loss_in(torchrun("fsdp_transformer.py"), "syncopate") < 3.5


def test_shards_between_hosts_are_compressed():
    loss, sent = re.search(r"^loss (\S+); (\d+) bytes", torchrun("hsdp.py", ranks=4), re.MULTILINE).groups()
    assert float(loss) < 0.85 and int(sent) < 600_000  # without a codec 6 million


def test_shards_of_ddp_are_compressed_between_hosts():
    loss, sent = re.search(r"^loss (\S+); (\d+) bytes", torchrun("within_host.py", "--ranks-per-host", "2", ranks=4), re.MULTILINE).groups()
    assert float(loss) < 0.85 and int(sent) < 600_000  # without a codec 6 million
    assert "; 0 bytes sent to other hosts" in torchrun("within_host.py")


def test_a_divided_optimizer_goes_on_from_a_checkpoint_with_fewer_ranks(tmp_path):
    file = str(tmp_path / "checkpoint")
    torchrun("sharded.py", "--checkpoint", file, ranks=3)
    assert loss_in(torchrun("sharded.py", "--checkpoint", file), "lamb") < 0.6


def test_a_program_for_horovod_learns_after_its_move():
    assert loss_in(torchrun("from_horovod.py"), "fp16") < 1.5


def test_two_emulated_hosts_train(tmp_path):
    lab = [PROGRAM, "run", "-n", "2", "--lab", "1gbit", "--", sys.executable, str(EXAMPLES / "from_horovod.py"), "--steps", "8"]
    done = subprocess.run(lab, check=False, capture_output=True, text=True, env=own_environment() | {"OMP_NUM_THREADS": "1"})
    if "lab" in done.stderr and done.returncode == 1 and "namespace" in done.stderr:
        pytest.skip("this kernel makes no namespaces")
    assert done.returncode == 0, done.stderr
    assert "2 ranks, fp16: loss" in done.stdout


def test_a_horovod_script_learns_under_torchrun():
    assert accuracy_in(torchrun("horovod_mnist.py")) > 0.9


def test_a_horovod_script_learns_under_syncopate_run():
    done = subprocess.run([PROGRAM, "run", "-n", "2", "--", sys.executable, str(EXAMPLES / "horovod_mnist.py")], check=False,
                          capture_output=True, text=True, env=own_environment() | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert accuracy_in(done.stdout) > 0.9


def test_a_horovod_script_learns_with_variables_of_open_mpi_that_have_no_address():
    def environment(rank):
        places = {"RANK": rank, "SIZE": 2, "LOCAL_RANK": rank, "LOCAL_SIZE": 2}
        return {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in places.items()}

    ranks = [subprocess.Popen([sys.executable, str(EXAMPLES / "horovod_mnist.py")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env=own_environment() | {"OMP_NUM_THREADS": "1"} | environment(rank)) for rank in range(2)]
    ends = [rank.communicate(timeout=BOUND_S) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], ends
    assert accuracy_in(ends[0][0]) > 0.9


def test_a_cached_folder_is_read_once_by_two_ranks_together(tmp_path):
    for i in range(40):
        (tmp_path / str(i)).write_bytes(bytes([i]) * 2000)
    command = [PROGRAM, "run", "-n", "2", "--", sys.executable, str(EXAMPLES / "cached.py"), "--folder", str(tmp_path), "--rate", "1e6"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=own_environment() | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    found = re.findall(r"epoch (\d): .* from source (\d+), memory (\d+), peers (\d+)", done.stdout)
    assert sorted(found)[:2] == [("0", "20", "0", "0")] * 2, done.stdout
    for _, source, memory, peers in sorted(found)[2:]:
        assert (source, int(memory) + int(peers)) == ("0", 20)
