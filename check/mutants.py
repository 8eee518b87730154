#!/usr/bin/env python3
"""Every deliberate defect in mutants/ makes a test fail; one that survives says which test is missing.

A file mutants/AREA/NAME.patch begins with a line that says what is wrong in it and a line "kills: PROGRAM [FILTER]": the
GoogleTest program, and the cases in it, that must fail with it; behind them is a patch for `git apply`.

usage: check/mutants.py [--write | --applies] [NAME ...]   those whose path contains one of the names; without names all. It works on a copy
of the last commit in build/mutants, and takes about half a minute for each. With --write the table of docs/verification.md counts the patches
anew, and says what became of the folders that were run whole; `--write -` counts and runs nothing. With --applies it only
checks that each patch applies to the sources as they are.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from base.tree import ROOT

FOLDER = ROOT / "check" / "mutants"
TREE = ROOT / "build" / "mutants" / "tree"
RECORD = ROOT / "docs" / "verification.md"
ROW = re.compile(r"^\| (?:`(\w+)/`|in all) \| (\d+) \| (\d+) \|.*\|$", re.MULTILINE)
LIBTORCH = ROOT / "build" / "libtorch"  # what test_train needs
LIMIT_S = 180  # of one test program: a mutant that hangs is killed too


@dataclass(frozen=True)
class Mutant:
    name: str
    patch: Path
    claim: str
    program: str
    cases: str


def mutants(folder):
    found = []
    for patch in sorted(folder.rglob("*.patch")):
        name = str(patch.relative_to(folder).with_suffix(""))
        claim, kills = patch.read_text().splitlines()[:2]
        match = re.fullmatch(r"kills: (test_\w+)(?: (\S+))?", kills)
        if not match:
            sys.exit(f"{name}: its second line is not 'kills: PROGRAM [FILTER]'")
        found.append(Mutant(name, patch, claim, match[1], match[2] or "*"))
    return found


def by_room(mutants_by_name):
    """The folders of the mutants, each with its own."""
    return [(room, list(members)) for room, members in groupby(mutants_by_name, lambda mutant: mutant.name.split("/")[0])]


def run(*command, limit_s=None):
    """Exit code (None: it took too long) and output."""
    try:
        done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return None, ""


def need(*command):
    code, output = run(*command)
    if code != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{output[-3000:]}")


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
    """killed, hangs (killed too), SURVIVES, or why it has no result."""
    if run("git", "apply", mutant.patch)[0] != 0:
        return "DOES NOT APPLY"
    try:
        if build(mutant.program)[0] != 0:
            return "DOES NOT COMPILE"
        code, _ = test(mutant)
        return "hangs" if code is None else "killed" if code != 0 else "SURVIVES"
    finally:
        need("git", "apply", "-R", mutant.patch)


def prove_sound(chosen):
    """Every program builds, and passes the cases that mutants must fail, as it was committed."""
    for program, cases in sorted({(mutant.program, mutant.cases) for mutant in chosen}):
        code, output = build(program)
        if code != 0:
            sys.exit(f"{program} does not build\n{output[-3000:]}")
        code, output = test(Mutant("", Path(), "", program, cases))
        if code != 0:
            sys.exit(f"{program} {cases} fails without any mutant\n{output[-3000:]}")


def recorded(text, every, killed):
    """`text` with rows for all rooms: patches, how many of them `killed` (by room) or else the count of the old row, and by what."""
    found = list(ROW.finditer(text))
    before = {row[1]: int(row[3]) for row in found if row[1]}
    programs = {room: Counter(mutant.program for mutant in members) for room, members in by_room(every)}
    rows = {room: (by.total(), min(by.total(), killed.get(room, before.get(room, 0)))) for room, by in programs.items()}
    lines = [f"| `{room}/` | {rows[room][0]} | {rows[room][1]} | {', '.join(f'`{program}` {n}' for program, n in by.most_common())} |"
             for room, by in programs.items()]
    lines.append(f"| in all | {sum(row[0] for row in rows.values())} | {sum(row[1] for row in rows.values())} | |")
    return text[:found[0].start()] + "\n".join(lines) + text[found[-1].end():]


def strike(mutant):
    """Whether it was killed."""
    began = time.monotonic()
    outcome = verdict(mutant)
    print(f"{outcome:<10} {time.monotonic() - began:5.0f} s  {mutant.name}: {mutant.claim}", flush=True)
    return outcome in ("killed", "hangs")


def applies(mutant):
    done = subprocess.run(["git", "apply", "--check", mutant.patch], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{mutant.name}: {done.stderr.strip().splitlines()[-1]}; write the patch again for the sources as they are")
    return done.returncode == 0


def main(words, write, only_applies):
    every = mutants(FOLDER)
    chosen = [mutant for mutant in every if not words or any(word in mutant.name for word in words)]
    if only_applies:
        count = sum([applies(mutant) for mutant in chosen])
        print(f"mutants: {count} of {len(chosen)} apply")
        return 0 if count == len(chosen) else 1
    if not LIBTORCH.exists():
        print(f"left out, since {LIBTORCH} is missing: those of test_train")
        chosen = [mutant for mutant in chosen if mutant.program != "test_train"]
    if chosen:
        prepare()
        prove_sound(chosen)
    killed = {room: sum([strike(mutant) for mutant in members]) for room, members in by_room(chosen)}
    if write:
        whole = {room: killed.get(room) for room, members in by_room(every) if set(members) <= set(chosen)}
        RECORD.write_text(recorded(RECORD.read_text(), every, whole))
    print(f"mutants: {sum(killed.values())} of {len(chosen)} killed")
    return 0 if sum(killed.values()) == len(chosen) else 1


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--applies", action="store_true")
    given = parser.parse_args()
    sys.exit(main(given.names, given.write, given.applies))
