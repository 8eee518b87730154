"""Components of a program's own in Python: they decide in jobs as the library's do, and what they raise is raised."""

import faulthandler
import gc
import signal
import threading
import weakref

import numpy
import pytest
from conftest import on_threads

import syncopate
import syncopate.testing

STEPS = 6


def halves(table_bytes, servers, grain_bytes):
    """The first server keeps the first half of every table, the last one the rest."""
    for table, size in enumerate(table_bytes):
        middle = size // 2 // grain_bytes * grain_bytes
        if middle:
            yield table, 0, middle, 0
        if middle < size:
            yield table, middle, size, servers - 1


class Quorum:
    """A worker goes on when K workers have ended the step, at most S steps beyond the slowest."""

    staleness = 0

    def __init__(self, workers, steps):
        self.workers, self.steps = int(workers), int(steps)

    def last_step(self, server):
        return min(sorted(server.clocks)[-min(self.workers, len(server.clocks))], server.least + self.steps)


class Lazy:
    """The bound of ssp:2; an update travels early if it is significant."""

    staleness = 2

    def __init__(self):
        self.asked = []

    def travels_early(self, clocks):
        self.asked.append((clocks.own, clocks.sent, clocks.significance > 0))
        return clocks.significance > 1e6


class Significant:
    """The elements that reach a tenth travel early; workers of which one is three steps behind send all early."""

    staleness = 4
    sees_clocks = True

    def __init__(self):
        self.views, self.asked = [], 0

    def travels_early(self, clocks):
        self.views.append(clocks)
        return True

    def part(self, clocks, weights, update, sent):
        assert weights.size == update.size == sent.size and not update.flags.writeable
        numpy.copyto(sent, update, where=numpy.abs(update) >= 0.01)

    def sends_unasked(self, server):
        self.asked += 1
        return server.least >= 0 and len(server.clocks) == 2


class Clipped:
    def accumulate(self, block, update, accumulated):
        assert block.table in (0, 1) and block.end - block.begin == update.size == accumulated.size
        accumulated += numpy.clip(update, -0.25, 0.25)


class Last:
    def combine(self, block, updates, combined):
        combined[:] = updates[-1]


class Heavy:
    """v = MOMENTUM v + u, w = w - rate v."""

    kept = 1

    def __init__(self, momentum):
        self.momentum = numpy.float32(momentum)

    def apply(self, block, combined, rate, kept, weights):
        kept[:] = self.momentum * kept + combined
        weights -= numpy.float32(rate) * kept


class Rounded:
    def answer(self, block, weights, shown):
        shown[:] = numpy.round(weights * 4) / 4


class Half:
    def adopt(self, block, arrived, weights):
        weights[:] = (weights + arrived) / 2


class Memory:
    """Values that its methods reach, and no array."""

    def __init__(self, values):
        self._values, self.shape = numpy.array(values, numpy.float64), numpy.shape(values)

    def get(self):
        return self._values.copy()

    def put(self, values):
        self._values[...] = values


class Away:
    def load(self, memory, values):
        values[:] = memory.get()

    def store(self, values, memory):
        memory.put(values)


def pairs(layers, step):
    """Two neighbouring gradients share a bucket."""
    assert step.ranks >= 1 and all(layer.bytes > 0 for layer in layers)
    return [(max(last - 1, 0), last) for last in range(len(layers) - 1, -1, -2)]


def sign(step, weights, gradient, mean):
    """The sign of the running mean of the gradient."""
    mean *= step.momentum
    mean += (1 - step.momentum) * gradient
    weights -= step.rate * (numpy.sign(mean) + step.weight_decay * weights)


