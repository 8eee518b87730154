"""Servers and workers of Python: tables in place, averages that are exact, and named errors when one of them is lost."""

import subprocess
import sys

import numpy
import pytest
from conftest import on_threads, own_environment

import syncopate
from syncopate.command import PROGRAM


def connect(server, worker, workers, **options):
    return syncopate.TableWorker.connect(**{"servers": server.addresses, "worker": worker, "workers": workers,
                                            "optimizer": "sgd", "hyperparameters": {"weight_decay": 0}, "timeout_s": 20} | options)


def start(own):
    own.create_table("w", numpy.ones(3, numpy.float32))
    own.start()


@pytest.fixture
def server():
    with syncopate.Server.start(["127.0.0.1:0"]) as started:
        yield started


def gradient_of(worker, step, like):
    """Small whole numbers, whose averages over two and four workers are exact."""
    return (numpy.arange(like.size, dtype=numpy.float32).reshape(like.shape) % 5 + worker * 4 + step).astype(numpy.float32)


def test_weights_are_those_of_one_process_that_averages(server):
    def train(worker):
        # Several blocks, and a table of two dimensions; worker 0's weights are those of all.
        tables = [numpy.full((300, 1000), 1.0 + worker, numpy.float32), numpy.full(3, 2.0 + worker, numpy.float32)]
        with connect(server, worker, 2) as own:
            names = [own.create_table(f"table {i}", table) for i, table in enumerate(tables)]
            own.start()
            for step in range(4):
                for i in names:
                    own.sync(i)
                for i in reversed(names):
                    gradient = gradient_of(worker, step, tables[i])
                    own.update(i, gradient, 0.5)
                    assert not gradient.any()
                own.clock(0.5)
            own.finish()
            assert own.steps == 4 and own.statistics().stalest == 0 and own.statistics().pushed_bytes > 4 * tables[0].nbytes
        assert own.closed
        return tables

    alone = [numpy.full((300, 1000), 1.0, numpy.float32), numpy.full(3, 2.0, numpy.float32)]
    for step in range(4):
        for table in alone:
            table -= numpy.float32(0.5) * (gradient_of(0, step, table) + gradient_of(1, step, table)) / 2
    for tables in on_threads(2, train):
        assert not isinstance(tables, BaseException), tables
        assert all(numpy.array_equal(mine, theirs) for mine, theirs in zip(tables, alone, strict=True))
    assert server.wait_for_end(20)
    status = syncopate.status_of(server.addresses[0])
    assert (status.workers, status.finished, status.kept_bytes) == (2, 2, sum(table.nbytes for table in alone))


def test_a_job_goes_on_from_what_was_gathered(server):
    def steps(own, weights, count):
        for _ in range(count):
            own.sync(0)
            own.update(0, weights * 2, 0.1)
            own.clock(0.1)

    def begin(at, earlier=None, **options):
        weights = numpy.ones(10_000, numpy.float32)
        own = connect(at, 0, 1, optimizer="momentum", hyperparameters={"momentum": 0.5}, codec="topk:0.1", **options)
        own.create_table("w", weights)
        if earlier:
            weights[:] = numpy.from_dlpack(earlier[0].weights)
        own.start(earlier[0] if earlier else None)
        if earlier:
            own.restore(*earlier[1])
        return own, weights

    own, weights = begin(server)
    steps(own, weights, 3)
    own.flush()
    kept, by_codec = own.gather(), own.kept_by_codec()
    assert kept.step == 3 and kept.optimizer == "momentum" and kept.state
    copied = syncopate.KeptTables(kept.step, kept.optimizer, {name: numpy.from_dlpack(array) for name, array in kept.state.items()})
    assert copied.state.keys() == kept.state.keys() and numpy.from_dlpack(copied.weights).size == 0
    steps(own, weights, 3)
    own.finish()
    with syncopate.Server.start(["127.0.0.1:0"]) as other:
        later, resumed = begin(other, (kept, by_codec))
        assert later.steps == 3
        steps(later, resumed, 3)
        later.finish()
    assert numpy.array_equal(resumed, weights) and not numpy.array_equal(weights, numpy.ones_like(weights))


