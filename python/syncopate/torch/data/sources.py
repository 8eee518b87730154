"""Sources of records for CachedDataset: the files of a folder, the members of a tar file, and any source at a limited rate."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch

import syncopate
from syncopate import _core

_Error = TypeVar("_Error", bound=BaseException)


class Source(Protocol):
    """The records of a CachedDataset. It may also have `size(i)`, `labels`, `name(i)` and `version()`."""

    def __len__(self) -> int:
        """The number of records."""

    def read(self, index: int, /) -> Any:
        """The bytes of a record, or another contiguous buffer."""


class FolderSource:
    """The files of a folder and of those below it, sorted by folders and names.

    extensions: endings of names, such as (".jpeg", ".png"), in any case; none: every file. Hidden files and folders (`.NAME`,
    `__MACOSX`) are left out. If every file lies in a folder, the label of a record is the index in `classes` of the file's class,
    as in torchvision's ImageFolder: its first folder below the deepest one in which every file lies in a folder. Raises
    SystemFailure for what cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str], extensions: Sequence[str] = ()) -> None:
        self.path = Path(path)
        self._files = _core.files_in_folder(os.fsencode(path), _checked(extensions))
        self.classes, self.labels = _labels_of(path, self._files)

    def __len__(self) -> int:
        return len(self._files)

    def size(self, index: int) -> int:
        """Its bytes."""
        return self._files[index][1]

    def name(self, index: int) -> str:
        """The file."""
        return str(self.path / os.fsdecode(self._files[index][0]))

    def read(self, index: int) -> bytes:
        """The contents of the file."""
        return Path(self.name(index)).read_bytes()

    def version(self) -> str:
        """Names, sizes and modification times."""
        return str(self._files)


class TarSource:
    """The regular files in a tar file that is not compressed, in its order. Extensions, hidden files and labels are as in a folder.

    A hard link is a file with the bytes of its target; other links are left out. The file is open until `close`. Raises Corrupt
    with archive, offset and reason: for a compressed, damaged or truncated archive, for a sparse member, and for a hard link
    whose target is not in the archive before it.
    """

    def __init__(self, path: str | os.PathLike[str], extensions: Sequence[str] = ()) -> None:
        self.path = Path(path)
        self._files = _core.files_in_tar(os.fsencode(path), _checked(extensions))
        self.classes, self.labels = _labels_of(path, self._files)
        self._file = self.path.open("rb", buffering=0)
        status = os.fstat(self._file.fileno())
        self._version = f"{self.path.name}/{status.st_size}/{status.st_mtime_ns}/{tuple(extensions)}"

    def __len__(self) -> int:
        return len(self._files)

    def size(self, index: int) -> int:
        """Its bytes."""
        return self._files[index][1]

    def name(self, index: int) -> str:
        """The member and the archive."""
        return f"{os.fsdecode(self._files[index][0])} in {self.path}"

    def read(self, index: int) -> bytes:
        """The contents of the member."""
        _, size, offset, _ = self._files[index]
        content = os.pread(self._file.fileno(), size, offset)
        while len(content) < size:  # Linux reads less than 2 GiB at once
            more = os.pread(self._file.fileno(), size - len(content), offset + len(content))
            if not more:
                break
            content += more
        return content

    def version(self) -> str:
        """Size and modification time of the archive, and which of its files are records."""
        return self._version

    def close(self) -> None:
        """Close the file; no record can be read afterwards. A CachedDataset that was given a path does it."""
        self._file.close()


class ThrottledSource:
    """A source with sizes whose reads, of all threads together, have this rate: it emulates a network file system.

    After a pause 64 KiB pass at once. extensions: of the records, if the source is a path.
    """

    def __init__(self, source: Source | str | os.PathLike[str], bytes_per_second: float, *, extensions: Sequence[str] | None = None) -> None:
        self._source = source_of(source, extensions=extensions)
        sizes = [self._source.size(index) for index in range(len(self._source))]
        self._limited = core_source(self._source, sizes, bytes_per_second)

    def __len__(self) -> int:
        return len(self._source)

    def read(self, index: int) -> bytes:
        """The record, after the time that its bytes take."""
        return self._limited.read(index)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also `_source`, before it is set, as in a copy
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return getattr(self._source, name)


