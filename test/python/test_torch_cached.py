"""CachedDataset: each sample once per epoch, from the source in the first one only; positions, errors and interrupts."""

import collections
import copy
import io
import os
import queue
import tarfile
import threading
import time
from pathlib import Path

import pytest
import torch
from conftest import BOUND_S, outcomes

import syncopate
from syncopate.torch import CachedDataset, PictureDecoder, ThrottledSource
from syncopate.torch.data.sources import FolderSource, TarSource
from syncopate.torch.shared import rendezvous
from syncopate.torch.shared.threads import Threads


class Source:
    """Record i consists of i + 1 bytes of value i; counts its reads. `broken`: records whose read raises KeyError."""

    def __init__(self, records, broken=()):
        self.reads, self.broken, self.lock = collections.Counter(), set(broken), threading.Lock()
        self.records = records

    def __len__(self):
        return self.records

    def size(self, index):
        return index + 1

    def read(self, index):
        with self.lock:
            self.reads[index] += 1
        if index in self.broken:
            raise KeyError("broken")
        return bytes([index]) * (index + 1)

    def version(self):
        return "1"


class Sizeless:
    """The same records, whose sizes are not known."""

    def __init__(self, records):
        self.source = Source(records)
        self.read = self.source.read

    def __len__(self):
        return len(self.source)


def first_byte(record):
    assert record == bytes([record[0]]) * (record[0] + 1)
    return record[0]


def alone(source, **options):
    """A data set of one rank."""
    (group,) = syncopate.Group.threads(1)
    return CachedDataset(source, options.pop("decode", first_byte), batch_size=options.pop("batch_size", 4), group=group, **options)


def files(folder):
    """A folder with two classes of files, and a tar file of it."""
    for name, content in {"cat/1": b"111", "cat/.hidden": b"x", "ant/2": b"2", "ant/0": b"00", "ant/deep/3": b""}.items():
        path = folder / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with tarfile.open(folder / "set.tar", "w") as archive:
        archive.add(folder / "set", arcname=".")
    return folder / "set", folder / "set.tar"


