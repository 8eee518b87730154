"""Operations that were started: waited for, awaited, with callbacks; they keep what they need."""

import asyncio
import gc
import threading
import weakref

import numpy
import pytest

import syncopate


@pytest.fixture
def pair():
    """Two ranks in one thread: what the first starts ends when the second's part is started."""
    groups = syncopate.Group.threads(2, timeout_s=60)
    yield groups
    for group in groups:
        group.abort("the test is over")
        group.close()


def test_work_is_waited_for_within_a_bound(pair):
    data = numpy.ones(3)
    work = pair[0].start("allreduce", data)
    assert not work.ready()
    assert not work.wait_for(0.001)
    pair[1].start("allreduce", numpy.ones(3)).wait()
    assert work.wait_for(60) and work.ready()
    assert (data == 2).all()


def test_work_that_failed_raises_and_tells_its_callback(pair):
    told, called = [], threading.Event()
    work = pair[0].start("allreduce", numpy.ones(3), name="gradient")
    work.then(lambda error: (told.append(error), called.set()))
    pair[1].abort("enough")
    with pytest.raises(syncopate.RemoteFailure, match="enough") as raised:
        work.wait()
    assert called.wait(60)
    assert isinstance(told[0], syncopate.RemoteFailure)
    assert raised.value.tensor == "gradient" and raised.value.peer == 1 and raised.value.rank == 0


def test_a_callback_is_called_when_the_result_is_there(pair):
    data, told, called = numpy.ones(3), [], threading.Event()
    pair[0].start("allreduce", data).then(lambda error: (told.append((error, data[0])), called.set()))
    pair[1].start("allreduce", numpy.ones(3)).wait()
    assert called.wait(60)
    assert told == [(None, 2)]


def test_a_callback_may_start_the_next_operation(pair):
    first, second, called = numpy.ones(3), numpy.ones(3), threading.Event()

    def go_on(_):
        pair[0].start("allreduce", second).then(lambda _: called.set())

    pair[0].start("allreduce", first).then(go_on)
    for _ in range(2):
        pair[1].start("allreduce", numpy.ones(3)).wait()
    assert called.wait(60)
    assert (second == 2).all()


def test_what_a_callback_raises_aborts_the_group(pair):
    def fail(_):
        raise ValueError("no use")

    pair[0].start("allreduce", numpy.ones(3)).then(fail)
    with pytest.raises(syncopate.RemoteFailure, match="no use"):
        for _ in range(2):  # the first one may have ended before
            pair[1].start("allreduce", numpy.ones(3)).wait()


def test_work_is_awaited(pair):
    async def rank(group):
        data = numpy.full(3, group.rank + 1.0)
        await group.start("allreduce", data)
        await group.start("broadcast", data)
        return data[0]

    async def both():
        return await asyncio.gather(*map(rank, pair))

    assert asyncio.run(both()) == [3, 3]


def test_awaited_work_that_failed_raises(pair):
    async def wait():
        work = pair[0].start("allreduce", numpy.ones(3))
        pair[1].abort("enough")
        await work

    with pytest.raises(syncopate.RemoteFailure, match="enough"):
        asyncio.run(wait())


def test_awaiting_begins_no_thread_for_each_call(pair):
    async def many():
        works = [pair[0].start("allreduce", numpy.ones(3)) for _ in range(50)]
        waiting = [asyncio.ensure_future(await_one(work)) for work in works]
        await asyncio.sleep(0)
        count = threading.active_count()
        for _ in works:
            pair[1].start("allreduce", numpy.ones(3))
        await asyncio.gather(*waiting)
        return count

    async def await_one(work):
        await work

    assert asyncio.run(many()) == threading.active_count()


def test_an_operation_keeps_its_array_though_nobody_else_does(pair):
    class Kept(numpy.ndarray):
        pass

    data = numpy.ones(3).view(Kept)
    seen = weakref.ref(data)
    pair[0].start("allreduce", data)
    del data
    gc.collect()
    assert seen() is not None, "the operation is still writing there"
    pair[1].start("allreduce", numpy.ones(3)).wait()
    pair[0].start("barrier")
    pair[1].start("barrier").wait()
    gc.collect()
    assert seen() is None


def test_a_group_may_be_dropped_by_its_own_callback():
    groups = syncopate.Group.threads(2, timeout_s=60)
    called = threading.Event()

    def last_user(_, holder=[groups[0]]):  # noqa: B006 (it is what keeps the group)
        called.set()

    work = groups[0].start("allreduce", numpy.ones(3))
    work.then(last_user)
    other = groups[1]
    del groups, last_user
    other.start("allreduce", numpy.ones(3)).wait()
    assert called.wait(60)
    other.close()


def test_waiting_leaves_the_interpreter_to_others(pair):
    came = threading.Event()

    def join_in():  # runs only while the first rank waits without the GIL
        pair[1].allreduce(numpy.ones(3))
        came.set()

    threading.Thread(target=join_in).start()
    pair[0].allreduce(numpy.ones(3))
    assert came.wait(60)