def test_a_gradient_is_clipped_before_it_is_coded(server):
    """The codec sends both elements exactly: 3 and 4 have the norm 5, and 2.5 is half of it."""
    weights = numpy.zeros((2, 5000), numpy.float32)
    with connect(server, 0, 1, codec="topk:0.5", feedback=syncopate.Feedback(clip_norm=2.5), dense_below=100) as own:
        own.create_table("clipped", weights)
        own.create_table("small", few := numpy.zeros(10, numpy.float32))
        own.start()
        gradient = numpy.zeros_like(weights)
        gradient[0, 7], gradient[1, 7] = 3, 4
        own.update(0, gradient, 1)
        own.update(1, numpy.full(10, 5, numpy.float32), 1)
        own.clock(1)
        own.finish()
    assert (weights[0, 7], weights[1, 7]) == (-1.5, -2)
    assert (few == -5).all(), "a table that is not coded is not clipped"


@pytest.mark.parametrize(("shape", "bytes_of_update"), [((200, 100), 4 + 4 * (200 + 100)), ((4, 50, 100), 4 + 4 * (4 + 5000)), (20_000, 80_000)])
def test_a_table_is_a_matrix_of_its_first_dimension(server, shape, bytes_of_update):
    """Codec low_rank:1 sends one vector of each dimension of a matrix, and the number of columns; other tables uncoded."""
    weights = numpy.zeros(shape, numpy.float32)
    rows = numpy.arange(1, weights.shape[0] + 1, dtype=numpy.float32).reshape(-1, *[1] * (weights.ndim - 1))
    with connect(server, 0, 1, codec="low_rank:1") as own:
        own.create_table("w", weights)
        own.start()
        first = own.statistics().pushed_bytes
        own.update(0, rows * numpy.ones_like(weights), 1)
        own.clock(1)
        own.finish()
        assert own.statistics().pushed_bytes - first == bytes_of_update
    assert numpy.allclose(weights, -rows * numpy.ones_like(weights), rtol=1e-5)


def test_the_density_falls_during_the_warm_up(server):
    """From 1/4 to 1/400 by equal ratios: in four steps 1/4, about 1/12.6, 1/40, 1/126, then 1/400 of 40 000 elements."""
    weights, sent = numpy.zeros(40_000, numpy.float32), []
    with connect(server, 0, 1, codec="topk:0.0025", feedback=syncopate.Feedback("none", warmup_density=0.25, warmup_steps=4)) as own:
        own.create_table("w", weights)
        own.start()
        for _ in range(6):
            own.sync(0)
            before = weights.copy()
            own.update(0, numpy.random.default_rng(0).standard_normal(40_000).astype(numpy.float32), 1)
            own.clock(1)
            own.sync(0)
            sent.append(int((weights != before).sum()))
        own.finish()
    assert sent == pytest.approx([10_000, 3162, 1000, 316, 100, 100], rel=0.02)


@pytest.mark.parametrize("options", [{"feedback": syncopate.Feedback(clip_norm=-1)}, {"feedback": syncopate.Feedback(warmup_density=0.25)},
                                     {"feedback": syncopate.Feedback(momentum=1.5)},
                                     {"codec": "none", "feedback": syncopate.Feedback(clip_norm=1)},
                                     {"codec": "int8", "feedback": syncopate.Feedback(warmup_density=0.25, warmup_steps=4)}])
def test_clipping_and_warm_up_that_have_no_effect_are_refused(server, options):
    with pytest.raises(syncopate.Misuse, match="allowed"), connect(server, 0, 1, **{"codec": "topk:0.1"} | options) as own:
        start(own)


