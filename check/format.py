#!/usr/bin/env python3
"""Every C++ file is as clang-format writes it; --fix writes it so."""

import re
import shutil
import subprocess
import sys

from base.tree import ROOT, Finding, cpp_files, report

MAJOR = 14  # Debian 12's; other versions format a few lines differently


def program():
    """The clang-format of the version that the tree is formatted with, else the one that is there, else None."""
    return shutil.which(f"clang-format-{MAJOR}") or shutil.which("clang-format")


def findings(root, fix=False):
    tool = program()
    if not tool:
        return [Finding("check/format.py", 1, "clang-format is not installed: scripts/install --checks")]
    paths = [str(p) for p in cpp_files(root)]
    if not paths:
        return []
    mode = ["-i"] if fix else ["--dry-run"]
    done = subprocess.run([tool, "--style=file", *mode, *paths], cwd=root, capture_output=True, text=True, check=False)
    places = {}
    for match in re.finditer(r"^([^\s:][^:\n]*):(\d+):\d+: (?:warning|error): ", done.stderr, re.MULTILINE):
        places.setdefault(match[1], int(match[2]))
    found = [Finding(path, line, "not formatted: check/format.py --fix") for path, line in places.items()]
    if done.returncode != 0 and not found:
        found.append(Finding("check/format.py", 1, f"{tool} failed: {done.stderr.strip()[:300]}"))
    return found


if __name__ == "__main__":
    sys.exit(report("format", findings(ROOT, fix="--fix" in sys.argv[1:])))
