#!/usr/bin/env python3
"""Folders, files, shelf entries, public headers and functions stay small: limits of files, lines, nesting and parameters."""

import sys
from collections import Counter

from base.functions import functions
from base.tree import CODE_FOLDERS, CPP, ROOT, Finding, cpp_files, files, report, shelves

FILE_LINES = 300
SHELF_LINES = 150
HEADER_LINES = 200
PUBLIC_HEADERS = 20  # for users in include/syncopate, and as many for our own programs in its tooling/
FOLDER_FILES = 20
FUNCTION_LINES = 60
NESTING = 3
PARAMETERS = 4
COUNTED = CPP | {".py", ".cmake", ".sh", ""}


def line_count(path):
    return len(path.read_text(errors="replace").splitlines())


def file_findings(root):
    shelf_folders = {s.folder for s in shelves(root)}
    for path in files(root, *CODE_FOLDERS, "check", "scripts", "cmake", ".ci", suffixes=COUNTED):
        limit, kind = FILE_LINES, "a file"
        if str(path.parent) in shelf_folders:
            limit, kind = SHELF_LINES, "a shelf entry"
        elif path.parts[0] == "include":
            limit, kind = HEADER_LINES, "a public header"
        lines = line_count(root / path)
        if lines > limit:
            yield Finding(str(path), lines, f"{lines} lines; {kind} has at most {limit}: give one of its jobs a file of its own")


def folder_findings(root):
    """Too many files side by side; a shelf may hold as many entries as there are."""
    shelf_folders = {s.folder for s in shelves(root)}
    for folder, count in sorted(Counter(str(path.parent) for path in cpp_files(root)).items()):
        limit, kind = (PUBLIC_HEADERS, "public headers") if folder.startswith("include/") else (FOLDER_FILES, "files")
        if count > limit and folder not in shelf_folders:
            yield Finding(folder, 1, f"{count} {kind}; at most {limit}: give one of its thoughts a folder, or move a header to src/")


def function_findings(root):
    for path in cpp_files(root):
        for function in functions((root / path).read_text(errors="replace")):
            where, name = str(path), function.name
            if function.lines > FUNCTION_LINES:
                yield Finding(where, function.first_line, f"{name} has {function.lines} lines, at most {FUNCTION_LINES}: split it")
            if function.nesting > NESTING:
                yield Finding(where, function.deepest_line,
                              f"{name} nests {function.nesting} deep, at most {NESTING}: return early or name the inner part")
            if function.parameters > PARAMETERS:
                yield Finding(where, function.first_line,
                              f"{name} takes {function.parameters} parameters, at most {PARAMETERS}: make an options struct")


def findings(root):
    return [*file_findings(root), *folder_findings(root), *function_findings(root)]


if __name__ == "__main__":
    sys.exit(report("sizes", findings(ROOT)))
