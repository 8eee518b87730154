"""Ctrl-C ends every wait with KeyboardInterrupt, and the other ranks learn it."""

import pytest

# For each case: the calls of all ranks before, then rank 0's call and its wait, which only rank 1 could end. Rank 1 waits for
# rank 2, which is silent, and does not consume the data that rank 0 sent for its wait.
SYNCHRONIZER = "averages = syncopate.Synchronizer(group, [syncopate.Gradient('w', 3)])"
WAITS = {
    "collective": ("pass", "pass", "group.allreduce(data)"),
    "message": ("pass", "pass", "group.recv(1, data)"),
    "work": ("pass", "work = group.start('allreduce', data)", "work.wait()"),
    "bounded work": ("pass", "work = group.start('allreduce', data)", "work.wait_for(60)"),
    "collective behind a started one": ("pass", "group.start('barrier')", "group.allreduce(data)"),
    "combiner": ("combiner = syncopate.Combiner(group, [syncopate.Gradient('w', 3, 'f64')])",
                 "combiner.start([(0, data)], lambda *_: None)", "combiner.wait()"),
    "synchronizer": (SYNCHRONIZER, "averages.ready(0)", "averages.wait()"),
}
# The second thread gets the GIL when the first lets go of it, and that is in its wait.
PRELUDE = """
import numpy, threading
sys.setswitchinterval(1000)
may_say, data = threading.Lock(), numpy.ones(3)
may_say.acquire()
threading.Thread(target=lambda: (may_say.acquire(), say("waiting"))).start()
"""
PROGRAM = PRELUDE + """
group = join(timeout_s=60)
{before}
group.barrier()
try:
    if rank == 0:
        {begin}
        may_say.release(); {wait}
    else:
        may_say.release()
        ask()
        group.recv(2, data)
except KeyboardInterrupt:
    say("interrupted")
except syncopate.Error as error:
    say([type(error).__name__, str(error)])
"""


@pytest.mark.parametrize("wait", WAITS)
def test_an_interrupt_ends_a_wait_and_the_others_learn_it(job, wait):
    before, begin, call = WAITS[wait]
    ranks = job(3, PROGRAM.format(before=before, begin=begin, wait=call))
    assert [rank.hear() for rank in ranks] == ["waiting"] * 3
    ranks[0].interrupt()
    assert ranks[0].hear() == "interrupted"
    ranks[1].tell()
    kind, text = ranks[1].hear()
    assert (kind, "interrupted" in text) == ("RemoteFailure", True), text


def test_an_interrupt_ends_joining(job):
    ranks = job(2, PRELUDE + "try:\n    may_say.release(); join()\nexcept KeyboardInterrupt:\n    say('interrupted')", started=1)
    assert ranks[0].hear() == "waiting"
    ranks[0].interrupt()
    assert ranks[0].hear() == "interrupted"
    assert ranks[0].end() == (0, "")


def test_a_handler_that_does_not_raise_lets_the_wait_go_on(job):
    ranks = job(2, PRELUDE + """
import signal
signal.signal(signal.SIGINT, lambda *_: say("handled"))
group = join(timeout_s=60)
group.barrier()
if rank == 1:
    ask()
may_say.release(); group.allreduce(data)
say(data.sum())
""")
    assert ranks[0].hear() == "waiting"
    ranks[0].interrupt()
    assert ranks[0].hear() == "handled"
    ranks[1].tell()
    assert ranks[0].hear() == 6
    assert {ranks[1].hear() for _ in range(2)} == {"waiting", 6}
