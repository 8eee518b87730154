#!/usr/bin/env python3
"""clang-tidy finds nothing: by default in changed files as far as 12 s reach; --since: in those changed since the last full run; --all."""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from base.batch import Batch, together
from base.changed import since_full_run
from base.clean import Clean, digest
from base.tree import ROOT, Finding, report

TREES = ("src", "programs", "example", "bind")
LEFT_OUT = ("programs/train/",)  # libtorch's headers take a minute for each file
QUICK_SECONDS = 12
CLEAN = Clean("tidy")
RULES = (Path(".clang-tidy"), Path("check/tidy.py"))
DATABASE = "build/tidy"  # as build/release, but configured to compile each file by itself


def program():
    path = ROOT / "build/clang-tidy/clang_tidy/data/bin/clang-tidy"  # where scripts/install --checks puts it
    return str(path) if path.is_file() else None


@functools.cache
def version():
    return subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout


def compiled(root, database):
    """Path -> how the build compiles it, of the files of TREES."""
    entries = json.loads((database / "compile_commands.json").read_text())
    paths = {Path(os.path.relpath(os.path.join(e["directory"], e["file"]), root)): e for e in entries}
    return {p: paths[p] for p in sorted(paths) if p.parts[0] in TREES and not str(p).startswith(LEFT_OUT)}


def changed(root):
    """Files that differ from the last commit, or that the last commit changed when nothing does."""
    def names(*arguments):
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
        return {Path(line) for line in done.stdout.splitlines()}

    now = names("diff", "--name-only", "HEAD") | names("ls-files", "-o", "--exclude-standard")
    return now or names("diff", "--name-only", "HEAD~1", "HEAD")


def key(root, batch):
    """A key of everything that the findings of a batch depend on; None if g++ does not understand the batch."""
    command = [word for word in batch.command if word != "-c"]
    listed = subprocess.run([*command, "-M"], cwd=batch.directory, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        return None
    read = [Path(batch.directory) / file for file in listed.stdout.replace("\\\n", " ").split()[1:]]
    options = " ".join([*command[:-1], version()]).replace(str(root), "")
    return digest(options, [__file__, root / ".clang-tidy", *read])


def diagnostics(root, folder, source):
    """The diagnostics of one source and our headers in it: [(file, line, what), its notes alike ...]; stderr where it failed."""
    command = [program(), "-p", folder, "--quiet", f"--config-file={root / '.clang-tidy'}",
               f"--header-filter=^{re.escape(str(root))}/(include|src|programs|bind)/", "--extra-arg=-Wno-unknown-warning-option",
               "--extra-arg=-ferror-limit=0", "--extra-arg=-Wthread-safety", str(source)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    said = []
    for match in re.finditer(r"^(/[^\n:]+):(\d+):\d+: (warning|error|note): ([^\n]*)$", done.stdout, re.MULTILINE):
        if match[3] != "note":
            said.append([])
        said[-1].append((match[1], int(match[2]), match[4]))
    return said, done.stderr.strip()[:300] if done.returncode != 0 and not said else ""


def judged(batch, said):
    """The findings as (file, line, what), and the files of the batch that clang did not understand."""
    found, stumbled = [], set()
    for places in said:
        places = [(*batch.place(file, line), what) for file, line, what in places]
        if not places[0][2].endswith("[clang-diagnostic-error]"):
            found.append(places[0])
            continue
        # g++ decides what compiles: here two files give a name two meanings, or clang does not know what g++ does.
        stumbled.update(batch.causes([file for file, _, _ in places]) or batch.files)
    return found, stumbled


def findings_in(root, entries, folder, batch):
    """Findings in a batch: without the files that cannot stand there (equal names; clang stumbles), which come alone."""
    said, failure = diagnostics(root, folder, batch.source)
    found, stumbled = judged(batch, said)
    if failure:
        found, stumbled = [(batch.files[0], 1, f"clang-tidy failed: {failure}")], set(batch.files)
    if not stumbled or len(entries) == 1:
        return [Finding(os.path.relpath(file, root), line, what) for file, line, what in found]
    # Some checks are silent in a source with an error, so the others are looked at again too, without it.
    parts = [[e] for e, file in zip(entries, batch.files) if file in stumbled]
    rest = [e for e, file in zip(entries, batch.files) if file not in stumbled]
    return [finding for part in [rest, *parts] if part for finding in look(root, part)]


def look(root, entries):
    """Findings in some files, looked at as one; none if nothing has changed since they had none."""
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(folder, entries)
        known = key(root, batch)
        found = [] if CLEAN.has(known) else findings_in(root, entries, folder, batch)
    if not found:
        CLEAN.add(known)
    return found


def quick_findings(root, entries):
    """The findings of changed files, until QUICK_SECONDS have passed."""
    deadline = time.monotonic() + QUICK_SECONDS
    skipped = []

    def one(path):
        if time.monotonic() > deadline:
            skipped.append(path)
            return []
        return look(root, [entries[path]])

    paths = sorted(set(entries) & changed(root))
    with ThreadPoolExecutor(2) as pool:
        found = [finding for part in pool.map(one, paths) for finding in part]
    print(f"tidy: looked at {len(paths) - len(skipped)} files" + (f", left out {len(skipped)}" if skipped else ""))
    return found


def findings(root, reach=None, database=None):
    """reach: None, "--since" or "--all"."""
    database = database or root / DATABASE
    if not program():
        return [Finding("check/tidy.py", 1, "clang-tidy is not installed: scripts/install --checks")]
    if (root / "CMakeLists.txt").is_file():  # each time: files may have come since
        made = subprocess.run(["cmake", "--preset", "release", "-B", str(database), "-DSYNCOPATE_UNITY=OFF", "-DSYNCOPATE_TESTS=OFF",
                               "-DSYNCOPATE_BENCHMARKS=OFF"], cwd=root, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            return [Finding("CMakeLists.txt", 1, f"cmake does not configure build/tidy: {made.stderr.strip()[-300:]}")]
    entries = compiled(root, database)
    if reach is None:
        return quick_findings(root, entries)
    reached, found = since_full_run(root, RULES) if reach == "--since" else (None, [])
    chosen = [entry for path, entry in entries.items() if reached is None or path in reached]
    with ThreadPoolExecutor(2) as pool:
        found += [f for part in pool.map(lambda batch: look(root, batch), together(chosen)) for f in part]
    print(f"tidy: looked at {len(chosen)} of {len(entries)} files")
    return found


if __name__ == "__main__":
    sys.exit(report("tidy", findings(ROOT, next((word for word in sys.argv[1:] if word in ("--since", "--all")), None))))
