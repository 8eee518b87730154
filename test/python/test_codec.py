"""Codecs in Python: a generator yields rounds, in a synchronizer and in a combiner, with the laws of the library's codecs."""

import gc
import pickle
import sys
import traceback
import weakref
from pathlib import Path

import numpy
import pytest
from conftest import outcomes

import syncopate

sys.path.insert(0, str(Path(__file__).parents[2] / "example" / "python"))
import own_codec

SHAPES = {"weight": (40, 30), "bias": (40,), "table": (70, 50)}


def gradients(dtype="f32"):
    return [syncopate.Gradient(name, shape, dtype) for name, shape in SHAPES.items()]


def steps(averages, rank, count, dtype=numpy.float32):
    """The averages of that many steps of drawn gradients, as bytes."""
    views = [numpy.from_dlpack(averages.gradient(i)) for i in range(len(SHAPES))]
    random = numpy.random.default_rng(rank)
    received = []
    for _ in range(count):
        for i in reversed(range(len(views))):
            views[i][...] = random.standard_normal(views[i].shape).astype(dtype)
            averages.ready(i)
        averages.wait()
        received += [view.tobytes() for view in views]
    return received


def synchronizer(group, codec, **options):
    return syncopate.Synchronizer(group, gradients(options.pop("dtype", "f32")), codec=codec, dense_below=0, **options)


def one_step(group, rounds, value, size=6, **options):
    """The average of `value` by a codec of these rounds."""
    averages = syncopate.Synchronizer(group, [syncopate.Gradient("w", size)], codec=syncopate.Codec("own", rounds, **options), dense_below=0)
    view = numpy.from_dlpack(averages.gradient(0))
    view[:] = value
    averages.ready(0)
    averages.wait()
    return view.copy()


@pytest.mark.parametrize("options", [{}, {"feedback": "none"}, {"policy": "wfbp"}, {"dtype": "f16"},
                                     {"feedback": syncopate.Feedback("momentum", momentum=0.9, nesterov=True, clip_norm=1)}], ids=str)
def test_the_example_has_the_bits_of_the_librarys_topk(on_ranks, options):
    body = compare_with_topk(options)
    first, *others = on_ranks(3, body)
    assert all(other == first for other in others)


@pytest.mark.parametrize("size", [3, 4])
def test_the_example_codes_a_ranks_rows(size):
    """With three ranks on two hosts, one rank has no rows in the rounds."""
    first, *others = outcomes(syncopate.Group.threads(size, ranks_per_host=2, timeout_s=60), compare_with_topk({"exchange": "hierarchical"}))
    assert isinstance(first, list) and all(other == first for other in others)


def compare_with_topk(options):
    """The body of a rank: runs both codecs on the same gradients and returns all averages."""
    def body(group):
        dtype = numpy.float16 if options.get("dtype") == "f16" else numpy.float32
        own, standard = (synchronizer(group, name, catalogue=[own_codec.codec], **options) for name in ("largest:0.1", "topk:0.1"))
        bits = steps(own, group.rank, 6, dtype)
        assert bits == steps(standard, group.rank, 6, dtype)
        assert own.save()[2] == standard.save()[2]  # residuals
        assert [share.sent for share in own.sent_shares()] == [share.sent for share in standard.sent_shares()]
        return bits
    return body


def test_a_combiner_codes_the_callers_arrays_and_restores_the_state(on_ranks):
    def body(group):
        def make(codec):
            return syncopate.Combiner(group, gradients(), codec=codec, dense_below=0)
        drawn = numpy.random.default_rng(group.rank).standard_normal((2, 70, 50), numpy.float32)
        results = []
        for codec in (own_codec.codec, "topk:0.01"):
            one, other, values = make(codec), make(codec), drawn.copy()
            one.combine([(2, values[0])])
            one.end_step()
            other.restore(*one.save())
            other.combine([(2, values[1])])
            results.append(values.tobytes())
        assert results[0] == results[1]
    on_ranks(2, body)


def test_an_additive_round_averages(on_ranks):
    def rounds(tensors, step):
        for tensor in tensors:
            tensor.average[:] = yield syncopate.additive(tensor.values)

    def body(group):
        return one_step(group, rounds, group.rank, combines="additive").tolist()
    assert on_ranks(3, body) == [[1.0] * 6] * 3


def test_a_scatter_round_and_a_gather_round_average(on_ranks):
    def rounds(tensors, step):
        (tensor,) = tensors
        mine = yield syncopate.scatter(numpy.array_split(tensor.values, step.ranks))
        parts = yield syncopate.gather(numpy.mean(mine, axis=0, dtype=numpy.float32))
        tensor.average[:] = numpy.concatenate(parts)

    def body(group):
        return one_step(group, rounds, numpy.arange(7) * (group.rank + 1), 7, combines=["scatter", "gather"]).tolist()
    assert on_ranks(3, body) == [list(range(0, 14, 2))] * 3


def test_bytes_of_any_length_are_gathered(on_ranks):
    def rounds(tensors, step):
        packets = yield syncopate.gather(b"x" * step.rank)
        tensors[0].average[:] = [packet.size for packet in packets]

    def body(group):
        return one_step(group, rounds, 0, 3).tolist()
    assert on_ranks(3, body) == [[0, 1, 2]] * 3


