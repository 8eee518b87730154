"""The combiner averages arrays of the caller's, in buckets that change from step to step."""

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
