"""The synchronizer averages gradients of any framework; here NumPy computes them."""

import gc
import weakref

import numpy
import pytest
from conftest import outcomes

import syncopate

SHAPES = {"weight": (40, 30), "bias": (40,), "scale": (1,)}


def gradients(dtype="f32"):
    return [syncopate.Gradient(name, shape, dtype) for name, shape in SHAPES.items()]


def step(averages, views, value):
    for i in reversed(range(len(views))):
        views[i][...] = value
        averages.ready(i)
    averages.wait()


@pytest.mark.parametrize("policy", ["fusion", "wfbp", "single", "online"])
def test_gradients_are_averaged(on_ranks, policy):
    def body(group):
        averages = syncopate.Synchronizer(group, gradients(), policy=policy)
        views = [numpy.from_dlpack(averages.gradient(i)) for i in range(len(SHAPES))]
        assert [view.shape for view in views] == list(SHAPES.values())
        for number in range(3):
            step(averages, views, group.rank + number)
            assert all((view == 1 + number).all() for view in views)
        assert averages.statistics().wire_bytes > 0 and averages.statistics().wait_s >= 0
        return [(bucket.first, bucket.last) for bucket in averages.buckets()]
    assert len({str(buckets) for buckets in on_ranks(3, body)}) == 1


def test_a_codec_loses_nothing_with_feedback(on_ranks):
    def body(group):
        averages = syncopate.Synchronizer(group, [syncopate.Gradient("w", 1000)], codec="topk:0.1", dense_below=0)
        view = numpy.from_dlpack(averages.gradient(0))
        received = numpy.zeros(1000)
        for number in range(40):
            view[:] = numpy.arange(1000) + 1 if number < 20 else 0
            averages.ready(0)
            averages.wait()
            received += view
        return received
    first, second = on_ranks(2, body)
    numpy.testing.assert_array_equal(first, second)
    numpy.testing.assert_allclose(first, 20 * (numpy.arange(1000) + 1), rtol=1e-5)


def test_a_codecs_state_is_saved_and_restored(on_ranks):
    def body(group):
        def make():
            averages = syncopate.Synchronizer(group, [syncopate.Gradient("w", 1000)], codec="topk:0.1", dense_below=0)
            return averages, numpy.from_dlpack(averages.gradient(0))
        one, view = make()
        view[:] = numpy.arange(1000) * (group.rank + 1)
        one.ready(0)
        one.wait()
        saved = one.save()
        view[:] = 0
        one.ready(0)
        one.wait()
        expected = view.copy()
        two, other = make()
        two.restore(*saved)
        other[:] = 0
        two.ready(0)
        two.wait()
        return numpy.array_equal(other, expected) and expected.any()
    assert on_ranks(2, body) == [True, True]


def test_an_exchange_may_end_with_weights(on_ranks):
    def body(group):
        weights = numpy.zeros(100, numpy.float32)
        views = []

        def update(first, last):
            for i in range(first, last + 1):
                weights[:] -= views[i]
                views[i][:] = 0

        averages = syncopate.Synchronizer(group, [syncopate.Gradient("w", 100)], exchange="reduce_broadcast",
                                          weights=[weights], update=update)
        views.append(numpy.from_dlpack(averages.gradient(0)))
        views[0][:] = group.rank
        averages.ready(0)
        averages.wait()
        return weights
    for result in on_ranks(3, body):
        assert (result == -1).all()


def test_what_an_update_raises_reaches_the_caller(on_ranks):
    def body(group):
        def update(first, last):
            raise ValueError("no update")
        averages = syncopate.Synchronizer(group, [syncopate.Gradient("w", 100)], exchange="reduce_broadcast",
                                          weights=[numpy.zeros(100, numpy.float32)], update=update)
        averages.ready(0)
        with pytest.raises((RuntimeError, syncopate.Error), match="no update"):
            averages.wait()
    on_ranks(2, body)


def test_a_gradient_that_never_became_ready_is_named():
    def body(group):
        averages = syncopate.Synchronizer(group, gradients())
        averages.ready(0)
        averages.wait()
    for result in outcomes(syncopate.Group.threads(2), body):
        assert isinstance(result, (syncopate.Misuse, syncopate.RemoteFailure)) and "bias" in str(result)


def test_micro_batches_add_up(on_ranks):
    def body(group):
        averages = syncopate.Synchronizer(group, [syncopate.Gradient("w", 10)])
        view = numpy.from_dlpack(averages.gradient(0))
        averages.accumulate(True)
        view += group.rank
        averages.ready(0)
        averages.accumulate(False)
        view += group.rank
        averages.ready(0)
        averages.wait()
        return view[0]
    assert on_ranks(2, body) == [1, 1]


def test_memory_of_gradients_lives_as_long_as_its_views():
    group = syncopate.Group.threads(1)[0]
    view = numpy.from_dlpack(syncopate.Synchronizer(group, [syncopate.Gradient("w", 1000)]).gradient(0))
    view += 1
    assert view.sum() == 1000


def test_names_that_do_not_exist_are_refused():
    group = syncopate.Group.threads(1)[0]
    for keywords in ({"policy": "fast"}, {"codec": "zip"}, {"exchange": "barter"}):
        with pytest.raises(syncopate.Misuse, match="allowed"):
            syncopate.Synchronizer(group, gradients(), **keywords)
    with pytest.raises(syncopate.Misuse):
        syncopate.Synchronizer(group, [syncopate.Gradient("w", (0, 3))])


def test_a_closed_synchronizer_says_so_and_its_memory_stays():
    group = syncopate.Group.threads(1)[0]
    averages = syncopate.Synchronizer(group, [syncopate.Gradient("w", 1000)])
    view = numpy.from_dlpack(averages.gradient(0))
    averages.close()
    averages.close()
    group.close()
    assert averages.closed
    view += 1
    assert view.sum() == 1000
    with pytest.raises(syncopate.Misuse, match="was closed"):
        averages.ready(0)


def test_an_update_that_knows_its_synchronizer_is_collected_with_it():
    group = syncopate.Group.threads(1)[0]

    def make():
        averages = syncopate.Synchronizer(group, [syncopate.Gradient("w", 10)], exchange="reduce_broadcast",
                                          weights=[numpy.zeros(10, numpy.float32)], update=lambda *_: averages)
        return weakref.ref(averages)

    made = make()
    gc.collect()
    assert made() is None
