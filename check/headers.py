#!/usr/bin/env python3
"""Line 1 of every file describes it, and every public header compiles alone; --all: private ones too; --since: changed ones."""

import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from base.changed import since_full_run
from base.tree import CODE_FOLDERS, CPP, ROOT, Finding, files, report, without_comments

ALONE = Path("build/headers")  # sources that include one header each
SPOKEN = CPP | {".py", ".cmake", ".sh", ""}
# Tree -> include folders with which its headers compile. Headers of programs/train/, test/python/device/ and of the contenders need foreign
# libraries.
TREES = {"include": ["include"], "src": ["include", "src"], "programs": ["include", "programs", "programs/syncopate"],
         "test": ["include", "src", "programs", "programs/syncopate", "test"]}


def first_line_findings(root):
    for path in files(root, *CODE_FOLDERS, "check", "scripts", "cmake", ".ci", suffixes=SPOKEN):
        if path.suffix == "" and path.name != "CMakeLists" and not (root / path).read_text(errors="replace").startswith("#!"):
            continue
        lines = (root / path).read_text(errors="replace").splitlines()
        if lines and lines[0].startswith("#!"):
            lines = lines[1:]
        first = lines[0] if lines else ""
        if path.suffix in CPP and path.suffix != ".py" and not first.startswith("// "):
            yield Finding(str(path), 1, "line 1 is `// One sentence saying what this room is.`")
        elif not re.match(r'(//|#|""")\s?\S', first):
            yield Finding(str(path), 1, "line 1 (after #!) is a comment: one sentence saying what this file is")
        elif not re.search(r'[.:?]("""|\s*)$', first) or len(first.split()) < 4:
            yield Finding(str(path), 1, "line 1 is a whole sentence that ends on its line")


def compile_finding(root, path):
    folders = [f"-I{folder}" for folder in TREES[path.parts[0]]]
    source = ALONE / (str(path).replace("/", "-") + ".cpp")  # paths from the root: ccache knows them in every clone
    (root / ALONE).mkdir(parents=True, exist_ok=True)
    (root / source).write_text(f'#include "../../{path}"\n')
    compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
    done = subprocess.run([*compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", *folders, str(source)], cwd=root,
                          capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    error = next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr.strip()[:200])
    return Finding(str(path), 1, f"does not compile alone: {error.split('error:')[-1].strip()}")


def included_first(root):
    """Headers that a source includes before anything else: a build with SYNCOPATE_UNITY=OFF compiles them alone."""
    for tree in ("src", "programs"):
        for path in files(root, tree, suffixes={".cpp"}):
            first = re.search(r'^[ \t]*#[ \t]*(\w+)[ \t]*"?([^"\n]*)', without_comments((root / path).read_text()), re.MULTILINE)
            if first and first[1] == "include":
                yield from (Path(folder) / first[2] for folder in TREES[tree])


def header_findings(root, trees, reached):
    headers = [path for path in files(root, *trees, suffixes={".hpp", ".h"}) if not {"train", "device"} & set(path.parts)]
    for path in headers:
        guards = r"^#pragma once$|HWY_TARGET_TOGGLE"  # the second: Highway includes the header once per instruction set
        if not re.search(guards, (root / path).read_text(), re.MULTILINE):
            yield Finding(str(path), 2, "#pragma once stands on line 2")
    left = sorted(set(headers) - set(included_first(root)))
    left = [path for path in left if reached is None or path in reached]
    with ThreadPoolExecutor(2) as pool:
        yield from filter(None, pool.map(lambda path: compile_finding(root, path), left))


def findings(root, trees=("include",), reached=None):
    return [*first_line_findings(root), *header_findings(root, trees, reached)]


def main():
    """Findings in the trees and files that the option names."""
    if "--since" not in sys.argv[1:]:
        return findings(ROOT, tuple(TREES) if "--all" in sys.argv[1:] else ("include",))
    reached, found = since_full_run(ROOT, (Path("check/headers.py"),))
    return [*found, *findings(ROOT, tuple(TREES), reached)]


if __name__ == "__main__":
    sys.exit(report("headers", main()))