def test_kept_state_counts_only_if_the_step_does(on_ranks):
    def rounds(tensors, step):
        (tensor,) = tensors
        tensor.next[:] = tensor.kept + 1
        packets = yield syncopate.gather(tensor.next)
        tensor.average[:] = packets[0][0]
    codec = syncopate.Codec("counts", rounds, kept=lambda rows, columns, numbers: columns)

    def body(group):
        averages = syncopate.Synchronizer(group, [syncopate.Gradient("w", (2, 3))], codec=codec)
        view, seen = numpy.from_dlpack(averages.gradient(0)), []
        for discards in (False, True, False):
            averages.ready(0)
            averages.wait()
            seen.append(view[0, 0])
            if discards:
                averages.discard_step()
        return seen
    assert on_ranks(2, body) == [[1, 2, 2]] * 2


@pytest.mark.parametrize("sends_first", [True, False])
def test_an_exception_is_raised_in_the_caller_and_ends_the_other_ranks(sends_first):
    def rounds(tensors, step):
        if sends_first:
            yield syncopate.gather(b"")
        if step.rank == 1:
            raise KeyError("no such thing")
        yield syncopate.gather(b"")

    groups = syncopate.Group.threads(2, timeout_s=60)
    other, own = outcomes(groups, lambda group: one_step(group, rounds, 0))
    assert isinstance(own, KeyError) and own.args == ("no such thing",)
    frames = traceback.extract_tb(own.__traceback__)
    assert [frame.name for frame in frames][-1] == "rounds"
    assert isinstance(other, syncopate.RemoteFailure) and "codec own: KeyError: 'no such thing'" in str(other)


def _kept_array(tensors, step, kept=[]):  # noqa: B006 (it outlives the call on purpose)
    kept.append(tensors[0].values)
    yield syncopate.gather(b"")


def _no_generator(tensors, step):
    return []


def _no_round(tensors, step):
    return
    yield


def _no_residual(tensors, step):
    yield syncopate.gather(b"")


def _other_kind(tensors, step):
    yield syncopate.additive(tensors[0].values)


def _no_kind(tensors, step):
    yield b""


def _one_part(tensors, step):
    yield syncopate.scatter([b""] * 5)


def _far_index(tensors, step):
    tensors[0].sent(numpy.uint32([6]))
    yield syncopate.gather(b"")


@pytest.mark.parametrize(("rounds", "words", "options"), [
    (_kept_array, "keep a copy", {}), (_no_generator, "allowed: a generator", {}), (_no_round, "yielded no round", {}),
    (_no_residual, "did not call `sent`", {"feedback": "sound"}), (_other_kind, "add 'additive' to it", {}),
    (_no_kind, "allowed: syncopate.gather", {}), (_one_part, "one part for each rank", {"combines": "scatter"}),
    (_far_index, "allowed: 0 to 5", {"feedback": "sound"})])
def test_a_broken_rule_is_named(rounds, words, options):
    (group,) = syncopate.Group.threads(1)
    with pytest.raises(syncopate.Misuse, match=words):
        one_step(group, rounds, 0, **options)


def test_a_tensor_is_not_used_after_its_step():
    kept = []

    def rounds(tensors, step):
        kept.extend(tensors)
        yield syncopate.gather(b"")
    one_step(syncopate.Group.threads(1)[0], rounds, 0)
    with pytest.raises(syncopate.Misuse, match="has ended"):
        kept[0].values  # noqa: B018 (reading it raises)


def test_names_that_do_not_exist_are_refused():
    for options, words in (
        ({"combines": "merge"}, "gather, additive, scatter"),
        ({"feedback": "maybe"}, "pointless, unsound"),
        ({"combines": []}, "empty"),
    ):
        with pytest.raises(syncopate.Misuse, match=words):
            syncopate.Codec("own", _no_round, **options)
    for name in ("topk", "Own"):
        with pytest.raises(syncopate.Misuse, match="allowed"):
            syncopate.Codec(name, _no_round)


def test_ranks_with_different_codecs_get_a_mismatch():
    codecs = syncopate.Codec("one", _no_residual), syncopate.Codec("other", _no_residual)
    groups = syncopate.Group.threads(2, timeout_s=60)
    results = outcomes(groups, lambda group: steps(synchronizer(group, codecs[group.rank]), group.rank, 1))
    assert all(isinstance(result, syncopate.Error) and "one" in str(result) and "other" in str(result) for result in results)


def test_a_codec_is_pickled_with_its_functions_by_name(on_ranks):
    codec = pickle.loads(pickle.dumps(syncopate.Codec("own", _no_residual, combines=["scatter", "gather"], feedback="sound",
                                                      parameters=[syncopate.Parameter("k", 3, most=9, whole=True)])))
    assert repr(codec) == "Codec('own')"
    (group,) = syncopate.Group.threads(1)
    with pytest.raises(syncopate.Misuse, match="at most 9"):
        syncopate.Combiner(group, gradients(), codec="own:10", catalogue=[codec])


def test_a_synchronizer_in_a_cycle_with_its_codec_is_collected():
    (group,) = syncopate.Group.threads(1)

    def make():
        held = []

        def rounds(tensors, step):
            held.clear()
            yield syncopate.gather(b"")
        held.append(syncopate.Synchronizer(group, gradients(), codec=syncopate.Codec("own", rounds)))
        return weakref.ref(held[0])
    gone = make()
    gc.collect()
    assert gone() is None
