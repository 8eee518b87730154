#!/usr/bin/env python3
"""The pages hold together: every relative link leads somewhere, and what pages show of examples is in their files."""

import re
import sys

from base.tree import ROOT, Finding, files, line_of, report

EXAMPLE = "example/allreduce.cpp"
EXCERPTS = {"docs/use.md": "example/own_model.cpp"}  # page -> the program that its cpp blocks are parts of


def link_findings(root):
    for path in files(root, suffixes={".md"}):
        text = (root / path).read_text()
        prose = re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.MULTILINE | re.DOTALL)
        for match in re.finditer(r"\]\(([^)\s]+)\)", prose):
            target = match[1].split("#")[0]
            if re.match(r"[a-z]+:", target) or not target:
                continue
            if not (root / path.parent / target).exists():
                yield Finding(str(path), line_of(text, match.start()), f"there is no {target}: mend the link")


def example_findings(root):
    code = (root / EXAMPLE).read_text()
    if code not in (root / "README.md").read_text():
        yield Finding("README.md", 1, f"the C++ example is not {EXAMPLE} as it is: copy it again")


def excerpt_findings(root):
    for page, example in EXCERPTS.items():
        if not (root / page).exists():
            continue
        text, code = (root / page).read_text(), (root / example).read_text()
        for match in re.finditer(r"^```cpp\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
            if match[1] not in code:
                yield Finding(page, line_of(text, match.start()), f"these lines are not in {example}: copy them again")


def findings(root):
    return [*link_findings(root), *example_findings(root), *excerpt_findings(root)]


if __name__ == "__main__":
    sys.exit(report("docs", findings(ROOT)))