def thirds(tensors, step):
    """Every third element, in turn; the residual keeps the others."""
    words = []
    for tensor in tensors:
        chosen = numpy.arange(step.step % 3, tensor.values.size, 3, dtype=numpy.uint32)
        words += [numpy.uint32([chosen.size]), chosen, tensor.values[chosen].view(numpy.uint32)]
        tensor.sent(chosen)
    packets = yield syncopate.gather(numpy.concatenate(words))
    for tensor in tensors:
        tensor.average[:] = 0
        for rank, packet in enumerate(packets):
            chosen, values, packets[rank] = numpy.split(packet[1:], [packet[0], 2 * packet[0]])
            tensor.average[chosen] += values.view(numpy.float32) / numpy.float32(step.ranks)


def thirds_alone(packet, elements, _):
    words = packet.view(numpy.uint32)
    values = numpy.zeros(elements, numpy.float32)
    values[words[1:1 + words[0]]] = words[1 + words[0]:].view(numpy.float32)
    return values


NUMBERS = [syncopate.Parameter("workers", 2, most=100, whole=True), syncopate.Parameter("steps", 5, most=100, whole=True)]
HALVES = syncopate.Placement("halves", halves)
QUORUM = syncopate.Consistency("quorum", Quorum, parameters=NUMBERS)
CLIPPED, LAST, ROUNDED, HALF, AWAY = (syncopate.Storage(kind.__name__.lower(), kind)
                                      for kind in (Clipped, Last, Rounded, Half, Away))
HEAVY = syncopate.Storage("heavy", Heavy, parameters=[syncopate.Parameter("momentum", 0.5, most=1)])
SIGN = syncopate.Rule("sign", sign, state=["mean"], hyperparameters={"momentum": 0.5})
THIRDS = syncopate.Codec("thirds", thirds, feedback="maskable", decode=thirds_alone)


def served(workers, on_servers=(), steps=STEPS, elements=9000, **options):
    """Train workers on two servers, and return for each its weights, or what it raised; and what the servers keep."""
    servers = [syncopate.Server.start(["127.0.0.1:0"], index=index, catalogue=list(on_servers)) for index in range(2)]

    def train(worker):
        weights = numpy.zeros(elements, numpy.float32)
        given = {"optimizer": "sgd", "hyperparameters": {}, "timeout_s": 20} | options
        given |= {name: value[worker] for name, value in given.items() if isinstance(value, tuple)}
        with syncopate.TableWorker.connect(servers=[each.addresses[0] for each in servers], worker=worker, workers=workers,
                                           **given) as own:
            own.create_table("w", weights)
            own.start()
            for _ in range(steps):
                own.sync(0)
                own.update(0, weights - numpy.float32(worker), 0.1)
                own.clock(0.1)
            own.finish()
        return weights

    results = on_threads(workers, train)
    failures = [None, None]
    for index, server in enumerate(servers):
        try:
            server.wait_for_end(0.01)
        except Exception as error:  # noqa: BLE001 (the test looks at it)
            failures[index] = error
    kept = [server.status().kept_bytes for server in servers]
    for server in servers:
        server.close()
    return results, kept, failures


def weights_of(results):
    for result in results:
        if isinstance(result, BaseException):
            raise result
        assert numpy.array_equal(result, results[0])
    return results[0]


def test_a_placement_divides_the_tables_and_changes_no_weight():
    results, kept, _ = served(2, [HALVES], placement=HALVES)
    weights = weights_of(results)
    assert kept == [18000, 18000] and numpy.array_equal(weights, weights_of(served(2)[0]))
    assert weights.mean() == pytest.approx((1 - 0.9**STEPS) / 2, rel=1e-4)


def test_a_consistency_model_decides_on_servers_with_all_clocks_and_on_workers():
    assert weights_of(served(3, [QUORUM], consistency="quorum:2,3", catalogue=[QUORUM], steps=40)[0]).mean() == pytest.approx(1, abs=0.3)
    made = []
    lazy = syncopate.Consistency("lazy", lambda: made.append(Lazy()) or made[-1])
    weights_of(served(2, [lazy], consistency=lazy)[0])
    asked = [one for each in made for one in each.asked]
    assert asked and all(own > sent for own, sent, _ in asked) and any(significant for *_, significant in asked)


