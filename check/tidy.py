#!/usr/bin/env python3
"""clang-tidy finds nothing: by default in changed files as far as 12 s reach; --all: in src, tools and example."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from base.tree import ROOT, Finding, report

TREES = ("src", "tools", "example")
QUICK_SECONDS = 12
DATABASE = "build/release"


def program():
    return shutil.which("clang-tidy-14") or shutil.which("clang-tidy")


def compiled(root, database):
    """The files of TREES that the build compiles."""
    entries = json.loads((database / "compile_commands.json").read_text())
    paths = {Path(os.path.relpath(os.path.join(e["directory"], e["file"]), root)) for e in entries}
    return sorted(p for p in paths if p.parts[0] in TREES)


def changed(root):
    """Files that differ from the last commit, or that the last commit changed when nothing does."""
    def names(*arguments):
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
        return {Path(line) for line in done.stdout.splitlines()}

    now = names("diff", "--name-only", "HEAD") | names("ls-files", "-o", "--exclude-standard")
    return now or names("diff", "--name-only", "HEAD~1", "HEAD")


def look(root, database, path):
    """clang-tidy's findings in one file of ours (and in our headers that it includes)."""
    command = [program(), "-p", str(database), "--quiet", f"--header-filter=^{re.escape(str(root))}/(include|src|tools)/",
               "--extra-arg=-Wno-unknown-warning-option", str(root / path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    found, understood = [], True
    for match in re.finditer(r"^(/[^\n:]+):(\d+):\d+: (?:warning|error): ([^\n]*)$", done.stdout, re.MULTILINE):
        if match[3].endswith("[clang-diagnostic-error]"):  # g++ decides what compiles; clang 14 does not know all of C++20
            understood = False
        else:
            found.append(Finding(os.path.relpath(match[1], root), int(match[2]), match[3]))
    if done.returncode != 0 and not found and understood:
        found.append(Finding(str(path), 1, f"clang-tidy failed: {done.stderr.strip()[:300]}"))
    return found


def findings(root, everything, database=None):
    database = database or root / DATABASE
    if not program():
        return [Finding("check/tidy.py", 1, "clang-tidy is not installed: scripts/install --checks")]
    if not (database / "compile_commands.json").is_file():
        print("tidy: no build/release yet (cmake --preset release); nothing was looked at")
        return []
    paths = compiled(root, database)
    deadline = float("inf")
    if not everything:
        paths = sorted(set(paths) & changed(root))
        deadline = time.monotonic() + QUICK_SECONDS
    skipped = []

    def one(path):
        if time.monotonic() > deadline:
            skipped.append(path)
            return []
        return look(root, database, path)

    with ThreadPoolExecutor(2) as pool:
        found = [finding for part in pool.map(one, paths) for finding in part]
    print(f"tidy: looked at {len(paths) - len(skipped)} files" + (f", left out {len(skipped)}" if skipped else ""))
    return found


if __name__ == "__main__":
    sys.exit(report("tidy", findings(ROOT, "--all" in sys.argv[1:])))