def source_of(given: Any, decode: Any = None, extensions: Sequence[str] | None = None) -> Any:
    """The source that a user gives: a folder, a tar file, or an object with `__len__` and `read(i)`.

    extensions: of the records of a folder or a tar file; None: those that `decode` names, else all.
    """
    if isinstance(given, (str, os.PathLike)):
        endings = getattr(decode, "extensions", ()) if extensions is None else extensions
        source: FolderSource | TarSource = FolderSource(given, endings) if os.path.isdir(given) else TarSource(given, endings)
        if len(source) == 0:
            raise syncopate.Misuse(f"{os.fspath(given)!r} has no records; allowed: at least one file"
                                   f"{' that ends in ' + ' or '.join(endings) if endings else ''} and is not hidden")
        return source
    if missing := [name for name in ("__len__", "read") if not callable(getattr(given, name, None))]:
        raise syncopate.Misuse(f"a source of {type(given).__name__} lacks {', '.join(missing)}; allowed: the path of a folder or of a "
                               "tar file, or an object with __len__() and read(i)")
    if extensions is not None:
        raise syncopate.Misuse(f"extensions for a source of {type(given).__name__}; allowed: for the path of a folder or of a tar file")
    if len(given) == 0:
        raise syncopate.Misuse(f"{given!r} has no records; allowed: at least one")
    return given


def sizes_of(source: Any, group: syncopate.Group) -> list[int]:
    """The bytes of each record. Without `size`, all ranks read the records once to learn them, each rank its part."""
    if hasattr(source, "size"):
        return [source.size(index) for index in range(len(source))]
    sizes = torch.zeros(len(source), dtype=torch.int64, device="cpu")
    try:
        for index in range(group.rank, len(source), group.size):
            sizes[index] = memoryview(_read(source, index)).nbytes
    except BaseException as error:
        group.abort(repr(error))  # the other ranks wait for this one's part
        raise
    group.allreduce(sizes, name="sizes of the records")
    found: list[int] = sizes.tolist()
    return found


def core_source(source: Any, sizes: Sequence[int], bytes_per_second: float = 0.0) -> _core.Source:
    """The source for the library."""
    facts = f"{sizes}{source.version() if hasattr(source, 'version') else ''}"
    version = int.from_bytes(hashlib.blake2b(facts.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")
    return _core.Source(lambda index: _read(source, index), sizes, version=version, bytes_per_second=bytes_per_second)


def named(error: _Error, source: Any, index: int, operation: str) -> _Error:
    """The exception with a note that names the record; Python shows notes from 3.11 on."""
    name = f" ({source.name(index)})" if hasattr(source, "name") else ""
    notes = [*getattr(error, "__notes__", []), f"{operation} of record {index}{name}"]
    error.__notes__ = notes  # type: ignore[attr-defined]  # PEP 678 defines it, for all versions
    return error


def _read(source: Any, index: int) -> Any:
    """The record; an exception names it."""
    try:
        return source.read(index)
    except Exception as error:
        raise named(error, source, index, "read") from error


def _checked(extensions: Sequence[str]) -> list[str]:
    """As a list."""
    if isinstance(extensions, str) or not all(isinstance(one, str) and one.startswith(".") for one in extensions):
        raise syncopate.Misuse(f"extensions {extensions!r}; allowed: a sequence of endings that begin with a dot, such as ('.jpeg', '.png')")
    return list(extensions)


def _labels_of(path: str | os.PathLike[str],
               files: Sequence[tuple[bytes, int, int, int]]) -> tuple[list[str], list[int] | None]:
    """The classes of these files, sorted, and the index of each file's class; ([], None) if a file has no class."""
    found = _core.classes_of([file[0] for file in files])
    if outside := [os.fsdecode(file[0]) for file, name in zip(files, found, strict=True) if not name]:
        if len(outside) < len(files):
            warnings.warn(f"{outside[0]} in {path} is in no folder and others are, so the records have no labels; `extensions=` leaves out "
                          "other files than records", stacklevel=4)
        return [], None
    classes = sorted(set(found))
    if len(classes) == 1:
        warnings.warn(f"all {len(files)} records of {path} are in one class, {os.fsdecode(classes[0])!r}, such as {os.fsdecode(files[0][0])}; "
                      "the class is the first folder below the deepest one that contains every file in a folder", stacklevel=4)
    index = {name: label for label, name in enumerate(classes)}
    return [os.fsdecode(name) for name in classes], [index[name] for name in found]
