"""SharedWork divides a function of tensors among ranks, all of which get the rows of one that computes all."""

import numpy
import pytest
from conftest import outcomes

import syncopate

SIZES = [900, 3, 512, 77, 4000, 1]


def tensors():
    return [numpy.random.default_rng(i).standard_normal(size) for i, size in enumerate(SIZES)]


def statistics(values):
    return values.mean(), values.std(), abs(values).max()


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_every_rank_gets_the_bits_of_one_that_computes_all(on_ranks, ranks):
    def body(group):
        work, own = syncopate.SharedWork(group, SIZES, 3), []

        def function(tensor):
            own.append(tensor)
            return statistics(tensors()[tensor])

        rows = numpy.from_dlpack(work.run(function))
        assert own == work.tensors(group.rank)
        return rows, own

    results = on_ranks(ranks, body)
    alone = numpy.array([statistics(values) for values in tensors()])
    for rows, _ in results:
        assert rows.dtype == numpy.float64 and numpy.array_equal(rows, alone)
    assert sorted(tensor for _, own in results for tensor in own) == list(range(len(SIZES)))


@pytest.mark.parametrize("form", [float, int, numpy.float32, numpy.array, lambda value: [value], lambda value: numpy.array([value])])
def test_one_result_may_be_a_number_or_have_a_length_of_one(on_ranks, form):
    for rows in on_ranks(2, lambda group: numpy.from_dlpack(syncopate.SharedWork(group, SIZES).run(form))):
        assert rows.tolist() == [[i] for i in range(len(SIZES))]


def test_an_exception_on_one_rank_is_raised_there_and_ends_the_others():
    groups = syncopate.Group.threads(3, timeout_s=60)

    def body(group):
        return syncopate.SharedWork(group, [3, 2, 1], name="inverses").run(lambda tensor: 1 / (tensor - 1))

    results = outcomes(groups, body)
    assert isinstance(results[1], ZeroDivisionError)
    for rank in (0, 2):
        assert isinstance(results[rank], syncopate.RemoteFailure) and results[rank].peer == 1
        assert "inverses failed on tensor 1: the function: ZeroDivisionError: division by zero" in str(results[rank])


@pytest.mark.parametrize("wrong", [(1.0,), (1.0, 2.0, 3.0), 1.0, []])
def test_a_wrong_number_of_results_is_a_misuse(wrong):
    group, = syncopate.Group.threads(1)
    with pytest.raises(syncopate.Misuse, match=r"for tensor 0; allowed: 2"):
        syncopate.SharedWork(group, [1], 2).run(lambda _: wrong)


def test_different_work_is_a_mismatch_that_names_it_and_the_group_goes_on():
    groups = syncopate.Group.threads(2, timeout_s=60)
    for result in outcomes(groups, lambda group: syncopate.SharedWork(group, [4, 5 + group.rank])):
        assert isinstance(result, syncopate.Mismatch), result
    for rows in outcomes(groups, lambda group: numpy.from_dlpack(syncopate.SharedWork(group, [4, 5]).run(float))):
        assert rows.tolist() == [[0], [1]]


def test_a_closed_group_is_named():
    group, = syncopate.Group.threads(1)
    work = syncopate.SharedWork(group, [1])
    group.close()
    with pytest.raises(syncopate.Misuse, match="was closed"):
        work.run(float)


def test_no_tensors_are_no_rows(on_ranks):
    for rows in on_ranks(2, lambda group: numpy.from_dlpack(syncopate.SharedWork(group, [], 4).run(float))):
        assert rows.shape == (0, 4)
