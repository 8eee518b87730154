"""ServedOptimizer: workers under bsp train as one process does, continue from checkpoints, and survive what they lose."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch_served
from conftest import own_environment
from torch import nn
from torch_served import OPTIMIZERS, STEPS, model, samples, trained

import syncopate
import syncopate.torch
from syncopate.command import PROGRAM

HERE = Path(__file__).parent
assert PROGRAM


@pytest.fixture
def server():
    with syncopate.Server.start(["127.0.0.1:0"]) as started:
        yield started


def served(net, optimizer, server, worker, workers, **options):
    return syncopate.torch.ServedOptimizer(optimizer, net, servers=server.addresses, worker=worker, workers=workers, timeout_s=30, **options)


def on_workers(count, body):
    """The results of `body(worker)` for each worker, on threads."""
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(body, range(count)))


def weights_of(net):
    return [parameter.detach().clone() for parameter in net.parameters()]


def alone(name, first=0, last=STEPS, state=None):
    """Weights, optimizer and net of one process."""
    net = model()
    optimizer = OPTIMIZERS[name](net)
    if state:
        net.load_state_dict(state[0])
        optimizer.load_state_dict(state[1])
    trained(net, optimizer, 0, 1, range(first, last))
    return weights_of(net), optimizer, net


@pytest.mark.parametrize(("name", "workers"), [("sgd", 2), ("momentum", 4), ("nesterov", 2), ("adam", 4), ("adamw", 2)])
def test_weights_are_those_of_one_process(server, name, workers):
    def body(worker):
        net = model(worker)  # other weights than worker 0's are replaced
        optimizer = served(net, OPTIMIZERS[name](net), server, worker, workers)
        trained(net, optimizer, worker, workers, range(STEPS))
        optimizer.finish()
        return weights_of(net)

    found, (wanted, _, _) = on_workers(workers, body), alone(name)
    torch.testing.assert_close(found[0], wanted, rtol=1e-5, atol=1e-6)
    assert all(torch.equal(mine, theirs) for other in found[1:] for mine, theirs in zip(found[0], other, strict=True))


def test_components_of_python_train_with_the_bits_of_the_librarys():
    class Lockstep:
        staleness = 0

    placement = syncopate.Placement("whole", lambda tables, servers, grain: ((i, 0, size, i % servers) for i, size in enumerate(tables)))
    consistency = syncopate.Consistency("lockstep", Lockstep)

    def job(**options):
        with syncopate.Server.start(["127.0.0.1:0"], catalogue=[placement, consistency]) as server:
            def body(worker):
                net = model(worker)
                optimizer = served(net, OPTIMIZERS["momentum"](net), server, worker, 2, **options)
                trained(net, optimizer, worker, 2, range(STEPS))
                optimizer.finish()
                return weights_of(net)
            return on_workers(2, body)[0]

    found, wanted = job(placement=placement, consistency=consistency), job(placement="round_robin", consistency="bsp")
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(found, wanted, strict=True))


@pytest.mark.parametrize("name", ["momentum", "adam"])
def test_training_continues_from_a_checkpoint_with_other_workers_or_without_servers(name, tmp_path):
    def job(workers, first, last, file=None):
        with syncopate.Server.start(["127.0.0.1:0"]) as one, syncopate.Server.start(["127.0.0.1:0"], index=1) as two:
            def body(worker):
                net = model(worker)
                optimizer = syncopate.torch.ServedOptimizer(OPTIMIZERS[name](net), net, servers=[*one.addresses, *two.addresses],
                                                            worker=worker, workers=workers, timeout_s=30)
                if file:
                    optimizer.load_state_dict(torch.load(file))
                trained(net, optimizer, worker, workers, range(first, last))
                state = optimizer.state_dict(), net.state_dict()
                optimizer.finish()
                return weights_of(net), state, net.state_dict()
            return on_workers(workers, body)

    file = tmp_path / "checkpoint"
    (half, (state, as_saved), _), _ = job(2, 0, STEPS // 2)
    torch.save(state, file)
    assert all(torch.equal(part, as_saved[part_name]) for part_name, part in zip(as_saved, half, strict=True))
    whole = job(2, 0, STEPS)[0][0]
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(job(2, STEPS // 2, STEPS, file)[0][0], whole, strict=True))
    torch.testing.assert_close(job(4, STEPS // 2, STEPS, file)[0][0], whole, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(alone(name, STEPS // 2, STEPS, (as_saved, state))[0], whole, rtol=1e-5, atol=1e-6)
    _, optimizer, net = alone(name, 0, STEPS // 2)  # and from one process to servers
    plain = tmp_path / "plain"
    torch.save(optimizer.state_dict(), plain)
    with syncopate.Server.start(["127.0.0.1:0"]) as server:
        later = served(net, OPTIMIZERS[name](net), server, 0, 1)
        later.load_state_dict(torch.load(plain))
        trained(net, later, 0, 1, range(STEPS // 2, STEPS))
        later.finish()
    torch.testing.assert_close(weights_of(net), whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [{"consistency": "tap"}, {"consistency": "ssp:2", "codec": "topk:0.1", "answers": "topk:0.1"},
                                     {"codec": "topk:0.1", "feedback": syncopate.Feedback(clip_norm=1, warmup_density=0.5, warmup_steps=4)}])
def test_workers_learn_with_staleness_and_codecs(server, options):
    def body(worker):
        net = model(worker)
        optimizer = served(net, torch.optim.SGD(net.parameters(), 0.2), server, worker, 2, dense_below=16, **options)
        losses = trained(net, optimizer, worker, 2, range(60))
        optimizer.finish()
        return losses

    for losses in on_workers(2, body):
        assert sum(losses[-5:]) < 0.6 * sum(losses[:5]), losses


def test_micro_batches_add_up(server):
    net, reference = model(), model()
    optimizer, plain = served(net, torch.optim.SGD(net.parameters(), 0.1), server, 0, 1), torch.optim.SGD(reference.parameters(), 0.1)
    for _ in range(3):
        for i in range(2):
            with optimizer.no_sync() if i == 0 else torch.enable_grad():
                torch_served.loss_of(net, samples(i), 0, 1).backward()
            torch_served.loss_of(reference, samples(i), 0, 1).backward()
        optimizer.step()
        plain.step()
        plain.zero_grad()
    optimizer.synchronize()
    torch.testing.assert_close(weights_of(net), weights_of(reference), rtol=1e-5, atol=1e-6)
    optimizer.close()
    trained(net, torch.optim.SGD(net.parameters(), 0.1), 0, 1, range(2))  # the net is its owner's again


def test_in_lockstep_a_flow_changes_no_bit():
    def trained_by(flow):
        with syncopate.Server.start(["127.0.0.1:0"]) as server:
            net = model()
            optimizer = served(net, OPTIMIZERS["sgd"](net), server, 0, 1, flow=flow)
            trained(net, optimizer, 0, 1, range(STEPS))
            optimizer.finish()
            return weights_of(net)

    usual = trained_by("front_first")
    for flow in "traditional", "wait_free":
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(trained_by(flow), usual, strict=True)), flow


def test_parameters_of_16_bits_are_rounded_from_those_of_32(server, tmp_path):
    dtype = torch.bfloat16

    def job(server, first, last, state=None):
        def body(worker):
            net = model().to(dtype)
            optimizer = served(net, OPTIMIZERS["momentum"](net), server, worker, 2)
            if state:
                optimizer.load_state_dict(state)
            for step in range(first, last):
                inputs, targets = (tensor.chunk(2)[worker] for tensor in samples(step))
                optimizer.zero_grad()
                nn.functional.mse_loss(net(inputs.to(dtype)).float(), targets).backward()
                optimizer.step()
            saved = optimizer.state_dict()
            optimizer.finish()
            return weights_of(net), saved
        return on_workers(2, body)

    ends = job(server, 0, STEPS)
    for mine, theirs, exact in zip(ends[0][0], ends[1][0], ends[0][1]["served"]["weights"].values(), strict=True):
        assert mine.dtype == dtype and torch.equal(mine, theirs) and torch.equal(mine.view(-1), exact.to(dtype))
    with syncopate.Server.start(["127.0.0.1:0"]) as one, syncopate.Server.start(["127.0.0.1:0"]) as two:
        half = job(one, 0, STEPS // 2)[0][1]
        torch.save(half, tmp_path / "half")
        resumed = job(two, STEPS // 2, STEPS, torch.load(tmp_path / "half"))
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(resumed[0][0], ends[0][0], strict=True))
    assert not all(torch.equal(exact, exact.to(dtype).float()) for exact in half["served"]["weights"].values())


def test_optimizers_and_parameters_that_servers_cannot_have_are_refused(server):
    net = model()
    groups = [{"params": net.one.parameters()}, {"params": net.two.parameters(), "weight_decay": 0.1}]
    for optimizer, words in [(torch.optim.RMSprop(net.parameters()), "Adam, AdamW"), (torch.optim.SGD(groups), "equal momentum"),
                             (torch.optim.SGD(net.parameters(), momentum=0.5, dampening=0.5), "dampening"),
                             (torch.optim.Adam(net.parameters(), amsgrad=True), "amsgrad")]:
        with pytest.raises(syncopate.Misuse, match=words):
            served(net, optimizer, server, 0, 1)
    with pytest.raises(syncopate.Misuse, match=r"torch\.float32"):
        served(double := model().double(), torch.optim.SGD(double.parameters()), server, 0, 1)
    optimizer = served(net, torch.optim.SGD(net.parameters(), 0.1), server, 0, 1)
    state = optimizer.state_dict()
    with pytest.raises(syncopate.Misuse, match="before the first forward pass"):
        optimizer.load_state_dict(state)
    trained(net, optimizer, 0, 1, range(1))
    with pytest.raises(syncopate.Misuse, match=r"one\.weight was used before"):
        nn.functional.linear(samples(0)[0], net.one.weight).sum().backward()
    optimizer.close()


def test_a_killed_worker_is_given_up_and_the_other_learns_on():
    with syncopate.Server.start(["127.0.0.1:0"], patience_s=2) as server:
        command = "import sys, torch_served; torch_served.until_killed(sys.argv[1])"
        path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(HERE))))
        other = subprocess.Popen([sys.executable, "-c", command, server.addresses[0]], stdout=subprocess.PIPE,
                                 env=own_environment() | {"PYTHONPATH": path})
        assert other.stdout.readline() == b"connected\n"
        net = model()
        optimizer = served(net, torch.optim.SGD(net.parameters(), 0.2), server, 0, 2)
        losses = trained(net, optimizer, 0, 2, range(60))
        other.communicate()
        assert other.returncode == -9
        optimizer.finish()
        assert sum(losses[-5:]) < 0.6 * sum(losses[:5]) and server.wait_for_end(30)


def test_a_killed_server_is_replaced_with_the_same_weights(tmp_path):
    command = [PROGRAM, "run", "-n", "2", "--servers", "2", "--replicas", "1", "--", sys.executable, str(HERE / "torch_served.py"), str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=own_environment() | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0 and "killed server" in done.stdout, done.stdout + done.stderr
    first, second = (torch.load(tmp_path / f"worker-{worker}") for worker in range(2))
    torch.testing.assert_close(first, alone("momentum")[0], rtol=1e-5, atol=1e-6)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(first, second, strict=True))
