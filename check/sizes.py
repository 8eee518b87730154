#!/usr/bin/env python3
"""Files, shelf entries, public headers and functions stay small: limits of lines, nesting and parameters."""

import sys

from base.functions import functions
from base.tree import CODE_FOLDERS, CPP, ROOT, Finding, cpp_files, files, report, shelves

FILE_LINES = 300
SHELF_LINES = 150
HEADER_LINES = 200
PUBLIC_HEADERS = 20
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


def header_findings(root):
    headers = files(root, "include", suffixes={".hpp", ".h"})
    if len(headers) > PUBLIC_HEADERS:
        yield Finding("include", 1, f"{len(headers)} public headers; at most {PUBLIC_HEADERS}: move one to src/")


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
    return [*file_findings(root), *header_findings(root), *function_findings(root)]


if __name__ == "__main__":
    sys.exit(report("sizes", findings(ROOT)))