def test_a_consistency_model_sends_parts_sees_clocks_and_lets_servers_send():
    made = []
    model = syncopate.Consistency("significant", lambda: made.append(Significant()) or made[-1])
    weights = weights_of(served(2, [model], consistency=model, steps=30)[0])
    assert weights.mean() == pytest.approx(0.5, abs=0.1)
    views = [view for each in made for view in each.views]
    assert {len(view.clocks) for view in views} <= {0, 2} and any(view.clocks for view in views)
    assert all(view.sent <= view.own for view in views) and any(each.asked for each in made)
    assert syncopate.testing.check_consistency(model, bound=4, histories=5, steps=20) is None


def test_a_storage_accumulates_combines_applies_and_answers():
    assert weights_of(served(2, [CLIPPED], storage=CLIPPED, steps=1)[0]).mean() == pytest.approx(0.1 * 0.25 / 2, rel=1e-5)
    assert weights_of(served(2, [LAST], storage=LAST, steps=1)[0]).mean() == pytest.approx(0.1, rel=1e-5)
    with_rule = weights_of(served(2, optimizer="momentum", hyperparameters={"momentum": 0.25, "weight_decay": 0.0})[0])
    assert numpy.allclose(weights_of(served(2, [HEAVY], storage="heavy:0.25", catalogue=[HEAVY])[0]), with_rule, rtol=1e-5)
    assert weights_of(served(2, [HALF], storage=HALF, steps=3)[0]).mean() == pytest.approx(0.141375, rel=1e-3)
    one, other = (weights_of(served(2, on_servers, steps=2, **options)[0]).mean()
                  for on_servers, options in (([ROUNDED], {"storage": ROUNDED}), ((), {})))
    # The second gradient is of rounded weights.
    assert one == pytest.approx(2 * 0.05, rel=1e-4) and other == pytest.approx(0.05 + 0.9 * 0.05, rel=1e-4)


def test_a_storage_reads_and_writes_any_object():
    def train(worker, server, storage, make, read):
        memory = make(numpy.zeros(3000))
        with syncopate.TableWorker.connect(servers=server.addresses, worker=worker, workers=2, optimizer="sgd", storage=storage,
                                           timeout_s=20) as own:
            own.create_table("w", memory)
            own.start()
            for _ in range(STEPS):
                own.sync(0)
                gradient = make(read(memory) - worker)
                own.update(0, gradient, 0.1)
                assert not read(gradient).any()
                own.clock(0.1)
            own.finish()
        return read(memory).astype(numpy.float32)

    ends = []
    for storage, make, read in ((AWAY, Memory, Memory.get), ("plain", lambda values: values.astype(numpy.float32), numpy.copy)):
        with syncopate.Server.start(["127.0.0.1:0"], catalogue=[AWAY]) as server:
            ends.append(weights_of(on_threads(2, lambda worker, server=server, storage=storage, make=make, read=read:
                                              train(worker, server, storage, make, read))))
    assert numpy.array_equal(*ends)


def test_what_a_storage_raises_or_keeps_is_raised():
    class Hoarder(Last):
        kept_arrays = []

        def combine(self, block, updates, combined):
            self.kept_arrays.append(combined)

    hoarder = syncopate.Storage("hoarder", Hoarder)
    _, _, failures = served(1, [hoarder], storage=hoarder)
    assert any("still uses an array after its combine" in str(failure) for failure in failures)
    broken = syncopate.Storage("broken", type("Broken", (), {"accumulate": lambda *given: 1 / 0}))
    results, _, _ = served(1, [broken], storage=broken)
    assert isinstance(results[0], ZeroDivisionError)
    assert "both or neither" in str(served(1, storage=syncopate.Storage("half", type("Half", (), {"load": print})))[0][0])
    assert "lacks storage 'last'" in str(served(1, storage=LAST)[0][0])


