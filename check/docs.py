#!/usr/bin/env python3
"""The pages hold together: every relative link leads somewhere, and the README's example is the file it names."""

import re
import sys

from base.tree import ROOT, Finding, files, line_of, report

EXAMPLE = "example/allreduce.cpp"


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


def findings(root):
    return [*link_findings(root), *example_findings(root)]


if __name__ == "__main__":
    sys.exit(report("docs", findings(ROOT)))
