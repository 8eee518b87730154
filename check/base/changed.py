"""The files that the slow checks look at: those that have changed since their last full run, and the nearest of those that include them."""

import subprocess
from collections import defaultdict
from pathlib import Path

from base.tree import CODE_FOLDERS, CPP, Finding, files, includes

BASE = Path("check/tidy-base")  # the commit of the last full run, which `scripts/soak --checks` makes
MOST_COMMITS = 300  # since then
MOST_INCLUDERS = 60  # of the changed files: a header that all include would make each run a full one
# Folders that includes of the project are relative to, next to that of the file itself.
INCLUDED_FROM = ("include", "src", "programs", "programs/syncopate", "test", "bench", "bind")


def _git(root, *arguments):
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else None


def with_includers(root, changed, most=MOST_INCLUDERS):
    """These files, and those that include one of them, directly or not: the nearest ones."""
    present = files(root, *CODE_FOLDERS, suffixes=CPP)
    includers = defaultdict(set)
    for path in present:
        for _, _, target in includes((root / path).read_text(errors="replace")):
            for folder in (path.parent, *map(Path, INCLUDED_FROM)):
                includers[folder / target].add(path)
    reached, ring = dict.fromkeys(sorted(changed)), changed
    while ring:
        ring = {includer for path in ring for includer in includers[path]} - reached.keys()
        reached |= dict.fromkeys(sorted(ring))
    return set(list(reached)[:len(changed) + most])


def since_full_run(root, rules):
    """What must be looked at: a set of files, or None for all; and the findings on the full run itself.

    rules: the files on which every result depends.
    """
    commit = (root / BASE).read_text().strip()
    commits = _git(root, "rev-list", "--count", f"{commit}..HEAD")
    names = _git(root, "diff", "--name-only", commit)
    if commits is None or names is None:  # a clone without that commit
        return None, []
    if int(commits[0]) > MOST_COMMITS:
        return None, [
            Finding(str(BASE), 1, f"{commits[0]} commits are newer than the last full run; allowed: {MOST_COMMITS}. Run scripts/soak --checks")
        ]
    changed = {Path(name) for name in names + _git(root, "ls-files", "-o", "--exclude-standard")}
    if changed & set(rules):
        return None, []
    return with_includers(root, changed), []
