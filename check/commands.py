#!/usr/bin/env python3
"""What the pages tell to type works as they say: their command blocks are run, and what they print is compared.

```console   a session: commands after "$ ", each followed by what it prints. Lines may come in any order, as those of
             ranks do; "…" stands for any text, a line of its own for any lines. Measured values count as equal.
```sh        commands whose output does not matter; all must succeed.
```text      is not run; nor is any other language. A fence without one is refused: nobody knows what it is.

A comment on the line before a block says what is special: <!-- run: exact --> compares times and rates too,
<!-- run: lab --> needs emulated hosts, <!-- run: train --> the training program, <!-- run: skip, REASON --> is not run (it takes minutes, or several
hosts). Blocks of a page run in their order in one scratch folder, which also shows data/, example/ and docs/figures/.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from base.tree import ROOT, Finding, files, report

LIMIT_S = 120  # of one command on a loaded machine: what takes longer belongs to no check
SHOWN = ("data", "example", "docs/figures")  # folders of the tree that a command may name
RUN = ("console", "sh")

_FENCE = re.compile(r"^```(\S*)\s*$")
_MARK = re.compile(r"^<!-- run: (\w+)(?:, (.+))? -->$")
_NUMBER = r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_MASKS = [
    (re.compile(_NUMBER + r" ?(?:ns|us|µs|ms|s|min)\b"), "TIME"),
    (re.compile(_NUMBER + r" ?(?:[KMG]i?B|[KMG]bit|samples)/s\b"), "RATE"),
    (re.compile(_NUMBER + r" ?%"), "SHARE"),
    (re.compile(r"\bx\d+(?:\.\d+)?\b"), "TIMES"),
    (re.compile(r"(tcp://[\w.\[\]:]*?):\d{2,5}\b"), r"\1:PORT"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "DIGEST"),
]


@dataclass(frozen=True)
class Block:
    """A fenced block: where its first line stands, its language, its mark with a reason, its lines."""

    line: int
    language: str
    mark: str
    reason: str
    lines: tuple


def blocks(text):
    lines, found, begin = text.splitlines(), [], None
    for i, line in enumerate(lines):
        fence = _FENCE.match(line)
        if begin is None and fence:
            begin, language = i, fence[1]
        elif begin is not None and line.rstrip() == "```":
            mark = _MARK.match(lines[begin - 1]) if begin else None
            found.append(Block(begin + 1, language, *(mark.groups("") if mark else ("", "")), tuple(lines[begin + 1:i])))
            begin = None
    return found


def mark_finding(path, block):
    """The defect of a block's mark, or None."""
    if not block.language:
        return Finding(path, block.line, "a fence without a language: console and sh are run, text is not")
    if block.mark not in ("", "exact", "lab", "train", "skip"):
        return Finding(path, block.line, f"run: {block.mark} is unknown: exact, lab, train, or skip with a reason")
    if block.mark == "skip" and not block.reason:
        return Finding(path, block.line, "skipped without a reason: <!-- run: skip, REASON -->")
    if block.language == "console" and not block.lines[0].startswith("$ "):
        return Finding(path, block.line, 'a console block begins with a command, after "$ "')
    return None


def session(lines):
    """(offset of its first line, command, expected lines) of every command of a console block."""
    found = []
    for i, line in enumerate(lines):
        if found and found[-1][1].endswith("\\") and not found[-1][2]:
            offset, command, expected = found[-1]
            found[-1] = (offset, f"{command}\n{line}", expected)
        elif line.startswith("$ "):
            found.append((i, line[2:], []))
        else:
            found[-1][2].append(line)
    return found


def masked(line, exact=False):
    for pattern, name in () if exact else _MASKS:
        line = pattern.sub(name, line)
    return " ".join(line.split())