def written(path, content=None):
    """A file with this content; by default its path below `set`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(str(path).rpartition("/set/")[2].encode() if content is None else content)


def archive_of(path, *members):
    """A tar file of members (name, content, its other fields)."""
    with tarfile.open(path, "w") as archive:
        for name, content, fields in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for field, value in fields.items():
                setattr(member, field, value)
            archive.addfile(member, io.BytesIO(content))
    return path


def ended(call):
    """The result or exception of `call()`, or None if it does not end."""
    results = queue.SimpleQueue()

    def run():
        try:
            results.put(call())
        except BaseException as error:  # noqa: BLE001 (the test looks at it)
            results.put(error)
    threading.Thread(target=run, daemon=True).start()
    try:
        return results.get(timeout=60)
    except queue.Empty:
        return None


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_an_epoch_has_each_sample_once_and_only_the_first_one_reads_the_source(on_ranks, ranks):
    source = Source(60)

    def body(group):
        with CachedDataset(source, first_byte, batch_size=4, memory_bytes=4000, group=group) as data:
            epochs = [[batch.tolist() for batch in data] for _ in range(3)]
            assert [len(epoch) for epoch in epochs] == [len(data)] * 3
            return [sum(epoch, []) for epoch in epochs], data.counters()[:3]
    results = on_ranks(ranks, body)
    for epoch in range(3):
        assert sorted(sum((taken[epoch] for taken, _ in results), [])) == list(range(60))
    assert results[0][0][0] != results[0][0][1], "the order is another one"
    assert set(source.reads.values()) == {1} and len(source.reads) == 60
    rows = [row for _, counters in results for row in counters[1:]]
    assert sum(row.memory.records + row.peers.records for row in rows) == 120 and sum(row.origin.records for row in rows) == 0
    assert (sum(row.peers.records for row in rows) > 0) == (ranks > 1)


def test_counters_are_readable():
    with alone(Source(3), memory_bytes=100) as data:
        list(data)
        row = data.counters()[0]
    assert repr(row.disk) == "CacheTally(records=0, bytes=0, seconds=0)"
    assert repr(row) == f"CacheCounters(epoch=0, memory={row.memory}, disk={row.disk}, peers={row.peers}, origin={row.origin}, decoded=0, damaged=0)"


def test_without_a_cache_every_epoch_reads_the_source():
    with alone(source := Source(10)) as data:
        for _ in range(2):
            list(data)
    assert min(source.reads.values()) >= 2


def test_a_folder_and_its_tar_file_have_the_same_records_and_labels(tmp_path):
    for path in files(tmp_path):
        with alone(path, decode=bytes, batch_size=10) as data:
            (records, labels), = data
            assert sorted(zip(labels.tolist(), records, strict=True)) == [(0, b""), (0, b"00"), (0, b"2"), (1, b"111")]
            assert data.source.classes == ["ant", "cat"]


def test_files_without_a_class_have_no_labels(tmp_path):
    (tmp_path / "1").write_bytes(b"1")
    with alone(tmp_path, decode=bytes) as data:
        assert list(data) == [[b"1"]]


def test_labels_that_a_user_does_not_expect_are_warned_of(tmp_path):
    for name in ("set/images/0.jpg", "set/images/1.jpg"):
        written(tmp_path / name)
    with pytest.warns(UserWarning, match="all 2 records of .* are in one class, 'images', such as images/0.jpg"):
        assert FolderSource(tmp_path / "set").labels == [0, 0]
    written(tmp_path / "set/read.me")
    with pytest.warns(UserWarning, match="read.me in .* is in no folder and others are, so the records have no labels"):
        assert FolderSource(tmp_path / "set").labels is None


def test_metadata_and_folders_within_a_class_change_neither_records_nor_labels(tmp_path):
    """The layout of Tiny ImageNet after a copy by macOS; test/input/layouts.cpp has the other layouts."""
    names = ["n1/images/0.JPEG", "n2/images/0.JPEG", "n3/images/0.JPEG"]
    for name in (*names, "n1/images/._0.JPEG", "__MACOSX/n1/0.JPEG", "n2/.ipynb_checkpoints/0.JPEG", "n1/n1_boxes.txt", "Thumbs.db"):
        written(tmp_path / "set" / name)
    with tarfile.open(tmp_path / "set.tar", "w") as archive:
        archive.add(tmp_path / "set", arcname="around/all")
    for path in (tmp_path / "set", tmp_path / "set.tar"):
        data = alone(path, decode=PictureDecoder(8), batch_size=1)
        source = data.source
        assert (len(source), source.classes, source.labels) == (3, ["n1", "n2", "n3"], [0, 1, 2])
        assert [source.read(i) for i in range(3)] == [name.encode() for name in names]
        data.close()


def test_extensions_choose_the_records_of_a_path(tmp_path):
    for name in ("a/0.PNG", "a/1.txt", "b/2.png"):
        written(tmp_path / name)
    for decode, extensions, names in ((bytes, None, ["0.PNG", "1.txt", "2.png"]), (bytes, [".png"], ["0.PNG", "2.png"]),
                                      (PictureDecoder(8), (), ["0.PNG", "1.txt", "2.png"])):
        data = alone(tmp_path, decode=decode, batch_size=1, extensions=extensions)
        assert [data.source.name(i).rpartition("/")[2] for i in range(len(data.source))] == names
        data.close()
    for source, extensions, text in ((tmp_path, ".png", "sequence of endings"), (tmp_path, ["png"], "begin with a dot"),
                                     (tmp_path, [".gif"], "no records; allowed: at least one file that ends in .gif"),
                                     (Source(3), [".png"], "for the path of a folder")):
        with pytest.raises(syncopate.Misuse, match=text):
            alone(source, extensions=extensions)


def test_a_name_that_is_not_utf_8_is_a_name(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"\xff", b"\xfe.bin")
    written(Path(os.fsdecode(path)), b"1")
    with pytest.warns(UserWarning, match="one class"):
        source = FolderSource(tmp_path)
    assert os.fsencode(source.name(0)) == path and source.read(0) == b"1" and os.fsencode(source.classes[0]) == b"\xff"


def test_sizes_that_are_not_known_are_read_once_by_all_ranks_together(on_ranks):
    source = Sizeless(20)

    def body(group):
        with CachedDataset(source, first_byte, batch_size=2, memory_bytes=400, group=group) as data:
            return [sum((batch.tolist() for batch in data), []) for _ in range(2)]
    results = on_ranks(2, body)
    assert sorted(results[0][1] + results[1][1]) == list(range(20))
    assert set(source.source.reads.values()) == {2}, "one read for the size, one for the cache"


@pytest.mark.parametrize(("drop_last", "steps"), [(False, 6), (True, 5)])
def test_the_last_step_gives_every_rank_a_sample_or_is_left_out(on_ranks, drop_last, steps):
    def body(group):
        with CachedDataset(Source(43), first_byte, batch_size=4, drop_last=drop_last, group=group) as data:
            assert len(data) == steps
            return [len(batch) for batch in data], data.epoch
    first, second = on_ranks(2, body)
    assert first == ([4] * 5 + [2] * (steps - 5), 1) and second == ([4] * 5 + [1] * (steps - 5), 1)


def test_a_state_continues_the_epoch_with_another_number_of_ranks(on_ranks):
    def first(group):
        with CachedDataset(Source(40), first_byte, batch_size=3, seed=5, group=group) as data:
            batches = iter(data)
            return next(batches).tolist() + next(batches).tolist(), data.state_dict()

    def rest(group):
        with CachedDataset(Source(40), first_byte, batch_size=2, seed=5, group=group) as data:
            data.load_state_dict(state)
            return sum((batch.tolist() for batch in data), []), data.state_dict()
    before = on_ranks(2, first)
    state = before[0][1]
    after = on_ranks(3, rest)
    assert state["sample"] == 12
    assert sorted(sum((taken for taken, _ in before + after), [])) == list(range(40))
    assert after[0][1] == {"epoch": 1, "sample": 0, "seed": 5, "records": 40}


def test_a_state_near_the_end_of_an_epoch_continues_with_the_next_one_if_too_few_samples_are_left(on_ranks):
    def body(group):
        with CachedDataset(Source(10), first_byte, batch_size=2, drop_last=True, group=group) as data:
            data.load_state_dict({"epoch": 0, "sample": 8, "seed": 0, "records": 10})
            return len(next(iter(data))), data.state_dict()
    assert on_ranks(2, body) == [(2, {"epoch": 1, "sample": 4, "seed": 0, "records": 10})] * 2


def test_a_state_of_another_order_is_refused():
    with alone(Source(10), seed=1) as data:
        for epoch, sample in ((0, -1), (-1, 0), (0, 10)):
            with pytest.raises(syncopate.Misuse, match=f"epoch {epoch}, sample {sample}; allowed: at least 0, and samples below 10"):
                data.load_state_dict({"epoch": epoch, "sample": sample, "seed": 1, "records": 10})
        with pytest.raises(syncopate.Misuse, match="seed 2, not 1"):
            data.load_state_dict({"epoch": 0, "sample": 0, "seed": 2, "records": 10})
        next(iter(data))
        with pytest.raises(syncopate.Misuse, match="before the first"):
            data.load_state_dict(data.state_dict())


def test_leaving_an_epoch_early_loses_no_sample():
    with alone(Source(20)) as data:
        taken = next(iter(data)).tolist()
        taken += sum((batch.tolist() for batch in data), [])
    assert sorted(taken) == list(range(20))


def taken_of(data, steps):
    """The samples of that many steps, and the exceptions of those that raise."""
    taken, errors = [], []
    for _ in range(steps):
        try:
            taken += next(iter(data)).tolist()
        except KeyError as error:
            errors.append(error)
    return taken, errors


@pytest.mark.parametrize("place", ["read", "decode"])
def test_an_error_surfaces_as_itself_with_its_record_and_the_next_step_follows(on_ranks, place):
    def decode(record):
        if place == "decode" and record[0] == 7:
            raise KeyError("broken")
        return first_byte(record)

    def body(group):
        source = Source(40, broken=[7] if place == "read" else [])
        with CachedDataset(source, decode, batch_size=4, memory_bytes=4000, group=group) as data:
            return taken_of(data, 2 * len(data))
    results = on_ranks(2, body)
    errors = sum((errors for _, errors in results), [])
    assert [(type(error), error.args, error.__notes__) for error in errors] == [(KeyError, ("broken",), [f"{place} of record 7"])] * 2
    assert sum(len(taken) for taken, _ in results) == 2 * 40 - 2 * 4, "only the samples of its own rank and step are missing"


def test_a_loop_that_goes_on_after_an_error_has_all_steps_of_the_epoch_on_every_rank(on_ranks):
    def decode(record):
        if record[0] in (3, 4, 17):
            raise ValueError("broken")
        return record[0]

    def steps_of(data):
        batches, steps = iter(data), 0
        while True:
            try:
                next(batches)
            except StopIteration:
                return steps
            except ValueError:
                pass
            steps += 1

    def body(group):
        with CachedDataset(Source(24), decode, batch_size=2, group=group) as data:
            return [(steps_of(data), data.epoch) for _ in range(3)]
    assert on_ranks(2, body) == [[(6, 1), (6, 2), (6, 3)]] * 2


def test_an_iterator_ends_with_its_epoch():
    with alone(Source(8)) as data:
        batches = iter(data)
        assert iter(batches) is batches and len(list(batches)) == 2
        assert list(batches) == [] and data.epoch == 1


@pytest.mark.parametrize(("record", "kind", "text"), [(b"too long", syncopate.Corrupt, "record . has 8 bytes, and its size was"),
                                                      (3, syncopate.Misuse, "record .: read returned <class 'int'>; allowed: bytes")])
def test_a_record_that_is_not_of_its_size_or_not_bytes_is_named(record, kind, text):
    source = Source(3)
    source.read = lambda index: record
    with alone(source) as data, pytest.raises(kind, match=text):
        list(data)


def test_a_disk_keeps_records_for_the_next_run_and_drops_those_of_another_version(tmp_path):
    def reads(version):
        source = Source(10)
        source.version = lambda: version
        with alone(source, folder=tmp_path, disk_bytes=4000) as data:
            assert sorted(sum((batch.tolist() for batch in data), [])) == list(range(10))
            row = data.counters()[0]
        return sum(source.reads.values()), row.disk.records
    assert [reads(version) for version in "aab"] == [(10, 0), (0, 10), (10, 0)]


def test_a_disk_needs_a_version():
    with pytest.raises(syncopate.Misuse, match=r"version\(\)"):
        alone(Sizeless(3), folder="/tmp")


@pytest.mark.parametrize(("source", "text"), [(object(), "lacks __len__, read"), (Source(0), "no records")])
def test_what_is_no_source_is_refused(source, text):
    with pytest.raises(syncopate.Misuse, match=text):
        alone(source)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_step_after_the_end_is_refused(steps):
    data = alone(Source(40))
    batches = iter(data)
    for _ in range(steps):
        next(batches)
    data.close()
    for after in (batches, iter(data)):
        error = ended(lambda after=after: next(after))
        assert isinstance(error, syncopate.Misuse) and "closed" in str(error) and "load_state_dict" in str(error)


def test_closing_ends_another_threads_wait_for_a_step():
    reading, go_on = threading.Event(), threading.Event()
    source = Source(40)

    def read(index):
        reading.set()
        assert go_on.wait(BOUND_S)
        return bytes([index]) * (index + 1)
    source.read = read
    data = alone(source, ahead=1)
    batches, results = iter(data), queue.SimpleQueue()
    waiter = threading.Thread(target=lambda: results.put(ended(lambda: next(batches))), daemon=True)
    waiter.start()
    assert reading.wait(BOUND_S)
    closer = threading.Thread(target=data.close)
    closer.start()
    go_on.set()
    closer.join()
    assert isinstance(results.get(timeout=BOUND_S), syncopate.Error)


@pytest.mark.parametrize("taken", [0, 1])
def test_a_step_during_which_another_thread_closes_is_refused_and_not_taken(taken):
    data = alone(Source(40), ahead=1)
    batches = iter(data)
    for _ in range(taken):
        next(batches)
    submit, before = data._reading.submit, data.state_dict()

    def after_close(*arguments):
        data.close()
        return submit(*arguments)
    data._reading.submit = after_close
    with pytest.raises(syncopate.Misuse, match="this CachedDataset was closed"):
        next(batches)
    assert data.state_dict() == before


def test_threads_take_no_call_after_their_end():
    threads = Threads(1)
    assert threads.submit(int, "3").result() == 3
    threads.end()
    with pytest.raises(syncopate.Misuse, match="have ended"):
        threads.submit(int, "3")
    threads.end()


def test_a_rank_that_cannot_make_its_cache_ends_the_others(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"no folder")
    groups = syncopate.Group.threads(2, timeout_s=60)
    own = threading.local()
    monkeypatch.setattr(rendezvous, "own_group", lambda **_: own.group)

    def body(group):
        own.group = group
        options = {"folder": tmp_path / "file", "disk_bytes": 100} if group.rank == 0 else {}
        CachedDataset(Source(8), first_byte, batch_size=2, **options)
    failed, other = outcomes(groups, body)
    assert isinstance(failed, syncopate.SystemFailure), failed
    assert isinstance(other, syncopate.RemoteFailure), other
    assert groups[0].closed


def test_a_path_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "text.tar").write_text("no archive " * 100)
    with pytest.raises(syncopate.Corrupt, match="text.tar at offset 0"):
        alone(tmp_path / "text.tar")
    with pytest.raises(syncopate.SystemFailure, match="cannot open .*/nowhere: No such file"):
        alone(tmp_path / "nowhere")


def test_a_member_is_whole_where_the_system_reads_less_at_once(tmp_path, monkeypatch):
    source = TarSource(archive_of(tmp_path / "set.tar", ("one", b"1234567", {})))
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, offset: pread(file, min(size, 3), offset))
    assert source.read(0) == b"1234567"


def test_a_tar_file_is_closed_by_the_data_set_that_opened_it(tmp_path):
    path = archive_of(tmp_path / "set.tar", ("one", b"1", {}))
    with alone(path, decode=bytes) as data:
        assert list(data) == [[b"1"]]
    with pytest.raises(ValueError, match="closed"):
        data.source.read(0)
    source = TarSource(path)
    alone(source, decode=bytes).close()
    assert source.read(0) == b"1", "it is its owner's"


def test_a_copy_of_a_throttled_source_reads():
    slow = copy.copy(ThrottledSource(Source(20), 1e6))
    assert slow.size(9) == 10 and slow.read(9) == bytes([9]) * 10
    with pytest.raises(AttributeError, match="_source"):
        _ = object.__new__(ThrottledSource).size


def test_a_throttled_source_takes_the_time_of_its_bytes():
    source = Source(200)
    slow = ThrottledSource(source, 1e6)
    assert len(slow) == 200 and slow.size(9) == 10 and slow.read(9) == source.read(9)
    large = Source(2)
    large.size, large.read = lambda index: 80_000, lambda index: bytes(80_000)
    begin = time.monotonic()
    ThrottledSource(large, 1e6).read(0)
    assert time.monotonic() - begin >= (80_000 - 65_536) / 1e6


def test_decoding_uses_several_threads():
    both = threading.Barrier(2)

    def decode(record):
        both.wait(60)
        return torch.tensor(record[0])
    with alone(Source(8), decode=decode, threads=2) as data:
        assert sorted(torch.cat(list(data)).tolist()) == list(range(8))
        both.abort()  # `close` may cancel one call of a pair that is read ahead


INTERRUPTED = """
from syncopate.torch import CachedDataset
class Slow:
    def __len__(self): return 8
    def size(self, index): return 1
    def read(self, index):
        say("reading"); ask()
        return b"1"