def test_the_laws_of_a_storage_are_checked():
    for storage in (CLIPPED, LAST, ROUNDED, HALF, HEAVY):
        assert syncopate.testing.check_storage(storage, cases=4) is None
    assert syncopate.testing.check_storage(AWAY, cases=4, memory=lambda elements: Memory(numpy.zeros(elements))) is None

    class Counts:
        def __init__(self):
            self.calls = 0

        def apply(self, block, combined, rate, kept, weights):
            self.calls += 1
            weights -= self.calls * combined

    assert syncopate.testing.check_storage(syncopate.Storage("counts", Counts)).law == "nothing remembered"


def test_a_rule_updates_on_servers_and_on_ranks():
    weights = weights_of(served(2, [SIGN], optimizer=SIGN, hyperparameters={"momentum": 0.0})[0])
    assert numpy.allclose(weights, 0.5, atol=0.1001)
    array, gradient = numpy.ones(10, numpy.float32), numpy.arange(10, dtype=numpy.float32) - 5
    optimizer = syncopate.Optimizer({"w": array}, SIGN)
    for step in (1, 2):
        optimizer.update(0, [numpy.copy(gradient)], rate=0.25, step=step)
    assert numpy.array_equal(array, 1 - 0.5 * numpy.sign(gradient))
    assert numpy.allclose(numpy.from_dlpack(optimizer.state["mean"]), 0.75 * gradient)
    with pytest.raises(syncopate.Misuse, match="allowed: weight_decay, momentum"):
        syncopate.Rule("other", sign, hyperparameters={"mass": 1})
    kept = []
    hoarder = syncopate.Rule("hoarder", lambda step, weights, gradient: kept.append(weights))
    with pytest.raises(syncopate.Misuse, match="still uses an array"):
        syncopate.Optimizer({"w": array}, hoarder).update(0, [gradient], rate=1, step=1)


def test_a_policy_makes_the_buckets(on_ranks):
    policy = syncopate.Policy("pairs", pairs)

    def buckets(group):
        with pytest.raises(syncopate.Misuse, match="one bucket"):
            syncopate.Synchronizer(group, GRADIENTS, policy=syncopate.Policy("none_at_all", lambda layers, step: []))
        with pytest.raises(ZeroDivisionError):
            syncopate.Synchronizer(group, GRADIENTS, policy=syncopate.Policy("broken", lambda layers, step: 1 / 0))
        averages = syncopate.Synchronizer(group, GRADIENTS, policy=policy)
        for i in range(5):
            numpy.from_dlpack(averages.gradient(i))[:] = group.rank
            averages.ready(i)
        averages.wait()
        assert all(numpy.from_dlpack(averages.gradient(i))[0] == 0.5 for i in range(5))
        return [(bucket.first, bucket.last) for bucket in averages.buckets()]

    assert on_ranks(2, buckets) == 2 * [[(3, 4), (1, 2), (0, 0)]]


GRADIENTS = [syncopate.Gradient(str(i), (10,)) for i in range(5)]


def test_updates_are_coded_by_a_codec_that_decodes_alone():
    options = {"codec": THIRDS, "dense_below": 1, "optimizer": "sgd"}
    coded = weights_of(served(2, [THIRDS], steps=60, **options)[0])
    assert coded.mean() == pytest.approx(0.5, abs=0.1)
    one_step = weights_of(served(2, [THIRDS], steps=1, elements=90, **options)[0])
    assert numpy.allclose(one_step, numpy.where(numpy.arange(90) % 3 == 0, 0.05, 0))

    def late(tensors, step):
        yield syncopate.gather(b"four")
        for tensor in tensors:
            tensor.sent()

    large = syncopate.Codec("large", thirds, decode=thirds_alone, wire_bytes=lambda rows, columns, numbers: 8)
    for wrong, message in ((syncopate.Codec("not_alone", thirds), "cannot be decoded alone, because it has no `decode`; allowed: .*topk"),
                           (large, "allowed: at most 8 bytes, by its wire_bytes"),
                           (syncopate.Codec("late", late, feedback="sound", decode=thirds_alone), "did not call `sent`")):
        (result,), _, _ = served(1, [wrong], codec=wrong, dense_below=1)
        with pytest.raises(syncopate.Misuse, match=message):
            raise result


