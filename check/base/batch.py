"""Many sources as one translation unit, so that what they all include is read once; lines lead back to their file."""

import bisect
import itertools
import json
import shlex
from pathlib import Path

SIZE = 12  # beyond it the shared headers are no longer most of the work, and equal names meet more often
OWN = ("define", "main")  # functions that many files have, each its own: a command's, a program's


def bare_command(entry):
    """The entry's command without its output and without a precompiled header, which is g++'s own."""
    words, skip = shlex.split(entry["command"]), set()
    for i, word in enumerate(words[:-1]):
        if word == "-o" or (word == "-include" and "cmake_pch" in words[i + 1]):
            skip |= {i, i + 1}
    return tuple(w for i, w in enumerate(words) if i not in skip and w not in (entry["file"], "-c", "-Winvalid-pch"))


def together(entries):
    """Entries of a compile database in lists of equal options; neighbours of a folder are dealt to different lists."""
    ordered = sorted(entries, key=lambda e: (bare_command(e), e["file"]))
    for _, group in itertools.groupby(ordered, key=bare_command):
        group = list(group)
        count = -(-len(group) // SIZE)
        yield from (group[i::count] for i in range(count))


class Batch:
    """The sources of one list written one after another into folder/batch.cpp, next to a database that compiles it."""

    def __init__(self, folder, entries):
        self.files = [str(Path(e["directory"]) / e["file"]) for e in entries]
        self.source = Path(folder) / "batch.cpp"
        texts = [Path(f).read_text().rstrip("\n") + "\n" for f in self.files]
        owns = ["".join(f"#undef {name}\n#define {name} {name}_{i}\n" for name in OWN) for i in range(len(texts))]
        self._ends = list(itertools.accumulate(own.count("\n") + t.count("\n") for own, t in zip(owns, texts)))
        self._texts = dict(zip(self.files, texts))
        self.source.write_text("".join(itertools.chain(*zip(owns, texts))))
        self.directory = entries[0]["directory"]
        self.command = [*bare_command(entries[0]), "-c", str(self.source)]
        entry = {"directory": self.directory, "file": str(self.source), "arguments": self.command}
        (Path(folder) / "compile_commands.json").write_text(json.dumps([entry]))

    def place(self, file, line):
        """Where a line of the batch comes from; other files' lines are where they are."""
        if file != str(self.source):
            return file, line
        index = min(bisect.bisect_left(self._ends, line), len(self.files) - 1)
        return self.files[index], line - (self._ends[index - 1] if index else 0) - 2 * len(OWN)

    def causes(self, places):
        """The files behind an error, whose place stands first and its notes' places after it."""
        if places[0] in self.files:
            return places[:1]
        headers = [Path(place).parts[-2:] for place in places]
        including = [f for f in self.files if any(f'{"/".join(tail)}"' in self._texts[f] for tail in headers)]
        return [place for place in places if place in self.files] or including
