#!/usr/bin/env python3
"""Every deliberate defect in mutants/ makes a test fail; one that survives says which test is missing.

A file mutants/AREA/NAME.patch begins with a line that says what is wrong in it and a line "kills: PROGRAM [FILTER]": the
GoogleTest program, and the cases in it, that must fail with it; behind them is a patch for `git apply`.

usage: check/mutants.py [NAME ...]   those whose path contains one of the names; without names all. It works on a copy of the
last commit in build/mutants, and takes about half a minute for each.
"""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from base.tree import ROOT

FOLDER = ROOT / "check" / "mutants"
TREE = ROOT / "build" / "mutants" / "tree"
LIBTORCH = ROOT / "build" / "libtorch"  # what test_train needs
LIMIT_S = 180  # of one test program: a mutant that hangs is killed too


@dataclass(frozen=True)
class Mutant:
    name: str
    patch: Path
    claim: str
    program: str
    cases: str


def mutants(folder, wanted):
    found = []
    for patch in sorted(folder.rglob("*.patch")):
        name = str(patch.relative_to(folder).with_suffix(""))
        claim, kills = patch.read_text().splitlines()[:2]
        match = re.fullmatch(r"kills: (test_\w+)(?: (\S+))?", kills)
        if not match:
            sys.exit(f"{name}: its second line is not 'kills: PROGRAM [FILTER]'")
        if not wanted or any(part in name for part in wanted):
            found.append(Mutant(name, patch, claim, match[1], match[2] or "*"))
    return found


def run(*command, limit_s=None):
    """Exit code (None: it took too long) and what it said."""
    try:
        done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return None, ""


def need(*command):
    code, said = run(*command)
    if code != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{said[-3000:]}")


def prepare():
    """The last commit in TREE, configured."""
    if TREE.exists():
        head = subprocess.check_output(["git", "-C", ROOT, "rev-parse", "HEAD"], text=True).strip()
        need("git", "checkout", "-q", "--force", "--detach", head)
    else:
        subprocess.run(["git", "-C", ROOT, "worktree", "prune"], check=True)
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "-q", "--detach", TREE, "HEAD"], check=True)
    if LIBTORCH.exists() and not (TREE / "build" / "libtorch").exists():
        (TREE / "build").mkdir(exist_ok=True)
        (TREE / "build" / "libtorch").symlink_to(LIBTORCH)
    need("cmake", "--preset", "release", "-DSYNCOPATE_BENCHMARKS=OFF", "-DSYNCOPATE_TRAIN=ON")


def build(program):
    return run("cmake", "--build", "--preset", "release", "--target", program)


def test(mutant):
    return run(TREE / "build" / "release" / "bin" / mutant.program, f"--gtest_filter={mutant.cases}", "--gtest_brief=1",
               limit_s=LIMIT_S)


def verdict(mutant):
    """killed, hangs (killed too), SURVIVES, or why it says nothing."""
    if run("git", "apply", mutant.patch)[0] != 0:
        return "DOES NOT APPLY"
    try:
        if build(mutant.program)[0] != 0:
            return "DOES NOT COMPILE"
        code, _ = test(mutant)
        return "hangs" if code is None else "killed" if code != 0 else "SURVIVES"
    finally:
        need("git", "apply", "-R", mutant.patch)


def main(wanted):
    chosen = mutants(FOLDER, wanted)
    if not LIBTORCH.exists():
        print(f"left out, since {LIBTORCH} is missing: those of test_train")
        chosen = [mutant for mutant in chosen if mutant.program != "test_train"]
    prepare()
    for program, cases in sorted({(mutant.program, mutant.cases) for mutant in chosen}):
        code, said = build(program)
        if code != 0:
            sys.exit(f"{program} does not build\n{said[-3000:]}")
        code, said = test(Mutant("", Path(), "", program, cases))
        if code != 0:
            sys.exit(f"{program} {cases} fails without any mutant\n{said[-3000:]}")
    bad = 0
    for mutant in chosen:
        began = time.monotonic()
        outcome = verdict(mutant)
        bad += outcome not in ("killed", "hangs")
        print(f"{outcome:<10} {time.monotonic() - began:5.0f} s  {mutant.name}: {mutant.claim}", flush=True)
    print(f"mutants: {len(chosen) - bad} of {len(chosen)} killed")
    return 1 if bad else 0


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    sys.exit(main(sys.argv[1:]))
