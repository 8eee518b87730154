"""The combiner averages arrays of the caller's, in buckets that change from step to step."""

import functools
import sys
import threading
import time

import conftest
import numpy
import pytest

import syncopate

SHAPES = {"weight": (40, 30), "bias": (40,), "scale": (1,)}


def combiner_of(group, **options):
    return syncopate.Combiner(group, [syncopate.Gradient(name, shape) for name, shape in SHAPES.items()], **options)


def arrays(value):
    return [numpy.full(shape, value, numpy.float32) for shape in SHAPES.values()]


def test_arrays_hold_the_average_in_any_bucket(on_ranks):
    def body(group):
        combiner = combiner_of(group)
        for step, buckets in enumerate(([[0, 1, 2]], [[2, 0], [1]], [[1], [0], [2]])):
            own = arrays(group.rank + step)
            for bucket in buckets:
                combiner.combine([(i, own[i]) for i in bucket])
            combiner.end_step()
            assert all((array == 1 + step).all() for array in own)
    on_ranks(3, body)


def test_started_buckets_end_in_order_with_the_average(on_ranks):
    def body(group):
        combiner, ended, begin_s = combiner_of(group, codec="topk:0.5", dense_below=0), [], time.perf_counter()

        def arrive(own, i):
            own[i] += 1

        for step in range(2):
            own = arrays(group.rank + step)
            for i in (2, 0, 1):
                combiner.start([(i, own[i])], lambda *seen, own=own, i=i: ended.append((i, *seen, own[i].flat[0])),
                               arrive=functools.partial(arrive, own, i), ends_step=i == 1)
            del own  # the combiner keeps it
        combiner.wait()
        end_s = time.perf_counter()
        assert [i for i, *_ in ended] == [2, 0, 1, 2, 0, 1] and combiner.save()[1] == 2
        assert [error for _, error, _, _ in ended] == [None] * 6
        assert [average for i, _, _, average in ended if i == 2] == [2, 3]
        times = [at for _, _, phases, _ in ended for _, *span in phases for at in span]
        assert begin_s <= min(times) and max(times) <= end_s
        assert {name for _, _, phases, _ in ended for name, *_ in phases} == {"encode", "exchange", "decode"}
    on_ranks(3, body)


def test_an_exception_in_a_call_is_the_error_of_what_follows():
    raised = OSError("the copy is lost")

    def fail(*_):
        raise raised

    def errors_of(starts):
        (group,), seen = syncopate.Group.threads(1), []
        combiner = combiner_of(group)
        for i, calls in enumerate(starts(lambda error, _: seen.append(error))):
            combiner.start([(i, arrays(1)[i])], **calls)
        combiner.wait()
        with pytest.raises(syncopate.Misuse):
            combiner.end_step()
        return seen

    assert errors_of(lambda note: [{"ended": note, "arrive": fail}, {"ended": note}]) == [raised, raised]
    assert errors_of(lambda note: [{"ended": fail}, {"ended": note}]) == [raised]


def test_errors_of_the_library_have_their_class():
    (group,), seen = syncopate.Group.threads(1), []
    combiner = combiner_of(group)
    combiner.start([(0, numpy.zeros(7, numpy.float32))], lambda *call: seen.append(call))
    combiner.wait()
    ((error, phases),) = seen
    assert isinstance(error, syncopate.Misuse) and "1200 elements" in str(error) and phases == []


def test_a_call_may_close_its_combiner(on_ranks):
    def body(group):
        combiner, closed = combiner_of(group), threading.Event()

        def close(*_):
            combiner.close()
            closed.set()

        combiner.start([(0, arrays(1)[0])], close)
        assert closed.wait(conftest.BOUND_S)
        with pytest.raises(syncopate.Misuse, match="closed"):
            combiner.wait()
        combiner_of(group).close()
    on_ranks(2, body)


def test_what_was_started_is_let_go():
    (group,) = syncopate.Group.threads(1)
    combiner, values = combiner_of(group), arrays(1)[0]
    before = sys.getrefcount(values)
    combiner.start([(0, values)], lambda *_, kept=values: None, arrive=lambda kept=values: None)
    combiner.wait()
    assert sys.getrefcount(values) == before


def test_a_program_ends_with_the_buckets_that_are_under_way(job):
    """It closes nothing; the other rank needs its part of the bucket later."""
    ranks = job(2, """
        import numpy
        combiner = syncopate.Combiner(join(), [syncopate.Gradient("w", 5)])
        if rank == 1:
            ask()
        combiner.start([(0, numpy.full(5, rank, numpy.float32))], lambda error, _: say(repr(error)))
        say("started")
    """)
    assert ranks[0].hear() == "started"
    ranks[1].tell()
    assert ranks[0].hear() == "None"
    assert {ranks[1].hear() for _ in range(2)} == {"started", "None"}
    assert [rank.end() for rank in ranks] == [(0, "")] * 2


def test_a_forked_child_ends_without_the_threads(job):
    (alone,) = job(1, """
        import numpy
        combiner = syncopate.Combiner(join(), [syncopate.Gradient("w", 5)])
        combiner.start([(0, numpy.ones(5, numpy.float32))], lambda *_: None)
        combiner.wait()
        if os.fork() == 0:
            try:
                combiner.start([], lambda *_: None)
            except syncopate.Misuse as error:
                say(str(error))
        else:
            say(os.wait()[1])
    """)
    assert "forked" in alone.hear()
    assert alone.hear() == 0
    assert alone.end() == (0, "")


def test_what_is_left_out_is_kept_and_saved(on_ranks):
    def body(group):
        feedback = syncopate.Feedback("residual", warmup_density=0.5, warmup_steps=2)
        one, other = (combiner_of(group, codec="topk:0.01", feedback=feedback, dense_below=0) for _ in range(2))
        drawn = numpy.random.default_rng(group.rank).standard_normal(SHAPES["weight"], numpy.float32)
        first = drawn.copy()
        one.combine([(0, first)])
        one.end_step()
        assert numpy.count_nonzero(first) > 0.4 * first.size  # the warm-up's first density
        other.restore(*one.save())
        second, same = numpy.zeros_like(drawn), numpy.zeros_like(drawn)
        one.combine([(0, second)])
        other.combine([(0, same)])
        assert numpy.array_equal(second, same) and second.any()
    on_ranks(2, body)


def test_what_does_not_fit_is_refused():
    for values, words in ((numpy.zeros(7, numpy.float32), "1200 elements"), (numpy.zeros(1200), "type f32"),
                          (numpy.zeros((60, 40), numpy.float32)[::2], "contiguous")):
        combiner = combiner_of(syncopate.Group.threads(1)[0])
        with pytest.raises(syncopate.Misuse, match=words):
            combiner.combine([(0, values)])
    group = syncopate.Group.threads(1)[0]
    with pytest.raises(syncopate.Misuse, match="allowed"):
        combiner_of(group, exchange="reduce_broadcast")
    with pytest.raises(syncopate.Misuse, match="allowed"):
        combiner_of(group, feedback="hope")


def test_settings_are_those_of_the_combiner():
    settings = syncopate.coding_settings()
    assert settings["dense_below"]["default"] == "4096" and settings["feedback.kind"]["allowed"] == "auto, none, residual, momentum"
    (alone,) = syncopate.Group.threads(1)
    for name in {name.split(".")[0] for name in settings} - {"codec", "feedback"}:  # each is a keyword
        syncopate.Combiner(alone, [syncopate.Gradient("a", (4,))], **{name: int(settings[name]["default"])}).close()
    alone.close()
