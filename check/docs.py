#!/usr/bin/env python3
"""The pages hold together: links and names of files lead somewhere, and what pages show of examples is in their files."""

import re
import sys
from collections import Counter

from base.tree import CPP, ROOT, Finding, files, line_of, report, without_comments

EXAMPLE = "example/allreduce.cpp"
TOUR = "docs/tour.md"
# Page -> the sources that its cpp blocks are parts of.
EXCERPTS = {
    "docs/use.md": ["example/own_model.cpp"],
    "docs/extending.md": (
        [f"test/template/{kind}.cpp" for kind in ("codec", "algorithm", "policy", "placement")]
        + ["example/own/rule.cpp", "example/own/consistency.cpp", "example/own/storage.cpp", "example/own/workers.hpp"]
    ),
}


def prose_of(text):
    """The text with blank lines in place of its code."""
    return re.sub(r"^```.*?^```", lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.MULTILINE | re.DOTALL)


def anchors_of(page):
    """Names of a page's headings in links, as GitHub forms them."""
    names, counts = [], Counter()
    for heading in re.findall(r"^#+ (.*)", prose_of(page.read_text()), flags=re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        names.append(f"{name}-{counts[name]}" if name in counts else name)
        counts[name] += 1
    return names


def link_findings(root):
    for path in files(root, suffixes={".md"}):
        text = (root / path).read_text()
        for match in re.finditer(r"\]\(([^)\s]+)\)", prose_of(text)):
            target, _, anchor = match[1].partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            page = root / path.parent / target if target else root / path
            if not page.exists():
                yield Finding(str(path), line_of(text, match.start()), f"there is no {target}: fix the link")
            elif anchor and page.suffix == ".md" and anchor not in anchors_of(page):
                yield Finding(str(path), line_of(text, match.start()), f"{match[1]}: the page has no such heading: fix the link")


def source_findings(root):
    """Every C++ file that a page or a C++ comment names exists, in any folder that has the named path."""
    paths = files(root)
    ends = {"/".join(path.parts[i:]) for path in paths if path.suffix in CPP for i in range(len(path.parts))}
    for path in paths:
        if path.suffix not in CPP | {".md"}:
            continue
        text = (root / path).read_text()
        code = without_comments(text) if path.suffix in CPP else ""
        for match in re.finditer(r"(?<![\w./<>~-])(?:\.\.?/)*(\w[\w./-]*\.[ch]pp)\b", text):
            is_code = code[match.start():match.end()] == match[0]
            if not is_code and match[1] not in ends:
                yield Finding(str(path), line_of(text, match.start()), f"there is no {match[1]}: name the file that has it now")


def table_findings(root):
    """The first column of a table of files in a folder's README names files or folders of that folder."""
    for path in files(root, "src", "programs", suffixes={".md"}):
        is_listing = False
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            cell = line.split("|")[1].strip() if line.startswith("|") else ""
            is_listing = line.startswith("|") and (is_listing or cell in ("file", "folder", "header"))
            for name in re.findall(r"`([\w./]+)`", cell) if is_listing else ():
                target = root / path.parent / name
                if not target.exists() and not any(target.parent.glob(f"{target.name}.*")):
                    yield Finding(str(path), number, f"there is no {name}: name a file or folder that is here")


def tour_findings(root):
    """The tour names functions and types that are in the files which it links to."""
    page = root / TOUR
    if not page.exists():
        return
    text = page.read_text()
    targets = [page.parent / target for target in re.findall(r"\]\(([^)\s#]+)\)", text)]
    words = {word for target in targets if target.is_file() for word in re.findall(r"\w+", target.read_text())}
    for match in re.finditer(r"`(?:\w+::)*(\w+)`", text):
        if match[1] not in words:
            yield Finding(TOUR, line_of(text, match.start()), f"no linked file has {match[1]}: name what it is called now")


def example_findings(root):
    code = (root / EXAMPLE).read_text()
    if code not in (root / "README.md").read_text():
        yield Finding("README.md", 1, f"the C++ example is not {EXAMPLE} as it is: copy it again")


def excerpt_findings(root):
    for page, sources in EXCERPTS.items():
        if not (root / page).exists():
            continue
        text, codes = (root / page).read_text(), [(root / source).read_text() for source in sources]
        for match in re.finditer(r"^```cpp\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
            if not any(match[1] in code for code in codes):
                yield Finding(page, line_of(text, match.start()), f"these lines are not in {' or '.join(sources)}: copy them again")


def variable_findings(root):
    """Every variable that code reads is in the table from which docs/environment.md is generated."""
    table = root / "src/base/variables.cpp"
    known = set(re.findall(r'"(SYNCOPATE_[A-Z_]+)"', table.read_text())) if table.exists() else set()
    for path in files(root, "src", "programs", "bench", "bind", "python", suffixes={".cpp", ".hpp", ".py"}):
        text = (root / path).read_text()
        for match in re.finditer(r'"(SYNCOPATE_[A-Z_]+)"', text):
            if match[1] not in known:
                yield Finding(str(path), line_of(text, match.start()), f"{match[1]} is missing in src/base/variables.cpp: add it")


def findings(root):
    return [*variable_findings(root), *link_findings(root), *source_findings(root), *table_findings(root), *tour_findings(root),
            *example_findings(root), *excerpt_findings(root)]


if __name__ == "__main__":
    sys.exit(report("docs", findings(ROOT)))
