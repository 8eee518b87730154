#!/usr/bin/env python3
"""The pages hold together: every relative link leads somewhere, and what pages show of examples is in their files."""

import re
import sys

from base.tree import ROOT, Finding, files, line_of, report

EXAMPLE = "example/allreduce.cpp"
# Page -> the sources that its cpp blocks are parts of.
EXCERPTS = {"docs/use.md": ["example/own_model.cpp"],
            "docs/extending.md": [f"test/template/{kind}.cpp" for kind in ("codec", "algorithm", "policy", "placement")]}


def link_findings(root):
    for path in files(root, suffixes={".md"}):
        text = (root / path).read_text()
        prose = re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.MULTILINE | re.DOTALL)
        for match in re.finditer(r"\]\(([^)\s]+)\)", prose):
            target = match[1].split("#")[0]
            if re.match(r"[a-z]+:", target) or not target:
                continue
            if not (root / path.parent / target).exists():
                yield Finding(str(path), line_of(text, match.start()), f"there is no {target}: fix the link")


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
    return [*variable_findings(root), *link_findings(root), *example_findings(root), *excerpt_findings(root)]


if __name__ == "__main__":
    sys.exit(report("docs", findings(ROOT)))
