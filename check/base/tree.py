"""The files of the tree, C++ text with comments or strings blanked, and the shelves that CMake declares."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPP = {".cpp", ".hpp", ".cu", ".h"}
# Where code lives: include/, python/, and every folder that the top CMakeLists.txt adds.
CODE_FOLDERS = ("include", "python", *re.findall(r"^\s*add_subdirectory\((\w+)\)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE))


@dataclass(frozen=True, order=True)
class Finding:
    """One thing to fix: where it is and what to do."""

    path: str
    line: int
    what: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.what}"


def report(name, findings):
    """Prints the findings and returns the exit code."""
    for finding in sorted(set(findings)):
        print(finding)
    count = len(set(findings))
    print(f"{name}: {'nothing to fix' if count == 0 else f'{count} to fix'}")
    return 0 if count == 0 else 1


def files(root, *folders, suffixes=None):
    """Files below the folders that git does not ignore, as paths relative to root, sorted."""
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z", "--", *(folders or ["."])],
        capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        paths = [Path(p) for p in listing.stdout.split("\0") if p]
    else:  # not a checkout: an unpacked archive, or a test's folder
        paths = [p.relative_to(root) for folder in (folders or ["."]) for p in (root / folder).rglob("*")]
        paths = [p for p in paths if p.parts[0] not in ("build", ".git") and "__pycache__" not in p.parts]
    return sorted({p for p in paths if (root / p).is_file() and (suffixes is None or p.suffix in suffixes)})


def cpp_files(root, *folders):
    return files(root, *(folders or CODE_FOLDERS), suffixes=CPP)


_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """The same text, comments blanked, every line and column kept."""
    return _TOKEN.sub(lambda m: _blank(m[0]) if m[0][0] == "/" else m[0], text)


def bare(text):
    """Comments, the insides of literals, and preprocessor lines blanked: what a brace scanner may read."""
    def blank(match):
        return _blank(match[0]) if match[0][0] == "/" else '"' + _blank(match[0][1:-1]) + '"'

    text = _TOKEN.sub(blank, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: _blank(m[0]), text, flags=re.MULTILINE)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.MULTILINE)


def includes(text):
    """(line, quote, target) of every include that is not commented out."""
    text = without_comments(text)
    return [(line_of(text, m.start()), m[1], m[2]) for m in _INCLUDE.finditer(text)]


def literal_lines(text):
    """Numbers of the lines that begin inside a raw string literal."""
    literals = [m for m in _TOKEN.finditer(text) if m["tag"] is not None]
    return [line_of(text, m.start()) + i for m in literals for i in range(1, m[0].count("\n") + 1)]


@dataclass(frozen=True)
class Shelf:
    """A folder that CMake gathers into a table: every .cpp in it defines one `type` in namespace `inner`."""

    folder: str
    namespace: str
    type: str


def shelves(root):
    """Every syncopate_shelf(TARGET FOLDER NAMESPACE TYPE ACCESSOR HEADER) below src and programs."""
    found = []
    for path in files(root, "src", "programs"):
        if path.name != "CMakeLists.txt":
            continue
        for match in re.finditer(r"^\s*syncopate_shelf\(([^)]*)\)", (root / path).read_text(), re.MULTILINE):
            _, folder, namespace, kind = match[1].split()[:4]
            found.append(Shelf(str(path.parent / folder), f"{namespace}::{Path(folder).name}", kind))
    return found