data = CachedDataset(Slow(), batch_size=2)
try:
    next(iter(data))
except KeyboardInterrupt:
    say("interrupted")
"""


def test_an_interrupt_ends_the_wait_for_a_step_and_the_program_ends_after_the_present_record(job):
    rank, = job(1, INTERRUPTED)
    assert rank.hear() == "reading"
    rank.interrupt()
    assert rank.hear() == "interrupted"
    rank.tell()
    assert rank.end() == (0, "")


FAILING = """
from syncopate.torch import CachedDataset
class Records:
    def __len__(self): return 64
    def size(self, index): return 1
    def read(self, index): return b"1"
data = CachedDataset(Records(), batch_size=2, memory_bytes=100, group=join())
try:
    for step in range(1000):
        next(iter(data))
        if rank == 0 and step == 20:
            raise ValueError("stop")
except syncopate.Error as error:
    say([type(error).__name__, str(error)])
"""


def test_a_rank_that_fails_ends_the_reads_of_the_others(job):
    ranks = job(2, FAILING)
    kind, text = ranks[1].hear()
    assert (kind, "stop" in text) == ("RemoteFailure", True), text
    code, errors = ranks[0].end()
    assert code == 1 and "ValueError: stop" in errors
    assert ranks[1].end() == (0, "")
