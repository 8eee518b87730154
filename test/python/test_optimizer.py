"""Optimizer applies a rule to arrays, alone or as the update of a Synchronizer, whose ranks then divide its state."""

import numpy
import pytest
from conftest import outcomes

import syncopate

ELEMENTS = 3 * 4096 + 5


def weights():
    return {"matrix": numpy.linspace(-1, 1, ELEMENTS, dtype=numpy.float32), "bias": numpy.ones(7, numpy.float32)}


def gradients(rank, step):
    generator = numpy.random.default_rng(10 * step + rank)
    return [generator.standard_normal(values.size).astype(numpy.float32) for values in weights().values()]


def test_an_update_is_that_of_the_rule_and_spends_the_gradient():
    arrays, gradient = weights(), gradients(0, 0)
    before = [values.copy() for values in gradient]
    optimizer = syncopate.Optimizer(arrays, "momentum", spared=["bias"], hyperparameters={"momentum": 0.5, "weight_decay": 0.25})
    optimizer.update(0, gradient, rate=0.5, step=1)
    numpy.testing.assert_allclose(arrays["matrix"], weights()["matrix"] - 0.5 * (before[0] + 0.25 * weights()["matrix"]), rtol=1e-6, atol=1e-6)
    numpy.testing.assert_allclose(arrays["bias"], weights()["bias"] - 0.5 * before[1], rtol=1e-6, atol=1e-6)
    assert not numpy.any(gradient[0]) and optimizer.rule == "momentum"
    numpy.testing.assert_allclose(numpy.from_dlpack(optimizer.state["velocity"])[-7:], before[1])
    assert optimizer.shard(0, 0) == (0, ELEMENTS)


@pytest.mark.parametrize("rule", ["adamw", "lamb"])
def test_ranks_that_divide_the_state_get_equal_weights_and_those_of_one_rank(on_ranks, rule):
    ranks, rates = 3, [0.01, 0.02]

    def body(group):
        arrays = weights()
        optimizer = syncopate.Optimizer(arrays, rule, group=group, own_shards_only=True)
        named = [syncopate.Gradient(name, values.shape) for name, values in arrays.items()]
        averages = syncopate.Synchronizer(group, named, weights=list(arrays.values()), exchange="sharded", update=optimizer)
        for step in range(1, 4):
            optimizer.begin_step(rates, step)
            for i, values in reversed(list(enumerate(gradients(group.rank, step)))):
                numpy.from_dlpack(averages.gradient(i))[:] = values
                averages.ready(i)
            averages.wait()
        averages.close()
        return list(arrays.values()), numpy.from_dlpack(optimizer.state["mean"]).size

    results = on_ranks(ranks, body)
    arrays = weights()
    alone = syncopate.Optimizer(arrays, rule)
    for step in range(1, 4):
        for i, rate in enumerate(rates):
            mean = numpy.mean([gradients(rank, step)[i].astype(numpy.float64) for rank in range(ranks)], axis=0)
            alone.update(i, [mean.astype(numpy.float32)], rate=rate, step=step)
    for found, _ in results:
        for mine, first, wanted in zip(found, results[0][0], arrays.values(), strict=True):
            assert numpy.array_equal(mine, first)
            numpy.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-4)
    assert sum(kept for _, kept in results) == ELEMENTS + 7


def test_what_does_not_fit_is_refused(on_ranks):
    def body(group):
        arrays = weights()
        named = [syncopate.Gradient(name, values.shape) for name, values in arrays.items()]

        def synchronizer(optimizer, exchange="sharded", values=arrays):
            return syncopate.Synchronizer(group, named, weights=list(values.values()), exchange=exchange, update=optimizer)

        mine = syncopate.Optimizer(arrays, "sgd", group=group, own_shards_only=True)
        for words, call in [("without own_shards_only", lambda: synchronizer(syncopate.Optimizer(arrays, "sgd"))),
                            ("with own_shards_only", lambda: synchronizer(mine, "reduce_broadcast")),
                            ("the same arrays", lambda: synchronizer(mine, values=weights())),
                            ("is spared", lambda: syncopate.Optimizer(arrays, "sgd", spared=["scale"])),
                            ("without a group", lambda: syncopate.Optimizer(arrays, "sgd", own_shards_only=True)),
                            ("1 rates for 2", lambda: mine.begin_step([0.1], 1)),
                            ("f64", lambda: syncopate.Optimizer({"matrix": numpy.zeros(3)}, "sgd"))]:
            with pytest.raises(syncopate.Misuse, match=words):
                call()
        late = synchronizer(mine)
        for i in range(2):
            late.ready(i)
        with pytest.raises((syncopate.Misuse, syncopate.RemoteFailure), match="begin_step"):
            late.wait()

    on_ranks(2, body)


def test_every_rank_reads_why_one_rank_is_refused():
    def body(group):
        arrays = weights()
        named = [syncopate.Gradient(name, values.shape) for name, values in arrays.items()]
        optimizer = syncopate.Optimizer(arrays, "sgd", group=group, own_shards_only=True)
        given = arrays if group.rank == 0 else weights()
        syncopate.Synchronizer(group, named, weights=list(given.values()), exchange="sharded", update=optimizer)

    errors = outcomes(syncopate.Group.threads(2, timeout_s=60), body)
    assert [type(error) for error in errors] == [syncopate.Mismatch, syncopate.Misuse]
    assert all("allowed: the same arrays" in str(error) for error in errors)