def test_one_end_that_lacks_a_component_is_named():
    for option, component in (("placement", HALVES), ("consistency", QUORUM), ("codec", THIRDS), ("optimizer", SIGN)):
        (result,), _, _ = served(1, **{option: component, "dense_below": 1})
        assert isinstance(result, syncopate.Mismatch) and f"'{component.name}" in str(result), result
    results, _, _ = served(2, [HALVES], placement=(HALVES, "uniform"), timeout_s=1)
    assert any(isinstance(one, syncopate.Mismatch) and "placement is" in str(one) for one in results), results


def test_what_a_workers_component_raises_is_raised():
    def broken(table_bytes, servers, grain_bytes):
        raise KeyError("no place")

    (result,), _, _ = served(1, placement=syncopate.Placement("broken", broken))
    assert isinstance(result, KeyError) and result.__traceback__ is not None
    for returned in ([(0, 0, 8)], [(7, 0, 8, 0)], [(0, -4, 8, 0)], [(0, 0, 8, 0)]):
        wrong = syncopate.Placement("wrong", lambda *_, shards=tuple(returned): shards)
        (result,), _, _ = served(1, placement=wrong)
        assert isinstance(result, syncopate.Misuse) and "placement wrong" in str(result), result

    class Broken:
        staleness = 1

        def travels_early(self, clocks):
            raise LookupError(str(clocks.own))

    model = syncopate.Consistency("broken", Broken)
    (result,), _, _ = served(1, [model], consistency=model)
    assert isinstance(result, LookupError)


def test_what_a_servers_component_raises_ends_the_job_for_all():
    class Broken(Quorum):
        def last_step(self, server):
            if server.least >= 3:
                raise LookupError("too far")
            return super().last_step(server)

    broken = syncopate.Consistency("broken", Broken, parameters=NUMBERS)
    results, _, failures = served(2, [broken], consistency=broken, steps=100)
    assert all(isinstance(one, syncopate.RemoteFailure) and "consistency broken: LookupError: too far" in str(one) for one in results), results
    assert any(isinstance(one, LookupError) for one in failures), failures


def test_a_value_of_a_servers_component_that_is_not_allowed_ends_the_job_for_all():
    class Wrong(Quorum):
        def last_step(self, server):
            return super().last_step(server) if server.least < 3 else "far"

    wrong = syncopate.Consistency("wrong", Wrong, parameters=NUMBERS)
    results, _, failures = served(2, [wrong], consistency=wrong, steps=100)
    assert all(isinstance(one, syncopate.RemoteFailure) and "wrong: last_step is 'far'" in str(one) for one in results), results
    assert any(isinstance(one, syncopate.Misuse) for one in failures), failures


def test_components_live_as_long_as_what_uses_them():
    def start():
        return syncopate.Server.start(["127.0.0.1:0"], catalogue=[syncopate.Placement("halves", halves),
                                                                  syncopate.Consistency("quorum", Quorum, parameters=NUMBERS)])

    def connect(server):
        return syncopate.TableWorker.connect(servers=server.addresses, worker=0, workers=1, placement=syncopate.Placement("halves", halves),
                                             consistency=syncopate.Consistency("quorum", Quorum, parameters=NUMBERS))

    entries = weakref.WeakSet()
    with start() as server, connect(server) as own:
        entries.update(one for one in gc.get_objects() if isinstance(one, (syncopate.Placement, syncopate.Consistency)) and one is not HALVES
                       and one is not QUORUM)
        gc.collect()
        assert len(entries) == 4
        weights = numpy.zeros(10, numpy.float32)
        own.create_table("w", weights)
        own.start()
        own.update(0, numpy.ones_like(weights), 1)
        own.clock(1)
        own.finish()
        assert weights[0] == -1
    gc.collect()
    assert not entries


