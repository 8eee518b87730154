#!/usr/bin/env python3
"""Functions stay short and shallow; unusual sizes of files and folders are printed as advice and do not fail."""

import sys
from collections import Counter

from base.functions import functions
from base.tree import CODE_FOLDERS, CPP, ROOT, Finding, cpp_files, files, report, shelves

FUNCTION_LINES = 60
NESTING = 4
# Advice: one class per file and one idea per file matter more than a number.
LONG_FILE = 500
SHORT_FILE = 20
FULL_FOLDER = 30
COUNTED = CPP | {".py", ".cmake", ".sh", ""}


def line_count(path):
    return len(path.read_text(errors="replace").splitlines())


def advice(root):
    """Files and folders of unusual size: places to look at, not findings."""
    shelf_folders = {s.folder for s in shelves(root)}
    for path in files(root, *CODE_FOLDERS, "check", "scripts", "cmake", ".ci", suffixes=COUNTED):
        lines = line_count(root / path)
        if lines > LONG_FILE:
            yield Finding(str(path), 1, f"{lines} lines: does it contain more than one idea?")
        elif lines < SHORT_FILE and path.suffix in CPP and path.parts[0] == "src" and str(path.parent) not in shelf_folders:
            yield Finding(str(path), 1, f"{lines} lines: does it belong to a neighbour?")
    for folder, count in sorted(Counter(str(path.parent) for path in cpp_files(root)).items()):
        if count > FULL_FOLDER and folder not in shelf_folders:
            yield Finding(folder, 1, f"{count} files: is one of its ideas a folder?")


def findings(root):
    for path in cpp_files(root):
        for function in functions((root / path).read_text(errors="replace")):
            where, name = str(path), function.name
            if function.lines > FUNCTION_LINES:
                yield Finding(where, function.first_line, f"{name} has {function.lines} lines, at most {FUNCTION_LINES}: split it")
            if function.nesting > NESTING:
                yield Finding(where, function.deepest_line,
                              f"{name} nests {function.nesting} deep, at most {NESTING}: return early or name the inner part")


if __name__ == "__main__":
    if "--advice" in sys.argv[1:]:
        for finding in sorted(advice(ROOT)):
            print(finding)
    sys.exit(report("sizes", findings(ROOT)))
