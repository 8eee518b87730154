"""Every collective, against NumPy; parts are those of numpy.array_split."""

import numpy
import pytest

import syncopate

SIZES = [1, 2, 3, 4]


def vector(rank, count=13):
    return numpy.arange(count, dtype=numpy.int64) * (rank + 1) + rank


def every(size, count=13):
    return [vector(rank, count) for rank in range(size)]


def parts(data, size):
    return numpy.array_split(data, size)


REDUCTIONS = {
    "sum": lambda all_: numpy.sum(all_, 0),
    "min": lambda all_: numpy.min(all_, 0),
    "max": lambda all_: numpy.max(all_, 0),
    "product": lambda all_: numpy.prod(all_, 0),
    "average": lambda all_: numpy.sum(all_, 0) // len(all_),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_of_every_operation(on_ranks, size, op):
    expected = REDUCTIONS[op](every(size))

    def body(group):
        everywhere, at_root, scattered = (vector(group.rank) for _ in range(3))
        group.allreduce(everywhere, op=op)
        group.reduce(at_root, size - 1, op)
        part = group.reduce_scatter(scattered, op)
        return everywhere, at_root, scattered[part]

    results = on_ranks(size, body)
    for rank, (everywhere, _, part) in enumerate(results):
        numpy.testing.assert_array_equal(everywhere, expected)
        numpy.testing.assert_array_equal(part, parts(expected, size)[rank])
    numpy.testing.assert_array_equal(results[size - 1][1], expected)


@pytest.mark.parametrize("size", SIZES)
def test_what_is_moved_from_and_to_a_root(on_ranks, size):
    root = size // 2

    def body(group):
        sent, gathered, scattered = (vector(group.rank) for _ in range(3))
        group.broadcast(sent, root)
        group.gather(gathered, root)
        part = group.scatter(scattered, root)
        return sent, gathered, scattered[part]

    results = on_ranks(size, body)
    for rank, (sent, _, part) in enumerate(results):
        numpy.testing.assert_array_equal(sent, vector(root))
        numpy.testing.assert_array_equal(part, parts(vector(root), size)[rank])
    own = numpy.concatenate([parts(vector(rank), size)[rank] for rank in range(size)])
    numpy.testing.assert_array_equal(results[root][1], own)


@pytest.mark.parametrize("size", SIZES)
def test_what_everybody_gathers(on_ranks, size):
    lengths = [2 * rank + 1 for rank in range(size)]
    begins = numpy.cumsum([0, *lengths])

    def body(group):
        even = vector(group.rank)
        group.allgather(even)
        uneven = numpy.zeros(sum(lengths))
        uneven[begins[group.rank]:begins[group.rank + 1]] = group.rank + 1
        group.allgather_v(uneven, lengths)
        return even, uneven

    for even, uneven in on_ranks(size, body):
        numpy.testing.assert_array_equal(even, numpy.concatenate([parts(vector(r), size)[r] for r in range(size)]))
        numpy.testing.assert_array_equal(uneven, numpy.repeat(numpy.arange(size) + 1.0, lengths))


@pytest.mark.parametrize("size", SIZES)
def test_what_everybody_sends_to_everybody(on_ranks, size):
    def body(group):
        rank = group.rank
        data, out = vector(rank, 3 * size), numpy.zeros(3 * size, numpy.int64)
        group.alltoall(data, out)
        lengths = [rank + other for other in range(size)]
        uneven = numpy.repeat(numpy.arange(size), lengths) * 10 + rank
        received = numpy.zeros_like(uneven)
        group.alltoall_v(uneven, lengths, received, lengths)
        return out, received

    for rank, (out, received) in enumerate(on_ranks(size, body)):
        numpy.testing.assert_array_equal(out, numpy.concatenate([parts(vector(r, 3 * size), size)[rank] for r in range(size)]))
        numpy.testing.assert_array_equal(received, numpy.repeat(numpy.arange(size), [rank + r for r in range(size)]) + 10 * rank)


def test_messages_arrive_in_order(on_ranks):
    def body(group):
        data = numpy.zeros(2)
        if group.rank == 0:
            for value in (1, 2):
                group.send(1, numpy.full(2, float(value)))
            group.recv(1, data)
        else:
            first, second = numpy.zeros(2), numpy.zeros(2)
            group.recv(0, first)
            group.recv(0, second)
            data = first * 10 + second
            group.send(0, data)
        return data[0]
    assert on_ranks(2, body) == [12, 12]


def test_started_messages_cross(on_ranks):
    def body(group):
        mine, yours = numpy.full(1000, float(group.rank)), numpy.zeros(1000)
        works = [group.start_send(1 - group.rank, mine), group.start_recv(1 - group.rank, yours)]
        for work in works:
            work.wait()
        return yours[0]
    assert on_ranks(2, body) == [1, 0]


def test_every_collective_can_be_started(on_ranks):
    def body(group):
        data, out = numpy.ones(4), numpy.zeros(4)
        for name in ("allreduce", "reduce_scatter", "allgather", "broadcast", "reduce", "gather", "scatter"):
            group.start(name, data).wait()
        group.start("allgather_v", data, parts=[1, 3]).wait()
        group.start("alltoall", data, out=out).wait()
        group.start("alltoall_v", data, parts=[2, 2], out=out, out_parts=[2, 2]).wait()
        group.start("barrier").wait()
        return True
    assert on_ranks(2, body) == [True, True]
    with pytest.raises(syncopate.Misuse, match="allowed: allreduce"):
        syncopate.Group.threads(1)[0].start("reduce_all", numpy.ones(1))


def test_groups_split_by_colour(on_ranks):
    def body(group):
        half = group.split(group.rank % 2, group.rank)
        data = numpy.ones(1) * group.rank
        half.allreduce(data)
        nobody = group.split(-1 if group.rank else 0, 0)
        return half.size, data[0], nobody is None
    assert on_ranks(4, body) == [(2, 2, False), (2, 4, True), (2, 2, True), (2, 4, True)]


def test_scopes_run_within_hosts():
    groups = syncopate.Group.threads(4, ranks_per_host=2)
    from conftest import outcomes

    def body(group):
        data = numpy.array([10.0 ** group.rank])
        group.allreduce(data, scope="host")
        return group.scope_ranks("host"), data[0]
    assert outcomes(groups, body) == [([0, 1], 11), ([0, 1], 11), ([2, 3], 1100), ([2, 3], 1100)]


def test_names_that_do_not_exist_are_refused():
    group = syncopate.Group.threads(1)[0]
    for keywords in ({"op": "quotient"}, {"algorithm": "rings"}, {"scope": "everybody"}):
        with pytest.raises(syncopate.Misuse, match="allowed"):
            group.allreduce(numpy.ones(1), **keywords)