def differences(expected, printed, exact=False):
    """Lines that should have been printed and were not, and those that were printed instead."""
    missing, left = [], [masked(line, exact) for line in printed if line.strip()]
    wanted = [masked(line, exact) for line in expected if line.strip()]
    for line in sorted((w for w in wanted if w != "…"), key=lambda w: "…" in w):  # what matches one line alone goes first
        pattern = re.compile(".*".join(re.escape(part) for part in re.split(" ?… ?", line)))
        match = next((p for p in left if pattern.fullmatch(p)), None)
        if match is None:
            missing.append(line)
        else:
            left.remove(match)
    return missing, [] if "…" in wanted else left


class Shell:
    """A scratch folder with the built programs in PATH, and no job around it."""

    def __init__(self, folder, programs):
        self.folder = folder
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("SYNCOPATE_")}
        self._environment["PATH"] = f"{programs}:{os.environ['PATH']}"

    def run(self, command):
        """(exit code, lines of both streams); 124 after LIMIT_S."""
        process = subprocess.Popen(["bash", "-c", command], cwd=self.folder, env=self._environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            output = process.communicate(timeout=LIMIT_S)[0]
            return process.returncode, output.replace(str(self.folder), "SCRATCH").splitlines()
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return 124, process.communicate()[0].splitlines()

    def lacks(self, mark):
        """The requirement of a block with this mark that this machine lacks; empty: none."""
        if mark == "lab":
            return self._lacks_lab()
        if mark == "train" and self.run("command -v syncopate-train")[0] != 0:
            return "syncopate-train is not built"
        return ""

    def _lacks_lab(self):
        """Emulated hosts must be possible, and the lab of the pages, named sync, must replace no other lab."""
        if any("lab sync:" in line for line in self.run("syncopate lab status")[1]):
            return "a lab named sync is up"
        code, lines = self.run("syncopate lab up --name commands 1 none && syncopate lab down --name commands")
        return "" if code == 0 else f"no emulated hosts here: {lines[-1] if lines else code}"


def console_findings(path, block, shell):
    for offset, command, expected in session(block.lines):
        code, printed = shell.run(command)
        where = Finding(path, block.line + 1 + offset, "")
        if code == 124:
            yield Finding(path, where.line, f"takes more than {LIMIT_S} s: mark it <!-- run: skip, … -->")
            continue
        missing, unexpected = differences(expected, printed, block.mark == "exact")
        if missing or unexpected:
            changes = [f"\n  - {line}" for line in missing] + [f"\n  + {line}" for line in unexpected]
            yield Finding(path, where.line, f"prints something else (- the page, + the program):{''.join(changes)}")


def sh_findings(path, block, shell):
    code, printed = shell.run("set -e\n" + "\n".join(block.lines))
    if code != 0:
        yield Finding(path, block.line, f"exits with {code}: {' / '.join(printed[-3:])}")


def block_findings(path, block, shell):
    wrong = mark_finding(path, block)
    if wrong:
        return [wrong]
    if block.language not in RUN or block.mark == "skip":
        return []
    if why := shell.lacks(block.mark):
        print(f"{path}:{block.line}: not run, {why}")
        return []
    return list((console_findings if block.language == "console" else sh_findings)(path, block, shell))


def shown(root, folder):
    """Makes the folders that commands may name visible in a scratch folder."""
    for name in SHOWN:
        if (root / name).is_dir():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(root / name)


def page_findings(root, path, programs):
    with tempfile.TemporaryDirectory(prefix="syncopate-commands-") as folder:
        shown(root, Path(folder))
        shell = Shell(folder, programs)
        for block in blocks((root / path).read_text()):
            yield from block_findings(str(path), block, shell)


def pages(root):
    return [p for p in files(root, suffixes={".md"}) if p == Path("README.md") or p.parts[0] == "docs"]


def findings(root, programs, wanted=()):
    return [f for path in pages(root) if not wanted or str(path) in wanted for f in page_findings(root, path, programs)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="as docs/run.md; default: README.md and all of docs/")
    parser.add_argument("--programs", type=Path, default=ROOT / "build/release/bin", help="folder of the built programs")
    options = parser.parse_args()
    if not (options.programs / "syncopate").exists():
        sys.exit(f"commands: {options.programs} has no syncopate: build it first")
    sys.exit(report("commands", findings(ROOT, options.programs.resolve(), options.pages)))