def test_components_must_have_names_and_be_of_their_kind():
    with pytest.raises(syncopate.Misuse, match="already has"):
        syncopate.Placement("uniform", halves)
    with pytest.raises(syncopate.Misuse, match="a-z"):
        syncopate.Consistency("No", Quorum)
    with pytest.raises(syncopate.Misuse, match="allowed: sizes, times"):
        syncopate.Policy("mine", pairs, needs="luck")
    with pytest.raises(TypeError):
        syncopate.Server.start(["127.0.0.1:0"], catalogue=["uniform"])
    for staleness in (-1, "one", 1.5):
        kind = type("Kind", (), {"staleness": staleness})
        with pytest.raises(syncopate.Misuse, match="allowed: a whole number"):
            syncopate.TableWorker.connect(servers=["127.0.0.1:1"], worker=0, workers=1, consistency=syncopate.Consistency("kind", kind))


def test_the_checks_find_what_breaks_a_law():
    check = syncopate.testing
    assert check.check_placement(HALVES) is None and check.check_policy(syncopate.Policy("pairs", pairs)) is None
    assert check.check_consistency(QUORUM, parameter="2,10", bound=10, histories=20) is None
    assert check.check_codec(THIRDS, cases=5) is None
    broken = check.check_consistency(QUORUM, parameter="1,10", bound=9)
    assert broken.law == "bounded staleness" and "consistency quorum:1,10" in broken.text and broken.step > 0
    again = check.check_consistency(QUORUM, parameter="1,10", bound=9, seed=broken.seed, histories=1)
    assert (again.worker, again.step) == (broken.worker, broken.step)
    assert check.check_placement(syncopate.Placement("most", halves, most_bytes=lambda *_: 1.0)).law == "maximum load"
    assert check.check_policy(syncopate.Policy("first", lambda layers, step: [(0, 0)])).law == "every gradient once"
    raising = check.check_policy(syncopate.Policy("raising", lambda layers, step: 1 / 0))
    assert raising.law == "no exception" and "ZeroDivisionError" in str(raising)

    def interrupted(layers, step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check.check_policy(syncopate.Policy("interrupted", interrupted))


@pytest.fixture
def watched():
    """A wait for a lock that is held by a thread that waits for the interpreter would never end."""
    faulthandler.dump_traceback_later(60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def test_a_server_answers_status_while_a_component_decides(watched):
    inside, asked = threading.Event(), threading.Event()

    def slow(table_bytes, servers, grain_bytes):
        if threading.current_thread() is not thread:  # on the server, which then holds the lock of its job
            inside.set()
            assert asked.wait(20)
        return [(0, 0, table_bytes[0], 0)]

    slow = syncopate.Placement("slow", slow)
    with syncopate.Server.start(["127.0.0.1:0"], catalogue=[slow]) as server:
        def train():
            with syncopate.TableWorker.connect(servers=server.addresses, worker=0, workers=1, placement=slow) as own:
                own.create_table("w", numpy.zeros(10, numpy.float32))
                own.start()
                own.finish()

        thread = threading.Thread(target=train)
        thread.start()
        assert inside.wait(20)
        asker = threading.Thread(target=server.status)
        asker.start()
        asked.set()
        for each in (asker, thread):
            each.join(20)
            assert not each.is_alive()
        assert server.status().kept_bytes == 40


def test_ctrl_c_ends_a_component():
    class Interrupted:
        staleness = 3

        def travels_early(self, clocks):
            signal.raise_signal(signal.SIGINT)

    model = syncopate.Consistency("interrupted", Interrupted)
    with syncopate.Server.start(["127.0.0.1:0"], catalogue=[model]) as server, \
            syncopate.TableWorker.connect(servers=server.addresses, worker=0, workers=1, consistency=model) as own:
        weights = numpy.zeros(10, numpy.float32)
        own.create_table("w", weights)
        own.start()
        with pytest.raises(KeyboardInterrupt):
            own.update(0, numpy.ones_like(weights), 0.1)
