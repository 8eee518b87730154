#!/usr/bin/env python3
"""Numbers that compare this library with another one stand in blocks that scripts/measure writes from data/measured.

A block agrees with the newest complete run of its table, no row of which was measured while other programs used more than
one core. Elsewhere on these pages no sentence and no table names another library together with a measured quantity.
"""

import json
import re
import subprocess
import sys

from base.tree import ROOT, Finding, line_of, report

PAGES = ("README.md", "docs/benchmarks.md", "docs/python.md")
ROWS = "data/measured"
MOST_ELSEWHERE = 1.0  # cores
_BLOCK = re.compile(r"^<!-- measured: (\w+) -->\n.*?^<!-- end of measured -->\n", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
_PEER = re.compile(r"\b(Gloo|gloo|Open MPI|MPICH|Intel MPI|oneCCL|gRPC|PowerSGD|powersgd|ZeroRedundancyOptimizer|Horovod|NCCL|nth_element)\b")
_QUANTITY = re.compile(r"(?<![\w.])(\d+(\.\d+)? ?(ns|us|µs|ms|s|samples/s)\b|x\d+\.\d+|\d+(\.\d+)? times as (fast|long)|\d+(\.\d+)? %)")


def without_blocks(text):
    """The text with blocks and fences as empty lines."""
    blank = lambda match: "\n" * match[0].count("\n")
    return _FENCE.sub(blank, _BLOCK.sub(blank, text))


def paragraphs(text):
    """(begin, text) of each paragraph, list item, and line of a table together with its head."""
    for match in re.finditer(r"(?:^(?!\s*$).*\n?)+", text, re.MULTILINE):
        begin, head = match.start(), ""
        for part in re.split(r"(?m)^(?=- |\|)", match[0]):
            if part.strip():
                yield begin, head + part
            if part.startswith("|"):
                head = head or part
            begin += len(part)


def page_findings(root):
    for page in PAGES:
        if not (root / page).exists():
            continue
        text = without_blocks((root / page).read_text())
        for begin, part in paragraphs(text):
            peer, quantity = _PEER.search(part), _QUANTITY.search(part)
            if peer and quantity:
                yield Finding(page, line_of(text, begin), f"compares {peer[0]} ({quantity[0]}) outside a block of scripts/measure: "
                              "measure it as a table there, or leave the number out")


def row_findings(root):
    for file in sorted((root / ROWS).glob("*.jsonl")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            row = json.loads(line)
            lacking = [key for key in ("table", "run", "turn", "date", "commit", "machine", "command", "elsewhere_cores") if key not in row]
            if lacking:
                yield Finding(f"{ROWS}/{file.name}", number, f"the row lacks {lacking[0]}: measure the table again")
            elif row["elsewhere_cores"] > MOST_ELSEWHERE:
                yield Finding(f"{ROWS}/{file.name}", number, f"other programs used {row['elsewhere_cores']} cores: measure the table again")


def block_findings(root):
    done = subprocess.run([sys.executable, root / "scripts/measure", "--check"], capture_output=True, text=True, check=False)
    for line in (done.stdout + done.stderr).splitlines():
        yield Finding("scripts/measure", 1, line)


if __name__ == "__main__":
    sys.exit(report("measured", [*page_findings(ROOT), *row_findings(ROOT), *block_findings(ROOT)]))
