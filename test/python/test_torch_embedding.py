"""Embeddings on parameter servers: the rows and updates of torch's, with a ServedOptimizer and alone, and the example."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import on_threads, own_environment

import syncopate.torch
from syncopate.command import PROGRAM

EXAMPLE = Path(__file__).parents[2] / "example" / "python" / "embedding.py"
BATCHES = [torch.tensor([[1, 7, 1], [3, 7, 7]]), torch.tensor([[7, 5, 0], [1, 1, 1]])]
RULES = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}


@pytest.fixture
def server():
    with syncopate.Server.start(["127.0.0.1:0"]) as started:
        yield started


def connect(server, **options):
    return syncopate.TableWorker.connect(**{"servers": server.addresses, "worker": 0, "workers": 1, "timeout_s": 20} | options)


def loss_of(rows):
    return (rows.sum(1) ** 2).sum() + rows[0, 0, 0]


@pytest.mark.parametrize("rule", RULES)
def test_rows_follow_torchs_embedding(server, rule):
    with connect(server) as worker:
        own = syncopate.torch.Embedding(worker, "rows", 4, lr=0.1, rule=rule, seed=3, scale=0.5)
        worker.start()
        with torch.no_grad():
            reference = torch.nn.Embedding.from_pretrained(own(torch.arange(8)), freeze=False)
        optimizer = RULES[rule](reference.parameters(), lr=0.1)
        for batch in BATCHES * 2:
            assert torch.allclose(own(batch), reference(batch), atol=1e-6)
            optimizer.zero_grad()
            loss_of(reference(batch)).backward()
            optimizer.step()
            loss_of(own(batch)).backward()
        assert torch.allclose(own(torch.arange(8)), reference.weight, atol=1e-6)
        assert not list(own.parameters())
        with pytest.raises(syncopate.Misuse, match="allowed: int64"):
            own(torch.tensor([1, 2], dtype=torch.int32))
        worker.finish()


def train_rows(own, batches):
    for batch in batches:
        loss_of(own(batch)).backward()


@pytest.mark.parametrize("rule", ["sgd", "adagrad", "adam"])
def test_a_saved_state_continues_with_the_same_bits_on_other_servers(server, rule, tmp_path):
    ids = torch.arange(8)

    def embedding(worker, **options):
        return syncopate.torch.Embedding(worker, "rows", 4, lr=0.1, **{"rule": rule, "seed": 3, "scale": 0.5} | options)

    with connect(server) as worker:
        own = embedding(worker)
        worker.start()
        empty = own.state_dict()["_extra_state"]
        assert len(empty["ids"]) == len(empty["steps"]) == len(empty["values"]) == 0
        train_rows(own, BATCHES)
        torch.save(torch.nn.Sequential(own).state_dict(), tmp_path / "state.pt")
        train_rows(own, BATCHES)
        with torch.no_grad():
            expected = own(ids)
        with pytest.raises(syncopate.Misuse, match="before the first forward pass"):
            own.load_state_dict(own.state_dict())
        worker.finish()
    state = torch.load(tmp_path / "state.pt")
    kept = state["0._extra_state"]
    assert sorted(kept["ids"].tolist()) == [0, 1, 3, 5, 7] and set(kept["steps"].tolist()) == {1, 2}
    with syncopate.Server.start(["127.0.0.1:0"], index=0) as first, syncopate.Server.start(["127.0.0.1:0"], index=1) as second:
        with syncopate.TableWorker.connect(servers=[*first.addresses, *second.addresses], worker=0, workers=1, timeout_s=20) as worker:
            own = embedding(worker)
            with pytest.raises(syncopate.Misuse, match="allowed: equal ones"):
                embedding(worker, rule="momentum").load_state_dict({"_extra_state": kept})
            torch.nn.Sequential(own).load_state_dict(state)
            assert own.state_dict()["_extra_state"] is kept, "the servers do not have it yet"
            worker.start()
            train_rows(own, BATCHES)
            with torch.no_grad():
                assert torch.equal(own(ids), expected)
            worker.finish()


def test_a_state_has_all_workers_pushes_and_is_restored_once(server):
    def train(rank, addresses, earlier):
        with syncopate.TableWorker.connect(servers=addresses, worker=rank, workers=2, consistency="tap", timeout_s=20) as worker:
            own = syncopate.torch.Embedding(worker, "rows", 4, lr=1.0, scale=0)
            if earlier:
                own.load_state_dict(earlier)
            worker.start()
            for _ in range(1 + 2 * rank):
                own(BATCHES[0]).sum().backward()
            state = own.state_dict()
            own(BATCHES[0]).sum().backward()
            worker.finish()
            return state

    first = on_threads(2, lambda rank: train(rank, server.addresses, None))
    assert not any(isinstance(end, BaseException) for end in first), first
    for end in first:
        values = dict(zip(end["_extra_state"]["ids"].tolist(), end["_extra_state"]["values"][:, 0].tolist(), strict=True))
        assert values == {1: -8.0, 3: -4.0, 7: -12.0}
    with syncopate.Server.start(["127.0.0.1:0"]) as other:
        second = on_threads(2, lambda rank: train(rank, other.addresses, first[0]))
    assert not any(isinstance(end, BaseException) for end in second), second
    kept = second[1]["_extra_state"]
    assert dict(zip(kept["ids"].tolist(), kept["values"][:, 0].tolist(), strict=True)) == {1: -16.0, 3: -8.0, 7: -24.0}


def test_a_visit_that_raises_ends_and_a_worker_needs_no_rows(server):
    with connect(server) as worker:
        own = syncopate.torch.Embedding(worker, "rows", 4, lr=1.0, scale=0)
        worker.start()
        own(torch.tensor([5])).sum().backward()

        def refuse(_):
            raise ValueError("the disk is full")

        with pytest.raises(ValueError, match="the disk is full"):
            worker.visit_rows(own.table, refuse)
        worker.visit_rows(own.table)
        parts = []
        worker.visit_rows(own.table, take=parts.append)
        assert [part.rule for part in parts] == ["sgd"] and torch.from_dlpack(parts[0].ids).tolist() == [5]
        worker.finish()


def test_a_net_trains_with_rows_next_to_a_served_optimizer(server):
    def train(rank):
        net = torch.nn.Linear(4, 1)
        optimizer = syncopate.torch.ServedOptimizer(torch.optim.SGD(net.parameters(), lr=0.05), net, servers=server.addresses,
                                                    worker=rank, workers=2, timeout_s=20)
        rows = syncopate.torch.Embedding(optimizer.worker, "rows", 4, lr=0.05, scale=0.5)
        optimizer.start()
        losses = []
        for _ in range(60):
            optimizer.zero_grad()
            ids = torch.arange(8) + 4 * rank
            loss = torch.nn.functional.mse_loss(net(rows(ids))[:, 0], (ids % 3).float())
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        optimizer.finish()
        return losses[0], losses[-1], net.weight.detach().clone()

    ends = on_threads(2, train)
    assert not any(isinstance(end, BaseException) for end in ends), ends
    assert all(last < first / 2 for first, last, _ in ends), ends
    assert torch.equal(ends[0][2], ends[1][2])


def test_the_example_learns_whom_what_pleases():
    done = subprocess.run([PROGRAM, "run", "-n", "2", "--servers", "2", "--", sys.executable, str(EXAMPLE)], check=False, capture_output=True,
                          text=True, env=own_environment() | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"2 workers: loss (\S+) after", done.stdout)[1]) < 0.2, done.stdout
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 40
