"""CachedDataset: reads a distant data set once, keeps it in the memory and on the disks of all ranks, and decodes it on threads."""

import collections
import os
from concurrent.futures import CancelledError, Future

import torch.utils.data

import syncopate
from syncopate import _core, ending
from syncopate.torch.data import forms, sources
from syncopate.torch.data.on_device import Upward
from syncopate.torch.shared import rendezvous
from syncopate.torch.shared.threads import Threads

Position = collections.namedtuple("Position", ["epoch", "sample"])  # `sample` counts those of the epoch that all ranks have used


class CachedDataset:
    """A data set and its loader: `for batch in dataset` goes through one epoch, each rank through its share of the samples.

    source: the path of a folder or of a tar file, or an object with `__len__()` and `read(i)` (the bytes of record i), and
    optionally `size(i)` (their number; without it the ranks read every record once at the start to learn it), `labels` (a
    sequence), `name(i)` (for messages) and `version()` (text that changes if the contents do; `folder` requires it). It is
    the same on every rank. `read` runs on another thread than the caller's.
    extensions: the files of a folder or a tar file that are records, such as (".jpeg", ".png"); None: those that `decode` names
    in its attribute `extensions`, as PictureDecoder does, else all; (): all.
    decode: from the bytes of a record to a sample, on `threads` threads; or an object whose `decode_at(record, seed=, epoch=,
    index=)` does that with random changes which depend on these numbers alone, as those of PictureDecoder. A batch is `collate`
    of samples, or of pairs (sample, label) if the source has labels.

    decoded: the part of the decoding that draws nothing, from the bytes of a record to a tensor, an array or bytes; `decode` then
    gets its result (an array as a tensor). It runs once for a record that is kept in this form: in `decoded_bytes` of memory of this
    rank, and from then on the ranks send each other this form. Records that this rank holds have one; `memory_bytes` or `disk_bytes`
    has room for their encoded bytes. Batches do not depend on decoded_bytes. None: no decoded form.

    batch_size: samples of this rank in a step, equal on all ranks. memory_bytes, folder and disk_bytes: what this rank
    contributes; 0 and None: nothing. seed: of the order, which does not depend on the number of ranks. ahead: steps that are
    read and decoded before they are used. drop_last: leaves out an epoch's last step if it is not full; otherwise samples are
    left out only where a rank would have none. group: a syncopate.Group; by default one of its own for the ranks of
    torch.distributed, or for those of the job. timeout_s: limit of a step's exchange, while other ranks still read.
    device: an accelerator, to which the tensors of a batch are copied through pinned memory before the batch is used, in a stream of
    their own; the stream that is current when the batch is taken waits for them, and the host does not. None: no copies.

    Every rank creates it, and takes the same number of steps. Raises what `read` and `decode` raise, with a note that names
    the record, at its step, on the rank that uses the record; the next step follows. Raises Mismatch (ranks differ), PeerLost,
    RemoteFailure, Timeout, SystemFailure (the folder cannot be used), Misuse (also for a step after `close`).
    """

    def __init__(self, source, decode=bytes, *, batch_size, memory_bytes=0, folder=None, disk_bytes=0, seed=0, threads=4, ahead=2,
                 drop_last=False, extensions=None, collate=torch.utils.data.default_collate, group=None, timeout_s=1800,
                 device=None, decoded=None, decoded_bytes=0):
        if min(batch_size, threads, ahead) < 1:
            raise syncopate.Misuse(f"batch_size {batch_size}, threads {threads}, ahead {ahead}; allowed: at least 1")
        if decoded_bytes and decoded is None:
            raise syncopate.Misuse(f"decoded_bytes {decoded_bytes} without `decoded`; allowed: with the function whose results are kept")
        self._decoded = decoded
        self._upward = None if device is None else Upward(device)
        self.source = sources.source_of(source, decode, extensions)
        self._owned = self.source if isinstance(source, (str, os.PathLike)) else None
        if folder is not None and not hasattr(self.source, "version"):
            raise syncopate.Misuse("a cache on a disk needs a source with version(), to know whether its records are still right")
        self._decode_at = getattr(decode, "decode_at", None) or (lambda record, **_: decode(record))
        self._collate, self._ahead, self._seed = collate, ahead, seed
        self._labels = getattr(self.source, "labels", None)
        self._own_group = None if group else rendezvous.own_group(timeout_s=timeout_s)
        group = group or self._own_group
        self._ranks, self._batch = group.size, batch_size * group.size
        self._least = self._batch if drop_last else group.size
        try:
            self._cache = self._made(group, seed=seed, memory_bytes=memory_bytes, folder="" if folder is None else str(folder),
                                     disk_bytes=disk_bytes, decoded_bytes=decoded_bytes)
        except BaseException as error:
            if self._own_group:
                self._own_group.abort(repr(error))  # the other ranks wait for this one
            self._release()
            raise
        self._reading, self._decoding = Threads(1), Threads(threads)
        self._at = Position(0, 0)
        self._steps = collections.deque()  # futures of the batches from `_at` on
        self._read_to = None  # the first step that is not read
        ending.remember(self)

    def _made(self, group, **contribution):
        """The cache of all ranks."""
        if len(self.source) < self._least:
            raise syncopate.Misuse(f"{len(self.source)} records for steps of at least {self._least}; allowed: at least as many records")
        return _core.Cache(group, sources.core_source(self.source, sources.sizes_of(self.source, group)), **contribution)

    def __len__(self):
        """The steps of an epoch."""
        full, rest = divmod(len(self.source), self._batch)
        return full + (rest >= self._least)

    @property
    def epoch(self):
        """The epoch of the next step."""
        return self._at.epoch

    def __iter__(self):
        """The batches of this epoch that follow the last one that was taken. Reading goes on into the next epoch.

        A step that raises is taken: the iterator continues with the next one.
        """
        return _Epoch(self, self._at.epoch)

    def state_dict(self):
        """The position: of the step that follows the last one that was taken."""
        return {"epoch": self._at.epoch, "sample": self._at.sample, "seed": self._seed, "records": len(self.source)}

    def load_state_dict(self, state_dict):
        """Continue there, with any number of ranks and any batch size. Called before the first step."""
        if self._read_to is not None:
            raise syncopate.Misuse("steps have been read; allowed: load_state_dict before the first one")
        own = self.state_dict()
        if differing := [name for name in ("seed", "records") if state_dict[name] != own[name]]:
            raise syncopate.Misuse(f"the state is of another order: {', '.join(f'{name} {state_dict[name]}, not {own[name]}' for name in differing)}")
        at = Position(state_dict["epoch"], state_dict["sample"])
        if at.epoch < 0 or not 0 <= at.sample < len(self.source):
            raise syncopate.Misuse(f"epoch {at.epoch}, sample {at.sample}; allowed: at least 0, and samples below {len(self.source)}")
        self._at = self._whole(at)

    def counters(self):
        """For each started epoch, where this rank's records came from: memory, disk, peers, origin (records, bytes, seconds)."""
        return self._cache.counters()

    def close(self):
        """End the threads and leave the other ranks, after the steps that were read ahead; the end of the program does it too.

        A source that was given as a path is closed.
        """
        if self._cache.closed:
            return
        if self._ranks > 1:
            for step in self._steps:
                step.exception()  # the other ranks read it too: a rank that left earlier would let them wait
        self._cache.close()
        self._reading.end()
        self._decoding.end()
        for step in self._steps:
            step.cancel()  # those whose reading or decoding has not begun
        if self._upward is not None:
            self._upward.close()
        self._release()

    def _release(self):
        if self._own_group:
            self._own_group.close()
        if hasattr(self._owned, "close"):
            self._owned.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is not None:
            self._cache.abort(repr(error))
        self.close()

    def _next(self):
        if self._cache.closed:
            raise _closed()
        self._read_ahead()
        batch = self._steps[0]
        try:
            batch.exception()  # waits; if a signal's handler raises, the next call continues with this step
        except CancelledError:
            raise _closed() from None
        self._read_ahead(1)  # before the step counts as taken: after `close` in another thread this raises
        self._steps.popleft()
        self._at = self._after(self._at)
        return batch.result() if self._upward is None else batch.result().take()

    def _read_ahead(self, taken=0):
        """All ranks read as far ahead of the steps that they have taken, so that each read of a step has all its ranks.

        taken: steps that count as taken and are still in `_steps`.
        """
        if self._read_to is None:
            self._read_to = self._at
        while len(self._steps) < self._ahead + taken:
            batch = Future()
            try:
                self._reading.submit(self._read, self._read_to, batch)
            except syncopate.Misuse:  # the threads have ended
                raise _closed() from None
            self._steps.append(batch)
            self._read_to = self._after(self._read_to)

    def _after(self, at):
        return self._whole(Position(at.epoch, at.sample + self._batch))

    def _whole(self, at):
        """This step, or, if too few samples of its epoch are left, the next epoch's first one."""
        return at if len(self.source) - at.sample >= self._least else Position(at.epoch + 1, 0)

    def _read(self, at, batch):
        """Runs on the thread that reads."""
        try:
            records = self._cache.read(*at, self._batch)
        except BaseException as error:  # noqa: BLE001 (it is raised at its step)
            batch.set_exception(error)
            return
        samples = [self._decoding.submit(self._sample, at.epoch, *record) for record in records]
        self._decoding.submit(self._collated, samples, into=batch)

    def _sample(self, epoch, index, record, form):
        try:
            if self._decoded is not None:
                packed = record if form == "decoded" else forms.packed(self._decoded(record))
                if form == "wanted":
                    self._cache.keep(index, packed)
                record = forms.unpacked(packed)
            sample = self._decode_at(record, seed=self._seed, epoch=epoch, index=index)
        except Exception as error:
            raise sources.named(error, self.source, index, "decode") from error
        return sample if self._labels is None else (sample, self._labels[index])

    def _collated(self, samples):
        """Calls run in order, so that those of these samples have begun: none waits for this thread."""
        batch = self._collate([sample.result() for sample in samples])
        return batch if self._upward is None else self._upward.begin(batch)


class _Epoch:
    """The steps of one epoch. Not a generator, which is over once it has raised: the ranks would take unequal numbers of steps."""

    def __init__(self, dataset, epoch):
        self._dataset, self._epoch = dataset, epoch

    def __iter__(self):
        return self

    def __next__(self):
        if self._dataset.epoch != self._epoch:
            raise StopIteration
        return self._dataset._next()


def _closed():
    return syncopate.Misuse("this CachedDataset was closed; take steps before close() and inside the `with` block, or make another one, which "
                            "continues with load_state_dict(closed.state_dict())")
