"""The world fails by name: one exception class for each kind, on every rank, with who and what."""

import pickle
import tempfile

import numpy
import pytest
from conftest import BOUND_S, on_threads

import syncopate
from syncopate import ending
from syncopate.command import exception_of

KINDS = ["Misuse", "PeerLost", "Timeout", "Mismatch", "RemoteFailure", "Corrupt", "Unauthorized", "NotFinite", "SystemFailure"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_class_of_its_own(kind):
    raised = exception_of({"error": "text", "kind": kind, "rank": 1, "operation": "allreduce"})
    assert type(raised) is getattr(syncopate, kind) and isinstance(raised, syncopate.Error)
    assert (raised.rank, raised.peer, raised.operation, raised.tensor, str(raised)) == (1, None, "allreduce", None, "text")
    copied = pickle.loads(pickle.dumps(raised))
    assert type(copied) is type(raised) and copied.rank == 1


def test_there_are_no_kinds_beside_these():
    classes = {name for name, value in vars(syncopate).items() if isinstance(value, type) and issubclass(value, syncopate.Error)}
    assert classes == {*KINDS, "Error"}


def test_a_mismatch_names_both_sides():
    from conftest import outcomes
    groups = syncopate.Group.threads(2, timeout_s=60)
    results = outcomes(groups, lambda group: group.allreduce(numpy.ones(3 + group.rank), name="weights"))
    for result in results:
        assert isinstance(result, syncopate.Mismatch)
        assert "x 3" in str(result) and "x 4" in str(result)
        assert result.tensor == "weights"


SURVIVE = """
import numpy
group = join(timeout_s=60)
data = numpy.ones(1000)
group.allreduce(data)
say("joined")
try:
    while True:
        group.allreduce(data, name="gradient")
except syncopate.Error as error:
    say([type(error).__name__, error.rank, error.peer, error.tensor])
"""


def test_a_killed_rank_is_named_by_all_others(job):
    ranks = job(3, SURVIVE)
    for rank in ranks:
        assert rank.hear() == "joined"
    ranks[1].kill()
    assert ranks[0].hear() == ["PeerLost", 0, 1, "gradient"]
    assert ranks[2].hear() == ["PeerLost", 2, 1, "gradient"]
    assert ranks[0].end()[0] == 0


def test_groups_that_are_closed_together_do_not_wait_for_each_other():
    """Rank 0 waits in its first group for rank 1, which waits in the second one."""
    first, second = (syncopate.Group.threads(2, timeout_s=BOUND_S) for _ in range(2))
    started = first[0].start("allreduce", numpy.ones(3))

    def end(rank):
        if rank == 0:
            return ending.close_together([first[0], second[0]])
        with pytest.raises(syncopate.PeerLost, match="rank 0 left the group"):
            second[1].allreduce(numpy.ones(3))
        return first[1].close()

    assert on_threads(2, end) == [None, None]
    with pytest.raises(syncopate.PeerLost, match="rank 1 left the group"):
        started.wait()


def test_a_group_is_joined_again_after_a_loss(job):
    program = SURVIVE + """
    place = ask()
    with syncopate.Group.join(rank=place["rank"], size=2, rendezvous=place["meeting"]) as again:
        again.allreduce(data)
        say(again.size)
    """.replace("\n    ", "\n")
    ranks = job(3, program)
    for rank in ranks:
        rank.hear()
    ranks[2].kill()
    with tempfile.TemporaryDirectory() as folder:
        for number, rank in enumerate(ranks[:2]):
            assert rank.hear()[0] == "PeerLost"
            rank.tell({"rank": number, "meeting": f"file://{folder}"})
        assert [rank.hear() for rank in ranks[:2]] == [2, 2]


FAIL = """
import numpy
group = join(timeout_s=60)
group.allreduce(numpy.ones(3))
say("joined")
ask()
if rank == 1:
    raise ValueError("a bug of rank 1")
try:
    group.allreduce(numpy.ones(3))
except syncopate.RemoteFailure as error:
    say([str(error), error.peer])
"""


@pytest.mark.parametrize("in_block", [False, True])
def test_an_exception_that_ends_a_program_is_told_to_the_others(job, in_block):
    program = FAIL if not in_block else FAIL.replace("if rank == 1:\n    raise", "if rank == 1:\n    with group:\n        raise")
    ranks = job(2, program)
    assert [rank.hear() for rank in ranks] == ["joined", "joined"]
    for rank in ranks:
        rank.tell()
    text, peer = ranks[0].hear()
    assert "a bug of rank 1" in text and peer == 1
    code, errors = ranks[1].end()
    assert code == 1 and "ValueError: a bug of rank 1" in errors


def test_a_program_that_ends_in_order_leaves_its_group(job):
    ranks = job(2, "import numpy\ngroup = join()\ngroup.start('allreduce', numpy.ones(3))\nsay(group.rank)")
    for number, rank in enumerate(ranks):
        assert rank.hear() == number
        assert rank.end() == (0, "")


def test_a_closed_group_says_so():
    group = syncopate.Group.threads(1)[0]
    group.close()
    group.close()
    assert group.closed
    with pytest.raises(syncopate.Misuse, match="was closed"):
        group.allreduce(numpy.ones(1))


def test_joining_names_the_ranks_that_are_missing(job):
    program = """
    try:
        join(join_timeout_s=0.5)
    except syncopate.Timeout as error:
        say(str(error))
    """
    assert "rank 1" in job(2, program, started=1)[0].hear()


def test_a_bound_that_is_none_is_refused():
    with pytest.raises(syncopate.Misuse, match="timeout_s is out of range"):
        syncopate.Group.join(timeout_s=0)
    with pytest.raises(syncopate.Misuse, match="rank"):
        syncopate.Group.join(rank=3)