def test_wrong_arrays_names_and_uses_are_refused(server):
    with connect(server, 0, 1) as own:
        with pytest.raises(syncopate.Misuse, match="allowed: f32"):
            own.create_table("w", numpy.ones(3))
        with pytest.raises(syncopate.Misuse, match="not contiguous"):
            own.create_table("w", numpy.ones((4, 4), numpy.float32)[:, 1])
        with pytest.raises(syncopate.Misuse, match="has not started"):
            own.sync(0)
    with pytest.raises(syncopate.Misuse, match="was closed"):
        own.sync(0)
    for wrong in ({"consistency": "none"}, {"codec": "none:1"}, {"optimizer": "no"}, {"placement": "no"},
                  {"feedback": "no"}, {"hyperparameters": {"no": 1}}, {"servers": []}, {"timeout_s": 0}):
        with pytest.raises(syncopate.Misuse, match="allowed|it takes"):
            start(connect(server, 0, 1, **wrong))
    with pytest.raises(syncopate.Misuse, match="SYNCOPATE_SERVERS"):
        syncopate.TableWorker.connect(worker=0, workers=1)
    with pytest.raises(syncopate.Misuse, match="secret"):
        syncopate.Server.start(["0.0.0.0:0"])


def test_one_thread_at_a_time_uses_a_worker(server):
    with connect(server, 0, 2, timeout_s=1) as own:
        start(own)
        own.clock(1.0)
        outcome = on_threads(2, lambda _: own.sync(0))  # worker 1 never comes: one of both waits, the other is refused
    assert sorted(type(one).__name__ for one in outcome) == ["Misuse", "Timeout"], outcome


def test_credentials_are_read_and_refused():
    access = syncopate.JobAccess(job="mine", secret_file="secret", tls="off", silence_s=0.5)
    assert (access.job, access.secret_file, access.tls, access.silence_s) == ("mine", "secret", "off", 0.5)
    assert (syncopate.access_from_environment().job, syncopate.access_from_environment().tls) == ("syncopate", "auto")
    with pytest.raises(syncopate.Misuse, match="auto"):
        syncopate.JobAccess(tls="perhaps")


@pytest.fixture
def secret_file(tmp_path):
    file = tmp_path / "secret"
    file.write_bytes(b"sixteen bytes or more")
    file.chmod(0o600)
    return str(file)


def test_an_encrypted_job_trains(secret_file):
    access = syncopate.JobAccess(secret_file=secret_file, tls="on")
    with syncopate.Server.start(["127.0.0.1:0"], access=access) as server, connect(server, 0, 1, access=access) as own:
        weights = numpy.ones(300_000, numpy.float32)  # two blocks
        own.create_table("w", weights)
        own.start()
        own.update(0, numpy.full_like(weights, 3), 0.5)
        own.clock(0.5)
        own.finish()
        assert (weights == -0.5).all()
        assert syncopate.status_of(server.addresses[0], access).finished == 1


def test_encryption_without_a_secret_is_refused(server):
    access = syncopate.JobAccess(tls="on")
    with pytest.raises(syncopate.Misuse, match="SYNCOPATE_SECRET_FILE"):
        syncopate.Server.start(["127.0.0.1:0"], access=access)
    with pytest.raises(syncopate.Misuse, match="SYNCOPATE_SECRET_FILE"):
        connect(server, 0, 1, access=access)


@pytest.mark.parametrize(("of_server", "of_worker"), [("on", "off"), ("off", "on")])
def test_ends_that_differ_in_encryption_name_the_setting(secret_file, of_server, of_worker):
    access = {tls: syncopate.JobAccess(secret_file=secret_file, tls=tls) for tls in (of_server, of_worker)}
    with syncopate.Server.start(["127.0.0.1:0"], access=access[of_server]) as server:
        words = f"it has TLS {of_server}, this end has it {of_worker}; set SYNCOPATE_TLS"
        with pytest.raises(syncopate.Mismatch, match=words):
            connect(server, 0, 1, access=access[of_worker])


def test_a_wrong_order_of_servers_is_named():
    with syncopate.Server.start(["127.0.0.1:0"], index=0) as first, syncopate.Server.start(["127.0.0.1:0"], index=1) as second:
        with pytest.raises(syncopate.Mismatch, match="it is server (1, not server 0|0, not server 1)"):  # whichever answers first
            connect(second, 0, 1, servers=[*second.addresses, *first.addresses])


