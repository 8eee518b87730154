"""Sources of records for CachedDataset: the files of a folder, the members of a tar file, and any source at a limited rate."""

import hashlib
import os
import tarfile
from pathlib import Path

import torch

import syncopate
from syncopate import _core


class FolderSource:
    """The files of a folder and of those below it, by path; hidden ones are left out.

    If every file lies in a folder below, the label of a record is the index in `classes` of its file's folder.
    """

    def __init__(self, path):
        self.path = Path(path)
        files = sorted(_files_below(self.path, ""))
        self._names, self._sizes = [name for name, _, _ in files], [size for _, size, _ in files]
        self._version = str(files)
        self.classes, self.labels = _classes_of(self._names)

    def __len__(self):
        return len(self._names)

    def size(self, index):
        """Its bytes."""
        return self._sizes[index]

    def name(self, index):
        """The file."""
        return str(self.path / self._names[index])

    def read(self, index):
        """The contents of the file."""
        return (self.path / self._names[index]).read_bytes()

    def version(self):
        """Names, sizes and modification times."""
        return self._version


class TarSource:
    """The regular files in a tar file that is not compressed, in its order. Labels are as in a folder.

    A hard link is a file with the bytes of its target; other links are left out. The file is open until `close`. Raises
    Misuse for a sparse member and for a hard link whose target is not in the archive before it.
    """

    def __init__(self, path):
        self.path = Path(path)
        with tarfile.open(self.path, "r:") as archive:
            members = list(self._members(archive))
        self._file = self.path.open("rb", buffering=0)
        status = os.fstat(self._file.fileno())
        self._version = f"{self.path.name}/{status.st_size}/{status.st_mtime_ns}"
        self._names = [name for name, _ in members]
        self._parts = [(content.offset_data, content.size) for _, content in members]
        self.classes, self.labels = _classes_of(self._names)

    def _members(self, archive):
        """(name, the member with the bytes) of each file."""
        contents = {}  # of the regular files and links so far, by path
        for member in archive:
            if not member.isreg() and not member.islnk():
                continue
            content = member if member.isreg() else contents.get(os.path.normpath(member.linkname))
            contents[os.path.normpath(member.name)] = content
            if _is_hidden(member.name):
                continue
            if content is None:
                raise syncopate.Misuse(f"{member.name} in {self.path} is a hard link to {member.linkname}, which is not in the archive before it; "
                                       "make the archive with `tar --hard-dereference`")
            if content.issparse():
                raise syncopate.Misuse(f"{member.name} in {self.path} is stored as a sparse file; make the archive without `--sparse`")
            yield member.name, content

    def __len__(self):
        return len(self._parts)

    def size(self, index):
        """Its bytes."""
        return self._parts[index][1]

    def name(self, index):
        """The member and the archive."""
        return f"{self._names[index]} in {self.path}"

    def read(self, index):
        """The contents of the member."""
        offset, size = self._parts[index]
        return os.pread(self._file.fileno(), size, offset)

    def version(self):
        """Size and modification time of the archive."""
        return self._version

    def close(self):
        """Close the file; no record can be read afterwards. A CachedDataset that was given a path does it."""
        self._file.close()


class ThrottledSource:
    """A source with sizes whose reads, of all threads together, have this rate: it emulates a network file system.

    After a pause 64 KiB pass at once.
    """

    def __init__(self, source, bytes_per_second):
        self._source = source_of(source)
        sizes = [self._source.size(index) for index in range(len(self._source))]
        self._limited = core_source(self._source, sizes, bytes_per_second)

    def __len__(self):
        return len(self._source)

    def read(self, index):
        """The record, after the time that its bytes take."""
        return self._limited.read(index)

    def __getattr__(self, name):
        if name.startswith("_"):  # also `_source`, before it is set, as in a copy
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return getattr(self._source, name)


def source_of(given):
    """The source that a user gives: a folder, a tar file, or an object with `__len__` and `read(i)`."""
    if isinstance(given, (str, os.PathLike)):
        source = FolderSource(given) if os.path.isdir(given) else TarSource(given)
    else:
        source = given
        if missing := [name for name in ("__len__", "read") if not callable(getattr(source, name, None))]:
            raise syncopate.Misuse(f"a source of {type(source).__name__} lacks {', '.join(missing)}; allowed: the path of a folder or of a "
                                   "tar file, or an object with __len__() and read(i)")
    if len(source) == 0:
        raise syncopate.Misuse(f"{given!r} has no records; allowed: at least one")
    return source


def sizes_of(source, group):
    """The bytes of each record. Without `size`, all ranks read the records once to learn them, each rank its part."""
    if hasattr(source, "size"):
        return [source.size(index) for index in range(len(source))]
    sizes = torch.zeros(len(source), dtype=torch.int64)
    try:
        for index in range(group.rank, len(source), group.size):
            sizes[index] = memoryview(_read(source, index)).nbytes
    except BaseException as error:
        group.abort(repr(error))  # the other ranks wait for this one's part
        raise
    group.allreduce(sizes, name="sizes of the records")
    return sizes.tolist()


def core_source(source, sizes, bytes_per_second=0.0):
    """The source for the library."""
    facts = f"{sizes}{source.version() if hasattr(source, 'version') else ''}"
    version = int.from_bytes(hashlib.blake2b(facts.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")
    return _core.Source(lambda index: _read(source, index), sizes, version=version, bytes_per_second=bytes_per_second)


def named(error, source, index, operation):
    """The exception with a note that names the record; Python shows notes from 3.11 on."""
    name = f" ({source.name(index)})" if hasattr(source, "name") else ""
    error.__notes__ = [*getattr(error, "__notes__", []), f"{operation} of record {index}{name}"]
    return error


def _read(source, index):
    """The record; an exception names it."""
    try:
        return source.read(index)
    except Exception as error:
        raise named(error, source, index, "read")


def _files_below(folder, prefix):
    """(relative path, bytes, modification time in ns) of each file."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _files_below(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file():
                status = entry.stat()
                yield f"{prefix}{entry.name}", status.st_size, status.st_mtime_ns


def _is_hidden(name):
    return any(part.startswith(".") and part not in (".", "..") for part in name.split("/"))


def _classes_of(names):
    """The folders of these files, sorted, and each file's index; ([], None) if a file is in no folder."""
    folders = [os.path.normpath(name).rpartition("/")[0] for name in names]
    if not all(folders):
        return [], None
    classes = sorted(set(folders))
    index = {name: label for label, name in enumerate(classes)}
    return classes, [index[folder] for folder in folders]
