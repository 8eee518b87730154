#!/usr/bin/env python3
"""A shelf file is one entry and nothing else: its stem is its symbol, its name, and a word in the docs."""

import re
import sys

from base.functions import functions
from base.tree import ROOT, Finding, bare, files, line_of, report, shelves, without_comments

# Tree -> the page that must name every entry of its shelves, and how that page is written.
PAGES = {
    "src": ("docs/catalogue.md", "by `syncopate info --markdown`"),
    "programs/syncopate": ("docs/catalogue.md", "by `syncopate info --markdown`"),
    "programs/train": ("docs/training.md", "by hand"),
}


def stranger_findings(root, shelf):
    """Files and folders that do not belong into the shelf."""
    for path in files(root, shelf.folder):
        if str(path.parent) != shelf.folder:
            yield Finding(str(path), 1, f"{shelf.folder} is a shelf: no folders in it")
        elif path.suffix != ".cpp" and path.name != "README.md":
            yield Finding(str(path), 1, f"{shelf.folder} is a shelf: entries (.cpp) and a README.md only; what entries share "
                                        "stands one folder up")
        elif path.suffix == ".cpp" and not re.fullmatch(r"[a-z][a-z0-9_]*", path.stem):
            yield Finding(str(path), 1, "an entry's name is snake_case")


def descriptor_findings(path, text, shelf):
    """The entry defines exactly one descriptor, named like the file, whose first field is that name."""
    code = without_comments(text)
    pattern = rf"\bconst\s+(?:\w+::)*{shelf.type}\s+(\w+)\s*(?:=\s*)?(?:[\w:]+(?:<[\w:]+>)?\()?\{{\s*(?:\.name\s*=\s*)?(?:\"([^\"]*)\"|(\w+))?"
    found = list(re.finditer(pattern, code))
    if not found:
        yield Finding(str(path), 1, f"defines no `extern constinit const {shelf.type} {path.stem}`")
    for match in found:
        line = line_of(code, match.start())
        if match[1] != path.stem:
            yield Finding(str(path), line, f"the symbol is {match[1]}; an entry's symbol is its file's stem, {path.stem}")
        elif match[2] != path.stem:
            yield Finding(str(path), line, f'the descriptor\'s first field is its name, "{path.stem}"')
    if len(found) > 1:
        yield Finding(str(path), line_of(code, found[1].start()), "a shelf file is one entry: give this one its own file")
    if not re.search(rf"namespace {shelf.namespace}\b", bare(text)):
        yield Finding(str(path), 1, f"the entry stands in namespace {shelf.namespace}")


def visible_findings(path, text):
    """Nothing but the descriptor can be seen from outside the file."""
    for function in functions(text):
        hidden = any(name == "" for name in function.namespaces) or function.inside_type or "::" in function.name
        if not hidden:
            yield Finding(str(path), function.first_line, f"{function.name} is visible outside: put it into an unnamed namespace")


def page_findings(root, shelf, stems):
    page, how = next(PAGES[tree] for tree in PAGES if shelf.folder.startswith(f"{tree}/"))
    text = (root / page).read_text() if (root / page).is_file() else ""
    for stem in stems:
        if f"`{stem}`" not in text:
            yield Finding(page, 1, f"`{stem}` of {shelf.folder} is missing; the page is written {how}")


def findings(root):
    for shelf in shelves(root):
        yield from stranger_findings(root, shelf)
        stems = []
        for path in files(root, shelf.folder, suffixes={".cpp"}):
            text = (root / path).read_text()
            stems.append(path.stem)
            if not text.startswith("// "):
                yield Finding(str(path), 1, "line 1 must state in one sentence what the entry is and where it comes from")
            yield from descriptor_findings(path, text, shelf)
            yield from visible_findings(path, text)
        yield from page_findings(root, shelf, stems)


if __name__ == "__main__":
    sys.exit(report("shelves", list(findings(ROOT))))