class Child:
    """A Python process that prints a line when it is ready, and goes on when it is given one."""

    def __init__(self, program):
        self.process = subprocess.Popen([sys.executable, "-c", "import numpy, sys, syncopate\n" + program], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=own_environment())

    def line(self):
        line = self.process.stdout.readline().strip()
        assert line, f"it ended with {self.process.wait()}"
        return line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


SERVER = "with syncopate.Server.start(['127.0.0.1:0']) as server:\n    print(server.addresses[0], flush=True)\n    sys.stdin.readline()"
WORKER = """
own = syncopate.TableWorker.connect(servers=[{address!r}], worker={worker}, workers=2, optimizer="sgd", timeout_s=60,
                                     hyperparameters={{"weight_decay": 0}})
weights = numpy.ones(8, numpy.float32)
own.create_table("w", weights)
own.start()
print("started", flush=True)
"""


def test_a_killed_server_is_named(server):
    with Child(SERVER) as child:
        weights = numpy.ones(8, numpy.float32)
        own = syncopate.TableWorker.connect(servers=[child.line()], optimizer="sgd", timeout_s=0.5)
        own.create_table("w", weights)
        own.start()
        child.process.kill()
        with pytest.raises((syncopate.PeerLost, syncopate.Timeout), match="server 0 at 127.0.0.1"):
            for _ in range(2):  # the first may be answered
                own.update(0, weights, 1.0)
                own.clock(1.0)
                own.sync(0)
        own.close()


def test_a_killed_worker_is_given_up_and_the_other_goes_on():
    with syncopate.Server.start(["127.0.0.1:0"], patience_s=0.3) as server:
        weights = numpy.ones(8, numpy.float32)
        with Child(WORKER.format(address=server.addresses[0], worker=1)) as other, connect(server, 0, 2) as own:
            own.create_table("w", weights)
            own.start()
            assert other.line() == "started"
            other.process.kill()
            own.update(0, numpy.ones(8, numpy.float32), 0.5)
            own.clock(0.5)
            own.sync(0)
            own.finish()
        assert weights.tolist() == [0.5] * 8  # the average is that of the workers which are left
        assert server.wait_for_end() and server.status().finished == 1


def test_an_interrupt_ends_a_wait_and_the_call_may_be_repeated(server):
    program = WORKER.format(address=server.addresses[0], worker=0) + """
own.update(0, numpy.ones(8, numpy.float32), 1.0)
own.clock(1.0)
import threading
sys.setswitchinterval(1000)  # the second thread gets the GIL when the first lets go of it, and that is in its wait
may_say = threading.Lock()
may_say.acquire()
threading.Thread(target=lambda: (may_say.acquire(), print("waiting", flush=True))).start()
try:
    may_say.release(); own.sync(0)
except KeyboardInterrupt:
    print("interrupted", flush=True)
own.sync(0)
print(weights.tolist(), flush=True)
"""
    with Child(program) as other, connect(server, 1, 2) as own:
        own.create_table("w", numpy.ones(8, numpy.float32))
        own.start()
        assert [other.line(), other.line()] == ["started", "waiting"]
        other.process.send_signal(2)
        assert other.line() == "interrupted"
        own.update(0, numpy.full(8, 3, numpy.float32), 1.0)
        own.clock(1.0)
        assert other.line() == str([-1.0] * 8)


def test_an_interrupt_ends_connect():
    program = """
import sys, threading, syncopate
sys.setswitchinterval(1000)  # the second thread gets the GIL when the first lets go of it, and that is in its wait
may_say = threading.Lock()
may_say.acquire()
threading.Thread(target=lambda: (may_say.acquire(), print("waiting", flush=True))).start()
try:
    may_say.release(); syncopate.TableWorker.connect(servers=["@no-server-is-here"], worker=0, workers=1, timeout_s=600)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with Child(program) as child:
        assert child.line() == "waiting"
        child.process.send_signal(2)
        assert child.line() == "interrupted"
        assert child.process.wait(60) == 0


def test_workers_of_syncopate_run_find_their_servers():
    program = (
        "import numpy, syncopate\nown = syncopate.TableWorker.connect(optimizer='sgd')\nw = numpy.zeros(4, numpy.float32)\nown.create_table('w',"
        " w)\nown.start()\nown.update(0, numpy.ones(4, numpy.float32), 1.0)\nown.clock(1.0)\nown.finish()\nprint(own.steps, own.closed)"
    )
    done = subprocess.run([PROGRAM, "run", "-n", "3", "--servers", "2", "--", sys.executable, "-c", program], check=False, text=True,
                          capture_output=True, env=own_environment())
    assert done.returncode == 0 and all(f"[{rank}] 1 False\n" in done.stdout for rank in range(3)), done.stdout + done.stderr


def test_a_forked_child_ends_with_its_copies_of_a_server_and_a_worker():
    program = """
import os, sys, numpy, syncopate
server = syncopate.Server.start(["127.0.0.1:0"])
own = syncopate.TableWorker.connect(servers=server.addresses, optimizer="sgd")
own.create_table("w", numpy.ones(8, numpy.float32))
own.start()
for ends in (sys.exit, lambda code: (own.close(), server.close(), os._exit(code))):
    child = os.fork()
    if child == 0:
        ends(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
own.update(0, numpy.ones(8, numpy.float32), 1.0)
own.clock(1.0)
own.finish()
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_rows_are_updated_by_every_worker_and_read_by_all(server):
    def train(worker):
        with connect(server, worker, 2, consistency="tap") as own:
            assert own.create_rows("first", 3, scale=0.0) == 0
            assert own.create_rows("drawn", 2, rule="adagrad", hyperparameters={"epsilon": 1e-8}, seed=5, scale=0.5) == 1
            own.start()
            ids, rows = numpy.array([[7, -1], [7, worker]]), numpy.empty((2, 2, 3), numpy.float32)
            for step in range(10):
                own.push_rows(0, ids, numpy.full((2, 2, 3), -0.5, numpy.float32), rate=2.0)
                own.pull_rows(0, ids, rows)
                assert rows[1, 1, 0] == step + 1 and (rows[0, 0] >= 2 * (step + 1)).all()
            drawn = numpy.empty((4, 2), numpy.float32)
            own.pull_rows(1, numpy.arange(4, dtype=numpy.uint64), drawn)
            own.finish()
        return drawn

    one, other = on_threads(2, train)
    assert not isinstance(one, BaseException), one
    assert (one == other).all() and numpy.abs(one).max() < 0.5 and len(set(one.flat)) == one.size


def test_rows_that_do_not_fit_are_refused_by_name(server):
    with connect(server, 0, 1) as own:
        own.create_rows("users", 3)
        with pytest.raises(syncopate.Misuse, match="lamb.*allowed: rules that treat every weight by itself"):
            own.create_rows("users", 3, rule="lamb")
        own.start()
        ids, rows = numpy.arange(2), numpy.zeros((2, 3), numpy.float32)
        for wrong, message in [
            ((1, ids, rows), "table 1 of rows; this job has 1"),
            ((0, ids, rows[:, :2].copy()), "'users'; allowed: 3 floats for each id"),
            ((0, ids.astype(numpy.int32), rows), "ids.*allowed: int64, uint64"),
            ((0, ids.astype(float), rows), "ids.*allowed: int64"),
            ((0, ids, rows.astype(float)), "f64; allowed: f32|allowed: float32"),
            ((0, [1, 2], rows), "ids .* is not an array"),
            ((0, numpy.arange(4)[::2], rows), "ids is not contiguous"),
        ]:
            with pytest.raises(syncopate.Misuse, match=message):
                own.pull_rows(*wrong)
            with pytest.raises(syncopate.Misuse, match=message):
                own.push_rows(*wrong, 0.1)
        with pytest.raises(syncopate.Misuse, match="a learning rate of -1"):
            own.push_rows(0, ids, rows, -1)
        with pytest.raises(syncopate.Misuse, match="created after start"):
            own.create_rows("late", 3)
